"""Budgets: simultaneous bands, the smallest sufficient budget, and tests over all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragauge.contract.finding import Cell, Finding, Fold, Found, Founds, Grid, Kind, Num, Section, Shown, Text
from ragauge.contract.jobs import Jobs
from ragauge.contract.metrics import METRICS
from ragauge.findings.tables import number, table
from ragauge.plugins.budgets.curves import Budgets, budgets
from ragauge.show.formats import score


class OverBudgets(Finding):
    """The measures of a sweep by budget N."""

    name = "budgets"
    after = "ir_score"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`Budgets`; None if no system has two."""
        curves = budgets(jobs.outcomes, seed=jobs.seed)
        if curves is None:
            return None
        tables = {"budget_bands": curves.bands, "smallest_budgets": curves.smallest, "budget_tests": curves.tests}
        return Found(curves, tables=tables)

    def show(self, jobs: Jobs, value: Budgets, found: Founds) -> Shown:
        """The smallest budgets; collapsed bands and tests."""
        points = f"{100 * value.margin:.1f}"
        blocks = [
            Text(
                f"The shaded bands of the figure above hold at all budgets of a system at once, with "
                f"{100 * value.level:g} % confidence; intervals in tables hold at one budget. With the same "
                f"confidence, the smallest N is at most {points} points (a score of {score(value.margin)}) worse than "
                "the system's best N. A column that says “observed” has what these topics show, which may be chance."
            ),
            _smallest(value),
            *_tests(value),
            Fold("The bands", [_bands(value)]),
        ]
        return Shown([Section("Budgets", blocks)])


def _smallest(value: Budgets) -> Grid:
    def with_confidence(row: Mapping[Any, Any]) -> str:
        known = row["smallest_n_tokens"]
        return str(known) if known == known and known is not None else "too few topics to tell"

    return table(
        "Smallest budgets",
        "System | <Measure | Best N / observed | Smallest N / observed | Smallest N / with confidence | Topics",
        value.smallest,
        lambda row: [
            str(row["system"]),
            METRICS[row["measure"]].label,
            str(row["best_n_tokens"]),
            str(row["smallest_n_tokens_seen"]),
            with_confidence(row),
            Num(row["n"], "whole"),
        ],
    )


def _tests(value: Budgets) -> list[Any]:
    tests = value.most_different()
    if tests.empty:
        return []
    grid = table(
        "Tests over all budgets",
        "Pair | <Measure | N | Difference | p at this N | p, all N | p, Holm | Topics",
        tests,
        lambda row: [
            f"{row['a']} – {row['b']}",
            METRICS[row["measure"]].difference,
            str(row["n_tokens"]),
            number(row, "difference", "points" if METRICS[row["measure"]].unit == "share" else "score"),
            *(Num(row[p], "p") for p in ("p", "p_all_budgets", "p_holm")),
            Num(row["n"], "whole"),
        ],
    )
    return [
        Text(
            f"This sweep has {value.n_budgets} budgets, and the leaderboard is for one of them. A budget that is "
            "picked because two systems differ there needs the p over all budgets below. An ordinary test at the "
            "picked one of ten finds a difference between equal systems up to three times as often as its 5 %.",
            "note",
        ),
        Fold(
            "The budget where two systems differ most, tested over all budgets",
            [
                Text(
                    "p: largest of the sign-flip statistics over all budgets of the pair (max-t); Holm's "
                    "correction over the pairs. The interval holds at all budgets at once.",
                    "small",
                ),
                grid,
            ],
        ),
    ]


def _bands(value: Budgets) -> Grid:
    def cells(row: Mapping[Any, Any]) -> list[Cell]:
        kind: Kind = "score" if row["measure"] == "ir_score" else "share"
        band = [Num(row[end], kind) for end in ("band_lo", "band_hi")]
        at = [str(row["system"]), METRICS[row["measure"]].label, str(row["n_tokens"])]
        return [*at, number(row, "value", kind), *band]

    columns = "System | <Measure | N | At this N alone | Band, lower end / at all N at once | Band, upper end"
    return table("Bands over budgets", columns, value.bands, cells)
