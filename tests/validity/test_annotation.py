"""Made evidence ranks systems as gold does, people's labels correct its means, and its depth is judged rightly."""

from __future__ import annotations

import pytest

from simulations.annotation import World, coverage, deeper, rankings, world

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lexical() -> World:
    """A small world that no embedder reads."""
    return world(100, 5, 1, ("bm25", "bm25 retriever.b=1", "bm25 retriever.k1=0.1"))


def test_a_reader_that_errs_less_ranks_systems_better(lexical: World) -> None:
    taus = [rankings(lexical, errs, seed=1, n_boot=20)["tau"] for errs in (0.0, 0.3)]
    assert taus[0] > 0.75
    assert taus[0] > taus[1]


def test_corrected_means_hold_the_truth_that_made_ones_miss(lexical: World) -> None:
    found = coverage(lexical, 0.1, 60, 30, 40, seed=1)
    assert found["coverage"] >= 0.85
    assert abs(found["bias"]) < 0.04


def test_the_next_ranks_bring_about_what_is_foreseen(lexical: World) -> None:
    found = deeper(lexical, 3, 30, 20, seed=1)
    assert found["coverage"] >= 0.8
