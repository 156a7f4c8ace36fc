"""The intervals of the four abilities hold the true numbers."""

from __future__ import annotations

import pytest

from plugins.robustness.robustness_simulation import LLMS, coverage

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("llm", LLMS)
def test_intervals_of_abilities_hold_the_true_numbers(llm: str) -> None:
    assert min(coverage(llm, 60, 100, seed=0).values()) >= 0.89
