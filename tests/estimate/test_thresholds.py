from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.contract.errors import DataError
from ragauge.estimate import fit_threshold, fit_thresholds, share_by_zone
from ragauge.estimate.thresholds import out_of_fold_gain


def outcomes(scores, labels, qids=None):
    return pd.DataFrame(
        {
            "qid": [f"q{i}" for i in range(len(scores))] if qids is None else qids,
            "ir_score": np.asarray(scores, dtype=float),
            "label": pd.array(labels, dtype="Int8"),
        }
    )


@pytest.mark.parametrize(
    ("scores", "targets", "side", "intervals", "value", "wrong", "degenerate"),
    [
        # > t is right for every t from 0.4 (not above itself) to just under 0.8.
        ([0.1, 0.4, 0.8, 0.9], [0, 0, 1, 1], "above", "[0.4, 0.8)", 0.6, 0, ""),
        # < t is right for every t from just above 0.1 to 0.4 (not below itself).
        ([0.1, 0.4, 0.8, 0.9], [1, 0, 0, 0], "below", "(0.1, 0.4]", 0.25, 0, ""),
        # Of several optima the widest is reported, and of equally wide ones the lowest.
        ([0.2, 0.3, 0.4, 0.9], [0, 1, 0, 1], "above", "[0.2, 0.3) [0.4, 0.9)", 0.65, 1, ""),
        ([0.25, 0.5, 0.625, 0.875], [0, 1, 0, 1], "above", "[0.25, 0.5) [0.625, 0.875)", 0.375, 1, ""),
        # At 0.5 one target and one other cancel out: passing it changes nothing.
        ([0.2, 0.5, 0.5, 0.8], [0, 1, 0, 1], "above", "[0.2, 0.8)", 0.5, 1, ""),
        # The outer intervals hold 0 and 1.
        ([0.5, 0.7], [1, 1], "above", "[0.0, 0.5)", 0.25, 0, "always"),
        ([0.5, 0.7], [0, 0], "above", "[0.7, 1.0]", 0.85, 0, "never"),
        ([0.5, 0.7], [1, 1], "below", "(0.7, 1.0]", 0.85, 0, "always"),
        ([0.5, 0.7], [0, 0], "below", "[0.0, 0.5]", 0.25, 0, "never"),
        # No threshold of 0 to 1 puts a score of 0 above or of 1 below.
        ([0.0, 0.4], [1, 1], "above", "[0.0, 0.4)", 0.2, 1, ""),
        ([0.4, 1.0], [1, 1], "below", "(0.4, 1.0]", 0.7, 1, ""),
        ([0.0, 1.0], [0, 1], "above", "[0.0, 1.0)", 0.5, 0, ""),
        ([1.0, 1.0], [0, 0], "above", "[1.0, 1.0]", 1.0, 0, "never"),
    ],
)
def test_by_hand(scores, targets, side, intervals, value, wrong, degenerate):
    found = fit_threshold(scores, np.array(targets, dtype=bool), side)
    assert " ".join(map(str, found.intervals)) == intervals
    assert found.value == pytest.approx(value)
    assert (found.n, found.disagreements, found.degenerate) == (len(scores), wrong, degenerate)
    assert found.accuracy == pytest.approx(1 - wrong / len(scores))
    assert found.base_rate == max(np.mean(targets), 1 - np.mean(targets))
    assert found.log_likelihood == pytest.approx(wrong * math.log(1e-10))
    assert found.value in found.interval


@pytest.mark.parametrize("side", ["above", "below"])
def test_scores_next_to_each_other_keep_the_threshold_on_its_side(side):
    low = 0.3
    high = float(np.nextafter(low, 1))
    t = fit_threshold([low, high], [side == "below", side == "above"], side)
    assert t.disagreements == 0
    assert t.value in t.interval


def test_no_pairs():
    k = fit_threshold([], [], "above", n_boot=10)
    assert math.isnan(k.value)
    assert math.isnan(k.lo)
    assert (k.intervals, k.interval, k.n, k.degenerate) == ((), None, 0, "")


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_a_score_outside_0_to_1_is_an_error(score):
    with pytest.raises(DataError, match=r"score 1 is .*\[0, 1\]"):
        fit_threshold([0.5, score], [True, False], "above")


def test_lists_of_different_length_are_an_error():
    with pytest.raises(DataError, match="one length"):
        fit_threshold([0.5], [True, False], "above")


def disagreements_at(t, scores, targets, side):
    return sum((s > t if side == "above" else s < t) != y for s, y in zip(scores, targets, strict=True))


