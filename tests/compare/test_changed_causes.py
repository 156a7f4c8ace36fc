"""What became of the causes of failure from the baseline to another run."""

from __future__ import annotations

import pandas as pd

from ragauge.compare._causes import cause_changes, causes_table
from ragauge.compare._cells import Format

PLAIN = Format(str, "{}", "{}", "{} [{}, {}]", "-", "")


def outcomes() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "run_id": ["a"] * 3 + ["b"] * 3,
            "qid": ["1", "2", "3"] * 2,
            "failure_cause": ["not retrieved", "not retrieved", None, None, "unsupported answer", None],
        }
    )


def test_changes_are_from_the_baseline_to_each_other_run() -> None:
    found = cause_changes(outcomes(), "a")
    assert found is not None
    assert {tuple(row) for row in found.to_numpy().tolist()} == {
        ("b", "not retrieved", "not failed", 1),
        ("b", "not retrieved", "unsupported answer", 1),
        ("b", "not failed", "not failed", 1),
    }
    table = causes_table(found, {"b": "other"}, PLAIN)
    assert table is not None
    assert [list(row) for row in table.rows] == [
        ["other", "not retrieved", "not failed", "1"],
        ["other", "not retrieved", "unsupported answer", "1"],
    ]


def test_runs_that_tell_no_causes_and_those_that_changed_none_have_no_table() -> None:
    assert cause_changes(outcomes().drop(columns="failure_cause"), "a") is None
    same = outcomes().assign(failure_cause="not retrieved")
    found = cause_changes(same, "a")
    assert found is not None
    assert causes_table(found, {"b": "other"}, PLAIN) is None
