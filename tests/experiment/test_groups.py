"""What a sweep pools: jobs that measured the same topics by the same means, and no others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_sweep import mlflow_runs, sweep_folders

from processes import run
from ragauge.commands import compare
from ragauge.commands.results import pool
from ragauge.commands.results import report as report_command
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.metrics import without_groups
from ragauge.estimate import fit_thresholds
from ragauge.experiment.sweep import pooling, reports
from ragauge.experiment.sweep.grouping import Group, closest
from ragauge.experiment.sweep.jobs import load
from ragauge.findings.pooling import PooledFindings, pooled
from ragauge.show.html import write_report
from ragauge.track import Reader, connect
from sweep_records import job_json, record_of

N = 30
ALIKE = {"measure": "m" * 16, "tokenizer": "t" * 16, "judge": "j" * 16}


def write(folder: Path, *jobs: dict[str, Any]) -> Path:
    """A sweep's folder with a job for each of the dicts: what differs from a job over one file, judged."""
    for number, job in enumerate(jobs):
        overrides = list(job.get("overrides", []))
        choices = {"dataset": "jsonl", "retriever": "bm25", "chunker": "none", "llm": "chat",
                   "measure": "substring", "tokenizer": "words", "judge": "lexical"}  # fmt: skip
        choices |= {k: v for k, v in (o.split("=", 1) for o in overrides) if k in choices}
        topics, judged = job.get("topics", "a"), job.get("judged", True)
        rng = np.random.default_rng([ord(topics[0]), job.get("noise", 0)])
        score = np.clip(np.linspace(0, 1, N) + rng.normal(0, 0.1, N), 0, 1)
        border = job.get("border", 0.5)
        label = np.where(score > border, 5, np.where(score < border / 2, 1, 3))
        label[3], label[20] = 5, 4
        rows = pd.DataFrame(
            {
                "qid": [f"q{i:02}" for i in range(N)],
                "query": [f"Question {i} of {topics}?" for i in range(N)],
                "answer_reference": "yes",
                "n_tokens": job.get("n_tokens", 100),
                "ir_score": score,
                "answer": "yes",
                "label": pd.array(label if judged else [None] * N, dtype="Int8"),
                "judge_status": "ok",
                "judge_raw": "",
                **{c: choices[c] for c in ("dataset", "retriever", "chunker", "llm")},
            }
        )
        where = folder / str(number)
        where.mkdir(parents=True)
        rows.to_parquet(where / "outcomes.parquet", index=False)
        record = {
            "status": "FINISHED", "name": f"job {number}", "number": number, "sweep_id": "s",
            "experiment": "e", "choices": choices, "overrides": overrides, "seed": 0, "bootstrap": 40,
            "estimate": {"features": ["ir_score"], "spline": False, "calibrate": False},
            "n_tokens": job.get("n_tokens", 100), "dataset_digest": topics * 64, "exit_code": 0,
            "metrics": {**dict.fromkeys(("ir_score", "ir_score_lo", "ir_score_hi"), float(score.mean())),
                        "correct_share_lo": 0.4, "correct_share_hi": 0.6,
                        "judge_share_missing": 0.0 if judged else 1.0,
                        "correct_share": 0.5, "seconds_total": 1.0},
            "ir_score_at_n": {"100": float(score.mean())}, "measured_by": ALIKE, **job.get("record", {}),
        }  # fmt: skip
        job_json(where, record)
    return folder


def of_part(part: str, text: str, *overrides: str, **more: Any) -> dict[str, Any]:
    """A job that was measured by something else."""
    return {"overrides": list(overrides), "record": {"measured_by": {**ALIKE, part: text}}, **more}


def contents(groups: list[Any]) -> list[PooledFindings]:
    return [pooled(jobs) for jobs in groups]


def names(folder: Path) -> list[str]:
    return [sweep.group for sweep in load(folder)]


