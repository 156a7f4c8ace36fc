"""Sweeps as a user runs them: the real command on the shipped sample, a real MLflow store, real kills."""

from __future__ import annotations

import difflib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from logged_runs import LoggedRuns, questions
from processes import TWO_BY_TWO, Command, run, run_fresh, until
from ragauge import track
from ragauge.commands import compare
from ragauge.commands.results import pool, report
from ragauge.contract.errors import DataError
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.metrics import without_groups
from ragauge.contract.naming import system_names
from ragauge.contract.option import values_of
from ragauge.experiment.sweep import pooling
from ragauge.show.drawing import LINE_COLOURS
from sweep_records import record_of

SMALL = ["dataset.limit=12", "chunker=none", "bootstrap=50"]
# One dataset and one set of chunks; an index and a run for each retriever; answers for each budget.
ONCE_EACH = {"dataset": 1, "chunks": 1, "index": 2, "run": 2, "floor": 1, "scores": 2, "answers": 4}
THRESHOLD_METRICS = ("", "_lo", "_hi", "_accuracy", "_base_rate", "_degenerate")
CONTRACT = {
    "ir_score", "ir_score_lo", "ir_score_hi",
    *(f"judge_share_{c}" for c in JUDGE_CLASSES), "judge_share_missing",
    "hallucination_share", "correct_share", "correct_share_lo", "correct_share_hi",
    *(f"threshold_{t}{s}" for t in "hk" for s in THRESHOLD_METRICS),
    "predictor_log_loss", "predictor_log_loss_base", "predictor_brier", "predictor_ece",
    *(f"{p}{m}" for p in ("", "judge_")
      for m in ("llm_calls", "llm_calls_cached", "prompt_tokens", "completion_tokens", "cost_usd")),
    "seconds_chunks", "seconds_run", "seconds_scores", "seconds_total",
}  # fmt: skip


def sweep_folders(folder: Path) -> list[Path]:
    return sorted((folder / "multirun").glob("*/*"))


def job_records(sweep_folder: Path) -> list[dict]:
    return [json.loads(file.read_text()) for file in sorted(sweep_folder.glob("*/job.json"))]


def stage_outputs(folder: Path) -> set[tuple[str, str]]:
    """(stage, digest) of what stages have finished; figures are kept beside them as findings."""
    found = (key.parent for key in (folder / ".ragauge").glob("[!.]*/*/key.json"))
    return {(path.parent.name, path.name) for path in found if path.parent.name != "findings"}


def mlflow_runs(folder: Path, role: str, experiment_name: str = "sample"):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder / 'mlruns' / 'mlflow.db'}")
    experiment = client.get_experiment_by_name(experiment_name)
    return client, client.search_runs([experiment.experiment_id], f"tags.role = '{role}'")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory, bring_models: Callable[..., None]) -> Path:
    """A folder in which the same small sweep ran twice. `two_by_two` is for reading: other processes have it, too."""
    folder = tmp_path_factory.mktemp("swept")
    bring_models(folder / ".ragauge", vectors=False)
    for _ in range(2):
        done = run(folder, *TWO_BY_TWO)
        assert done.returncode == 0, done.stderr
    return folder


def test_runs_of_a_sweep_have_the_colour_of_their_system(two_by_two: Path) -> None:
    runs = mlflow_runs(two_by_two, "job")[1]
    first, second = LINE_COLOURS[:2]
    assert {(r.data.tags["retriever"], r.data.tags["mlflow.runColor"]) for r in runs} == {
        ("bm25", first), ("sim", second),
    }  # fmt: skip


@pytest.mark.slow
def test_the_second_sweep_makes_no_stage(swept: Path) -> None:
    first, second = (job_records(folder) for folder in sweep_folders(swept))
    assert [len(first), len(second)] == [4, 4]
    made = [stage for record in first for stage in record["stages_made"]]
    assert {stage: made.count(stage) for stage in ONCE_EACH} == ONCE_EACH
    assert [record["stages_made"] for record in second] == [[]] * 4


@pytest.mark.slow
def test_a_run_says_that_its_queries_were_written_without_an_llm(swept: Path, tmp_path) -> None:
    shutil.copytree(swept / ".ragauge", tmp_path / ".ragauge")
    done = run(tmp_path, "-m", *SMALL, "retriever=mlq", "n_tokens=100")
    assert done.returncode == 0, done.stderr
    (logged,) = mlflow_runs(tmp_path, "job")[1]
    assert logged.data.tags["retriever.queries"] == "rules"


