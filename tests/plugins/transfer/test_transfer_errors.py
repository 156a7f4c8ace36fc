"""What transfer tells of a retriever that the predictor has not seen, against what happens on new topics."""

from __future__ import annotations

import numpy as np
import pytest

from simulations.clusters import REFITS, measured
from simulations.transfer import transferred

pytestmark = pytest.mark.slow


def test_the_error_is_that_on_new_topics_and_perfect_transfer_that_of_sampling() -> None:
    found = transferred(60, 2, 0, 12, seed=0, n_boot=100)
    assert found.told == pytest.approx(found.new_topics, rel=0.35)
    assert found.perfect == pytest.approx(found.told, rel=0.25)
    assert found.same_topics < found.told
    assert found.differences_covered >= 0.8
    assert found.error_covered >= 0.7


def test_shares_of_a_retriever_left_out_over_documents() -> None:
    trial = REFITS["shares of retrievers left out, predicted less judged"][0]
    (over, _), (topics, _) = measured(trial, np.full(12, 5), 0.3, 12, seed=0)
    assert over >= 0.87
    assert over >= topics
