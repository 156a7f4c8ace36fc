"""Bounds that hold at every look: by hand, and over all orders of a few topics."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from ragauge.plugins.race.bounds import _SHARES, LeadTests, difference_interval, mean_interval


def test_a_bet_by_hand() -> None:
    """Two systems, four topics: the hypothesis that the first leads by 0 is wrong on the first two topics."""
    tests = LeadTests(2, 4, np.array([0.0]))
    tests.observe(np.array([0, 1]), np.array([[0.0, 0.0], [1.0, 1.0]]))
    # Behind is 1 on both. It is expected to be 1/2, then, as 2 of 4 are to add up to 2, (2 - 1) / 3.
    first, second = 1 + _SHARES, (1 + _SHARES) * (1 + 2 * _SHARES)
    assert tests.highest[0, 0] == pytest.approx(np.log(second.mean()))
    assert second.mean() > first.mean() > 1
    assert tests.highest[0, 1] == 0  # nobody has won by betting against the second


def test_what_the_rest_cannot_make_good_is_refuted_for_certain() -> None:
    tests = LeadTests(2, 4, np.array([-1 + 1e-9, 0.0]))
    tests.observe(np.array([0, 1]), np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]))
    tests.observe(np.array([0, 1]), np.array([[0.0], [1.0]]))
    assert tests.upper_bounds(0.05)[0] == 0.0
    assert tests.upper_bounds(1e-12)[1] == 1.0


def test_all_orders_of_a_table_bet_fairly() -> None:
    """The wealth against a system that leads by just the lead is 1 in the mean of all orders, whoever is bet on."""
    table = np.array([[1, 1, 1, 0, 1, 0], [1, 0, 1, 0, 0, 1], [0, 1, 0, 1, 1, 0]], dtype=float)
    lead = table[0].mean() - table[1:].mean(axis=1)  # 1/6 over both
    assert lead == pytest.approx(1 / 6)
    ends, highest = [], []
    for order in permutations(range(6)):
        tests = LeadTests(3, 6, np.array([1 / 6]))
        tests.observe(np.arange(3), table[:, order[:2]])
        # In half of the orders one of the rivals has left by then.
        running = np.arange(3) if order[0] < 3 else np.array([0, 2])
        tests.observe(running, table[running][:, order[2:5]])
        ends.append(np.exp(tests._logs[0, 0]).mean())
        highest.append(tests.highest[0, 0])
    assert np.mean(ends) == pytest.approx(1)
    for alpha in (0.5, 0.3, 0.1):
        assert np.mean(np.array(highest) >= np.log(1 / alpha)) <= alpha


def test_batches_change_nothing() -> None:
    rng = np.random.default_rng(0)
    table = rng.random((4, 90))
    whole, parts = (LeadTests(4, 200, np.linspace(-0.2, 0.2, 5)) for _ in range(2))
    whole.observe(np.arange(4), table)
    for start in range(0, 90, 30):
        parts.observe(np.arange(4), table[:, start : start + 30])
    np.testing.assert_allclose(whole.highest, parts.highest)


def test_intervals_of_all_orders_hold_the_mean_at_every_topic() -> None:
    values = np.array([0.0, 1.0, 1.0, 0.25, 0.0, 0.6])
    orders = np.array([values[list(order)] for order in permutations(range(6))])
    missed = np.zeros(len(orders), dtype=bool)
    for seen in range(1, 6):
        low, high = mean_interval(orders[:, :seen], 6, 0.4)
        assert np.all(low <= high + 1e-3)
        missed |= (low > values.mean()) | (high < values.mean())
    assert missed.mean() <= 0.4


def test_intervals_are_exact_once_all_topics_are_seen() -> None:
    values = np.array([[1.0, 0.0, 1.0, 1.0], [0.2, 0.3, 0.4, 0.5]])
    low, high = mean_interval(values, 4, 0.05)
    np.testing.assert_allclose(low, values.mean(axis=1))
    np.testing.assert_allclose(high, values.mean(axis=1))
    low, high = difference_interval(values[:1] - values[1:], 4, 0.05)
    assert low[0] == pytest.approx(0.4)
    assert high[0] == pytest.approx(0.4)
