"""Answers that a system lacks: over how many topics a measure's mean is, and two systems' difference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge import track
from ragauge.contract.answer_measures import as_record
from ragauge.contract.jobs import Jobs
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.experiment.sweep.run import track_sweep
from ragauge.findings.pooling import pooled
from ragauge.show.html import html
from ragauge.track import Reader
from sweep_records import record_of

N = 280
F1 = AnswerMeasureInfo("f1", "token F1")
GROUPS = ("dataset", "retriever", "chunker", "llm", "judge", "measure", "tokenizer")
ANSWERED = {"hyde": range(70), "plain": range(60, 130), "fusion": range(65, N)}  # pairs: 10, 5, 65


def sweep(*systems: str) -> Jobs:
    """Jobs without evidence or verdicts, whose systems answered some of the 280 questions."""
    parts, records = [], []
    for number, system in enumerate(systems):
        f1 = np.full(N, np.nan)
        f1[ANSWERED[system]] = np.linspace(0.2, 1, len(ANSWERED[system]))
        row = {"query": "?", "answer_reference": "yes", "answer": "yes", "system": system, "retriever": system,
               "chunker": "none", "llm": "recorded", "n_tokens": 100, "ir_score": np.nan}  # fmt: skip
        unjudged = pd.array([None] * N, dtype="Int8")
        parts.append(pd.DataFrame({"qid": [f"q{i}" for i in range(N)], **row, "f1": f1, "label": unjudged}))
        records.append(record_of({
            "status": "FINISHED", "name": system, "number": number, "sweep_id": "s", "experiment": "e",
            "choices": dict.fromkeys(GROUPS, "x"),
            "overrides": [f"retriever={system}"], "seed": 0, "bootstrap": 10, "n_tokens": 100,
            "dataset_digest": "d" * 64, "estimate": {"features": ["ir_score"], "spline": False, "calibrate": False},
            "ir_score_at_n": {}, "answer_measures": as_record([F1]), "tracking_uri": "elsewhere",
            "metrics": {"topics": N, "seconds_total": 1.0},
        }))  # fmt: skip
    return Jobs("s", "e", records, [], pd.concat(parts, ignore_index=True))


def test_the_number_of_topics_stands_beside_each_mean_and_that_of_common_ones_below(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    track_sweep([sweep("hyde", "plain")], tmp_path, uri)
    told = capsys.readouterr().out
    board = told.partition("Leaderboard")[2]
    of_systems = [line for line in board.splitlines() if line.startswith(("hyde  ", "plain  "))]
    assert len(of_systems) == 2
    assert all(line.endswith("of 70") for line in of_systems)
    common = f"Of {N} topics, two systems are compared on those that both have: token F1 10."
    reader = Reader(uri)
    [run] = reader.search({"role": "sweep"}, track.Tracker(uri, "e").experiment_id)
    assert "\n\nhyde is shown to be the best in token F1.\n" in board
    assert run.tags["mlflow.note.content"].startswith("hyde is shown to be the best in token F1. ")
    assert told.splitlines()[-2].startswith("report: ")
    page = reader.text(run.run_id, "report.html")
    assert page.index("hyde is shown to be the best") < page.index('id="leaderboard"')
    board = page[page.index('id="leaderboard"') :].partition("</table>")[0]
    assert board.count(" of 70</span>") == 2
    assert common in page


def test_of_several_pairs_the_fewest_and_the_most_common_topics_are_named() -> None:
    [page] = [html([pooled(sweep("hyde", "plain", "fusion")).page])]
    assert "on those that both have: token F1 5 to 65." in page
    assert " of 215</span>" in page


def test_where_systems_have_other_topics_the_most_are_told() -> None:
    jobs = sweep("hyde", "plain")
    rows = jobs.outcomes
    fewer = rows[rows["system"].eq("hyde") | rows["f1"].notna()]
    page = html([pooled(Jobs("s", "e", jobs.records, [], fewer)).page])
    assert f"Of {N} topics, two systems are compared on those that both have: token F1 10." in page
    assert f"tokens, over {N} topics" in page


def test_where_no_answer_is_missing_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for system in ("hyde", "plain"):
        monkeypatch.setitem(ANSWERED, system, range(N))
    page = html([pooled(sweep("hyde", "plain")).page])
    assert "those that both have:" not in page
    assert " of 280</span>" not in page


def test_an_unanswerable_topic_lacks_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    for system in ("hyde", "plain"):
        monkeypatch.setitem(ANSWERED, system, range(10, N))
    jobs = sweep("hyde", "plain")
    assert " of 270</span>" in html([pooled(jobs).page])
    marked = jobs.outcomes.assign(unanswerable=[int(qid[1:]) < 10 for qid in jobs.outcomes["qid"]])
    page = html([pooled(Jobs("s", "e", jobs.records, [], marked)).page])
    assert "those that both have:" not in page
    assert " of 270</span>" not in page


def test_a_measure_of_one_system_alone_makes_no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ANSWERED, "plain", range(0))
    page = html([pooled(sweep("hyde", "plain")).page])
    assert " of 70</span>" in page
    assert "those that both have:" not in page
