"""The differences between runs as people would judge them."""

from __future__ import annotations

import pandas as pd

from ragauge.compare._cells import ALPHA, DIFFERS
from ragauge.compare._pairs import less_base
from ragauge.contract.errors import DataError
from ragauge.contract.finding import Cell, ComparisonFinding, Found, Founds, Grid, Num, Section, Shown
from ragauge.contract.jobs import Compared
from ragauge.estimate.human import human_pairs

_COLUMNS = "run | <measure | topics | by the judge | as people would judge | p | p, Holm"


class AsPeopleJudge(ComparisonFinding):
    """The verdicts' differences from the baseline, corrected by labels on answers of two runs."""

    name = "people"

    def compute(self, runs: Compared, found: Founds) -> Found | None:
        """`human_pairs` with `run_id` in place of a and b, or why labels do not serve; None without labels.

        Holm's correction counts all pairs of a measure.
        """
        if "human_label" not in runs.outcomes:
            return None
        try:
            every = human_pairs(runs.outcomes, "run_id")
        except DataError as error:
            return Found(f"{error}.")
        if every is None:
            return None
        with_base = every["a"].eq(runs.baseline) | every["b"].eq(runs.baseline)
        return Found(less_base(every[with_base], runs.baseline, runs.outcomes).drop(columns=["a", "b"]))

    def show(self, runs: Compared, value: pd.DataFrame | str, found: Founds) -> Shown:
        """A row per run and measure."""
        if isinstance(value, str):
            return Shown(notes=[value])
        rows: list[list[Cell]] = [
            [
                runs.names[row["run_id"]],
                "right" if row["measure"] == "correct" else "hallucination",
                Num(row["n"], "whole"),
                Num(row["judge_difference"], "signed"),
                Num(row["difference"], "signed", row["lo"], row["hi"], DIFFERS if row["p_holm"] < ALPHA else ""),
                Num(row["p"], "p"),
                Num(row["p_holm"], "p"),
            ]
            for row in value.to_dict("records")
        ]
        heading = f"{runs.pairs_heading}, as people would judge (verdicts corrected by labels)"
        return Shown([Section(heading, [Grid("Differences as people would judge", _COLUMNS, rows)])] if rows else [])
