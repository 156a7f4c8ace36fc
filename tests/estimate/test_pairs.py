from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from outcome_inputs import outcomes
from ragauge.estimate import compare_pairs
from ragauge.estimate.intervals import paired_mean, paired_share_interval
from ragauge.estimate.pairs import holm, mcnemar_p, sign_flip_p


def test_sign_flips_by_hand():
    # +1 +1 +1: of eight sign patterns two are as extreme
    assert sign_flip_p(np.array([[1.0], [1.0], [1.0]])).tolist() == [0.25]
    # differences of 0 decide nothing
    assert sign_flip_p(np.array([[1.0], [0.0], [1.0], [1.0], [0.0]])).tolist() == [0.25]
    assert sign_flip_p(np.array([[0.0], [0.0]])).tolist() == [1.0]
    assert math.isnan(sign_flip_p(np.full((2, 1), np.nan))[0])


def test_exact_sign_flips_against_every_pattern():
    d = np.array([0.3, -0.1, 0.2, 0.7, -0.4])
    sums = [abs(np.dot(signs, d)) for signs in product([-1, 1], repeat=5)]
    expected = np.mean([s >= abs(d.sum()) - 1e-12 for s in sums])
    assert sign_flip_p(d[:, None])[0] == pytest.approx(expected)


def test_random_sign_flips_are_near_the_normal_approximation_and_repeat():
    from scipy.stats import norm

    d = np.random.default_rng(0).normal(0.1, 1, (400, 2))
    p = sign_flip_p(d)
    z = np.abs(d.sum(axis=0)) / np.sqrt((d**2).sum(axis=0))
    assert p == pytest.approx(2 * norm.sf(z), abs=0.015)
    assert (sign_flip_p(d) == p).all()
    assert sign_flip_p(np.full((400, 1), 1.0))[0] == 1 / 10000


def test_mcnemar_by_hand():
    # 5 against 1 discordant: 2 * (C(6,0) + C(6,1)) / 2^6
    d = np.array([[1.0]] * 5 + [[-1.0]] + [[0.0]] * 4)
    assert mcnemar_p(d)[0] == pytest.approx(2 * 7 / 64)
    assert mcnemar_p(np.zeros((3, 1))).tolist() == [1.0]
    assert math.isnan(mcnemar_p(np.full((2, 1), np.nan))[0])


def test_pairs_are_paired_by_topic():
    scores = {"a": [0.2, 0.4, 0.6], "b": [0.1, 0.3, 0.5], "c": [0.6, 0.4, 0.2]}
    pairs = compare_pairs(outcomes(scores).sample(frac=1, random_state=0)).set_index(["a", "b"])
    assert pairs.loc[("a", "b"), "difference"] == pytest.approx(0.1)
    expected = paired_mean(np.full(3, 0.1))
    assert tuple(pairs.loc[("a", "b"), ["lo", "hi"]]) == pytest.approx((expected.lo, expected.hi))
    assert pairs.loc[("a", "b"), "p"] == 0.25
    assert pairs.loc[("a", "c"), "difference"] == pytest.approx(0)
    assert set(pairs["measure"]) == {"ir_score"}


def test_a_difference_of_shares_by_hand_and_where_no_topic_differs():
    # 6 won, 2 lost of 40; half a topic more in each of four cells: d = 4 / 42, se^2 = (9 / 42 - d^2) / 42
    d = 4 / 42
    reach = 1.959964 * math.sqrt((9 / 42 - d**2) / 42)
    found = paired_share_interval(np.repeat([1.0, -1.0, 0.0], [6, 2, 32]))
    assert (found.value, found.lo, found.hi) == pytest.approx((0.1, d - reach, d + reach))
    # Five equal rows a topic say no more than one.
    again = paired_share_interval(np.repeat([1.0, -1.0, 0.0], [30, 10, 160]), np.repeat(np.arange(40), 5))
    assert (again.lo, again.hi) == pytest.approx((found.lo, found.hi))
    frame = outcomes({"a": [0.5] * 4, "b": [0.5] * 4}, {"a": [5, 5, 1, 1], "b": [5, 5, 4, 1]})
    row = compare_pairs(frame).set_index("measure").loc["correct"]
    assert row["difference"] == 0
    assert row["lo"] == pytest.approx(-row["hi"])
    assert row["hi"] == pytest.approx(1.959964 / 6)  # sqrt((1 / 6) / 6)
    assert math.isnan(paired_share_interval(np.ones(1)).lo)