scores_and_targets = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([0.0, 1.0, 0.25, 0.5, 0.75]), st.floats(0, 1, allow_subnormal=False)),
        st.booleans(),
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=400, deadline=None)
@given(scores_and_targets, st.sampled_from(["above", "below"]))
def test_brute_force_twin(pairs, side):
    """Every threshold that can differ: the scores, 0 and 1, what lies next to them, and all middles."""
    scores, targets = [s for s, _ in pairs], [y for _, y in pairs]
    known = sorted({0.0, 1.0, *scores})
    near = [float(np.nextafter(s, end)) for s in known for end in (0.0, 1.0)]
    middles = [(a + b) / 2 for a, b in itertools.pairwise(known)]
    candidates = sorted({*known, *near, *middles})
    counts = {t: disagreements_at(t, scores, targets, side) for t in candidates}
    best = min(counts.values())

    t = fit_threshold(scores, targets, side)
    assert t.disagreements == best
    assert disagreements_at(t.value, scores, targets, side) == best
    assert t.value in t.interval
    for candidate, count in counts.items():
        assert any(candidate in i for i in t.intervals) == (count == best), candidate
    # maximal, apart and in order
    assert all(a.right <= b.left and not a.overlaps(b) for a, b in zip(t.intervals, t.intervals[1:], strict=False))
    assert t.interval.length == max(i.length for i in t.intervals)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["above", "below"]))
def test_a_replicate_is_the_fit_on_its_drawn_rows(seed, side):
    from ragauge.estimate.intervals import topic_weights
    from ragauge.estimate.thresholds import Segments, _replicates

    rng = np.random.default_rng(seed)
    scores, topics = np.round(rng.random(12), 1), rng.permutation(np.repeat(np.arange(4), 3))
    targets = rng.random(12) < 0.5
    ranked = Segments(scores, side)
    sign = np.where(targets[ranked.order] == (side == "above"), 1, -1)
    values = _replicates(ranked, sign, topics, 4, 5, seed)
    (weights,) = topic_weights(4, 5, seed)
    for value, drawn in zip(values, weights, strict=True):
        rows = np.repeat(np.arange(12), drawn[topics])
        twin = fit_threshold(scores[rows], targets[rows], side)
        assert value == twin.value


@settings(max_examples=100, deadline=None)
@given(scores_and_targets, st.sampled_from(["above", "below"]), st.integers(0, 2**32 - 1))
def test_thresholds_that_are_not_rejected_by_brute_force(pairs, side, seed):
    """Every threshold that can differ, tried by a paired test over topics with continuity correction."""
    scores, targets = np.array([s for s, _ in pairs]), np.array([y for _, y in pairs])
    topics = np.random.default_rng(seed).integers(0, len(pairs) // 2 + 1, len(pairs))
    codes = np.unique(topics, return_inverse=True)[1]
    t = fit_threshold(scores, targets, side, topics)
    if codes.max() == 0:
        assert t.not_rejected == ()
        return

    def wrong(value):
        return ((scores > value if side == "above" else scores < value) != targets).astype(float)

    known = sorted({0.0, 1.0, *scores})
    for candidate in sorted({*known, *((a + b) / 2 for a, b in itertools.pairwise(known))}):
        by_topic = np.bincount(codes, wrong(candidate) - wrong(t.value))
        kept = abs(by_topic.sum()) - 1 <= 1.959964 * np.sqrt((by_topic**2).sum())
        assert any(candidate in i for i in t.not_rejected) == kept, candidate
    assert t.set_min <= t.value <= t.set_max


def test_the_gain_by_hand():
    # Two clear groups: every fold finds the gap, so all agree on unseen topics, with a constant only half.
    scores = np.r_[np.full(10, 0.2), np.full(10, 0.8)]
    k = fit_threshold(scores, scores > 0.5, "above", n_splits=5)
    assert (k.gain.value, k.gain.n) == (0.5, 20)
    assert k.useful
    # Right everywhere: "always" is as good as the constant answer, and no better.
    always = fit_threshold(scores, np.ones(20, bool), "above", n_splits=5)
    assert always.gain.value == 0
    assert not always.useful
    assert math.isnan(fit_threshold(scores, scores > 0.5, "above").gain.value)
    assert math.isnan(fit_threshold([0.1, 0.9], [False, True], "above", ["a", "a"], n_splits=5).gain.value)


def test_planted_thresholds_come_out_in_the_same_place():
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 1001, 37020) / 1000
    labels = np.where(scores > 0.670, 5, np.where(scores < 0.105, 1, 4))
    frame = outcomes(scores, labels, np.repeat(np.arange(7404), 5).astype(str))
    first = fit_thresholds(frame, n_boot=200)
    assert first.k.interval == pd.Interval(0.670, 0.671, closed="left")
    assert first.h.interval == pd.Interval(0.104, 0.105, closed="right")
    assert first.k.accuracy == first.h.accuracy == 1
    assert fit_thresholds(frame.sample(frac=1, random_state=1), n_boot=200) == first
    assert (first.n_topics, first.n_missing, first.k.n) == (7404, 0, 37020)
    assert first.k.lo == first.k.hi == first.k.value


