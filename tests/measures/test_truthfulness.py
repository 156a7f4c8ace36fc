"""CRAG's score of the judge classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.estimate.board import mean_of
from ragauge.measures.answers import TRUTHFULNESS, truthfulness

LABELS = pd.Series(pd.array([5, 3, 1, 2, 4, None], dtype="Int8"))


def test_perfect_acceptable_missing_and_incorrect() -> None:
    assert truthfulness(LABELS)[:5].tolist() == [1, 0.5, 0, -1, -1]
    assert np.isnan(truthfulness(LABELS)[5])


def test_that_there_is_no_answer_is_perfect_where_there_is_none() -> None:
    marked = pd.Series([True, True, True, True, True, True])
    assert truthfulness(LABELS, marked)[:5].tolist() == [-1, -1, 1, -1, -1]
    assert np.isnan(truthfulness(LABELS, marked)[5])


def test_three_outcomes_give_the_score_of_crag_s_script() -> None:
    labels = pd.Series(pd.array([5] * 5 + [1] * 3 + [4] * 2, dtype="Int8"))
    assert truthfulness(labels).mean() == pytest.approx((2 * 5 + 3) / 10 - 1)


def test_the_interval_has_a_width_where_all_answers_are_alike() -> None:
    topics = pd.Series([str(i) for i in range(30)])
    found = mean_of(pd.Series(np.ones(30)), topics, TRUTHFULNESS, 100, 0)
    assert (found.value, found.hi) == (1, 1)
    assert (TRUTHFULNESS.section, TRUTHFULNESS.unit, TRUTHFULNESS.on_terminal) == (
        "Truthfulness (CRAG)",
        "signed",
        False,
    )
    assert 0.7 < found.lo < 0.9  # 2 * Wilson's 0.886 - 1
    with pytest.raises(DataError, match=r"is 1\.5"):
        mean_of(pd.Series([2.0] * 30), topics, TRUTHFULNESS, 100, 0)