def jobs_of(folder: Path) -> dict[str, list[int]]:
    return {s.group: [record.number for record in s.records] for s in load(folder)}


# --- what failed --------------------------------------------------------------------------------------


def failed(*overrides: str) -> dict[str, Any]:
    return {"overrides": list(overrides), "record": {"status": "FAILED", "error": "the service is down"}}


def test_of_two_systems_the_one_that_finished_keeps_its_name_and_the_other_is_named(
    tmp_path: Path,
) -> None:
    one, two = (["recorded.path=x.jsonl", f"recorded.system={name}"] for name in ("one", "two"))
    [sweep] = load(write(tmp_path, {"overrides": one}, failed(*two)))
    assert set(sweep.outcomes["system"]) == {"one"}
    assert sweep.lost == {"two": "the service is down"}
    [content] = contents([sweep])
    assert content.value("leaderboard").frame["system"].tolist() == ["one"]
    said = "ot in the table, since its jobs failed: two"
    assert [line for line in content.lines if said in line] == [f"n{said}"]  # the sweep's end says why, once
    write_report([content.page], tmp_path / "report.html")
    assert f"N{said} (the service is down)." in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_system_that_failed_at_one_budget_alone_is_not_lost(tmp_path: Path) -> None:
    jobs = [{"overrides": ["retriever=bm25", "n_tokens=100"]}, failed("retriever=bm25", "n_tokens=200"),
            {"overrides": ["retriever=sim", "n_tokens=100"]}]  # fmt: skip
    [sweep] = load(write(tmp_path, *jobs))
    assert set(sweep.outcomes["system"]) == {"bm25", "sim"}
    assert sweep.lost == {}


def test_a_failed_job_stands_with_the_group_that_it_shares_most_settings_with() -> None:
    def group(*overrides: str, **choices: str) -> Group:
        return Group("", "", (), [record_of(overrides=list(overrides), choices=choices)])

    lost = record_of(overrides=["llm=chat", "n_tokens=100"], choices={"dataset": "b", "llm": "chat"})
    first, second = group("llm=chat", dataset="a", llm="none"), group("llm=none", dataset="b", llm="chat")
    assert closest(lost, [first, second]) == 1
    assert closest(lost, [second, first]) == 0
    assert closest(lost, [second, second]) == 0  # of equal ones the first
    assert closest(lost, [second, group("llm=chat", "n_tokens=100", dataset="b", llm="none")]) == 1


def test_reports_and_their_figures_are_named_by_experiment_and_group(tmp_path: Path) -> None:
    of_experiments = [("a", "a b"), ("b", "c"), ("c", "c")]
    jobs = [{"topics": topics, "judged": False, "record": {"experiment": name}} for topics, name in of_experiments]
    folder = write(tmp_path, *jobs)
    written = [path.relative_to(folder).as_posix() for path in reports.write(str(folder), figures=["png"])]
    assert all((folder / name).is_file() for name in written)
    assert [name for name in written if name.endswith(".html")] == ["report-a_b.html", "report-c.html"]
    drawn = {Path(name).parent.as_posix() for name in written if name.endswith(".png")}
    assert drawn == {"report-a_b-figures", "report-c-figures/group-1", "report-c-figures/group-2"}
    # Figures without a report beside them may be somebody's own.
    (folder / "report-c.html").unlink()
    with pytest.raises(ConfigError, match=r"group-1/.*png is there, and no report-c.html beside its folder"):
        reports.write(str(folder), figures=["png"])
    assert reports.write(str(write(tmp_path / "one", jobs[0]))) == [tmp_path / "one" / "report.html"]


# --- what is a group --------------------------------------------------------------------------------


