"""The list of a job's findings: one from another package is computed, logged, printed and compared."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir

from ragauge.compare import choose_metrics, compare, latex, markdown, runs_csv, text, topics_csv
from ragauge.contract import loading
from ragauge.contract.errors import ConfigError
from ragauge.contract.finding import (
    Cell,
    ComparisonFinding,
    Finding,
    Found,
    Founds,
    Grid,
    JobFinding,
    Num,
    Section,
    Shown,
    Text,
)
from ragauge.contract.jobs import Compared, Job, Jobs
from ragauge.experiment.job import execute
from ragauge.experiment.request import JobFolder
from ragauge.experiment.setup import config
from ragauge.findings.order import job_findings
from ragauge.track import Reader

CONF = Path(__file__).resolve().parents[2] / "conf"


class ShortAnswers(JobFinding):
    """A finding of another package, of the outcomes of one job."""

    name = "short_answers"
    metrics = ("short_answers",)

    def compute(self, job: Job, found: Founds) -> Found | None:
        assert found["estimates"].metrics["judge_share_missing"] < 1
        short = job.outcomes["answer"].fillna("").str.len() < 30
        rows = job.outcomes.loc[short, ["qid", "answer"]]
        tables = {"short": rows}
        return Found(rows, {"short_answers": float(short.mean()), "ir_score": -1.0}, tables=tables, logged=tables)

    def show(self, job: Job, value: pd.DataFrame, found: Founds) -> Shown:
        from matplotlib.figure import Figure

        return Shown(lines=[f"{len(value)} short answers"], notes=["short is short"], figures={"short": Figure()})


class Chunks(JobFinding):
    """One that needs no answer, and keeps something for the sweep."""

    name = "chunks"
    after = "scores"

    def compute(self, job: Job, found: Founds) -> Found | None:
        assert "estimates" not in found
        return Found(record={"chunks_of_package": len(job.frame("chunks"))})


class Last(JobFinding):
    """One that waits for all others."""

    name = "last"
    after = "all"

    def compute(self, job: Job, found: Founds) -> Found | None:
        return Found(record={"found_before": sorted({"chunks", "short_answers"} & set(found))})


class Nothing(JobFinding):
    """One that finds nothing in this job."""

    name = "nothing"

    def compute(self, job: Job, found: Founds) -> Found | None:
        return None

    def show(self, job: Job, value: object, found: Founds) -> Shown:
        raise AssertionError("nothing was found")


class OfSweep(Finding):
    """A sweep's finding, which a job does not compute."""

    name = "of_sweep"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        raise AssertionError("this is one job")


class LongerAnswers(ComparisonFinding):
    """Of runs side by side: how many characters the answers of each run have, and a word on that."""

    name = "longer_answers"

    def compute(self, runs: Compared, found: Founds) -> Found | None:
        length = runs.outcomes["answer"].str.len()
        of_run = length.groupby(runs.outcomes["run_id"], sort=False).mean()
        topics = runs.outcomes[["run_id", "qid"]].assign(characters=length)
        return Found(of_run, tables={"runs": of_run.rename("characters").reset_index(), "topics": topics})

    def show(self, runs: Compared, value: pd.Series, found: Founds) -> Shown:
        rows: list[list[Cell]] = [[runs.names[str(run)], Num(mean, "score")] for run, mean in value.items()]
        blocks = [Text("Characters of an answer."), Grid("Length", "run | Characters", rows)]
        return Shown([Section("Longer answers", blocks)], notes=["Long is not right."])


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    of_kind = {
        JobFinding: ("Last", "ShortAnswers", "Chunks", "Nothing"),
        Finding: ("OfSweep",),
        ComparisonFinding: ("LongerAnswers",),
    }
    points = {
        kind.group: [EntryPoint(name, f"{__name__}:{name}", kind.group) for name in listed]
        for kind, listed in of_kind.items()
    }
    monkeypatch.setattr(loading, "entry_points", lambda group: points.get(group, []))


@pytest.fixture
def hydra() -> Iterator[None]:
    config.register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


