"""Numbers of topics, by hand, by enumeration, and beside statsmodels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from statsmodels.stats.power import TTestPower

from outcome_inputs import outcomes
from ragauge.contract.errors import ConfigError, DataError
from ragauge.estimate import compare_pairs
from ragauge.estimate.plan import (
    alike,
    detectable_differences,
    detectable_mean,
    detectable_share,
    mcnemar_power,
    topics_for_mean,
)
from ragauge.plugins.planning.topics import plan_topics, sd_upper, share_upper, topics_for_shares

# --- mean differences ---------------------------------------------------------------------------------------


def test_topics_for_a_mean_by_hand() -> None:
    # (1.960 + 0.842)^2 * (0.3 / 0.05)^2 = 282.6, and 1.960^2 / 2 = 1.9.
    assert topics_for_mean(0.3, 0.05) == math.ceil(282.56 + 1.92)


@pytest.mark.parametrize(
    ("sd", "difference", "power", "alpha"),
    [(0.3, 0.05, 0.8, 0.05), (0.3, 0.05, 0.8, 0.005), (0.2, 0.1, 0.9, 0.05), (0.1, 0.02, 0.5, 0.001)],
)
def test_topics_for_a_mean_are_those_of_the_paired_t_test(sd, difference, power, alpha) -> None:
    exact = TTestPower().solve_power(difference / sd, alpha=alpha, power=power)
    assert topics_for_mean(sd, difference, power, alpha) == pytest.approx(math.ceil(exact), abs=1)


def test_a_test_that_cannot_reach_alpha_needs_more_topics_or_has_none() -> None:
    # Six differences on one side have p = 2 / 2^6 = 0.031, five 0.0625.
    assert topics_for_mean(0.01, 0.5) == 6
    assert math.isnan(detectable_mean(0.01, 5))
    # 9,999 random flips show no p under 0.0001: not below 0.05 / 500.
    assert topics_for_mean(0.3, 0.05, alpha=0.05 / 499) < math.inf
    assert topics_for_mean(0.3, 0.05, alpha=0.05 / 500) == math.inf
    assert math.isnan(detectable_mean(0.3, 7404, alpha=0.05 / 500))


def test_the_detectable_difference_is_what_the_number_of_topics_was_planned_for() -> None:
    for sd, difference in ((0.3, 0.05), (0.2, 0.1)):
        n = int(topics_for_mean(sd, difference))
        assert detectable_mean(sd, n) <= difference < detectable_mean(sd, n - 1)
    n = int(topics_for_shares(0.3, 0.1))
    assert detectable_share(0.3, n) == pytest.approx(0.1, abs=0.001)


# --- McNemar ------------------------------------------------------------------------------------------------


def test_power_of_mcnemars_test_by_enumeration() -> None:
    n, won, lost = 14, 0.5, 0.1
    power = 0.0
    for a, b in itertools.product(range(n + 1), repeat=2):
        if a + b <= n and a + b and binomtest(a, a + b).pvalue < 0.05:
            ways = math.comb(n, a) * math.comb(n - a, b)
            power += ways * won**a * lost**b * (1 - won - lost) ** (n - a - b)
    assert mcnemar_power(n, won + lost, won - lost) == pytest.approx(power, abs=1e-9)


def test_topics_for_shares_by_hand_and_beside_connor() -> None:
    # (1.960 sqrt(0.3) + 0.842 sqrt(0.29))^2 / 0.01 = 233.1; the exact test is conservative.
    connor = (1.959964 * math.sqrt(0.3) + 0.841621 * math.sqrt(0.29)) ** 2 / 0.01
    n = int(topics_for_shares(0.3, 0.1))
    assert connor == pytest.approx(233.1, abs=0.1)
    assert connor < n < connor * 1.1
    assert mcnemar_power(n, 0.3, 0.1) >= 0.8 > mcnemar_power(n - 1, 0.3, 0.1)
    # Fewer topics that differ than the difference there cannot be.
    assert topics_for_shares(0.0, 0.1) == topics_for_shares(0.1, 0.1)


def test_few_topics_can_show_no_difference_of_shares() -> None:
    assert math.isnan(detectable_share(0.5, 5))  # five to none has p = 0.0625
    assert detectable_share(0.5, 6) < 1


# --- limits -------------------------------------------------------------------------------------------------


def test_upper_limits() -> None:
    # Without a hit in 9 draws, 1 - 0.2^(1/9).
    assert share_upper(0, 9) == pytest.approx(1 - 0.2 ** (1 / 9))
    assert share_upper(9, 9) == 1
    assert sd_upper(np.zeros(9)) == pytest.approx(math.sqrt(1 - 0.2 ** (1 / 9)))
    assert math.isnan(sd_upper(np.zeros(9), bounded=False))
    values = np.random.default_rng(1).normal(0, 1, 40)
    assert values.std(ddof=1) < sd_upper(values) < sd_upper(values, 0.95)
    with pytest.raises(DataError, match="pilot: 1 topic"):
        sd_upper(np.array([0.3]))


# --- pairs of a pilot ---------------------------------------------------------------------------------------

SCORES = {"a": [0.2, 0.4, 0.6, 0.8, 1.0], "b": [0.1, 0.4, 0.5, 0.9, 0.6], "c": [0.0, 0.9, 0.1, 0.9, 0.2]}
LABELS: dict[str, list[int | None]] = {"a": [5, 5, 4, 1, 5], "b": [5, 4, 4, 2, 5], "c": [1, 4, 5, 2, 1]}


def test_a_plan_has_a_row_per_pair_from_the_pilots_own_spread() -> None:
    frame = outcomes(SCORES, LABELS)
    found = plan_topics(frame, "ir_score", 0.1, group="retriever").set_index(["a", "b"])
    differences = np.array(SCORES["a"]) - np.array(SCORES["b"])
    row = found.loc[("a", "b")]
    assert row["spread"] == pytest.approx(differences.std(ddof=1))
    assert row["topics"] == topics_for_mean(differences.std(ddof=1), 0.1, alpha=0.05 / 3)
    assert row["topics_upper"] == topics_for_mean(sd_upper(differences), 0.1, alpha=0.05 / 3)
    right = plan_topics(frame, "correct", 0.2, group="retriever", comparisons=1).set_index(["a", "b"])
    assert right.loc[("a", "c"), "spread"] == 4 / 5  # all but the fourth topic
    assert right.loc[("a", "c"), "topics"] == topics_for_shares(0.8, 0.2)
    assert right["topics"].is_monotonic_increasing


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


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"power": 1.2}, "power=1.2: allowed are numbers above alpha"),
        ({"power": 0.04}, "power=0.04: allowed are numbers above alpha"),
        ({"power": math.nan}, "power=nan"),
        ({"alpha": 0.0}, "alpha=0.0"),
        ({"difference": 0.0}, "difference=0.0: allowed are numbers above 0 to 1"),
        ({"difference": 1.5}, "difference=1.5: allowed are numbers above 0 to 1"),
        ({"difference": -0.1}, "difference=-0.1"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"comparisons": 0}, "comparisons=0"),
        ({"measure": "em"}, "measure='em': allowed are ir_score, correct, hallucination"),
    ],
)
def test_values_out_of_range_are_told_in_one_line(values, says) -> None:
    given = {"measure": "ir_score", "difference": 0.1, **values}
    with pytest.raises(ConfigError) as error:
        plan_topics(outcomes(SCORES, LABELS), group="retriever", **given)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_pilot_of_one_topic_is_refused() -> None:
    frame = outcomes({name: values[:1] for name, values in SCORES.items()})
    with pytest.raises(DataError, match=r"^pilot: 1 topic\(s\) of a and b; a variance takes at least 2$"):
        plan_topics(frame, "ir_score", 0.1, group="retriever")


def test_the_detectable_difference_of_a_sweep_is_that_of_its_widest_pair() -> None:
    rng = np.random.default_rng(5)
    n = 60
    scores = {name: rng.random(n).tolist() for name in "ab"}
    scores["c"] = (np.array(scores["a"]) * 0.9).tolist()
    labels = {name: rng.choice([4, 5], n).tolist() for name in "abc"}
    frame = outcomes(scores, labels)
    pairs = compare_pairs(frame, "retriever")
    found = detectable_differences(frame, pairs, "retriever").set_index("measure")
    sds = [(np.array(scores[a]) - np.array(scores[b])).std(ddof=1) for a, b in itertools.combinations("abc", 2)]
    assert found.loc["ir_score", "difference"] == pytest.approx(detectable_mean(max(sds), n, 0.8, 0.05 / 3))
    assert found.loc["ir_score", "difference_median"] == pytest.approx(
        detectable_mean(sorted(sds)[1], n, 0.8, 0.05 / 3)
    )
    psi = max((np.array(labels[a]) != np.array(labels[b])).mean() for a, b in itertools.combinations("abc", 2))
    assert found.loc["correct", "difference"] == pytest.approx(detectable_share(psi, n, 0.8, 0.05 / 3))
    assert (found["comparisons"] == 3).all()


def test_a_sampled_sweeps_detectable_difference_is_near_that_of_its_judged_topics() -> None:
    rng = np.random.default_rng(6)
    n = 400
    labels = {name: rng.choice([4, 5], n).tolist() for name in "ab"}
    frame = outcomes({name: rng.random(n).tolist() for name in "ab"}, labels)
    frame["judged"] = frame["qid"].isin([f"q{i}" for i in range(200)])
    pairs = compare_pairs(frame, "retriever")
    found = detectable_differences(frame, pairs, "retriever").set_index("measure")
    seen = detectable_differences(frame[frame["judged"]], pairs, "retriever").set_index("measure")
    assert found.loc["correct", "difference"] == pytest.approx(seen.loc["correct", "difference"], rel=0.05)


def test_one_system_has_no_detectable_difference() -> None:
    frame = outcomes({"a": SCORES["a"]}, {"a": LABELS["a"]})
    pairs = pd.DataFrame(columns=["a", "b", "measure", "difference", "lo", "hi", "p", "p_holm", "n"])
    assert detectable_differences(frame, pairs, "retriever").empty


def test_measures_that_cannot_show_a_difference_are_named_with_their_mean() -> None:
    rows = pd.DataFrame({"qid": ["a", "b", "c"] * 2, "system": ["x"] * 3 + ["y"] * 3, "ir_score": [0.5, 0.5, 0.8] * 2,
                         "label": pd.array([5] * 6, dtype="Int8")})  # fmt: skip
    assert alike(rows) == {"ir_score": pytest.approx(0.6), "correct": 1, "hallucination": 0}
    assert alike(rows[rows["system"] == "x"]) == {}
    other = rows.assign(ir_score=[0.5, 0.5, 0.8, 0.8, 0.5, 0.5], label=pd.array([5, 5, 1, 4, 5, 5], dtype="Int8"))
    assert alike(other) == {}
    # Two systems of 1,000 topics with a miss each: the largest difference that there is room for is 0.001.
    many = pd.DataFrame({"qid": [f"q{i}" for i in range(1000)] * 2, "system": ["x"] * 1000 + ["y"] * 1000})
    many = many.assign(ir_score=[0.0, *[1.0] * 1998, 0.0], label=pd.array([None] * 2000, dtype="Int8"))
    assert alike(many) == {"ir_score": pytest.approx(0.999)}
