"""Means of samples that were drawn with unequal probabilities, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ragauge.contract.errors import DataError
from ragauge.estimate.powered import powered_means, weighted_means


def test_predictions_without_use_leave_the_weighted_mean_by_hand() -> None:
    y, judged = np.array([1.0, 0.0, 1.0, 0.0])[:, None], np.array([True, True, False, False])
    found = weighted_means(y, np.full((4, 1), 0.5), judged, np.array([0.8, 0.4, np.nan, np.nan]))
    # 0.5 + (0.5 / 0.8 - 0.5 / 0.4) / 4; alone (1 / 0.8) / (1 / 0.8 + 1 / 0.4).
    assert found.estimate[0] == pytest.approx(0.5 - 0.15625)
    assert found.classical[0] == pytest.approx(1 / 3)
    assert found.lam[0] == 0


def test_equal_probabilities_give_what_a_uniform_sample_gives() -> None:
    rng = np.random.default_rng(5)
    truth = (rng.random((400, 1)) < 0.6).astype(float)
    said = np.where(rng.random((400, 1)) < 0.1, 1 - truth, truth)
    judged = np.zeros(400, dtype=bool)
    judged[rng.choice(400, 80, replace=False)] = True
    weighted = weighted_means(truth, said, judged, np.full(400, 0.2))
    plain = powered_means(truth, said, judged, np.zeros(400))
    assert weighted.estimate == pytest.approx(plain.estimate, abs=0.005)
    assert weighted.variance == pytest.approx(plain.variance, rel=0.1)
    assert weighted.classical == pytest.approx(plain.classical)


def test_a_perfect_prediction_leaves_the_spread_of_the_topics_alone() -> None:
    truth = (np.arange(100) % 2).astype(float)[:, None]
    judged = np.arange(100) < 20
    found = weighted_means(truth, truth, judged, np.linspace(0.1, 0.9, 100))
    assert found.estimate[0] == pytest.approx(0.5)
    assert found.variance[0] == pytest.approx(0.25 / 100 * 20 / 19, rel=0.02)
    with pytest.raises(DataError, match="1 of 100 topics are judged; it takes at least 2"):
        weighted_means(truth, truth, np.arange(100) < 1, np.full(100, 0.5))
