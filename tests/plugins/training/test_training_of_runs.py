"""One predictor over the verdicts of many runs: pooled rows, what belongs together, its model in a job."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir

from processes import Command
from ragauge import track
from ragauge.contract import comparable
from ragauge.contract.answer_measures import as_tag
from ragauge.contract.groups import GROUPS
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate import fit_predictor
from ragauge.experiment.request import JobFolder
from ragauge.plugins.training import config
from ragauge.plugins.training.jobs import splits
from ragauge.plugins.training.jobs.job import execute
from ragauge.plugins.training.trainers.predictor import PredictorTrainer

CONF = Path(__file__).resolve().parents[3] / "conf"
MEASURE, TOKENIZER = {"component": "substring", "version": 1}, {"component": "words", "version": 1}


def judged(dataset: str, n: int = 40, seed: int = 0, labels: list[int] | None = None) -> pd.DataFrame:
    """Outcomes as a job's table holds them; the qids are the same in every dataset."""
    rng = np.random.default_rng(seed)
    scores = rng.random(n).round(3)
    right = np.where(rng.random(n) < scores, 5, np.where(rng.random(n) < 0.5, 1, 4))
    return pd.DataFrame(
        {
            "qid": [f"q{i}" for i in range(n)],
            "query": [f"What is number {i} of {dataset}?" for i in range(n)],
            "ir_score": scores,
            "n_used": (100 * scores).round(),
            "label": pd.array(right if labels is None else labels, dtype="Int8"),
        }
    )


@dataclass
class Runs:
    """MLflow with jobs and sweeps that are as `ragauge` logs them, and trainings over them."""

    root: Path

    @property
    def uri(self) -> str:
        return f"sqlite:///{self.root / 'mlruns' / 'mlflow.db'}"

    def job(
        self, rows: pd.DataFrame, dataset: str = "one", sweep: str | None = None, judge: str = "lexical",
        measure: Any = MEASURE, tokenizer: Any = TOKENIZER, n_tokens: int = 100, role: str = "job",
        features: Sequence[str] = ("ir_score",), **tags: Any,
    ) -> str:  # fmt: skip
        identities = {"measure": measure, "tokenizer": tokenizer, "judge": {"component": judge}}
        means = comparable.digests(identities)
        choices = dict.fromkeys(GROUPS, "none") | {"dataset": dataset, "retriever": "bm25", "judge": judge}
        choices |= {"measure": measure["component"], "tokenizer": tokenizer["component"]}
        every: dict[str, Any] = {
            **choices,
            "role": role,
            "n_tokens": n_tokens,
            "dataset_digest": f"{dataset}0123456789",
        }
        every |= {"sweep_id": sweep} if sweep else {}
        with track.Tracker(self.uri, dataset).run("a job", {}, every | comparable.as_tag(means) | tags) as run:
            if role == "job":
                run.table(rows, "per_question.json")
            known = rows[rows["label"].notna()]
            if role == "job" and len(known):
                saved = self.root / f"saved-{run.run_id}"
                settings = {"measure": measure, "tokenizer": tokenizer, "n_tokens": [n_tokens]}
                track.save_predictor(saved, fit_predictor(known, features).model, known[[*features]].head(3), settings)
                run.predictor(saved)
        return str(run.run_id)

    def sweep(self, *jobs: pd.DataFrame, name: str, dataset: str = "one", **of_jobs: Any) -> str:
        for number, rows in enumerate(jobs):
            self.job(rows, dataset, name, job=str(number), **of_jobs)
        return self.job(jobs[0], dataset, name, role="sweep")

    def train(self, *runs: str, overrides: tuple[str, ...] = ()) -> tuple[int, dict[str, Any]]:
        config.register()
        folder = JobFolder(self.root / "out", None, 0, {"trainer": "predictor"}, overrides)
        given = [f"store={self.root / 's'}", f"tracking.uri={self.uri}", "bootstrap=20", "trainer=predictor"]
        with initialize_config_dir(str(CONF), version_base="1.3"):
            cfg = compose("train", overrides=[*given, f"runs=[{','.join(runs)}]", *overrides])
        code = execute(cfg, folder)
        return code, json.loads((self.root / "out" / "job.json").read_text(encoding="utf-8"))

    def table(self, record: dict[str, Any], name: str) -> pd.DataFrame:
        return track.Reader(self.uri).table(record["run_id"], name)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