def test_equal_qids_of_two_topic_files_are_not_paired(tmp_path: Path) -> None:
    jobs = [{"topics": t, "overrides": [f"dataset.topics={t}.jsonl", f"retriever={r}"], "noise": i}
            for t in "ab" for i, r in enumerate(("bm25", "sim"))]  # fmt: skip
    groups = contents(load(write(tmp_path, *jobs)))
    assert [g.jobs.group for g in groups] == [f"dataset=jsonl (topics={t}.jsonl)" for t in "ab"]
    for group in groups:
        board = group.value("leaderboard")
        assert board.frame["system"].tolist() == board.frame["system"].drop_duplicates().tolist()
        assert set(board.frame["system"]) == {"bm25", "sim"}
        assert set(zip(board.pairs["a"], board.pairs["b"], strict=True)) == {("bm25", "sim")}
    assert [other.group for other in groups[0].jobs.siblings] == [groups[1].jobs.group]


@pytest.mark.parametrize(
    ("part", "options"),
    [
        ("measure", ("substring", "words")),
        ("tokenizer", ("words", "llama3")),
        ("judge", ("lexical", "openai")),
    ],
)
def test_jobs_measured_by_other_means_share_no_threshold(tmp_path: Path, part: str, options) -> None:
    borders = (0.3, 0.8)
    jobs = [of_part(part, option * 3, f"{part}={option}", f"retriever={r}", border=border, noise=i)
            for option, border in zip(options, borders, strict=True)
            for i, r in enumerate(("bm25", "sim"))]  # fmt: skip
    folder = write(tmp_path, *jobs)
    groups = contents(load(folder))
    assert [g.jobs.group for g in groups] == [f"{part}={option}" for option in options]
    for place, group in enumerate(groups):
        own = [pd.read_parquet(folder / str(2 * place + i) / "outcomes.parquet") for i in range(2)]
        alone = fit_thresholds(pd.concat(own, ignore_index=True), n_boot=40, seed=0)
        assert group.value("thresholds").estimates.thresholds.k.value == alone.k.value
        assert group.value("thresholds").estimates.thresholds.k.n == 2 * N
    low, high = (group.value("thresholds").estimates.thresholds.k.value for group in groups)
    assert low < 0.5 < high


def test_systems_budgets_and_how_work_is_done_make_no_groups(tmp_path: Path) -> None:
    jobs = [
        {},
        {"overrides": ["n_tokens=300"], "n_tokens": 300},
        *({"overrides": [f"{group}=other"]} for group in ("retriever", "chunker", "llm")),
        {"overrides": ["embedder=other", "judge.concurrency=2", "measure.threads=1"]},
    ]
    assert names(write(tmp_path, *jobs)) == [""]


def test_one_option_with_other_settings_is_another_judge_and_is_named_by_them(tmp_path: Path) -> None:
    prompts = {"a": "'Is it \"right\"?'", "b": "/very/long/path" * 9 + "/p.txt"}
    jobs = [of_part("judge", text * 16, "judge=openai", f"judge.prompt={prompt}")
            for text, prompt in prompts.items()]  # fmt: skip
    found = names(write(tmp_path, *jobs))
    assert found[0] == "judge=openai (prompt=Is it right?)"
    assert re.fullmatch(r"judge=openai \(prompt=….{33}/p\.txt\)", found[1])


def test_where_no_setting_differs_the_digest_tells_groups_apart(tmp_path: Path) -> None:
    # A served model, or a file, that changed between two jobs.
    jobs = [of_part("judge", text * 16, "judge=openai") for text in ("ab", "cd")]
    assert names(write(tmp_path, *jobs)) == ["judge=openai abababab", "judge=openai cdcdcdcd"]


def test_a_setting_of_an_answer_measure_makes_groups_and_its_absence_does_not(tmp_path: Path) -> None:
    with_f1 = [of_part("answers.f1", "1" * 16), {}]
    assert names(write(tmp_path / "one", *with_f1)) == [""]
    other = of_part("answers.f1", "2" * 16)
    assert len(names(write(tmp_path / "two", with_f1[0], other))) == 2
    assert len(names(write(tmp_path / "three", with_f1[0], other, {}))) == 3


