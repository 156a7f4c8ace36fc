"""Every measure by slice of a job's topics, and its average over slices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ragauge.contract.finding import Found, Founds, JobFinding, Shown
from ragauge.contract.jobs import Job
from ragauge.estimate import summary
from ragauge.estimate.intervals import Estimate
from ragauge.estimate.slices import macro_averages, slice_estimates
from ragauge.estimate.slicing import PREFIX, slicings
from ragauge.experiment.outcomes.slicing import LOGGED, MAX_LOGGED, logged_slices, metric_names


class SlicesFound(JobFinding):
    """Measures by slice.

    Metrics are `slice/<slicing>/<slice>/<measure>` with `_lo` and `_hi` and `topics`, of 50 slices at most,
    those of slicings with the fewest slices first, and `slice_macro/<slicing>/<measure>`.
    """

    name = "slices"

    def compute(self, job: Job, found: Founds) -> Found | None:
        """How many slices there are; None without slices."""
        outcomes, answers = job.outcomes, job.answer_measures
        if not slicings(outcomes):
            return None
        estimates = slice_estimates(outcomes, None, answers, job.n_boot, job.seed)
        averages = macro_averages(estimates, job.pipeline.slice_weights, answers)
        names = metric_names(outcomes)
        measures = {*LOGGED, *(info.name for info in answers)}
        return Found(
            len(names),
            metrics={**_of_slices(outcomes, estimates, measures, names), **_of_averages(averages, measures, names)},
            logged={"slices": estimates, "slice_averages": averages},
        )

    def show(self, job: Job, value: int, found: Founds) -> Shown:
        """That not all slices are metrics."""
        told = f"{value} slices, of which {MAX_LOGGED} are metrics; all are in slices.json"
        return Shown(lines=[told] if value > MAX_LOGGED else [])


_Names = Mapping[tuple[str, str], str]


def _of_slices(outcomes: pd.DataFrame, estimates: pd.DataFrame, measures: set[str], names: _Names) -> dict[str, float]:
    logged = logged_slices(names)
    sizes = {(by, label): n for by in slicings(outcomes) for label, n in
             outcomes[PREFIX + by].value_counts().items()}  # fmt: skip
    values: dict[str, float] = {f"{name}/topics": int(sizes[at]) for at, name in logged.items()}
    for row in estimates.to_dict("records"):
        if row["measure"] in measures and (at := (row["slicing"], row["slice"])) in logged:
            values |= _metrics(f"{logged[at]}/{row['measure']}", row)
    return values


def _of_averages(averages: pd.DataFrame, measures: set[str], names: _Names) -> dict[str, float]:
    slug_of = {by: name.split("/")[1] for (by, _), name in names.items()}
    values: dict[str, float] = {}
    for row in averages.to_dict("records"):
        if row["measure"] in measures:
            values |= _metrics(f"slice_macro/{slug_of[row['slicing']]}/{row['measure']}", row)
    return values


def _metrics(name: str, row: Mapping[Any, Any]) -> dict[str, float]:
    return summary.with_interval(name, Estimate(row["value"], row["lo"], row["hi"], row["n"]))
