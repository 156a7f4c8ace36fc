"""Noise and position effect of a judge that has both, known beforehand."""

from __future__ import annotations

import pytest

from ragauge.contract.component import Tools
from simulations.stability import asked_over_http, estimates, truth

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("noise", "liking"), [(0.2, 0.0), (0.2, 0.4)])
def test_estimates_are_unbiased_and_their_intervals_hold_the_truth(noise: float, liking: float) -> None:
    found = estimates(40, noise, liking, 150, seed=0)
    assert found["bias"].abs().max() < 0.012
    assert found["covered"].min() >= 0.88


def test_a_noisy_judge_without_a_liking_has_no_position_effect_over_http(tools: Tools) -> None:
    found = asked_over_http(60, 0.2, 0.0, tools, seed=3)
    assert found is not None
    assert found.position_effect is not None
    same, _, effect = truth(0.2, 0.0)
    assert effect == 0
    assert found.position_effect.lo <= 0 <= found.position_effect.hi
    assert found.agreement.lo <= same <= found.agreement.hi


def test_a_judge_that_likes_the_first_place_is_told_from_a_noisy_one_over_http(tools: Tools) -> None:
    found = asked_over_http(100, 0.0, 0.9, tools, seed=3)
    assert found is not None
    assert found.position_effect is not None
    assert found.position_effect.lo > 0.1
    assert truth(0.0, 0.9)[2] == pytest.approx(found.position_effect.value, abs=0.1)
