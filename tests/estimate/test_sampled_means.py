"""Means of answer measures over all topics, of which some were answered."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from ragauge.contract.answer_measures import NOT_SAMPLED
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate.board import leaderboard
from ragauge.estimate.intervals import wilson_interval
from ragauge.estimate.pairs import compare_pairs
from ragauge.estimate.sampled_means import answered, limits_within_0_and_1, predicted, sampled_difference, sampled_mean

F1 = AnswerMeasureInfo("f1", "F1", unit="ratio")


def topics(n: int = 200, of: int = 80, seed: int = 1, slope: float = 0.8) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    score, seen = rng.random(n), np.isin(np.arange(n), rng.permutation(n)[:of])
    f1 = np.clip(0.1 + slope * score + rng.normal(0, 0.1, n), 0, 1)
    frame = pd.DataFrame({"qid": [f"q{i}" for i in range(n)], "ir_score": score, "true": f1})
    return frame.assign(f1=np.where(seen, f1, np.nan), answer_status=np.where(seen, "ok", NOT_SAMPLED))


def test_the_score_of_the_others_moves_the_mean_towards_that_of_all_and_narrows_it() -> None:
    frames = [topics(seed=seed).assign(sample_target="topics") for seed in range(20)]
    means = [sampled_mean(frame, F1) for frame in frames]
    off = [abs(mean.value - frame["true"].mean()) for mean, frame in zip(means, frames, strict=True) if mean]
    alone = [abs(frame["f1"].mean() - frame["true"].mean()) for frame in frames]
    assert np.mean(off) < 0.6 * np.mean(alone)
    first = means[0]
    assert first is not None
    assert first.lo < first.value < first.hi
    assert first.hi - first.lo < 0.5 * 2 * 1.96 * frames[0]["f1"].std() / np.sqrt(80)
    assert first.n == 80


def test_without_a_score_that_says_anything_the_mean_is_that_of_the_answered() -> None:
    frame = topics().assign(ir_score=0.5)
    found = sampled_mean(frame, F1)
    assert found is not None
    assert found.value == pytest.approx(frame["f1"].mean(), abs=1e-9)


def test_limits_within_0_and_1_count_a_quarter_of_a_topic_at_either_end() -> None:
    wider = 0.0025 + 0.25 * (0.5**2 + 0.5**2) / 100**2
    found = limits_within_0_and_1(0.5, 0.0025, 100, -float(ndtri(0.025)), 0.95)
    assert found == pytest.approx(wilson_interval(0.5, 0.25 / wider))


def test_a_topic_is_not_predicted_from_its_own_value() -> None:
    frame = topics()
    moved = frame["f1"].to_numpy().copy()
    place = int(np.flatnonzero(frame["f1"].notna())[3])
    moved[place] = 0.0
    assert predicted(frame, moved)[place] == predicted(frame, frame["f1"].to_numpy())[place]


def test_strata_are_weighted_and_missing_values_are_no_zeros() -> None:
    status = ["ok"] * 6 + [NOT_SAMPLED] * 14
    frame = pd.DataFrame({"qid": [f"q{i}" for i in range(20)], "ir_score": 0.5, "answer_status": status})
    frame["f1"] = [1.0, 1.0, 0.0, np.nan, 0.0, 0.5] + [np.nan] * 14
    frame["stratum"] = [0, 0, 0, 0, 1, 1] + [0] * 4 + [1] * 10
    found = sampled_mean(frame, F1)
    assert found is not None
    # 8 of 20 topics with values 1, 1, 0 and one that has none, 12 of 20 with 0, 0.5: over the share that has one.
    assert found.value == pytest.approx((0.4 * 2 / 4 + 0.6 * 0.25) / (0.4 * 3 / 4 + 0.6))
    assert found.n == 5


def test_what_needs_no_answer_or_was_answered_throughout_is_a_plain_mean() -> None:
    frame = topics()
    assert answered(frame, "ir_score") is None
    assert answered(frame[frame["f1"].notna()], "f1") is None
    assert sampled_mean(frame[frame["f1"].notna()], F1) is None
    few = frame.assign(f1=frame["f1"].where(frame.index == frame["f1"].first_valid_index()))
    one = sampled_mean(few, F1)
    assert one is not None
    assert np.isnan(one.lo)


def test_leaderboard_and_pairs_take_all_topics() -> None:
    first, rng = topics(), np.random.default_rng(2)
    second = first.assign(f1=np.clip(first["f1"] - 0.1 + rng.normal(0, 0.05, 200), 0, 1))
    both = pd.concat([first.assign(retriever="a"), second.assign(retriever="b")], ignore_index=True)
    both["label"] = pd.array([pd.NA] * len(both), dtype="Int8")
    mean, pair = sampled_mean(first, F1), sampled_difference(first, second, "f1", 1.0)
    assert mean is not None
    assert pair is not None
    board = leaderboard(both, answers=[F1]).set_index("retriever")
    assert board.loc["a", "f1"] == mean.value
    pairs = compare_pairs(both, answers=[F1]).set_index("measure")
    reach = both["f1"].max() - both["f1"].min()
    expected = sampled_difference(first, second, "f1", float(reach))
    assert expected is not None
    assert pairs.loc["f1", "difference"] == expected[0].value
    assert pairs.loc["f1", "p"] == expected[1] < 0.01
    assert expected[0].lo < 0.1 < expected[0].hi
