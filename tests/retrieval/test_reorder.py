import numpy as np
import pytest

from ragauge.retrieval.order import long_context_order


@pytest.mark.parametrize(
    ("n", "order"),
    [
        (0, []),
        (1, [0]),
        (2, [1, 0]),
        (3, [0, 2, 1]),
        (4, [1, 3, 2, 0]),
        (5, [0, 2, 4, 3, 1]),
    ],
)
def test_by_hand(n, order):
    assert long_context_order(n).tolist() == order
    assert long_context_order(n).dtype == np.int64


@pytest.mark.parametrize("n", range(1, 40))
def test_permutation_with_the_best_outside_and_the_worst_inside(n):
    order = long_context_order(n)
    assert sorted(order) == list(range(n))
    assert order[0 if n % 2 else -1] == 0
    worst = order.tolist().index(n - 1)
    assert np.all(np.diff(order[: worst + 1]) > 0)
    assert np.all(np.diff(order[worst:]) < 0)