def test_noisy_planted_threshold_is_within_its_interval():
    rng = np.random.default_rng(4)
    scores = rng.random(3000)
    right = (scores > 0.6) ^ (rng.random(3000) < 0.2)
    t = fit_thresholds(outcomes(scores, np.where(right, 5, 4)))
    assert t.k.lo <= 0.6 <= t.k.hi
    assert t.k.lo < t.k.value < t.k.hi
    assert t.h.degenerate == "never"


def test_missing_labels_are_left_out_and_counted():
    t = fit_thresholds(outcomes([0.1, 0.4, 0.5, 0.9], [1, None, None, 5]), n_boot=0)
    assert (t.k.n, t.n_missing, t.n_topics) == (2, 2, 2)
    assert math.isnan(t.k.lo)


def test_no_labels_at_all():
    t = fit_thresholds(outcomes([0.1, 0.4], [None, None]))
    assert math.isnan(t.k.value)
    assert t.metrics()["threshold_h_degenerate"] == 0


def test_one_topic_has_no_interval():
    t = fit_thresholds(outcomes([0.1, 0.4], [1, 5], ["a", "a"]))
    assert math.isnan(t.k.lo)
    assert t.k.value == pytest.approx(0.25)


def test_rows_of_a_topic_are_resampled_together():
    rng = np.random.default_rng(3)
    scores = rng.random(40)
    labels = np.where(rng.random(40) < scores, 5, 1)
    qids = [f"q{i}" for i in range(40)]
    once = fit_thresholds(outcomes(scores, labels, qids), n_boot=200)
    thrice = fit_thresholds(outcomes(np.tile(scores, 3), np.tile(labels, 3), qids * 3), n_boot=200)
    for one, three in ((once.h, thrice.h), (once.k, thrice.k)):
        assert (three.value, three.lo, three.hi) == (one.value, one.lo, one.hi)
        assert one.lo < one.hi


def test_metrics_have_the_names_of_the_contract():
    metrics = fit_thresholds(outcomes([0.1, 0.4, 0.9], [1, 4, 5])).metrics()
    ends = ("lo", "hi", "set_min", "set_max", "accuracy", "base_rate", "degenerate", "gain", "gain_lo", "gain_hi")
    assert set(metrics) == {f"threshold_{t}{end}" for t in "hk" for end in ("", *(f"_{name}" for name in ends))}


def test_a_bad_row_is_named():
    with pytest.raises(DataError, match=r"ir_score, row 1 \(qid='q1'\)"):
        fit_thresholds(outcomes([0.1, 1.4], [1, 5]))
    with pytest.raises(DataError, match="label"):
        fit_thresholds(outcomes([0.1, 0.4], [1, 6]))
    with pytest.raises(DataError, match="ir_score missing"):
        fit_thresholds(pd.DataFrame({"qid": ["a"], "label": [1]}))


def test_a_million_pairs_in_seconds():
    rng = np.random.default_rng(0)
    scores, right = rng.random(1_000_000), rng.random(1_000_000) < 0.4
    start = time.perf_counter()
    fit_threshold(scores, right, "above")
    assert time.perf_counter() - start < 60  # a tenth of a second; a loop over all pairs of them takes days


def test_share_by_zone_by_hand():
    frame = outcomes([0.0, 0.1, 0.4, 0.6, 0.8, 0.9, 0.9, 0.2], [1, 4, 2, 5, 5, 5, None, 3])
    zones = share_by_zone(frame, h=0.1, k=0.6).set_index("zone")
    assert zones["share"].to_dict() == {"above_k": 3 / 8, "between": 4 / 8, "below_h": 1 / 8, "missing": 0}
    assert zones["judged_share"].to_dict() == {"above_k": 3 / 8, "between": 3 / 8, "below_h": 1 / 8, "missing": 1 / 8}
    assert zones.loc["between", "difference"] == 1 / 8


