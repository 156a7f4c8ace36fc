"""Gates that are looked at as topics come err as often as one look, and take fewer topics where much differs."""

from __future__ import annotations

import pytest

from plugins.gate.looks_simulation import (
    FIVE,
    UNEQUAL,
    decided,
    gates,
    lognormal,
    minimum_passed,
    normal,
    planned,
    sampled_passed,
    yes_or_no,
)

pytestmark = pytest.mark.slow
MOST = 0.05 + 3 * 0.0097  # three standard errors of 500 trials


@pytest.mark.parametrize("shares", [FIVE, UNEQUAL])
@pytest.mark.parametrize("draw", [normal(-0.05), lognormal(-0.05), yes_or_no(-0.05)])
def test_all_looks_together_err_in_one_of_twenty(draw: object, shares: tuple[float, ...]) -> None:
    passed, regressed, _ = decided(draw, 500, 0.05, shares, 500, seed=0)  # type: ignore[arg-type]
    assert passed <= MOST
    assert regressed <= MOST


def test_looks_at_a_growing_sample_of_judged_topics_err_in_one_of_twenty() -> None:
    assert sampled_passed(800, 500, UNEQUAL, 300, seed=0) <= 0.05 + 3 * 0.0126


def test_naive_looks_err_twice_as_often() -> None:
    assert decided(normal(-0.05), 500, 0.05, FIVE, 500, seed=0, naive=True)[0] >= 0.09


def test_a_gate_of_many_comparisons_rarely_has_a_regression_at_any_look() -> None:
    assert gates(100, FIVE, 100, seed=0) <= 0.12  # 5 % and three standard errors


def test_a_minimum_that_is_just_met_rarely_passes() -> None:
    assert minimum_passed(0.6, 300, FIVE, 500, seed=0) <= 0.046  # 2.5 % and three standard errors


def test_what_differs_by_more_is_decided_on_fewer_topics() -> None:
    n, power, used, fixed = planned(1, 0.02, FIVE, 300, seed=0)
    assert n == 620
    assert power >= fixed - 0.05
    assert 0.77 <= used <= 0.87
    assert 0.42 <= planned(2, 0.02, FIVE, 300, seed=0)[2] <= 0.52
