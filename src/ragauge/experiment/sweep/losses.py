"""Where the systems of a sweep lose evidence and why their topics fail, at the sweep's budget."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from ragauge.diagnose.failures import CAUSE, cause_shares, causes_by_slice, right_by_place
from ragauge.diagnose.funnel import answers_by_evidence, funnel_of_metrics
from ragauge.diagnose.places import PLACES
from ragauge.experiment.sweep.jobs import Sweep, systems_of
from ragauge.report.losses import Losses


def losses_of(sweep: Sweep) -> Losses | None:
    """The tables of every system; None for jobs of before there was a funnel."""
    n_boot, seed = int(sweep.records[0]["bootstrap"]), int(sweep.records[0]["seed"])
    at_n = sweep.outcomes[sweep.outcomes["n_tokens"] == sweep.n_tokens]
    funnels, untold = [], []
    for record, system in zip(sweep.records, systems_of(sweep.records), strict=True):
        if int(record["n_tokens"]) == sweep.n_tokens:
            table = funnel_of_metrics(record["metrics"])
            untold += [] if len(table) else [system]
            funnels += [table.assign(system=system)] if len(table) else []
    if not funnels and CAUSE not in at_n:
        return None

    def of_each(made: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
        found = [(made(rows), system) for system, rows in at_n.groupby("system", sort=False)]
        return _together([table.assign(system=system) for table, system in found if len(table)])

    return Losses(
        funnels=_together(funnels),
        answers=of_each(lambda rows: answers_by_evidence(rows, n_boot=n_boot, seed=seed)),
        causes=of_each(lambda rows: cause_shares(rows, n_boot, seed)),
        slices=of_each(lambda rows: causes_by_slice(rows, n_boot, seed)),
        places=of_each(lambda rows: right_by_place(rows, PLACES, n_boot, seed)),
        untold=untold,
    )


def _together(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """The tables one below the other, the system first; one without rows where there is none."""
    if not tables:
        return pd.DataFrame({"system": pd.Series(dtype="str"), "cause": [], "topics": []})
    every = pd.concat(tables, ignore_index=True)
    return every[["system", *every.columns.drop("system")]]
