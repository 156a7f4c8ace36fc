"""Budgets: bands that hold at all of them at once, the smallest that is enough, and tests over all."""

from __future__ import annotations

from typing import Any

from ragauge.contract.finding import Cell, Finding, Fold, Found, Founds, Grid, Num, Section, Shown, Text
from ragauge.contract.jobs import Jobs
from ragauge.contract.visible import visible
from ragauge.estimate.curves import Budgets, budgets
from ragauge.show.formats import score

_NAMES = {"ir_score": "IR score", "correct": "right"}


class OverBudgets(Finding):
    """What changes with the budget N."""

    name = "budgets"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`Budgets`; None where no system has two."""
        curves = budgets(jobs.outcomes, seed=jobs.seed)
        if curves is None:
            return None
        tables = {"budget_bands": curves.bands, "smallest_budgets": curves.smallest, "budget_tests": curves.tests}
        return Found(curves, tables=tables)

    def show(self, jobs: Jobs, value: Budgets, found: Founds) -> Shown:
        """The smallest budgets; bands and tests behind a click."""
        points = f"{100 * value.margin:.1f}"
        blocks = [
            Text(
                f"The shaded bands of the figure above hold at all budgets of a system at once, with "
                f"{100 * value.level:g} % confidence; intervals in tables hold at one budget. The smallest N "
                f"costs at most {points} points (a score of {score(value.margin)}) against the system's best "
                "N, with the same confidence; as observed: in these topics, which may be chance."
            ),
            _smallest(value),
            *_tests(value),
            Fold("The bands", [_bands(value)]),
        ]
        return Shown([Section("Budgets", blocks)], budget_lines(value))


def _smallest(value: Budgets) -> Grid:
    columns = "System | <Measure | Best N / observed | Smallest N / observed | Smallest N / with confidence | Topics"
    rows: list[list[Cell]] = []
    for row in value.smallest.to_dict("records"):
        known = row["smallest_n_tokens"]
        rows.append(
            [
                str(row["system"]),
                _NAMES[row["measure"]],
                str(row["best_n_tokens"]),
                str(row["smallest_n_tokens_seen"]),
                str(known) if known == known and known is not None else "too few topics to tell",
                Num(row["n"], "whole"),
            ]
        )
    return Grid("Smallest budgets", columns, rows)


def _tests(value: Budgets) -> list[Any]:
    tests = value.most_different().to_dict("records")
    if not tests:
        return []
    columns = "Pair | <Measure | N | Difference | p at this N | p, all N | p, Holm | Topics"
    rows: list[list[Cell]] = [
        [
            f"{row['a']} – {row['b']}",
            _NAMES[row["measure"]] + ", points" * (row["measure"] == "correct"),
            str(row["n_tokens"]),
            Num(row["difference"], "score" if row["measure"] == "ir_score" else "points", row["lo"], row["hi"]),
            Num(row["p"], "p"),
            Num(row["p_all_budgets"], "p"),
            Num(row["p_holm"], "p"),
            Num(row["n"], "whole"),
        ]
        for row in tests
    ]
    return [
        Text(
            f"This sweep has {value.n_budgets} budgets, and the leaderboard is for one of them. A budget that "
            "is picked because two systems differ there needs the p over all budgets below: an ordinary test "
            "at the picked one of ten finds a difference between equal systems up to three times as often as "
            "its 5 %.",
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
                Grid("Tests over all budgets", columns, rows),
            ],
        ),
    ]


def _bands(value: Budgets) -> Grid:
    columns = "System | <Measure | N | At this N alone | Band, lower end / at all N at once | Band, upper end"
    rows: list[list[Cell]] = []
    for row in value.bands.to_dict("records"):
        kind: Any = "score" if row["measure"] == "ir_score" else "share"
        rows.append(
            [
                str(row["system"]),
                _NAMES[row["measure"]],
                str(row["n_tokens"]),
                Num(row["value"], kind, row["lo"], row["hi"]),
                Num(row["band_lo"], kind),
                Num(row["band_hi"], kind),
            ]
        )
    return Grid("Bands over budgets", columns, rows)


def budget_lines(found: Budgets) -> list[str]:
    """The smallest budget within the margin by system, and what to do about a budget picked after looking."""
    lines = []
    for measure, name, margin in (
        ("ir_score", "IR score", f"{found.margin:g}"),
        ("correct", "right answers", f"{100 * found.margin:g} point(s)"),
    ):
        rows = found.smallest[found.smallest["measure"] == measure]
        known = [
            f"{visible(row['system'], one_line=True)} {row['smallest_n_tokens']}"
            for row in rows[rows["smallest_n_tokens"].notna()].to_dict("records")
        ]
        if len(rows):
            said = ", ".join(known) or "none"
            rest = "" if len(known) == len(rows) else "; too few topics to tell of the others"
            lines.append(f"smallest N within {margin} of a system's best, {name}: {said}{rest}")
    if len(found.tests):
        lines.append(
            f"{found.n_budgets} budgets: where N is picked for what it shows, take the p over all of them "
            "(tables/budget_tests.csv)"
        )
    return lines
