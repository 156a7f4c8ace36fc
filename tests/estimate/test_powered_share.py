"""A share of yes by predictions and few labels: by hand, at its edges, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from ragauge.contract.errors import DataError
from ragauge.estimate.human import powered_share

NAN = float("nan")


def labelled(n: int, given: int, share: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < share).astype(float)
    labels = np.full(n, NAN)
    at = rng.permutation(n)[:given]
    labels[at] = truth[at]
    return labels, truth


def test_predictions_that_are_the_truth_make_few_labels_worth_many() -> None:
    labels, truth = labelled(1000, 100, 0.7)
    found = powered_share(labels, np.clip(truth, 0.02, 0.98))
    assert found.powered.value == pytest.approx(truth.mean(), abs=0.01)
    assert found.effective_n > 500
    assert found.lam > 0.8
    assert (found.n_labels, found.n_topics, found.powered.n) == (100, 1000, 100)


def test_predictions_that_say_nothing_leave_the_labels_alone() -> None:
    labels, _ = labelled(400, 100, 0.7)
    found = powered_share(labels, np.full(400, 0.4))
    assert found.lam == 0
    assert found.powered.value == found.labels_only.value == np.nanmean(labels)
    assert found.powered.lo == pytest.approx(found.labels_only.lo, abs=0.01)


def test_the_estimate_by_hand_where_lambda_is_one_half() -> None:
    """mean of y + lambda * (mean of f over the others - f), each lambda tuned without its topic."""
    y = np.array([1, 1, 0, 0, 1, 0, 1, 1, 0, 1], dtype=float)
    f = np.array([0.9, 0.4, 0.3, 0.6, 0.8, 0.2, 0.7, 0.6, 0.4, 0.9])
    others = np.array([0.5, 0.7, 0.2, 0.9, 0.6, 0.4, 0.8, 0.3, 0.7, 0.5])
    found = powered_share(np.concatenate([y, np.full(10, NAN)]), np.concatenate([f, others]))
    values = []
    for i in range(10):
        ys, fs = np.delete(y, i), np.delete(f, i)
        lam = np.cov(ys, fs)[0, 1] / 9 / (fs.var(ddof=1) * (1 / 9 + 1 / 10))
        values.append(y[i] + np.clip(lam, 0, 1) * (others.mean() - f[i]))
    assert found.powered.value == pytest.approx(np.mean(values), abs=1e-9)
    assert 0.3 < found.lam < 0.95


def test_labels_that_are_all_yes_have_the_exact_interval_of_the_labels() -> None:
    labels = np.full(50, NAN)
    labels[:20] = 1
    found = powered_share(labels, np.tile([0.9, 0.8], 25))
    assert (found.powered.value, found.powered.hi) == (1, 1)
    assert found.powered.lo == found.labels_only.lo == pytest.approx(beta.ppf(0.025, 20, 1))
    assert found.lam == 0


@pytest.mark.parametrize(
    ("labels", "predicted", "told"),
    [
        ([1, NAN, NAN], [0.5, 0.5, 0.5], "1 labels; a share takes at least 2"),
        ([1, 0.5, NAN], [0.5, 0.5, 0.5], "allowed are 1, 0, and nothing"),
        ([1, 0, NAN], [0.5, 1.2, 0.5], "allowed are numbers from 0 to 1"),
        ([1, 0, NAN], [0.5, NAN, 0.5], "allowed are numbers from 0 to 1"),
        ([1, 0], [0.5], "one of each a topic"),
        ([], [], "0 labels"),
    ],
)
def test_what_cannot_be_estimated_is_one_line(labels: list[float], predicted: list[float], told: str) -> None:
    with pytest.raises(DataError, match=told):
        powered_share(np.array(labels), np.array(predicted))


def test_labels_of_the_answers_that_looked_wrong_are_no_sample_and_are_refused_or_stand_by_strata() -> None:
    _, truth = labelled(600, 100, 0.7)
    predicted = np.clip(0.6 * truth + 0.2 + 0.1 * np.random.default_rng(1).standard_normal(600), 0.01, 0.99)
    labels = np.full(600, NAN)
    wrong = np.flatnonzero(predicted < 0.5)[:80]
    labels[wrong] = truth[wrong]
    with pytest.raises(DataError, match="no random draw"):
        powered_share(labels, predicted)
    right = np.random.default_rng(2).permutation(np.flatnonzero(predicted >= 0.5))[:10]
    labels[right] = truth[right]
    found = powered_share(labels, predicted)
    assert found.powered.lo <= truth.mean() <= found.powered.hi
    assert found.powered.value > np.nanmean(labels) + 0.3
