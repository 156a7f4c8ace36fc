"""The floor of a sweep: one line where its jobs have one, several where they differ, none if unknown."""

from __future__ import annotations

import pandas as pd

from ragauge.contract.jobs import Jobs
from ragauge.findings.ir_score import floor_curves
from sweep_records import record_of


def swept(*jobs: tuple[str, dict[int, float] | None]) -> Jobs:
    records = [record_of(overrides=[f"chunker={chunker}"], ir_score_floor_at_n=floor or {}) for chunker, floor in jobs]
    return Jobs("id", "sample", records, [], pd.DataFrame())


def test_jobs_of_one_floor_are_one_line_as_far_as_the_largest_budget() -> None:
    found = floor_curves(swept(("a", {100: 0.1}), ("b", {100: 0.1, 200: 0.2})))
    assert found == {"unrelated text": {100: 0.1, 200: 0.2}}


def test_jobs_of_different_floors_are_lines_with_their_first_system() -> None:
    found = floor_curves(swept(("a", {100: 0.1}), ("b", {100: 0.3})))
    assert list(found.values()) == [{100: 0.1}, {100: 0.3}]
    assert all(name.startswith("unrelated text, ") for name in found)
    assert len(found) == 2


def test_jobs_of_before_there_was_a_floor_have_no_line() -> None:
    assert floor_curves(swept(("a", None))) == {}