def test_the_difference_of_a_zone_has_an_interval_over_topics():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"qid": [f"q{i}" for i in range(200)], "ir_score": rng.random(200)})
    frame["label"] = np.where(frame["ir_score"] > 0.5, 5, 1)
    zones = share_by_zone(frame, h=0.5, k=0.5, n_boot=200).set_index("zone")
    assert zones.loc["above_k", ["difference", "lo", "hi"]].tolist() == [0, 0, 0]
    biased = share_by_zone(frame, h=0.2, k=0.8, n_boot=500).set_index("zone").loc["above_k"]
    error = np.sqrt(0.3 * 0.7 / 200)  # of a share of 0.3 that score and judge see differently
    assert biased["hi"] - biased["lo"] == pytest.approx(2 * 1.96 * error, rel=0.2)
    assert biased["lo"] < biased["difference"] < biased["hi"]


def test_share_by_zone_with_crossed_or_unknown_thresholds():
    frame = outcomes([0.1, 0.5, 0.9], [1, 4, 5])
    crossed = share_by_zone(frame, h=0.7, k=0.3).set_index("zone")["share"]
    assert crossed.to_dict() == {"above_k": 2 / 3, "between": 0, "below_h": 1 / 3, "missing": 0}
    assert share_by_zone(frame, float("nan"), 0.5)["share"].isna().all()


def test_weights_are_rows_that_occur_as_often():
    """A sample by strata fitted h and k to its strata's shares, not to those of all topics."""
    rng = np.random.default_rng(4)
    scores, target = rng.random(60).round(2), rng.random(60) < 0.5
    times = rng.integers(1, 4, 60)
    topics = np.arange(60)
    for side in ("above", "below"):
        weighted = fit_threshold(scores, target, side, topics, n_boot=50, weights=times.astype(float))
        repeated = fit_threshold(
            np.repeat(scores, times), np.repeat(target, times), side, np.repeat(topics, times), n_boot=50
        )
        assert weighted.intervals == repeated.intervals
        assert weighted.accuracy == pytest.approx(repeated.accuracy)
        assert weighted.base_rate == pytest.approx(repeated.base_rate)
        assert (weighted.lo, weighted.hi) == pytest.approx((repeated.lo, repeated.hi))
        gain = out_of_fold_gain(scores, target, side, topics, weights=times.astype(float))
        again = out_of_fold_gain(np.repeat(scores, times), np.repeat(target, times), side, np.repeat(topics, times))
        assert (gain.value, gain.lo, gain.hi) == pytest.approx((again.value, again.lo, again.hi))
        plain = fit_threshold(scores, target, side, topics, n_boot=50, n_splits=5)
        ones = fit_threshold(scores, target, side, topics, n_boot=50, n_splits=5, weights=np.full(60, 7.0))
        assert (ones.value, ones.lo, ones.hi, ones.not_rejected) == (
            plain.value,
            plain.lo,
            plain.hi,
            plain.not_rejected,
        )
        assert ones.gain == plain.gain
    with pytest.raises(DataError, match=r"weight 1 is 0\.0; allowed are numbers above 0"):
        fit_threshold([0.1, 0.2], [True, False], "above", weights=np.array([1.0, 0.0]))
    with pytest.raises(DataError, match="weights: 1 for 2 pairs"):
        fit_threshold([0.1, 0.2], [True, False], "above", weights=np.ones(1))


def test_zones_of_a_sample_by_strata_are_those_of_all_topics():
    frame = pd.DataFrame(
        {"qid": list("abc"), "ir_score": [0.9, 0.5, 0.1], "label": [5, 4, 1], "weight": [2.0, 0.5, 0.5]}
    )
    zones = share_by_zone(frame, 0.3, 0.7, n_boot=0).set_index("zone")
    assert zones["share"].tolist() == pytest.approx([2 / 3, 1 / 6, 1 / 6, 0])
    assert zones["judged_share"].tolist() == pytest.approx([2 / 3, 1 / 6, 1 / 6, 0])


def test_a_threshold_that_tells_systems_apart_alone_gains_nothing() -> None:
    """Pooled it gained 30 points over one constant answer for all, and was called useful."""
    # System a scores 0.2 and is right in one of five, system b 0.8 and in four of five.
    a, b = ([5, 4, 4, 4, 4] * 8, [5, 5, 5, 5, 4] * 8)
    rows = pd.concat(
        [
            pd.DataFrame({"qid": range(40), "ir_score": score, "label": labels, "system": name})
            for name, score, labels in (("a", 0.2, a), ("b", 0.8, b))
        ]
    )
    both = fit_thresholds(rows, n_boot=0).k
    assert (both.value, both.accuracy, both.base_rate) == (pytest.approx(0.5), pytest.approx(0.8), pytest.approx(0.8))
    assert both.gain.value == 0
    assert not both.useful
    pooled = fit_thresholds(rows.drop(columns="system"), n_boot=0).k
    assert (pooled.base_rate, pooled.gain.value) == (0.5, pytest.approx(0.3))