@pytest.fixture(scope="module")
def one_job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Runs, str]:
    """MLflow with one job; nothing is written there."""
    runs = Runs(tmp_path_factory.mktemp("one_job"))
    return runs, runs.job(judged("one", n=4, labels=[1, 1, 5, 5]))


def test_what_is_one_everywhere_is_not_left_out_in_turn() -> None:
    rows = judged("one").assign(dataset="one", llm="none", retriever="bm25")
    rows["sweep"] = np.where(rows.index % 2, "s1", "s2")
    found = PredictorTrainer().fit(rows, 20, 0).trained
    assert set(found.tables) == {"reliability", "transfer_sweep"}
    assert {name.split("_")[1] for name in found.values if name.startswith("transfer_")} == {"sweep"}


@pytest.mark.parametrize("given", [{"penalty": 0.01}, {"spline": True}, {"calibrate": True}], ids=str)
def test_the_model_is_the_one_that_was_asked_for(given: dict[str, Any]) -> None:
    rows = judged("one", n=80).assign(dataset="one", llm="none", retriever="bm25", sweep="s1")
    x = rows[["ir_score"]]
    found = PredictorTrainer(**given).fit(rows, 20, 0).model.predict_proba(x)
    theirs = fit_predictor(rows, ["ir_score"], **given, seed=0).model.predict_proba(x)
    np.testing.assert_allclose(found, theirs, atol=1e-9)
    assert np.abs(found - fit_predictor(rows, ["ir_score"], seed=0).model.predict_proba(x)).max() > 0.01


def test_one_predictor_is_that_of_all_rows_registered_and_loaded_by_its_name(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "load_splits", lambda *_: pytest.fail("a dataset was loaded"))
    one, other, third = judged("one", seed=1), judged("one", seed=2), judged("two", seed=3)
    first = runs.sweep(one, other, name="s1")
    second = runs.sweep(third, name="s2", dataset="two", n_tokens=300)
    code, record = runs.train(
        first, second, overrides=("trainer.features=[ir_score,n_used]", "register=team-predictor")
    )
    assert code == 0, record
    values = record["metrics"]
    assert (values["jobs"], values["sweeps"], values["judged_rows"]) == (3, 2, 120)
    assert values["topics"] == 80  # the two jobs of s1 share theirs; equal qids of two datasets are two
    model, settings = track.load_predictor(runs.uri, "models:/team-predictor/1")
    kept = settings.pop("training")  # what a window is compared with
    assert (kept["n_topics"], len(kept["label"]), sorted(kept["columns"])) == (80, 120, ["ir_score", "n_used"])
    assert settings == {"measure": MEASURE, "tokenizer": TOKENIZER, "n_tokens": [100, 300]}
    pooled = pd.concat([one, other, third], ignore_index=True)
    wanted = fit_predictor(pooled, ["ir_score", "n_used"]).model
    x = pooled[["ir_score", "n_used"]]
    np.testing.assert_allclose(model.predict_proba(x), wanted.predict_proba(x), atol=1e-6)
    assert {"transfer_sweep_mae", "transfer_dataset_mae", "transfer_sweep_error_single"} <= set(values)
    assert not any(name.startswith("transfer_llm") for name in values)  # there is one
    table = runs.table(record, "transfer_sweep.json")
    assert set(table["group"]) == {"s1", "s2"}
    rights = table[(table["fitted_on"] == "constant") & (table["group"] == "s2") & (table["class"] == 5)]
    # The class shares of the other sweep, of other topics alone: these sweeps share none.
    expected = np.mean(pd.concat([one, other])["label"] == 5)
    assert rights["predicted"].item() == pytest.approx(expected, abs=0.06)
    assert rights["judged"].item() == pytest.approx(np.mean(third["label"] == 5))
    jobs = runs.table(record, "jobs.json")
    assert sorted(jobs["judged"]) == [40, 40, 40]
    card = track.Reader(runs.uri).text(record["run_id"], "README.md")
    assert card.startswith("# team-predictor\n")
    assert "| sweep | 2 |" in card


