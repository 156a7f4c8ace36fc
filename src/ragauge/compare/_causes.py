"""What became of the causes of failure from the baseline to another run."""

from __future__ import annotations

import pandas as pd

from ragauge.contract.finding import Cell, ComparisonFinding, Found, Founds, Grid, Num, Section, Shown
from ragauge.contract.jobs import Compared
from ragauge.diagnose.failures import CAUSE, transitions

_MAX_ROWS = 12  # changes shown of one run


class ChangedCauses(ComparisonFinding):
    """How many topics changed their cause of failure."""

    name = "causes"

    def compute(self, runs: Compared, found: Founds) -> Found | None:
        """`transitions` from the baseline to every other run, with run_id; None where runs tell none."""
        if CAUSE not in runs.outcomes:
            return None
        of_run = dict(tuple(runs.outcomes.groupby("run_id", sort=False)))
        base = of_run[runs.baseline]
        changes = [transitions(base, rows).assign(run_id=i) for i, rows in of_run.items() if i != runs.baseline]
        every = pd.concat(changes, ignore_index=True)
        return Found(every[["run_id", "cause", "becomes", "topics"]])

    def show(self, runs: Compared, value: pd.DataFrame, found: Founds) -> Shown:
        """The changes of every run, the most frequent first, at most twelve; nothing where none changed."""
        changed = value[value["cause"] != value["becomes"]]
        shown = changed.groupby("run_id", sort=False).head(_MAX_ROWS)
        rows: list[list[Cell]] = [
            [runs.names[row["run_id"]], row["cause"], row["becomes"], Num(row["topics"], "whole")]
            for row in shown.to_dict("records")
        ]
        if not rows:
            return Shown()
        n, of = int(changed["topics"].sum()), int(value["topics"].sum())
        heading = f"Causes of failure that changed from {runs.names[runs.baseline]}: {n:,} of {of:,}"
        return Shown([Section(heading, [Grid("Changed causes", "run | <cause | <becomes | topics", rows)])])
