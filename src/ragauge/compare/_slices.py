"""Runs by slice of the topics, and their differences from the baseline there."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ragauge.compare._cells import NOTHING, Format, Table
from ragauge.contract.answer_measures import column_label
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.estimate.pairs import holm
from ragauge.estimate.slices import SliceTables, macro_averages, slice_differences, slice_estimates
from ragauge.estimate.slicing import slicings

_MEASURES = {  # of a slice: its name, and that of the difference
    "ir_score": ("IR score", "ir_score"), "correct_share": ("right", "correct"),
    "hallucination_share": ("hallucination", "hallucination"),
}  # fmt: skip
_ALPHA = 0.05


def slice_tables(
    outcomes: pd.DataFrame, base: str, answers: Sequence[AnswerMeasureInfo], n_boot: int, seed: int
) -> SliceTables | None:
    """Every run by slice (column run_id), and its differences from the baseline; None where not all runs have
    a slicing in common. Holm's correction counts the slices of all runs.
    """
    if not slicings(outcomes):
        return None
    estimates = slice_estimates(outcomes, "run_id", answers, n_boot, seed)
    others = [run_id for run_id in outcomes["run_id"].unique() if run_id != base]
    every = pd.concat(
        [slice_differences(outcomes, run_id, base, "run_id", answers, seed) for run_id in others],
        ignore_index=True,
    )
    for measure in every["measure"].unique():
        of = every["measure"] == measure
        every.loc[of, "p_holm"] = holm(every.loc[of, "p"].to_numpy(dtype=float))
    return SliceTables(estimates, macro_averages(estimates, None, answers), every)


def slice_table(found: SliceTables, names: dict[str, str], answers: Sequence[AnswerMeasureInfo], form: Format) -> Table:
    """A row for every slice and run: topics, each measure with its interval, and the difference from the
    baseline.
    """
    measures = _MEASURES | {info.name: (column_label(info), info.name) for info in answers}
    measures = {m: named for m, named in measures.items() if (found.estimates["measure"] == m).any()}
    values = {
        (row["slicing"], row["slice"], row["run_id"], row["measure"]): row for row in found.estimates.to_dict("records")
    }
    rows_of = [] if found.differences is None else found.differences.to_dict("records")
    differences = {(row["slicing"], row["slice"], row["a"], row["measure"]): row for row in rows_of}
    header = ["by", "slice", "run", "topics"]
    for title, _ in measures.values():
        header += [title, "difference"]
    rows = []
    for by, label, run_id in dict.fromkeys(key[:3] for key in values):
        own = {m: values[at] for m in measures if (at := (by, label, run_id, m)) in values}
        cells = [form.text(by), form.text(label), form.text(names[run_id])]
        cells.append(f"{max((row['n'] for row in own.values()), default=0):,}")
        for measure, (_, pair) in measures.items():
            value, difference = own.get(measure), differences.get((by, label, run_id, pair))
            missing = form.escape(NOTHING)
            cells.append(
                missing if value is None else form.marked(value["value"], ".3f", False, False, value["lo"], value["hi"])
            )
            cells.append(
                missing if difference is None
                else form.marked(difference["difference"], "+.3f", False, difference["p_holm"] < _ALPHA,
                                 difference["lo"], difference["hi"])
            )  # fmt: skip
        rows.append(cells)
    return Table([form.text(name) for name in header], rows, 3)