def test_jobs_without_verdicts_join_the_only_judge_but_not_one_of_several(tmp_path: Path) -> None:
    silent = of_part("judge", "none", "judge=none", judged=False)
    judged = {"overrides": ["judge=lexical"]}
    folder = write(tmp_path / "one", silent, judged)
    assert jobs_of(folder) == {"": [0, 1]}
    (content,) = contents(load(folder))
    pairs = content.value("leaderboard").pairs
    assert set(pairs.loc[pairs["measure"] == "ir_score", "n"]) == {N}
    assert content.value("thresholds").estimates.thresholds.k.n == N
    several = write(tmp_path / "two", silent, judged, of_part("judge", "x" * 16, "judge=openai"))
    assert jobs_of(several) == {"judge=no verdicts": [0], "judge=lexical": [1], "judge=openai": [2]}
    # Of another dataset, that dataset's judge is the only one.
    apart = write(tmp_path / "three", {**judged, "topics": "b"}, {**silent, "topics": "b"}, silent)
    assert list(jobs_of(apart).values()) == [[0, 1], [2]]


def test_jobs_whose_digests_are_lost_are_told_apart_by_their_overrides(tmp_path: Path) -> None:
    lost: dict[str, Any] = {"record": {"measured_by": None}}
    threads = [{**lost, "overrides": ["judge.concurrency=1", "measure.threads=1"]}, lost]
    assert names(write(tmp_path / "same", *threads)) == [""]
    modes = [{**lost, "overrides": [f"judge.mode={mode}"]} for mode in ("single", "batch")]
    assert names(write(tmp_path / "modes", *modes)) == [
        "judge=lexical (mode=single)", "judge=lexical (mode=batch)",
    ]  # fmt: skip
    # Digests of some jobs alone say nothing.
    assert names(write(tmp_path / "mixed", lost, {})) == [""]


def test_a_digest_that_is_no_text_does_not_stop_the_pooling(tmp_path: Path) -> None:
    for number, odd in enumerate(("abc", [1], {"judge": 1}, {"measure": "m"})):
        assert names(write(tmp_path / str(number), {"record": {"measured_by": odd}}, {})) == [""]


def test_one_qid_with_two_questions_is_refused_whatever_the_digest_says(tmp_path: Path) -> None:
    lying = {"topics": "b", "record": {"dataset_digest": "a" * 64}}
    with pytest.raises(DataError, match=r"qid 'q00' is not the same topic .*'Question 0 of a\?' and 'Question"):
        load(write(tmp_path, {}, lying))


def test_settings_of_the_estimates_that_differ_are_said(tmp_path: Path) -> None:
    other = {"record": {"bootstrap": 50, "seed": 1}, "overrides": ["bootstrap=50", "seed=1"]}
    (sweep,) = load(write(tmp_path, {}, other))
    assert sweep.notes == [
        "The jobs have seed 0 and 1: what is pooled takes the first.",
        "The jobs have bootstrap 40 and 50: what is pooled takes the first.",
    ]
    assert report_command([str(tmp_path)]) == 0
    assert sweep.notes[1] in (tmp_path / "report.html").read_text()
    (quiet,) = load(write(tmp_path / "quiet", {}, {}))
    assert quiet.notes == []


# --- across groups ----------------------------------------------------------------------------------


def test_the_study_s_curves_stand_beside_hotpotqa_alone(tmp_path: Path) -> None:
    jobs = [{"topics": d[0], "overrides": [f"dataset={d}", "retriever=bm25"]} for d in ("sample", "hotpotqa")]
    shown = [
        [text.get_text() for axes in group.page.figures["ir_score_by_n"].axes for text in axes.texts]
        + [str(line.get_label()) for axes in group.page.figures["ir_score_by_n"].axes for line in axes.lines]
        for group in contents(load(write(tmp_path, *jobs)))
    ]
    assert ["study" in " ".join(texts) for texts in shown] == [False, True]


