from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from outcome_inputs import outcomes
from ragauge.contract.errors import DataError
from ragauge.estimate import bounded_mean, compare_pairs, leaderboard, ppi_shares
from ragauge.estimate.intervals import wilson_interval


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
    assert rows["ir_score_in_best_set"].to_dict() == {"low": False, "near": True, "top": True}
    assert rows["correct_in_best_set"].to_dict() == {"low": False, "near": True, "top": True}
    assert rows["hallucination_in_best_set"].to_dict() == {"low": True, "near": False, "top": False}
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
    assert board["correct_in_best_set"].isna().all()
    assert board["ir_score_in_best_set"].all()


def test_a_leaderboard_of_sampled_judging_gives_shares_of_all_and_tests_what_was_judged():
    rng = np.random.default_rng(0)
    parts = []
    for system, shift in (("a", 0.0), ("b", 0.3)):
        score = np.clip(rng.random(60) - shift, 0, 1)
        label = np.where(rng.random(60) < score, 5, 1).astype(object)
        label[20:] = None
        p = {"p1": 1 - score, "p2": 0.0, "p3": 0.0, "p4": 0.0, "p5": score}
        qids = [f"q{i}" for i in range(60)]
        part = pd.DataFrame({"qid": qids, "retriever": system, "ir_score": score, "judged": np.arange(60) < 20})
        parts.append(part.assign(label=pd.array(label, dtype="Int8"), **p))
    frame = pd.concat(parts, ignore_index=True)
    board = leaderboard(frame, n_boot=50).set_index("retriever")
    for system, part in frame.groupby("retriever"):
        alone = ppi_shares(part).set_index("share")
        assert board.loc[system, "correct_share"] == alone.loc["correct_share", "estimate"]
        assert board.loc[system, "correct_share_lo"] == alone.loc["correct_share", "lo"]
    assert board["n_judged"].tolist() == [20, 20]
    assert board["n_topics"].tolist() == [60, 60]
    pairs = compare_pairs(frame).set_index("measure")
    assert pairs.loc["correct", "n"] == 20
    assert pairs.loc["ir_score", "n"] == 60


def test_a_leaderboard_of_one_under_any_column():
    frame = outcomes({"a": [0.2, 0.4]}, {"a": [5, 1]}).rename(columns={"retriever": "system"})
    board = leaderboard(frame, "system", n_boot=20)
    assert board[["system", "ir_score_in_best_set", "correct_in_best_set"]].iloc[0].tolist() == [
        "a",
        True,
        True,
    ]
    assert len(compare_pairs(frame, "system")) == 0


def test_a_topic_twice_and_no_rows_are_errors():
    frame = outcomes({"a": [0.2, 0.4], "b": [0.2, 0.4]})
    with pytest.raises(DataError, match=r"qid='q0', retriever='a' occurs twice"):
        leaderboard(pd.concat([frame, frame]))
    with pytest.raises(DataError, match="no rows"):
        leaderboard(frame.head(0))
