"""Thresholds against a random search over the same likelihood, the usual way to fit them."""

from __future__ import annotations

import numpy as np
import pytest

from ragauge.estimate import fit_threshold


def log_likelihood(t: float, scores: np.ndarray, is_target: np.ndarray, side: str) -> float:
    """L(t) as it is written down: sum of log(a + 1e-10), a = 1 where threshold and class agree."""
    said = scores > t if side == "above" else scores < t
    return float(np.log((said == is_target) + 1e-10).sum())


@pytest.mark.parametrize(("side", "planted"), [("above", 0.670), ("below", 0.105)])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_no_random_search_agrees_with_more_pairs(side, planted, noise):
    from scipy.optimize import differential_evolution

    rng = np.random.default_rng(0)
    scores = rng.random(37_020)
    is_target = (scores > planted if side == "above" else scores < planted) ^ (rng.random(37_020) < noise)
    exact = fit_threshold(scores, is_target, side)
    assert exact.log_likelihood == pytest.approx(log_likelihood(exact.value, scores, is_target, side), abs=1e-3)
    for seed in range(3):
        found = differential_evolution(lambda t: -log_likelihood(t[0], scores, is_target, side), [(0, 1)], seed=seed)
        disagreements = round(found.fun / 23.02585)
        assert exact.disagreements <= disagreements
        if disagreements == exact.disagreements:
            assert any(found.x[0] in interval for interval in exact.intervals)
    # The same place on every run and in every order; the planted one where nothing hides it.
    order = rng.permutation(len(scores))
    again = fit_threshold(scores[order], is_target[order], side)
    assert (again.value, again.intervals) == (exact.value, exact.intervals)
    assert abs(exact.value - planted) < (0.005 if noise else 1e-4)
    if not noise:
        assert exact.disagreements == 0
        assert planted in exact.interval
