"""The list of findings: one from another package is computed, logged and shown as ragauge's own are."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pandas as pd
import pytest

from ragauge import track
from ragauge.contract import loading
from ragauge.contract.errors import ConfigError
from ragauge.contract.finding import Finding, Found, Founds, Grid, Num, Section, Shown
from ragauge.contract.jobs import Jobs
from ragauge.experiment.sweep.run import track_sweep
from ragauge.findings import of_sweeps
from ragauge.findings.pooling import pooled
from ragauge.show.html import html
from ragauge.track import Reader
from sweep_records import record_of


class ShortAnswers(Finding):
    """A finding of another package, which looks at one of ragauge's."""

    name = "short_answers"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        assert found["leaderboard"].scored
        shares = jobs.at_n["answer"].str.len().lt(4).groupby(jobs.at_n["system"]).mean()
        table = shares.rename("share").reset_index()
        return Found(table, metrics={"short_answers": float(shares.mean())}, tables={"short_answers": table})

    def show(self, jobs: Jobs, value: pd.DataFrame, found: Founds) -> Shown:
        rows = [[row["system"], Num(row["share"], "share")] for row in value.to_dict("records")]
        section = Section("Short answers", [Grid("Short", "System | Share / of all", rows)])
        return Shown([section], [f"short answers: {value['share'].mean():.1%}"])


mapping = dict  # a callable that is no finding


class Nothing(Finding):
    """One that finds nothing in these jobs."""

    name = "nothing"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        return None

    def show(self, jobs: Jobs, value: object, found: Founds) -> Shown:
        raise AssertionError("nothing was found")


def entry_points(*names: str):
    of_sweeps = Finding.group
    points = [EntryPoint(name, f"{__name__}:{name}", of_sweeps) for name in names]
    return lambda group: points if group == of_sweeps else []


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    rows = pd.DataFrame(
        {"qid": ["a", "b"], "query": "?", "answer_reference": "yes", "answer": ["yes", "perhaps"], "system": "bm25",
         "retriever": "bm25", "chunker": "none", "llm": "chat", "n_tokens": 100, "ir_score": [1.0, 0.5],
         "label": pd.array([None, None], dtype="Int8")}
    )  # fmt: skip
    choices = dict.fromkeys(("dataset", "retriever", "chunker", "llm", "judge", "measure", "tokenizer"), "x")
    record = {
        "name": "job", "number": 0, "sweep_id": "s", "experiment": "e", "choices": choices,
        "overrides": ["retriever=bm25"], "seed": 0, "bootstrap": 10, "n_tokens": 100, "dataset_digest": "d" * 64,
        "estimate": {"features": ["ir_score"], "spline": False, "calibrate": False}, "ir_score_at_n": {100: 0.75},
        "metrics": {"ir_score": 0.75, "topics": 2, "seconds_total": 1.0}, "tracking_uri": "elsewhere",
    }  # fmt: skip
    return Jobs("s", "e", [record_of(record)], [], rows)


def test_a_finding_of_another_package_arrives_everywhere(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(loading, "entry_points", entry_points("ShortAnswers", "Nothing"))
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    track_sweep([jobs], tmp_path, uri)
    reader = Reader(uri)
    [run] = reader.search({"role": "sweep"}, track.Tracker(uri, "e").experiment_id)
    assert run.metrics["short_answers"] == 0.5
    assert reader.text(run.run_id, "tables/short_answers.csv").splitlines()[1] == "bm25,0.5"
    assert "short answers: 50.0%" in capsys.readouterr().out
    text = reader.text(run.run_id, "report.html")
    assert '<th scope="col">Share<small>of all</small></th>' in text
    assert "<td>50.0 %</td>" in text
    assert 'href="#short-answers"' in text


def test_a_finding_that_finds_nothing_is_not_shown(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "entry_points", entry_points("Nothing"))
    found = pooled(jobs)
    assert "nothing" not in found.found
    assert "thresholds" not in found.found  # no verdicts: neither thresholds nor a section of them
    assert "Sorted scores" not in html([found.page])


@pytest.mark.parametrize(
    ("name", "message"),
    [("Missing", "cannot be loaded"), ("mapping", "is no ragauge.contract.finding.Finding")],
)
def test_what_is_no_finding_is_refused_by_its_entry_point(
    name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "entry_points", entry_points(name))
    with pytest.raises(ConfigError, match=f"entry point {name} = .*{message}"):
        list(of_sweeps.findings())


def test_a_finding_stands_behind_the_one_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShortAnswers, "after", "leaderboard")
    monkeypatch.setattr(loading, "entry_points", entry_points("Nothing", "ShortAnswers"))
    names = [finding.name for finding in of_sweeps.findings()]
    assert names[:2] == ["leaderboard", "short_answers"]
    assert names[-1] == "nothing"


def test_two_findings_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "entry_points", entry_points("ShortAnswers", "ShortAnswers"))
    with pytest.raises(ConfigError, match="there is a finding 'short_answers' already"):
        list(of_sweeps.findings())
