"""Components of variance without bias, and coverage of what repeats say, against known truth."""

from __future__ import annotations

import pytest

from simulations.repeats import World, coverage, estimates

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("world", [World(1.2, 0.8, 0.1, alike=True), World(1.2, 0.8, 0.1, alike=True, fixed=True)])
def test_components_are_unbiased_at_thirty_topics(world: World) -> None:
    found = estimates(world, 30, 3, 2, 600, seed=0)
    assert (found["bias"].abs() < 5 * found["error"] + 1e-12).all()


def test_intervals_of_shares_with_repeats_hold() -> None:
    found = coverage(World(1.2, 0.8, 0.1), 60, 3, 200, seed=0)
    assert min(found.values()) >= 0.9
