"""Intervals of an ablation hold the true effects of options, in however many settings they were tried."""

from __future__ import annotations

import pytest

from simulations.ablation import coverage

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("measure", ["ir_score", "correct"])
def test_intervals_hold_the_effect_averaged_over_settings(measure: str) -> None:
    assert coverage(measure, "cross", 120, 80, seed=0) >= 0.88


def test_intervals_hold_where_a_sample_of_topics_was_judged() -> None:
    assert coverage("correct", "llm", 240, 80, seed=0, judged=0.4) >= 0.88
