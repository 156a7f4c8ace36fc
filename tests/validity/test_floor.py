"""What a score says of unrelated text, and of text in another spelling."""

from __future__ import annotations

import pytest

import simulations.floor as sim

pytestmark = pytest.mark.slow


def test_a_corrected_score_of_unrelated_text_is_almost_nothing() -> None:
    raw, corrected = sim.unrelated(2, seed=1)
    for n in sim.GRID:
        assert raw[n] > 0.08
        assert 0.005 < corrected[n] < 0.03


@pytest.mark.parametrize("spelling", sim.SPELLINGS)
def test_a_spelling_costs_nothing_once_it_is_folded(spelling: str) -> None:
    before, parts = sim.loss(spelling, folded=False)
    assert parts > 10
    assert before > 0.2
    assert sim.loss(spelling, folded=True) == (0.0, parts)