def test_the_same_runs_are_trained_on_once_and_registered_as_another_version(runs: Runs) -> None:
    sweep = runs.sweep(judged("one"), judged("one", seed=4), name="s1")
    first = runs.train(sweep, overrides=("register=team",))[1]
    again = runs.train(sweep, overrides=("register=team",))[1]
    assert first["model_digest"] == again["model_digest"]
    assert first["run_id"] != again["run_id"]
    assert len(list((runs.root / "s" / "trained").iterdir())) == 1
    model, _ = track.load_predictor(runs.uri, "models:/team/2")
    assert model.classes == (1, 4, 5)


def test_a_job_named_by_itself_and_by_its_sweep_counts_once(runs: Runs) -> None:
    sweep = runs.sweep(judged("one"), name="s1")
    (job,) = track.Reader(runs.uri).jobs(track.Reader(runs.uri).run(sweep))
    assert runs.train(sweep, job.run_id)[1]["metrics"]["judged_rows"] == 40


@pytest.mark.parametrize(
    ("part", "other", "told"),
    [
        ("judge", "crag", "their judge differs (lexical"),
        ("measure", {"component": "words", "version": 1}, "their measure differs (substring"),
        ("tokenizer", {"component": "llama3", "version": 1}, "their tokenizer differs (words"),
        ("measure", MEASURE | {"fold": ["case"]}, "their measure differs (substring, {'component'"),
    ],
)
def test_runs_that_do_not_belong_together_are_an_error_that_names_what_differs(
    runs: Runs, part: str, other: Any, told: str
) -> None:
    ids = [runs.job(judged("one")), runs.job(judged("one", seed=1), **{part: other})]
    code, record = runs.train(*ids, overrides=("register=never",))
    assert code == 2
    assert told.partition(" (")[0] in record["error"]
    assert told.partition(" (")[2] in record["error"]
    assert all(run_id[:8] in record["error"] for run_id in ids)
    assert "\n" not in record["error"]
    assert not (runs.root / "s").exists()


