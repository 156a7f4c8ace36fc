"""The exit code of several jobs."""

from __future__ import annotations

import pytest

from ragauge.experiment.guard import exit_code_of
from sweep_records import record_of


@pytest.mark.parametrize(
    ("of_jobs", "together"),
    [([], 0), ([0, 0], 0), ([0, 2, 2], 2), ([0, 3], 3), ([2, 3], 1), ([0, 1, 2], 1), ([2, 130], 1)],
)
def test_failures_of_two_kinds_end_with_1(of_jobs: list[int], together: int) -> None:
    assert exit_code_of([record_of(exit_code=code) for code in of_jobs]) == together