def ran(here: Path, name: str, *overrides: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the record of a job of four questions."""
    cfg = compose(
        "config",
        overrides=[
            "dataset=sample", "dataset.limit=4", "chunker=none", "tokenizer=words", "retriever=bm25", "answers=[]",
            "n_tokens=50", "n_grid=[50]", "bootstrap=20", f"store={here / 'store'}",
            f"tracking.uri=sqlite:///{here / 'mlflow.db'}", *overrides,
        ],
    )  # fmt: skip
    (here / name).mkdir()
    chosen = {"retriever": "bm25", "llm": "extractive", "judge": "lexical"}
    code = execute(cfg, JobFolder(here / name, None, 0, chosen, tuple(overrides)))
    return code, json.loads((here / name / "job.json").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("package", "hydra")
def test_a_finding_of_another_package_arrives_everywhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        code, record = ran(tmp_path, "first", "retriever.top_k=3")
    assert code == 0
    share = record["metrics"]["short_answers"]
    assert 0 <= share <= 1
    assert record["metrics"]["ir_score"] >= 0  # the first of a name counts
    assert record["chunks_of_package"] > 0
    assert record["found_before"] == ["chunks", "short_answers"]
    said = [f"{line.levelname} {line.getMessage()}" for line in caplog.records]
    n = round(4 * share)
    assert {f"INFO {n} short answers", "WARNING short is short"} <= set(said)
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    reader, run_id = Reader(uri), record["run_id"]
    assert reader.run(run_id).metrics["short_answers"] == share
    assert reader.text(run_id, "tables/short.csv").splitlines()[0] == "qid,answer"
    assert len(reader.table(run_id, "short.json")) == n
    assert reader.contents(run_id, "figures")["short.png"].startswith(b"\x89PNG")

    _, second = ran(tmp_path, "second", "retriever.top_k=1")
    compared = compare([run_id, second["run_id"]], uri, n_boot=20)
    assert "short_answers" in choose_metrics(compared)
    for shown in (text(compared, choose_metrics(compared), 0, 200), markdown(compared, choose_metrics(compared), 0)):
        assert "short" in shown
        assert "Characters of an answer." in shown
        assert f"{compared.found['longer_answers'].iloc[0]:.3f}" in shown
        assert "Long is not right." in shown
    paper = latex(compared, choose_metrics(compared))
    assert r"\caption{Length. Characters of an answer.}" in paper
    assert f"{compared.found['longer_answers'].iloc[0]:.3f}" in paper
    assert "Long is not right." in paper
    of_runs = pd.read_csv(io.StringIO(runs_csv(compared, [])))
    assert of_runs["characters"].tolist() == pytest.approx(compared.found["longer_answers"].tolist())
    assert "characters" in pd.read_csv(io.StringIO(topics_csv(compared)))


def test_a_name_that_is_there_already_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("twice", f"{__name__}:ShortAnswers", JobFinding.group)] * 2
    monkeypatch.setattr(loading, "entry_points", lambda group: points)
    with pytest.raises(ConfigError, match="there is a finding 'short_answers' already"):
        list(job_findings())


def test_findings_come_in_the_order_of_what_they_need() -> None:
    needs = [finding.after for finding in job_findings()]
    assert needs == sorted(needs, key=["scores", "answers", "verdicts", "all"].index)


@pytest.mark.parametrize(
    ("config", "used"),
    [
        (None, ["a.b", "days", "seconds"]),
        ({}, []),
        ({"seconds": False, "dataset": {"_target_": "team.traces_of_others.Traces"}}, []),
        ({"answers": [{"f1": {"seconds": 20}}]}, ["seconds"]),
        ({"a": {"b": 1}, "b": 1}, ["a.b"]),
        ({"a": {"b": None}, "b": 1, "ca": {"b": 1}}, []),
        ({"dataset": {"_target_": "team.traces.dataset.Traces"}}, ["days"]),
    ],
)
def test_findings_that_few_jobs_need_are_those_of_keys_and_components(
    config: dict[str, Any] | None, used: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = JobFinding.group_on_use
    places = {"days": "team.traces.findings:Days", "seconds": "team.latency.finding:Seconds",
              "a.b": "team.other.finding:Other"}  # fmt: skip
    points = [EntryPoint(name, value, group) for name, value in places.items()]
    monkeypatch.setattr(loading, "entry_points", lambda group: points)
    assert [point.name for point in loading.points_used(group, config)] == used
