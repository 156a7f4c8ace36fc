"""Bounds that hold at every look: by hand, and over all orders of a few topics."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from ragauge.plugins.race.bounds import LeadTests, difference_interval, mean_interval


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
