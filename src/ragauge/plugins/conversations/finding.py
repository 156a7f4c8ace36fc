"""Whether a system gets worse with the turns: later less earlier turns of the same conversation."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.contract.finding import Cell, Finding, Found, Founds, Grid, Num, Section, Shown, Text
from ragauge.contract.jobs import Jobs
from ragauge.contract.metrics import METRICS
from ragauge.contract.topics import CONVERSATION, TURN
from ragauge.estimate.intervals import Estimate, paired_mean
from ragauge.estimate.outcomes import right_of

_PARTS = {"first": "later turns less the first", "half": "second half less the first half"}


def later_less_earlier(values: pd.Series, turns: pd.Series, conversations: pd.Series, part: str) -> Estimate:
    """The mean over conversations of the mean of later turns less that of earlier ones, with a 95 % interval.

    values: in [0, 1], missing where a turn has none; of equal index with turns (positions, ascending) and
    conversations. part: `first`, the first turn that has a value and all after it; `half`, the halves of these turns,
    without the one in the middle of an odd number. A conversation with one turn tells nothing. The interval is that of
    `paired_mean`, a conversation a topic.
    """
    rows = pd.DataFrame({"value": values, "turn": turns, "of": conversations}).dropna().sort_values("turn")
    at = rows.groupby("of").cumcount()
    n = rows.groupby("of")["value"].transform("size")
    early = at < (1 if part == "first" else n // 2)
    late = ~early if part == "first" else at >= n - n // 2
    means = [rows[of & (n > 1)].groupby("of")["value"].mean() for of in (late, early)]
    return paired_mean((means[0] - means[1]).to_numpy(dtype=float))


class Turns(Finding):
    """Later turns less earlier ones, of every system."""

    name = "turns"
    after = "slices"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """A row per system, measure and part; None without conversations of two turns."""
        rows = jobs.at_n
        if not {CONVERSATION, TURN} <= set(rows) or not pd.api.types.is_numeric_dtype(rows[TURN]):
            return None
        table = pd.DataFrame(
            {"system": system, "measure": measure, "part": part, "difference": e.value, "lo": e.lo, "hi": e.hi,
             "conversations": e.n}
            for system, own in rows.groupby("system", sort=False)
            for measure, values in _values(own).items()
            for part in _PARTS
            if (e := later_less_earlier(values, own[TURN], own[CONVERSATION], part)).n > 1
        )  # fmt: skip
        return None if table.empty else Found(table, tables={"turns": table})

    def show(self, jobs: Jobs, value: pd.DataFrame, found: Founds) -> Shown:
        """A table; on the terminal a line per system."""
        rows: list[list[Cell]] = [
            [
                str(row["system"]),
                f"{METRICS[row['measure']].words}, {_PARTS[row['part']]}",
                Num(row["difference"], "points" if row["measure"] == "correct" else "signed", row["lo"], row["hi"]),
                str(row["conversations"]),
            ]
            for row in value.to_dict("records")
        ]
        said = (
            "Each conversation is compared with itself, so that long conversations, which may be harder ones, decide "
            "nothing. Intervals are over conversations."
        )
        grid = Grid("Later turns less earlier ones", "System | <Of | Difference | Conversations", rows)
        first = value[(value["measure"] == value["measure"].iloc[0]) & (value["part"] == "first")]
        lines = [
            f"later turns less the first, {METRICS[row['measure']].words}: {100 * row['difference']:+.0f} points "
            f"({100 * row['lo']:+.0f} to {100 * row['hi']:+.0f}) {row['system']}"
            for row in first.to_dict("records")
        ]
        return Shown([Section("Turns of conversations", [Text(said), grid])], lines=lines)


def _values(rows: pd.DataFrame) -> dict[str, pd.Series]:
    """Right answers of the judged topics, and IR scores, as far as available."""
    right = pd.Series(right_of(rows).astype(float), rows.index).where(rows["label"].notna())
    found = {"correct": right, "ir_score": rows["ir_score"].astype(float)}
    return {name: values for name, values in found.items() if np.isfinite(values).any()}