@pytest.mark.slow
def test_sweeps_measure_the_same_to_the_last_bit_also_in_a_fresh_interpreter(
    swept: Path, tmp_path: Path, bring_models: Callable[..., None]
) -> None:
    bring_models(tmp_path / ".ragauge", vectors=False)
    done = run_fresh(tmp_path, *TWO_BY_TWO)
    assert done.returncode == 0, done.stderr
    folders = [*sweep_folders(swept), *sweep_folders(tmp_path)]
    for jobs in zip(*map(job_records, folders), strict=True):
        first, second, fresh = (
            {k: str(v) for k, v in job["metrics"].items() if not k.startswith(("seconds_", "stages_"))} for job in jobs
        )
        assert first == second == fresh


@pytest.mark.slow
def test_every_job_is_a_flat_run_with_the_metrics_of_the_contract(swept: Path) -> None:
    client, runs = mlflow_runs(swept, "job")
    assert len(runs) == 8
    for logged in runs:
        assert logged.info.status == "FINISHED"
        # A measure that cannot be computed (one class only) is left out, not logged as NaN.
        assert set(without_groups(logged.data.metrics)) >= CONTRACT
        assert "mlflow.parentRunId" not in logged.data.tags
        assert logged.data.tags["sweep_id"]
        assert logged.data.tags["dataset_digest"]
        assert logged.data.params["retriever.top_k"] == str(values_of("hydra/shared/hits")["top_k"])
        shares = [logged.data.metrics[f"judge_share_{c}"] for c in (*JUDGE_CLASSES, "missing")]
        assert sum(shares) == pytest.approx(1)
        names = {a.path for a in client.list_artifacts(logged.info.run_id)}
        assert names >= {"config", "figures", "per_question.json", "run.trec", "qrels.trec"}
        # MLflow opens the first.
        assert json.loads(logged.data.tags["mlflow.loggedArtifacts"])[0]["path"] == "per_question.json"


@pytest.mark.slow
def test_every_score_equals_an_exact_match_over_the_row_s_own_context_and_evidence(swept: Path) -> None:
    client, runs = mlflow_runs(swept, "job")
    for logged in runs[:4]:
        table = json.loads(Path(client.download_artifacts(logged.info.run_id, "per_question.json")).read_text())
        rows = pd.DataFrame(table["data"], columns=table["columns"])
        assert len(rows) == 12
        for row in rows.itertuples():
            context = " ".join(row.context.split())
            ratios = []
            for part in row.evidence:
                needed = " ".join(part.split())
                match = difflib.SequenceMatcher(None, needed, context, autojunk=False).find_longest_match()
                ratios.append(match.size / len(needed))
            assert row.ir_score == pytest.approx(sum(ratios) / len(ratios), abs=1e-12)
        assert logged.data.metrics["ir_score"] == pytest.approx(rows["ir_score"].mean(), abs=1e-12)


@pytest.mark.slow
def test_the_sweep_has_one_run_of_its_own_that_pooling_again_replaces(swept: Path) -> None:
    client, runs = mlflow_runs(swept, "sweep")
    assert len(runs) == 2
    for logged in runs:
        assert logged.data.metrics["jobs"] == 4
        assert {"threshold_h", "threshold_k", "predictor/predictor_log_loss"} <= set(logged.data.metrics)
        # 12 topics of two systems: the one difference that can be seen is a large one.
        for measure in ("ir_score", "correct", "hallucination"):
            name = f"leaderboard/detectable_difference_{measure}"
            assert logged.data.metrics[name] == logged.data.metrics[f"{name}_median"]
            assert 0 < logged.data.metrics[name] <= 1
        steps = client.get_metric_history(logged.info.run_id, "ir_score_at_n/bm25")
        assert {m.step for m in steps} >= {100, 300}
        floor = client.get_metric_history(logged.info.run_id, "ir_score_floor_at_n/unrelated text")
        assert {m.step for m in floor} >= {100, 300}
        assert all(0 < m.value < 0.3 for m in floor)
        figures = {a.path for a in client.list_artifacts(logged.info.run_id, "figures")}
        assert figures >= {f"figures/{n}.png" for n in ("ir_score_by_n", "judge_shares", "sorted_scores")}
    folder = sweep_folders(swept)[0]
    assert pool([str(folder), "--tracking-uri", f"sqlite:///{swept}/mlruns/mlflow.db"]) == 0
    _, again = mlflow_runs(swept, "sweep")
    assert len(again) == 2
    assert {r.data.tags["sweep_id"] for r in again} == {r.data.tags["sweep_id"] for r in runs}


