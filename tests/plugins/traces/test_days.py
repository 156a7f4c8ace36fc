"""The metrics of a window of traces by day."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.plugins.traces.findings import Days, Window

N = float("nan")
# Of stratum x all were judged, of y three of six: such a row stands for two. "q4" is unanswerable, "q5" has no
# reference, "q3" no verdict; "q9" has no day.
ROWS = pd.DataFrame(
    [
        ("q1", "2026-01-31", 5, "ok", "x", True, False, 1.0, 1.0),
        ("q2", "2026-01-31", 4, "ok", "x", True, False, 0.5, 0.0),
        ("q3", "2026-01-31", None, "unreadable", "y", True, False, N, N),
        ("q4", "2026-01-31", 1, "ok", "x", True, True, N, N),
        ("q5", "2026-01-31", None, "no reference", "y", True, False, N, N),
        ("q6", "2026-02-01", 1, "ok", "y", True, False, N, 0.5),
        ("q7", "2026-02-01", None, "not judged", "y", False, False, 0.25, N),
        ("q8", "2026-02-01", None, "not judged", "y", False, False, N, N),
        ("q9", None, 5, "ok", "y", True, False, 0.0, 1.0),
        ("q10", "2026-02-02", None, "not judged", "y", False, False, 0.5, N),
    ],
    columns=["qid", "day", "label", "judge_status", "stratum", "judged", "unanswerable", "ir_score", "f1"],
).astype({"label": "Int8"})


def days_of(rows: pd.DataFrame) -> Any:
    job: Any = SimpleNamespace(outcomes=rows, answer_measures=[AnswerMeasureInfo("f1", "F1")])
    found = Days().compute(job, {})
    return found and found.days


def test_metrics_by_day_are_over_all_that_the_judge_was_asked_about_that_day() -> None:
    january, february, third = 20260131, 20260201, 20260202
    assert days_of(ROWS) == {
        "topics_at_day": {january: 5, february: 3, third: 1},
        "correct_share_at_day": {january: 0.25, february: 0.0},
        "hallucination_share_at_day": {january: 0.25, february: 0.0},
        "judge_share_1_at_day": {january: 0.0, february: 1.0},
        "judge_share_missing_at_day": {january: 0.5, february: 0.0},
        "ir_score_at_day": {january: 0.75, february: 0.25, third: 0.5},
        "f1_at_day": {january: 0.5, february: 0.5},
    }
    assert days_of(ROWS.iloc[6:8]) == {"topics_at_day": {february: 2}, "ir_score_at_day": {february: 0.25}}


@pytest.mark.parametrize("day", ["Monday", "2026-1-31", None])
def test_topics_without_a_date_have_nothing_by_day(day: str | None) -> None:
    assert days_of(ROWS[:2].assign(day=pd.Series([day, "2026-01-31" if day else None], dtype="str"))) is None
    assert days_of(ROWS.drop(columns="day")) is None


def test_another_dataset_has_no_window() -> None:
    job: Any = SimpleNamespace(pipeline=SimpleNamespace(components=SimpleNamespace(dataset=object())))
    assert Window().compute(job, {}) is None
