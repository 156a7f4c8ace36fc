"""What became of the causes of failure from the baseline to another run."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from ragauge.compare._cells import Format, Table
from ragauge.diagnose.failures import CAUSE, transitions

_MAX_ROWS = 12  # changes shown of one run


def cause_changes(outcomes: pd.DataFrame, base: str) -> pd.DataFrame | None:
    """`transitions` from the baseline to every other run, with a column run_id; None where runs tell none."""
    if CAUSE not in outcomes:
        return None
    of_run = dict(tuple(outcomes.groupby("run_id", sort=False)))
    found = [transitions(of_run[base], rows).assign(run_id=i) for i, rows in of_run.items() if i != base]
    every = pd.concat(found, ignore_index=True)
    return every[["run_id", "cause", "becomes", "topics"]]


def causes_table(changes: pd.DataFrame, names: Mapping[str, str], form: Format) -> Table | None:
    """The changes of every run, the most frequent first, at most twelve; None where nothing changed."""
    changed = changes[changes["cause"] != changes["becomes"]]
    shown = changed.groupby("run_id", sort=False).head(_MAX_ROWS)
    rows = [
        [
            form.text(names[row["run_id"]]),
            form.text(row["cause"]),
            form.text(row["becomes"]),
            f"{row['topics']:,}",
        ]
        for row in shown.to_dict("records")
    ]
    return Table([form.text(name) for name in ("run", "cause", "becomes", "topics")], rows, 3) if rows else None
