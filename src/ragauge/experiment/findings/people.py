"""What people would say of all answers of a job: a judge's probabilities, corrected by their labels."""

from __future__ import annotations

import logging

import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.finding import Found, Founds, JobFinding, Shown
from ragauge.contract.jobs import Job
from ragauge.contract.topics import QUESTIONS, labelled_as, measured_as
from ragauge.estimate.human import human_shares
from ragauge.estimate.powered_share import FEW_LABELS, powered_share

log = logging.getLogger(__name__)


class PeopleFound(JobFinding):
    """What labels by people say of a judge's probabilities."""

    name = "people"

    def compute(self, job: Job, found: Founds) -> Found:
        """Why the labels give no shares of classes, if they give none."""
        refused = None
        if job.cfg.human_labels is not None and "human_label" in job.outcomes:
            try:
                human_shares(job.outcomes)
            except DataError as error:  # found here, as the estimates may come from the store
                refused = str(error)
        return Found(refused, metrics=powered_by_people(job.outcomes))

    def show(self, job: Job, value: str | None, found: Founds) -> Shown:
        """The reason, as a warning."""
        return Shown(notes=[] if value is None else [f"no shares as people would judge: {value}"])


def powered_by_people(outcomes: pd.DataFrame) -> dict[str, float]:
    """Metrics <measure>_ppi, _labels_only (each with _lo and _hi), and what they rest on; {} without labels.

    Of every question that the outcomes have labels and a judge's probabilities for, over the topics
    that have a probability. Tells where labels are few, are on answers without one, or are no sample.
    """
    values: dict[str, float] = {}
    for question in QUESTIONS:
        name, column = measured_as(question), labelled_as(question)
        if name not in outcomes or column not in outcomes:
            continue
        rows = outcomes[outcomes[name].notna()]
        n, beside = int(rows[column].notna().sum()), int(outcomes[column].notna().sum())
        if beside > n:
            log.warning("%s: %d labels are on answers without a value, and left out", name, beside - n)
        if n == 0:
            continue
        try:
            found = powered_share(rows[column].to_numpy(dtype=float), rows[name].to_numpy(dtype=float))
        except DataError as error:
            log.warning("%s: no estimate as people would judge: %s", name, error)
            continue
        if n < FEW_LABELS:
            log.warning("%s: %d labels by people are few: below %d an interval says little", name, n, FEW_LABELS)
        for end, share in (("ppi", found.powered), ("labels_only", found.labels_only)):
            limits = {"": share.value, "_lo": share.lo, "_hi": share.hi}
            values |= {f"{name}_{end}{limit}": value for limit, value in limits.items()}
        values |= {
            f"{name}_labels": n,
            f"{name}_ppi_effective_n": found.effective_n,
            f"{name}_ppi_lambda": found.lam,
        }
    return values
