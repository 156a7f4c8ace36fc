"""What became of the causes of failure from the baseline to another run."""

from __future__ import annotations

import pandas as pd

from ragauge.compare._topics import ChangedCauses
from ragauge.contract.finding import Found, Grid, Shown
from ragauge.contract.jobs import Compared
from ragauge.show.tables import TERMINAL, table_of


def outcomes() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "run_id": ["a"] * 3 + ["b"] * 3,
            "qid": ["1", "2", "3"] * 2,
            "failure_cause": ["not retrieved", "not retrieved", None, None, "unsupported answer", None],
        }
    )


def runs(rows: pd.DataFrame) -> Compared:
    return Compared(rows, {"a": "base", "b": "other"}, "a", [], 9, 10, 0)


def changes(rows: pd.DataFrame) -> Found | None:
    return ChangedCauses().compute(runs(rows), {})


def shown(found: Found) -> Shown:
    return ChangedCauses().show(runs(outcomes()), found.value, {})


def test_changes_are_from_the_baseline_to_each_other_run() -> None:
    found = changes(outcomes())
    assert found is not None
    assert {tuple(row) for row in found.value.to_numpy().tolist()} == {
        ("b", "not retrieved", "not failed", 1),
        ("b", "not retrieved", "unsupported answer", 1),
        ("b", "not failed", "not failed", 1),
    }
    [section] = shown(found).sections
    assert section.heading == "Causes of failure that changed from base: 2 of 3"
    [grid] = section.blocks
    assert isinstance(grid, Grid)
    table = table_of(grid, TERMINAL)
    assert table.n_keys == 3
    assert [list(row) for row in table.lines[1:]] == [
        ["other", "not retrieved", "not failed", "1"],
        ["other", "not retrieved", "unsupported answer", "1"],
    ]


def test_runs_that_tell_no_causes_and_those_that_changed_none_have_no_table() -> None:
    assert changes(outcomes().drop(columns="failure_cause")) is None
    found = changes(outcomes().assign(failure_cause="not retrieved"))
    assert found is not None
    assert not shown(found).sections
