"""Tests whether runs are equivalent to the baseline within a margin: two one-sided tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from ragauge.compare._metrics import ALPHA
from ragauge.compare._pairs import by_run, known_pairs, less_base, shown_titles
from ragauge.contract.finding import Cell, ComparisonFinding, Found, Founds, Grid, Num, Section, Shown
from ragauge.contract.jobs import Compared
from ragauge.contract.measures import AnswerMeasureInfo

EQUIVALENT, FURTHER, OPEN = "equivalent", "further apart", "not shown"
_HEADS = "run | <measure | topics | difference, 90 % interval | <shown"


def equivalence_frame(
    outcomes: pd.DataFrame, base: str, margin: float, seed: int, answers: Sequence[AnswerMeasureInfo] = ()
) -> pd.DataFrame:
    """Differences [run_id, measure, difference, lo, hi, n, shown] of the runs less the baseline, with 90 % intervals.

    shown is EQUIVALENT where the whole interval is within the margin, FURTHER where the whole interval is beyond it,
    else OPEN. The interval within the margin is the same as two one-sided tests at 5 % (Schuirmann 1987). Measures that
    are not in [0, 1] are left out, since one margin serves all. No correction for many runs.
    """
    within_1 = [info for info in answers if info.unit in ("share", "ratio")]
    every = known_pairs(outcomes, seed, within_1, 1 - 2 * ALPHA)
    with_base = every["a"].eq(base) | every["b"].eq(base)
    rows = less_base(every[with_base], base, outcomes)
    rows = rows.assign(shown=OPEN)
    rows.loc[(rows["lo"] > -margin) & (rows["hi"] < margin), "shown"] = EQUIVALENT
    rows.loc[(rows["lo"] > margin) | (rows["hi"] < -margin), "shown"] = FURTHER
    return rows[["run_id", "measure", "difference", "lo", "hi", "n", "shown"]]


@dataclass(frozen=True)
class Equivalences:
    """table: `equivalence_frame` with this margin."""

    margin: float
    table: pd.DataFrame


class Equivalence(ComparisonFinding):
    """Which runs are equivalent to the baseline, where a margin is given."""

    name = "equivalence"

    def compute(self, runs: Compared, found: Founds) -> Found | None:
        """`Equivalences`; per run the columns `equivalence_<measure>` with `_lo` and `_hi` at 90 %."""
        if runs.equivalent is None:
            return None
        table = equivalence_frame(runs.outcomes, runs.baseline, runs.equivalent, runs.seed, runs.answer_measures)
        wide = by_run(runs.outcomes, table, "equivalence", {"shown": "", "lo": "_lo", "hi": "_hi"})
        return Found(Equivalences(runs.equivalent, table), tables={"runs": wide})

    def show(self, runs: Compared, value: Equivalences, found: Founds) -> Shown:
        """A row per run and shown measure, and an explanation of the words."""
        titles = shown_titles(runs, value.table["measure"])
        rows: list[list[Cell]] = [
            [
                runs.names[row["run_id"]],
                titles[row["measure"]],
                Num(row["n"], "whole"),
                Num(row["difference"], "signed", row["lo"], row["hi"]),
                row["shown"],
            ]
            for row in value.table.to_dict("records")
            if row["measure"] in titles
        ]
        if not rows:
            return Shown()
        base = runs.names[runs.baseline]
        heading = f"Equivalent to {base} within {value.margin:g}"
        meaning = (
            f"Equivalent: no worse and no better than {base} by more than {value.margin:g}, by two one-sided tests at "
            f"{ALPHA}, each run and measure by itself. Not shown: the 90 % interval lies neither within the margin nor "
            "beyond it; more topics may tell (ragauge plan --equivalent)."
        )
        return Shown([Section(heading, [Grid(heading, _HEADS, rows)])], notes=[meaning])