# --- the report -------------------------------------------------------------------------------------


def test_a_report_of_several_groups_holds_each_with_anchors_of_its_own(tmp_path: Path) -> None:
    jobs = [of_part("judge", o * 4, f"judge={o}", f"retriever={r}") for o in ("lexical", "other<b>")
            for r in ("bm25", "sim")]  # fmt: skip
    assert report_command([str(write(tmp_path, *jobs))]) == 0
    text = (tmp_path / "report.html").read_text()
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', text)) == set(ids)
    assert {"g1-leaderboard", "g2-leaderboard", "g1-group", "g2-group"} <= set(ids)
    assert "judge=other&lt;b&gt;" in text
    assert "<b>}" not in text
    assert text.count("<!doctype") == 1
    one = tmp_path / "one.html"
    write_report([pooled(load(tmp_path)[0]).page], one)
    assert "The sweep has others that are not comparable" in one.read_text()


# --- in MLflow --------------------------------------------------------------------------------------


def test_a_folder_that_is_pooled_elsewhere_has_a_run_for_each_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = {"tracking_uri": "sqlite:////nowhere/mlflow.db", "metrics": {"ir_score": 0.5, "seconds_total": 1.5}}
    there = [("a", "bm25"), ("a", "sim"), ("b", "bm25"), ("b", "sim")]
    jobs: list[dict[str, Any]] = [
        {"topics": topics, "judged": False, "noise": number, "overrides": [f"dataset={topics}", f"retriever={name}"],
         "record": {**record, "written_in": str(tmp_path / "sweep" / str(number))}}
        for number, (topics, name) in enumerate(there)
    ]  # fmt: skip
    jobs[3]["record"] |= {"status": "FAILED", "error": "the service is down", "exit_code": 4}
    folder, uri = write(tmp_path / "sweep", *jobs), f"sqlite:///{tmp_path / 'mlflow.db'}"
    for job in range(4):
        file = folder / str(job) / "job.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "written_in": str((folder / str(job)).resolve())}))
    assert pooling.pool(folder, uri) == 4
    said = capsys.readouterr()
    client = connect(uri)
    found = client.get_experiment_by_name("e")
    assert found is not None
    runs = {logged.data.tags["group"]: logged for logged in client.search_runs([found.experiment_id])}
    seen = {}
    for group, logged in runs.items():
        values = without_groups(logged.data.metrics)
        counts = [values[name] for name in ("jobs", "jobs_failed", "seconds_jobs")]
        tags = logged.data.tags
        seen[group] = [logged.info.run_name, *counts, tags["retriever"], tags["dataset_digest"]]
    assert seen == {
        "dataset=a": ["sweep · dataset=a · 2 systems · 2 jobs", 2, 0, 3.0, "bm25,sim", "a" * 64],
        "dataset=b": ["sweep · dataset=b · 1 systems · 1 jobs", 1, 1, 1.5, "bm25", "b" * 64],
    }
    note = runs["dataset=b"].data.tags["mlflow.note.content"]
    assert "The jobs of dataset=b alone; not comparable with them: dataset=a." in note
    assert runs["dataset=a"].data.params["folder"] == str(folder)
    assert "\n== dataset=a ==\n" in said.out
    assert "3 job(s) done, 1 failed; folder" in said.out
    assert "FAILED  job 3: the service is down" in said.err


@pytest.fixture(scope="module")
def two_groups(tmp_path_factory: pytest.TempPathFactory, bring_models: Callable[..., None]) -> Path:
    """A folder in which a sweep over two judges ran, and what it said (`said`)."""
    folder = tmp_path_factory.mktemp("two_groups")
    bring_models(folder / ".ragauge")
    done = run(folder, "-m", "dataset.limit=12", "chunker=none", "bootstrap=40", "retriever=bm25,none",
               "n_tokens=100", "judge.cover=0.5,1.0")  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder / "said").write_text(done.stdout)
    return folder