def test_only_common_topics_count():
    frame = outcomes({"a": [0.2, 0.4, 0.9], "b": [0.1, 0.3]})
    (row,) = compare_pairs(frame).to_dict("records")
    assert (row["n"], row["difference"]) == (2, pytest.approx(0.1))
    apart = outcomes({"a": [0.2], "b": [0.3]}).assign(qid=["x", "y"])
    (row,) = compare_pairs(apart).to_dict("records")
    assert row["n"] == 0
    assert math.isnan(row["p"])
    assert math.isnan(row["p_holm"])


def test_a_missing_verdict_is_not_right():
    frame = outcomes({"a": [0.5] * 4, "b": [0.5] * 4}, {"a": [5, 5, 5, 1], "b": [None, 5, 4, 1]})
    row = compare_pairs(frame).set_index("measure").loc["correct"]
    assert (row["difference"], row["n"]) == (0.5, 4)


def test_hallucinations_of_a_pair_are_compared_by_mcnemar_on_the_topics_with_both_verdicts():
    # Both have a verdict on seven topics. a alone hallucinates (2, 4) on four of them, b alone on one.
    frame = outcomes(
        {"a": [0.5] * 8, "b": [0.5] * 8}, {"a": [2, 4, 2, 4, 2, 4, 5, 1], "b": [2, 1, 5, 3, None, 1, 4, 5]}
    )
    row = compare_pairs(frame).set_index("measure").loc["hallucination"]
    assert (row["difference"], row["n"]) == (pytest.approx(3 / 7), 7)
    assert row["p"] == pytest.approx(2 * 6 / 32)  # four topics against one
    alone = paired_share_interval(np.repeat([1.0, -1.0, 0.0], [4, 1, 2]))
    assert (row["lo"], row["hi"]) == pytest.approx((alone.lo, alone.hi))


def test_holm_is_over_all_pairs_of_a_measure():
    rng = np.random.default_rng(1)
    base = rng.random(60)
    frame = outcomes({"a": list(base), "b": list(base * 0.9), "c": list(np.clip(base + rng.normal(0, 0.1, 60), 0, 1))})
    pairs = compare_pairs(frame)
    p = np.sort(pairs["p"])
    stepped = np.minimum(np.maximum.accumulate(p * [3, 2, 1]), 1)
    assert np.sort(pairs["p_holm"]) == pytest.approx(stepped)


def test_a_family_of_all_measures_counts_every_pair():
    rng = np.random.default_rng(2)
    scores = {name: list(rng.random(40)) for name in ("a", "b", "c")}
    rows = outcomes(scores, {name: [int(label) for label in rng.choice([1, 4, 5], 40)] for name in scores})
    by_measure = compare_pairs(rows)
    every = compare_pairs(rows, family="all")
    assert every.drop(columns="p_holm").equals(by_measure.drop(columns="p_holm"))
    assert every["p_holm"].tolist() == holm(every["p"].to_numpy()).tolist()
    smallest = every["p"].idxmin()
    assert every.loc[smallest, "p_holm"] == pytest.approx(min(1, 9 * every.loc[smallest, "p"]))
    assert (every["p_holm"] >= by_measure["p_holm"] - 1e-12).all()


def sampled_pair():
    """Two strata of 6 and 3 topics, three and two judged; predictions that say nothing."""
    frame = outcomes({"a": [0.5] * 9, "b": [0.5] * 9}, {"a": [5, 5, 1] * 3, "b": [1, 5, 4] * 3})
    topic = frame.groupby("retriever").cumcount()
    p = {f"p{c}": 0.2 for c in range(1, 6)}
    return frame.assign(judged=topic.isin([0, 1, 2, 6, 7]), stratum=(topic >= 6).astype(int), **p)


