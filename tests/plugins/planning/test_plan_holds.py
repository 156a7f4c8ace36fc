"""Planned numbers of topics keep what they promise."""

from __future__ import annotations

import pytest

import simulations.plan as sim

pytestmark = pytest.mark.slow


def test_the_sign_flip_test_has_the_planned_power() -> None:
    for difference, comparisons in ((0.1, 1), (0.05, 10)):
        assert sim.power_for_mean(difference, comparisons, 500, seed=0)[1] == pytest.approx(0.81, abs=0.05)


def test_mcnemars_test_has_the_planned_power() -> None:
    for discordant, comparisons in ((0.3, 1), (0.3, 10)):
        found = sim.power_for_shares(discordant, 0.1, comparisons, 500, seed=0)[1]
        assert found == pytest.approx(0.81, abs=0.05)


def test_the_detectable_difference_is_detected() -> None:
    assert sim.power_of_detectable(60, 500, seed=0) == pytest.approx(0.78, abs=0.07)


def test_the_upper_limit_of_a_pilots_spread_makes_a_plan_that_is_enough() -> None:
    seen, sure = sim.pilots_with_power(30, False, 200, seed=0)
    assert 0.4 <= seen <= 0.62
    assert sure >= 0.75


@pytest.mark.parametrize(("kind", "most"), [("scores", 0.06), ("few topics lose .5", 0.085)])
def test_systems_as_far_apart_as_the_margin_are_seldom_called_equivalent(kind: str, most: float) -> None:
    assert sim.said_equivalent(kind, 0.03, 0.03, 500, 4000, seed=0) <= most


def test_systems_without_a_difference_are_called_equivalent_as_planned() -> None:
    assert sim.power_for_equivalence("scores", 0.03, 4000, seed=0)[1] == pytest.approx(0.8, abs=0.03)
