"""What a sample of judged topics says of all topics."""

from __future__ import annotations

import pandas as pd

from ragauge.contract.finding import Finding, Found, Founds, Section, Shown, Text
from ragauge.contract.jobs import Jobs
from ragauge.estimate import asked, ppi_shares
from ragauge.estimate.outcomes import with_classes
from ragauge.findings.classes import shares_by_system, shares_of_all
from ragauge.show.formats import whole


class Sample(Finding):
    """Shares of all topics where a sample was judged."""

    name = "sample"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`ppi_shares` by system; None where all topics were judged."""
        shares = shares_by_system(jobs.at_n, _sampled)
        return None if shares is None else Found(shares, tables={"sampled_shares": shares})

    def show(self, jobs: Jobs, value: pd.DataFrame, found: Founds) -> Shown:
        """The shares of all beside those of the judged."""
        first = value.iloc[0]
        about = Text(
            f"The judge saw {whole(first['n_judged'])} of {whole(first['n_topics'])} topics at N = {jobs.n_tokens}. "
            "The shares of all topics are prediction-powered estimates (PPI++): the predictor's shares, corrected by "
            "its errors on the judged topics. Beside them is what the judged topics say alone. The effective number "
            "is how many judged topics would say as much without the predictor. Thresholds and predictor are fitted "
            "on the judged topics, thresholds with the weights of their strata; paired differences of right answers "
            "and hallucinations are prediction-powered, too."
        )
        return Shown([Section("A sample of topics was judged", [about, shares_of_all(value, "Judged alone")])])


def _sampled(rows: pd.DataFrame) -> pd.DataFrame | None:
    """Shares of all topics from the few that were judged; None where all were."""
    rows = with_classes(rows)
    return ppi_shares(rows) if len(asked(rows)) < len(rows) else None