@pytest.mark.slow
def test_every_group_has_a_run_under_the_usual_names_and_says_which(two_groups: Path) -> None:
    client, runs = mlflow_runs(two_groups, "sweep")
    groups = [f"judge=lexical (cover={cover})" for cover in ("0.5", "1.0")]
    assert sorted(r.data.tags["group"] for r in runs) == groups
    reader = Reader(f"sqlite:///{two_groups}/mlruns/mlflow.db")
    for logged in runs:
        group = logged.data.tags["group"]
        assert logged.info.run_name == f"sweep · {group} · 2 systems · 2 jobs"
        assert {"threshold_h", "threshold_k"} <= set(logged.data.metrics)
        assert logged.data.metrics["jobs"] == 2
        assert f"The jobs of {group} alone" in logged.data.tags["mlflow.note.content"]
        jobs = reader.jobs(reader.run(logged.info.run_id))
        assert [j.tags["retriever"] for j in jobs] == ["bm25", "none"]
        cover = group.partition("cover=")[2].rstrip(")")
        assert {j.params["judge.cover"] for j in jobs} == {cover}
    said = (two_groups / "said").read_text()
    assert "This sweep has 2 groups of jobs that are not comparable" in said
    assert [said.index(f"== {group} ==") for group in groups] == sorted(
        said.index(f"== {group} ==") for group in groups
    )
    assert said.count("Leaderboard at N = 100 tokens") == 2
    assert said.count("job(s) done") == 1
    tags = client.get_experiment(runs[0].info.experiment_id).tags
    assert {"mlflow.sharedViewState.ragauge-charts", "mlflow.sharedViewState.ragauge-charts-2"} <= set(tags)
    for logged in runs:
        assert f"{logged.info.run_id}/artifacts/report.html" in tags["mlflow.note.content"]


@pytest.mark.slow
def test_pooling_again_replaces_the_runs_of_all_groups_and_of_no_other_sweep(two_groups: Path) -> None:
    (folder,) = sweep_folders(two_groups)
    uri = f"sqlite:///{two_groups}/mlruns/mlflow.db"
    before = {r.data.tags["group"]: r for r in mlflow_runs(two_groups, "sweep")[1]}
    assert pool([str(folder), "--tracking-uri", uri]) == 0
    after = {r.data.tags["group"]: r for r in mlflow_runs(two_groups, "sweep")[1]}
    assert set(after) == set(before)
    for group, logged in after.items():
        assert logged.info.run_id != before[group].info.run_id
        own, old = (without_groups(run.data.metrics) for run in (logged, before[group]))
        assert {k: v for k, v in own.items() if not k.startswith("seconds")} == {
            k: v for k, v in old.items() if not k.startswith("seconds")
        }


@pytest.mark.slow
def test_the_run_of_a_group_is_compared_and_run_again_as_that_of_a_sweep(
    two_groups: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = f"sqlite:///{two_groups}/mlruns/mlflow.db"
    logged = next(r for r in mlflow_runs(two_groups, "sweep")[1] if "1.0" in r.data.tags["group"])
    assert compare.main([logged.info.run_id, "--tracking-uri", uri]) == 0
    told = capsys.readouterr().out
    assert "2 runs of experiment sample" in told
    assert "judges differ" not in told
    pytest.importorskip("ragauge.plugins.rerun")
    done = run(two_groups, f"rerun={logged.info.run_id}", "tracking.experiment=again")
    assert done.returncode == 0, done.stderr
    assert "2 of 2 jobs equal to the last bit" in done.stdout
    assert re.search(r"pooled: (\d+) of \1 metrics equal to the last bit", done.stdout)
    (again,) = mlflow_runs(two_groups, "sweep", "again")[1]
    assert "group" not in again.data.tags
