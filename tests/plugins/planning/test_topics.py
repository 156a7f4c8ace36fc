"""Numbers of topics, by hand, by enumeration, and beside statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from outcome_inputs import outcomes
from ragauge.contract.errors import DataError
from ragauge.estimate.plan import (
    detectable_mean,
    detectable_share,
    mcnemar_power,
    topics_for_mean,
)
from ragauge.plugins.planning.topics import (
    plan_topics,
    sd_upper,
    share_upper,
    topics_for_equivalence,
    topics_for_shares,
)

# --- mean differences ---------------------------------------------------------------------------------------


def test_the_detectable_difference_is_what_the_number_of_topics_was_planned_for() -> None:
    for sd, difference in ((0.3, 0.05), (0.2, 0.1)):
        n = int(topics_for_mean(sd, difference))
        assert detectable_mean(sd, n) <= difference < detectable_mean(sd, n - 1)
    n = int(topics_for_shares(0.3, 0.1))
    assert detectable_share(0.3, n) == pytest.approx(0.1, abs=0.001)


# --- McNemar ------------------------------------------------------------------------------------------------


def test_topics_for_shares_by_hand_and_beside_connor() -> None:
    # (1.960 sqrt(0.3) + 0.842 sqrt(0.29))^2 / 0.01 = 233.1; the exact test is conservative.
    connor = (1.959964 * math.sqrt(0.3) + 0.841621 * math.sqrt(0.29)) ** 2 / 0.01
    n = int(topics_for_shares(0.3, 0.1))
    assert connor == pytest.approx(233.1, abs=0.1)
    assert connor < n < connor * 1.1
    assert mcnemar_power(n, 0.3, 0.1) >= 0.8 > mcnemar_power(n - 1, 0.3, 0.1)
    # Fewer topics that differ than the difference there cannot be.
    assert topics_for_shares(0.0, 0.1) == topics_for_shares(0.1, 0.1)


def test_topics_for_equivalence_by_hand() -> None:
    # ((1.645 + 1.282) * 0.1826 / 0.03)^2 + 1.645^2 / 2 = 317.2 + 1.35
    assert topics_for_equivalence(math.sqrt(0.4 / 12), 0.03) == 319
    assert topics_for_equivalence(0.2, 0.1) < topics_for_equivalence(0.2, 0.05) < topics_for_equivalence(0.3, 0.05)


# --- limits -------------------------------------------------------------------------------------------------


def test_upper_limits() -> None:
    # Without a hit in 9 draws, 1 - 0.2^(1/9).
    assert share_upper(0, 9) == pytest.approx(1 - 0.2 ** (1 / 9))
    assert share_upper(9, 9) == 1
    assert sd_upper(np.zeros(9)) == pytest.approx(math.sqrt(1 - 0.2 ** (1 / 9)))
    assert math.isnan(sd_upper(np.zeros(9), bounded=False))
    values = np.random.default_rng(1).normal(0, 1, 40)
    assert values.std(ddof=1) < sd_upper(values) < sd_upper(values, 0.95)
    # Three values have 2 degrees of freedom, whose chi^2 is below -2 log(0.8) in a fifth of the cases.
    assert sd_upper(np.array([0.0, 0.3, 0.6])) == pytest.approx(math.sqrt(2 * 0.09 / (-2 * math.log(0.8))))
    with pytest.raises(DataError, match="pilot: 1 topic"):
        sd_upper(np.array([0.3]))


# --- pairs of a pilot ---------------------------------------------------------------------------------------


def test_a_pilot_without_differences_cannot_tell_how_many_topics_it_takes() -> None:
    """It said 6: what five topics that all differ by the same take."""
    frame = outcomes({"a": [0.2, 0.4, 0.6], "b": [0.2, 0.4, 0.6]}, {"a": [5, 4, 5], "b": [5, 4, 5]})
    [pair] = plan_topics(frame, "ir_score", 0.1, group="retriever").to_dict("records")
    assert math.isnan(pair["topics"])
    # With 80 % confidence at most 1 - 0.2^(1/3) of the topics differ by 1 or less.
    assert pair["topics_upper"] == topics_for_mean(math.sqrt(1 - 0.2 ** (1 / 3)), 0.1)
    [pair] = plan_topics(frame, "correct", 0.1, group="retriever").to_dict("records")
    assert math.isnan(pair["topics"])
    assert pair["topics_upper"] == topics_for_shares(1 - 0.2 ** (1 / 3), 0.1)