def test_a_difference_on_a_sample_is_weighted_by_strata():
    """McNemar's test took five judged topics of two strata for five of all nine."""
    pairs = compare_pairs(sampled_pair()).set_index("measure")
    row = pairs.loc["correct"]
    # Differences 1, 0, 0 stand for six topics, 1, 0 for three.
    value = 2 / 3 * 1 / 3 + 1 / 3 * 1 / 2
    assert (row["difference"], row["n"]) == (pytest.approx(value), 5)
    within = (2 / 3) ** 2 * (1 / 3) / 3 + (1 / 3) ** 2 * (1 / 2) / 2
    between = (2 / 3 * (1 / 3 - value) ** 2 + 1 / 3 * (1 / 2 - value) ** 2) / 9
    n = 1 / ((2 / 3) ** 2 / 3 + (1 / 3) ** 2 / 2)
    middle = value * n / (n + 2)
    error = math.sqrt(n**2 * (within + between) + 1 + 2 * middle**2) / (n + 2)
    reach = 3.182446 * error  # t of 2 + 1 degrees of freedom
    assert (row["lo"], row["hi"]) == pytest.approx((max(middle - reach, -1), min(middle + reach, 1)))
    assert row["p"] == pytest.approx(2 * student.sf(middle / error, 3))
    assert pairs.loc["ir_score", "n"] == 9


def test_a_judged_topic_without_a_verdict_is_left_out_of_the_sample_for_hallucinations():
    frame = sampled_pair()
    third = frame.groupby("retriever").cumcount() == 2
    known = compare_pairs(frame[~third]).set_index("measure").loc["hallucination"]
    frame.loc[third & frame["retriever"].eq("a"), "label"] = pd.NA
    pairs = compare_pairs(frame).set_index("measure")
    assert pairs.loc["hallucination", known.index].tolist() == known.tolist()
    assert (known["n"], pairs.loc["correct", "n"]) == (4, 5)


def test_predictions_of_the_topics_left_out_move_a_difference():
    # The first half is judged; f is what the labels are, so that every topic counts, judged or not.
    right = np.array([[5, 1]] * 12 + [[5, 5]] * 28 + [[1, 5]] * 2 + [[5, 5]] * 38)
    frame = outcomes({"a": [0.5] * 80, "b": [0.5] * 80}, {"a": list(right[:, 0]), "b": list(right[:, 1])})
    topic = frame.groupby("retriever").cumcount()
    p5 = frame["label"].eq(5).astype(float)
    frame = frame.assign(judged=topic < 40, stratum=0, p1=1 - p5, p2=0.0, p3=0.0, p4=0.0, p5=p5)
    row = compare_pairs(frame).set_index("measure").loc["correct"]
    # All 80 topics: 12 won, 2 lost. Lambda is cost / (cost + cost), the same on both halves: 1 / 2.
    assert row["difference"] == pytest.approx(10 / 80, abs=0.01)
    # A job that judged all topics needs no prediction: its verdicts are known.
    frame.loc[frame["retriever"] == "a", ["judged"]] = True
    frame.loc[frame["retriever"] == "a", [f"p{c}" for c in range(1, 6)]] = np.nan
    again = compare_pairs(frame).set_index("measure").loc["correct"]
    assert (again["difference"], again["n"]) == (pytest.approx(row["difference"]), 40)


def test_a_pair_of_jobs_that_judged_all_topics_keeps_mcnemar_beside_a_sample():
    frame = sampled_pair()
    whole = frame[frame["retriever"] == "b"].assign(retriever="c", judged=True, stratum=0)
    both = pd.concat([whole, whole.assign(retriever="d", label=5), frame], ignore_index=True)
    pairs = compare_pairs(both).set_index(["measure", "a", "b"])
    assert pairs.loc[("correct", "c", "d"), "p"] == pytest.approx(2 / 2**6)
    assert pairs.loc[("correct", "a", "c"), "n"] == 5


def test_a_stratum_with_one_judged_topic_has_no_difference():
    frame = sampled_pair()
    frame.loc[frame["stratum"].eq(1) & frame["qid"].eq(frame["qid"].max()), "judged"] = False
    one = frame.assign(judged=frame["judged"] & frame["qid"].isin(frame["qid"].unique()[[0, 1, 2, 6]]))
    row = compare_pairs(one).set_index("measure").loc["correct"]
    assert row["n"] == 4
    assert math.isnan(row["difference"])
    assert math.isnan(row["p"])
