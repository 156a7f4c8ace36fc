"""Names of the files that a job leaves in its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


RECORD_FILE = "job.json"


OUTCOMES_FILE = "outcomes.parquet"


DETAILS_FILE = "answer_details.parquet"  # what values of answer measures rest on, where any was kept
