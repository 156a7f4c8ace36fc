"""Verdicts that could not be read."""

from __future__ import annotations

import pandas as pd

from ragauge.contract.finding import Finding, Found, Founds, Shown
from ragauge.contract.jobs import Jobs
from ragauge.llms.chat_use import MOST_UNREAD


class Unreadable(Finding):
    """What a judge replied in another form than it was asked for."""

    name = "unreadable"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """The outcomes with such a verdict; None where all could be read."""
        if not {"judge_status", "reason"} <= set(jobs.outcomes):
            return None
        rows = jobs.outcomes[jobs.outcomes["judge_status"].eq("unreadable").fillna(False)]
        return Found(rows) if len(rows) else None

    def show(self, jobs: Jobs, value: pd.DataFrame, found: Founds) -> Shown:
        """A sentence, with the first reply, at the head of the report and on the terminal."""
        sentence = (
            f"{len(value)} of {len(jobs.outcomes)} verdicts could not be read; a rerun asks for them again, "
            f"{MOST_UNREAD} times at most. The first: {value['reason'].iloc[0]}."
        )
        return Shown(lines=[sentence], notes=[sentence])
