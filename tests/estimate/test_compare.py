from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.estimate import bounded_mean, compare_pairs, judge_agreement, leaderboard, ppi_shares
from ragauge.estimate.compare import mcnemar_p, sign_flip_p
from ragauge.estimate.intervals import paired_share_interval, wilson_interval


def outcomes(
    scores: dict[str, list[float]], labels: dict[str, list[int | None]] | None = None
) -> pd.DataFrame:
    """One topic a position, one retriever a key."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "qid": [f"q{i}" for i in range(len(values))],
                    "retriever": name,
                    "ir_score": values,
                    "label": pd.array((labels or {}).get(name, [None] * len(values)), dtype="Int8"),
                }
            )
            for name, values in scores.items()
        ],
        ignore_index=True,
    )


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
    pairs = compare_pairs(outcomes(scores).sample(frac=1, random_state=0), n_boot=100).set_index(["a", "b"])
    assert pairs.loc[("a", "b"), "difference"] == pytest.approx(0.1)
    # every topic differs by 0.1: resampling changes nothing
    assert pairs.loc[("a", "b"), "lo"] == pytest.approx(0.1)
    assert pairs.loc[("a", "b"), "hi"] == pytest.approx(0.1)
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
    row = compare_pairs(frame, n_boot=50).set_index("measure").loc["correct"]
    assert row["difference"] == 0
    assert row["lo"] == pytest.approx(-row["hi"])
    assert row["hi"] == pytest.approx(1.959964 / 6)  # sqrt((1 / 6) / 6)
    assert math.isnan(paired_share_interval(np.ones(1)).lo)


def test_only_common_topics_count():
    frame = outcomes({"a": [0.2, 0.4, 0.9], "b": [0.1, 0.3]})
    (row,) = compare_pairs(frame, n_boot=50).to_dict("records")
    assert (row["n"], row["difference"]) == (2, pytest.approx(0.1))
    apart = outcomes({"a": [0.2], "b": [0.3]}).assign(qid=["x", "y"])
    (row,) = compare_pairs(apart, n_boot=50).to_dict("records")
    assert row["n"] == 0
    assert math.isnan(row["p"])
    assert math.isnan(row["p_holm"])


def test_a_missing_verdict_is_not_right():
    frame = outcomes({"a": [0.5] * 4, "b": [0.5] * 4}, {"a": [5, 5, 5, 1], "b": [None, 5, 4, 1]})
    row = compare_pairs(frame, n_boot=50).set_index("measure").loc["correct"]
    assert (row["difference"], row["n"]) == (0.5, 4)


def test_hallucinations_of_a_pair_are_compared_by_mcnemar():
    # a hallucinates (2, 4) on six topics of eight, b on one of them and on one other; no verdict is none
    frame = outcomes(
        {"a": [0.5] * 8, "b": [0.5] * 8}, {"a": [2, 4, 2, 4, 2, 4, 5, 1], "b": [2, 1, 5, 3, None, 1, 4, 5]}
    )
    row = compare_pairs(frame, n_boot=50).set_index("measure").loc["hallucination"]
    assert (row["difference"], row["n"]) == (0.5, 8)
    assert row["p"] == pytest.approx(2 * 7 / 64)  # five topics against one
    alone = paired_share_interval(np.repeat([1.0, -1.0, 0.0], [5, 1, 2]))
    assert (row["lo"], row["hi"]) == pytest.approx((alone.lo, alone.hi))


def test_holm_is_over_all_pairs_of_a_measure():
    rng = np.random.default_rng(1)
    base = rng.random(60)
    frame = outcomes(
        {"a": list(base), "b": list(base * 0.9), "c": list(np.clip(base + rng.normal(0, 0.1, 60), 0, 1))}
    )
    pairs = compare_pairs(frame, n_boot=50)
    p = np.sort(pairs["p"])
    stepped = np.minimum(np.maximum.accumulate(p * [3, 2, 1]), 1)
    assert np.sort(pairs["p_holm"]) == pytest.approx(stepped)


def test_the_leaderboard_ranks_and_marks():
    rng = np.random.default_rng(2)
    base = rng.uniform(0.3, 0.9, 100)
    scores = {
        "low": list(base - 0.25),
        "near": list(base + rng.normal(0, 0.03, 100)),
        "top": list(base + 0.002),
    }
    labels = {
        "low": [5 if i % 4 == 0 else 1 for i in range(100)],
        "near": [5 if i % 4 else 2 for i in range(100)],
        "top": [None if i == 0 else 5 if i % 4 else 4 for i in range(100)],
    }
    board = leaderboard(outcomes(scores, labels), n_boot=200)
    assert board["ir_score"].is_monotonic_decreasing
    assert board["retriever"].iloc[2] == "low"
    rows = board.set_index("retriever")
    assert rows["ir_score_same_as_best"].to_dict() == {"low": False, "near": True, "top": True}
    assert rows["correct_same_as_best"].to_dict() == {"low": False, "near": True, "top": True}
    assert rows["hallucination_same_as_best"].to_dict() == {"low": True, "near": False, "top": False}
    assert rows.loc["top", "judge_share_missing"] == 0.01
    assert rows.loc["top", "correct_share"] == 0.75
    assert rows.loc["near", "hallucination_share"] == 0.25
    twin = bounded_mean(scores["top"], [f"q{i}" for i in range(100)])
    top = rows.loc["top"]
    assert (top["ir_score_lo"], top["ir_score_hi"]) == pytest.approx((twin.lo, twin.hi))
    assert (top["correct_share_lo"], top["correct_share_hi"]) == pytest.approx(wilson_interval(0.75, 100))
    assert (top["hallucination_share"], rows.loc["low", "hallucination_share"]) == (0.24, 0)
    assert rows.loc["low", "hallucination_share_hi"] == pytest.approx(1.959964**2 / (100 + 1.959964**2))


def test_the_leaderboard_without_a_judge():
    board = leaderboard(outcomes({"a": [0.2, 0.3, 0.1], "b": [0.4, 0.1, 0.2]}), n_boot=20)
    assert board["correct_share"].isna().all()
    assert (board["judge_share_missing"] == 1).all()
    assert board["correct_same_as_best"].isna().all()
    assert board["ir_score_same_as_best"].all()


def test_a_leaderboard_of_sampled_judging_gives_shares_of_all_and_tests_what_was_judged():
    rng = np.random.default_rng(0)
    parts = []
    for system, shift in (("a", 0.0), ("b", 0.3)):
        score = np.clip(rng.random(60) - shift, 0, 1)
        label = np.where(rng.random(60) < score, 5, 1).astype(object)
        label[20:] = None
        p = {"p1": 1 - score, "p2": 0.0, "p3": 0.0, "p4": 0.0, "p5": score}
        qids = [f"q{i}" for i in range(60)]
        part = pd.DataFrame(
            {"qid": qids, "retriever": system, "ir_score": score, "judged": np.arange(60) < 20}
        )
        parts.append(part.assign(label=pd.array(label, dtype="Int8"), **p))
    frame = pd.concat(parts, ignore_index=True)
    board = leaderboard(frame, n_boot=50).set_index("retriever")
    for system, part in frame.groupby("retriever"):
        alone = ppi_shares(part).set_index("share")
        assert board.loc[system, "correct_share"] == alone.loc["correct_share", "estimate"]
        assert board.loc[system, "correct_share_lo"] == alone.loc["correct_share", "lo"]
    assert board["n_judged"].tolist() == [20, 20]
    assert board["n_topics"].tolist() == [60, 60]
    pairs = compare_pairs(frame, n_boot=50).set_index("measure")
    assert pairs.loc["correct", "n"] == 20
    assert pairs.loc["ir_score", "n"] == 60


def test_a_leaderboard_of_one_under_any_column():
    frame = outcomes({"a": [0.2, 0.4]}, {"a": [5, 1]}).rename(columns={"retriever": "system"})
    board = leaderboard(frame, "system", n_boot=20)
    assert board[["system", "ir_score_same_as_best", "correct_same_as_best"]].iloc[0].tolist() == [
        "a",
        True,
        True,
    ]
    assert len(compare_pairs(frame, "system", n_boot=20)) == 0


def test_a_topic_twice_and_no_rows_are_errors():
    frame = outcomes({"a": [0.2, 0.4], "b": [0.2, 0.4]})
    with pytest.raises(DataError, match=r"qid='q0', retriever='a' occurs twice"):
        leaderboard(pd.concat([frame, frame]))
    with pytest.raises(DataError, match="no rows"):
        leaderboard(frame.head(0))


def labelled(labels, name="label"):
    return pd.DataFrame(
        {"qid": [f"q{i}" for i in range(len(labels))], "retriever": "r", name: pd.array(labels, dtype="Int8")}
    )


def test_kappa_by_hand():
    # 5 of 6 agree; chance (3*4 + 3*2) / 36 = 1/2, so kappa = (5/6 - 1/2) / (1/2)
    agreement = judge_agreement(labelled([5, 5, 5, 5, 1, 1]), labelled([5, 5, 5, 1, 1, 1]), n_boot=200)
    assert agreement.kappa.value == pytest.approx(2 / 3)
    assert agreement.agreement.value == pytest.approx(5 / 6)
    assert agreement.confusion.loc[1, "5"] == 1
    assert agreement.confusion.to_numpy().sum() == 6
    assert agreement.kappa.lo <= 2 / 3 <= agreement.kappa.hi


def test_kappa_agrees_with_scikit_learn():
    from sklearn.metrics import cohen_kappa_score, confusion_matrix

    rng = np.random.default_rng(0)
    human = rng.integers(1, 6, 200)
    judge = np.where(rng.random(200) < 0.6, human, rng.integers(1, 6, 200))
    agreement = judge_agreement(labelled(judge), labelled(human).sample(frac=1, random_state=1), n_boot=20)
    assert agreement.kappa.value == pytest.approx(cohen_kappa_score(human, judge))
    assert (agreement.confusion.drop(columns="missing").to_numpy() == confusion_matrix(human, judge)).all()


def test_labels_meet_by_their_keys_and_a_missing_verdict_is_counted():
    verdicts = pd.concat([labelled([5, 1, None]), labelled([4, 4, 4]).assign(retriever="other")])
    agreement = judge_agreement(verdicts, labelled([5, 1, 2]), n_boot=20)
    assert agreement.agreement.value == 1
    assert (agreement.n, agreement.n_missing) == (2, 1)
    assert agreement.confusion.loc[2, "missing"] == 1


def test_agreement_by_chance_alone_has_no_kappa():
    agreement = judge_agreement(labelled([5, 5]), labelled([5, 5]), n_boot=20)
    assert math.isnan(agreement.kappa.value)
    assert agreement.agreement.value == 1


@pytest.mark.parametrize(
    ("human", "message"),
    [
        (labelled([5, None]), "no label for .*q1"),
        (labelled([5, 1, 1, 1]), "no row of the verdicts for .*q2"),
        (pd.concat([labelled([5]), labelled([5])]), "human labels: .*q0.* occurs twice"),
        (labelled([5]).drop(columns="retriever"), "verdicts: .*q0.* occurs twice"),
    ],
)
def test_human_labels_that_cannot_be_used(human, message):
    verdicts = pd.concat([labelled([5, 1]), labelled([5, 1]).assign(retriever="other")])
    with pytest.raises(DataError, match=message):
        judge_agreement(verdicts, human, n_boot=5)
