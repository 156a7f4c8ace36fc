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
from ragauge.estimate import compare_pairs, summary
from ragauge.estimate.plan import (
    alike,
    detectable_differences,
    detectable_mean,
    detectable_share,
    mcnemar_power,
    topics_for_mean,
)

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


# --- McNemar ------------------------------------------------------------------------------------------------


def test_power_of_mcnemars_test_by_enumeration() -> None:
    n, won, lost = 14, 0.5, 0.1
    power = 0.0
    for a, b in itertools.product(range(n + 1), repeat=2):
        if a + b <= n and a + b and binomtest(a, a + b).pvalue < 0.05:
            ways = math.comb(n, a) * math.comb(n - a, b)
            power += ways * won**a * lost**b * (1 - won - lost) ** (n - a - b)
    assert mcnemar_power(n, won + lost, won - lost) == pytest.approx(power, abs=1e-9)


def test_few_topics_can_show_no_difference_of_shares() -> None:
    assert math.isnan(detectable_share(0.5, 5))  # five to none has p = 0.0625
    assert detectable_share(0.5, 6) < 1


# --- limits -------------------------------------------------------------------------------------------------


# --- pairs of a pilot ---------------------------------------------------------------------------------------

SCORES = {"a": [0.2, 0.4, 0.6, 0.8, 1.0], "b": [0.1, 0.4, 0.5, 0.9, 0.6], "c": [0.0, 0.9, 0.1, 0.9, 0.2]}
LABELS: dict[str, list[int | None]] = {"a": [5, 5, 4, 1, 5], "b": [5, 4, 4, 2, 5], "c": [1, 4, 5, 2, 1]}


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
    every = detectable_differences(frame, pairs, "retriever", family="all").set_index("measure")
    assert (every["comparisons"] == len(pairs)).all()
    assert every.loc["ir_score", "difference"] == pytest.approx(detectable_mean(max(sds), n, 0.8, 0.05 / len(pairs)))
    metrics = summary.detectable(found.assign(difference_median=[0.5, *[math.nan] * (len(found) - 1)]).reset_index())
    assert metrics == {
        "detectable_difference_ir_score_median": 0.5,
        **{f"detectable_difference_{name}": value for name, value in found["difference"].items()},
    }
    assert summary.detectable(None) == {}


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