@pytest.mark.slow
def test_a_plan_from_a_run_id_is_that_of_the_folder_and_without_the_folder_too(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = pytest.importorskip("ragauge.plugins.planning.command")
    uri = f"sqlite:///{swept}/mlruns/mlflow.db"
    folder = sweep_folders(swept)[0]
    runs = {r.data.tags["sweep_id"]: r.info.run_id for r in mlflow_runs(swept, "sweep")[1]}
    asked = ["--difference", "0.2", "--tracking-uri", uri, "--json"]

    def planned(source: str) -> list[dict]:
        assert plan.main([source, *asked]) == 0
        return json.loads(capsys.readouterr().out)

    here = planned(str(folder))
    run_id = runs[here[0]["sweep_id"]]
    assert planned(run_id) == here
    away = folder.rename(folder.with_name("away"))
    try:
        told = planned(run_id)
    finally:
        away.rename(folder)
    assert told[0]["pairs"] == here[0]["pairs"]
    assert [row["kind"] for row in told[0]["labels"]] == [row["kind"] for row in here[0]["labels"]]


@pytest.mark.slow
@pytest.mark.parametrize("design", ["uniform", "neyman"])
def test_a_sample_of_topics_is_judged_the_same_for_every_retriever(swept: Path, tmp_path, design) -> None:
    shutil.copytree(swept / ".ragauge", tmp_path / ".ragauge")
    _, pooled = mlflow_runs(swept, "sweep")
    done = run(
        tmp_path,
        *TWO_BY_TWO,
        "judge.sample=8",
        f"judge.sample_design={design}",
        f"predictor=runs:/{pooled[0].info.run_id}/predictor",
        f"tracking.uri=sqlite:///{swept / 'mlruns' / 'mlflow.db'}",
        "tracking.experiment=sampled",
    )
    assert done.returncode == 0, done.stderr
    assert "12 topics, 8 judged" in done.stdout
    (folder,) = sweep_folders(tmp_path)
    rows = pd.concat([pd.read_parquet(file) for file in folder.glob("*/outcomes.parquet")])
    judged = rows[rows["judged"]].groupby(["retriever", "n_tokens"])["qid"].agg(frozenset)
    assert len(judged) == 4
    assert judged.nunique() == 1
    assert len(judged.iloc[0]) == 8
    assert rows.loc[~rows["judged"], "label"].isna().all()
    # Nobody else was judged on the way, for a prediction or for another sample.
    verdicts = [len(list((place / ".ragauge" / "verdicts").iterdir())) for place in (swept, tmp_path)]
    assert verdicts[1] - verdicts[0] == 4
    for record in job_records(folder):
        values = record["metrics"]
        assert values["judged_topics"] == 8
        assert values["correct_share_lo"] <= values["correct_share"] <= values["correct_share_hi"]
        assert values["correct_share_effective_n"] > 0
    assert report([str(folder)]) == 0
    assert "A sample of topics was judged" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_experiment_says_what_to_look_at_and_a_system_has_one_colour(swept: Path) -> None:
    client, runs = mlflow_runs(swept, "job")
    tags = client.get_experiment(runs[0].info.experiment_id).tags
    assert tags["mlflow.note.content"].startswith("**Look first at** [IR score against N](#/experiments/")
    assert {"mlflow.sharedViewState.ragauge-jobs", "mlflow.sharedViewState.ragauge-charts"} <= set(tags)
    colours = {(r.data.tags["retriever"], r.data.tags["mlflow.runColor"]) for r in runs}
    assert len(colours) == len(dict(colours)) == 2


@pytest.mark.slow
def test_a_job_that_fails_is_recorded_and_the_others_and_the_pooled_step_still_run(swept: Path, tmp_path) -> None:
    shutil.copytree(swept / ".ragauge", tmp_path / ".ragauge")
    done = run(tmp_path, "-m", *SMALL, "retriever=bm25,sim", "n_tokens=100", "retriever.top_k=30,0")
    assert done.returncode == 2
    assert "retriever.top_k" in done.stderr
    assert "Leaderboard at N = 100 tokens" in done.stdout
    _, jobs = mlflow_runs(tmp_path, "job")
    assert sorted(r.info.status for r in jobs) == ["FAILED", "FAILED", "FINISHED", "FINISHED"]
    assert all("retriever.top_k" in r.data.tags["error"] for r in jobs if r.info.status == "FAILED")
    (pooled,) = mlflow_runs(tmp_path, "sweep")[1]
    assert (pooled.data.metrics["jobs"], pooled.data.metrics["jobs_failed"]) == (2, 2)


@pytest.mark.slow
def test_a_killed_sweep_goes_on_where_it_was_and_makes_no_finished_stage_again(
    tmp_path, bring_models: Callable[..., None]
) -> None:
    bring_models(tmp_path / ".ragauge")
    command = Command(tmp_path, *TWO_BY_TWO)
    first = tmp_path / "multirun"
    until(lambda: bool(list(first.glob("*/*/0/job.json"))) or not command.runs, "the first job's end")
    assert command.runs, command.wait().stderr
    command.kill()
    finished = stage_outputs(tmp_path)
    done = run(tmp_path, *TWO_BY_TWO)
    assert done.returncode == 0, done.stderr
    rerun = job_records(sweep_folders(tmp_path)[-1])
    made = [stage for record in rerun for stage in record["stages_made"]]
    assert sorted(made) == sorted(stage for stage, _ in stage_outputs(tmp_path) - finished)
    assert rerun[0]["stages_made"] == []
    _, jobs = mlflow_runs(tmp_path, "job")
    assert "RUNNING" not in {r.info.status for r in jobs}
    assert [r.info.status for r in jobs].count("FINISHED") >= 5


@pytest.mark.slow
def test_a_sweep_that_runs_again_in_its_folder_leaves_no_job_of_the_earlier_attempt(
    tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    for weights in ("0.4,0.5,0.6", "0.5,0.75"):
        done = run(tmp_path, "-m", *SMALL, "llm=none", "retriever=bm25", f"retriever.b={weights}", "n_tokens=100",
                   "hydra.sweep.dir=again")  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert "2 job(s) done, 0 failed" in done.stdout
    _, jobs = mlflow_runs(tmp_path, "job")
    assert sorted("sweep_id" in r.data.tags for r in jobs) == [False] * 3 + [True] * 2
    (pooled,) = mlflow_runs(tmp_path, "sweep")[1]
    assert pooled.data.metrics["jobs"] == 2
    capsys.readouterr()
    assert compare.main([str(tmp_path / "again"), "--topics", "0"]) == 0
    assert capsys.readouterr().out.startswith("2 runs of experiment sample")
    # What is left of the third job can be read, and so can one of the two by itself.
    for number in ("2", "0"):
        assert report([str(tmp_path / "again" / number)]) == 0
        assert "1 system compared" in (tmp_path / "again" / number / "report.html").read_text(encoding="utf-8")


def test_where_all_jobs_of_a_later_attempt_failed_the_earlier_one_is_out_of_the_sweep(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    runs = LoggedRuns(uri, "e")
    old, new = (runs.job(questions({"q": 1.0}), "0", sweep_id="s", job=job) for job in "01")
    pooled = runs.sweep("s")
    failed = record_of(status="FAILED", sweep_id="s", tracking_uri=uri, run_id=new)
    pooling.supersede_earlier([record_of(status="FAILED"), failed])
    reader = track.Reader(uri)
    earlier = reader.run(pooled)
    assert [run.run_id for run in reader.search({"sweep_id": "s"}, earlier.experiment_id)] == [new]
    assert earlier.tags["superseded_in"] == "s"
    assert [run.run_id for run in reader.jobs(earlier)] == [old]
    assert "latest sweep" not in track.connect(uri).get_experiment(earlier.experiment_id).tags["mlflow.note.content"]
    # Where no attempt came as far as MLflow, nothing is made there.
    elsewhere = tmp_path / "elsewhere.db"
    pooling.supersede_earlier([replace(failed, tracking_uri=f"sqlite:///{elsewhere}"), replace(failed, experiment="f")])
    assert not elsewhere.exists()
    assert not track.has_experiment(uri, "f")


@pytest.mark.slow
def test_two_jobs_at_a_time_do_no_work_twice_and_lock_no_database(tmp_path, bring_models: Callable[..., None]) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    bring_models(tmp_path / ".ragauge", vectors=False)
    done = run_fresh(tmp_path, *TWO_BY_TWO, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    assert done.returncode == 0, done.stderr
    records = job_records(sweep_folders(tmp_path)[0])
    made = [stage for record in records for stage in record["stages_made"]]
    assert [record["status"] for record in records] == ["FINISHED"] * 4
    assert {stage: made.count(stage) for stage in ONCE_EACH} == ONCE_EACH


@pytest.mark.parametrize(
    ("overrides", "names"),
    [
        ([["retriever=bm25", "n_tokens=1"], ["retriever=bm25", "n_tokens=2"]], ["bm25", "bm25"]),
        ([["retriever=bm25"], ["retriever=sim"]], ["bm25", "sim"]),
        (
            [["retriever=sim", "retriever.top_k=5"], ["retriever=sim", "retriever.top_k=9"]],
            ["top_k=5", "top_k=9"],
        ),
        (
            [
                ["retriever=sim", "+gate.x=1", "chunker=none"],
                ["retriever=mmr", "+gate.x=1", "chunker=tokens"],
            ],
            ["sim · none", "mmr · tokens"],
        ),
        ([["n_tokens=1"], ["n_tokens=2"]], ["all", "all"]),
    ],
)
def test_a_system_is_named_by_what_the_sweep_varied(overrides, names) -> None:
    assert system_names(overrides) == names


def test_a_folder_without_jobs_is_an_error_that_says_what_to_give(tmp_path) -> None:
    with pytest.raises(DataError, match="holds no finished job"):
        pooling.pool(tmp_path)
    with pytest.raises(DataError, match="is no folder"):
        pooling.pool(tmp_path / "nowhere")