def test_jobs_without_verdicts_are_left_out_whatever_judge_they_name(
    runs: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    silent = judged("one").assign(label=pd.array([None] * 40, dtype="Int8"))
    code, record = runs.train(runs.job(judged("one")), runs.job(silent, judge="none"))
    assert (code, record["metrics"]["jobs"]) == (0, 1)
    assert "1 job(s) judged nothing that has an IR score, and are left out." in caplog.text
    code, record = runs.train(runs.job(silent, judge="none"))
    assert code == 2
    assert "has a verdict on a topic with evidence" in record["error"]


def test_rows_without_a_feature_or_a_score_are_left_out_and_counted(runs: Runs) -> None:
    rows = judged("one")
    rows.loc[:4, "n_used"] = None
    rows.loc[5:6, "ir_score"] = None
    rows.loc[7, "label"] = None
    job = runs.job(rows.dropna(subset="ir_score"))  # its own predictor
    with track.Tracker(runs.uri, "one").resume(job) as run:
        run.table(rows, "per_question.json")
    values = runs.train(job, overrides=("trainer.features=[ir_score,n_used]",))[1]["metrics"]
    assert (values["judged_rows"], values["rows_left_out"]) == (32, 6)
    code, record = runs.train(job, overrides=("trainer.features=[ir_score,score_gap]",))
    assert (code, record["error"]) == (2, "trainer.features: the runs did not record score_gap")


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (judged("one", labels=[5] * 40), "all 40 labels are of class 5"),
        (judged("one", n=2, labels=[5, 1]).assign(query="The same?"), "2 judged rows are of one topic"),
    ],
)
def test_what_cannot_be_learnt_from_is_one_line(runs: Runs, rows: pd.DataFrame, told: str) -> None:
    code, record = runs.train(runs.job(rows), overrides=("register=never",))
    assert code == 2
    assert told in record["error"]
    from mlflow import MlflowClient

    assert MlflowClient(runs.uri).search_registered_models() == []


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("trainer.features=[bm25]", "trainer.features: bm25 was measured by no job of these; allowed are ir_score"),
        ("trainer.leave_out=[topic]", "trainer.leave_out=['topic']: allowed are sweep, dataset, llm, "),
        ("trainer.penalty=0", "trainer.penalty=0: allowed are numbers above 0"),
        ("dataset=csv", "dataset: trainer=predictor learns from runs=[...], and from no dataset"),
        ("max_seconds=60", "max_seconds: trainer=predictor learns from runs=[...]"),
        ("runs=[]", "runs=[]: give the MLflow ids"),
        ("runs=[zzz]", "'zzz' is neither a folder nor an MLflow run id"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_before_any_work(one_job: tuple[Runs, str], override: str, told: str) -> None:
    runs, job = one_job
    code, record = runs.train(job, overrides=(override,))
    assert code == 2
    assert told in record["error"]
    assert not (runs.root / "s").exists()


def test_a_training_is_no_run_to_learn_from(runs: Runs) -> None:
    _, record = runs.train(runs.job(judged("one")))
    code, again = runs.train(record["run_id"])
    assert code == 2
    assert "is a training: give jobs and sweeps" in again["error"]


def test_leaving_out_may_be_one_word() -> None:
    assert PredictorTrainer(leave_out="llm").leave_out == ("llm",)


def test_a_predictor_without_evidence_reads_measures_that_look_at_no_answer(runs: Runs) -> None:
    rows = judged("one").assign(ir_score=np.nan, coverage=lambda frame: frame["n_used"] / 100)
    shown = [AnswerMeasureInfo("coverage", "coverage", of="context"), AnswerMeasureInfo("em", "EM")]
    tags: dict[str, Any] = {**as_tag(shown)}
    job = runs.job(rows, features=["coverage"], **tags)
    code, record = runs.train(job, overrides=("trainer.features=[coverage]", "register=risk"))
    assert code == 0, record
    assert (record["metrics"]["judged_rows"], record["metrics"]["rows_left_out"]) == (40, 0)
    model, settings = track.load_predictor(runs.uri, "models:/risk/1")
    assert list(model.feature_names_in_) == ["coverage"]
    assert settings["read_by"] == {}
    code, record = runs.train(job, overrides=("trainer.features=[em]",))
    assert code == 2
    assert "trainer.features: em looks at the answer; allowed are ir_score" in record["error"]


@pytest.mark.slow
def test_a_predictor_of_real_sweeps_serves_a_job_and_is_trained_again_by_its_run(tmp_path: Path) -> None:
    small = ["dataset.limit=30", "chunker=none", "tokenizer=words", "llm=extractive", "judge=lexical"]
    small += ["bootstrap=20", "n_grid=[100]", "n_tokens=100"]
    done = Command(tmp_path, "-m", "retriever=bm25,none", *small).wait()
    assert done.returncode == 0, done.stderr
    (sweep,) = (tmp_path / "multirun").glob("*/*")
    done = Command(tmp_path, "train", "trainer=predictor", f"runs=[{sweep}]", "register=team", "bootstrap=20").wait()
    assert done.returncode == 0, done.stderr
    assert "registered as team" in done.stderr
    run_id = re.findall(r"MLflow run ([0-9a-f]{32})", done.stderr)[0]
    silent = [part for part in small if not part.startswith(("llm=", "judge="))]
    done = Command(tmp_path, "retriever=bm25", "llm=none", "judge=none", "predictor=models:/team/1", *silent).wait()
    assert done.returncode == 0, done.stderr
    job = sorted((tmp_path / "outputs").glob("*/*/job.json"))[-1]
    metrics = json.loads(job.read_text(encoding="utf-8"))["metrics"]
    assert 0 <= metrics["predicted_correct_share"] <= 1
    other = [part if part != "tokenizer=words" else "tokenizer=minilm" for part in silent]
    refused = Command(tmp_path, "llm=none", "judge=none", "predictor=models:/team/1", *other).wait()
    assert refused.returncode == 2
    assert "predictor: tokenizer: fitted on" in refused.stderr
    pytest.importorskip("ragauge.plugins.rerun")
    again = Command(tmp_path, "train", f"rerun={run_id}", f"runs=[{sweep}]").wait()
    assert again.returncode == 0, again.stderr
    assert "the model is not registered again" in again.stderr
    assert len(list((tmp_path / ".ragauge" / "trained").iterdir())) == 1
