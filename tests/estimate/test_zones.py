"""Zones with a guarantee: values by hand, an independent procedure, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from ragauge.contract.errors import DataError
from ragauge.estimate import fit_zones
from ragauge.estimate.zones import _starts, effective_number, p_value


def outcomes(scores, labels, qids=None, **columns):
    return pd.DataFrame(
        {
            "qid": [f"q{i}" for i in range(len(scores))] if qids is None else qids,
            "ir_score": np.asarray(scores, dtype=float),
            "label": pd.array(labels, dtype="Int8"),
            **columns,
        }
    )


def test_twenty_nine_right_answers_are_the_fewest_that_make_a_zone():
    # 0.9^29 = 0.047, 0.9^28 = 0.052
    found = fit_zones(outcomes([0.9] * 29 + [0.3] * 20, [5] * 29 + [4] * 20))
    assert (found.right.value, found.right.n, found.right.missed) == (0.3, 29, 0.0)
    assert found.right.share == pytest.approx(29 / 49)
    assert math.isnan(fit_zones(outcomes([0.9] * 28 + [0.3] * 20, [5] * 28 + [4] * 20)).right.value)


def test_one_wrong_answer_needs_forty_six():
    # P(Bin(46, 0.1) <= 1) = 0.048, P(Bin(45, 0.1) <= 1) = 0.052; the wrong one has the lowest score of them
    for n, expected in ((46, 0.5), (45, 0.8)):
        scores = [0.9] * (n - 1) + [0.8] + [0.5] * 20
        found = fit_zones(outcomes(scores, [5] * (n - 1) + [4] + [2] * 20))
        assert found.right.value == expected


def test_lack_is_below_and_none_where_lack_is_rare():
    found = fit_zones(outcomes([0.05] * 40 + [0.6] * 40, [1] * 40 + [5] * 40))
    assert found.lack.value == 0.6
    assert found.lack.share == 0.5
    rare = fit_zones(outcomes([0.05] * 40 + [0.6] * 40, [1] * 20 + [4] * 20 + [5] * 40))
    assert math.isnan(rare.lack.value)
    assert (rare.lack.n, rare.lack.share) == (0, 0.0)
    assert rare.lack.why_none == "no threshold holds"


def test_a_missing_verdict_counts_as_missed():
    scores = [0.9] * 40 + [0.2] * 20
    assert fit_zones(outcomes(scores, [5] * 40 + [4] * 20)).right.value == 0.2
    one = fit_zones(outcomes(scores, [5] * 39 + [None] + [4] * 20)).right
    assert math.isnan(one.value)
    assert fit_zones(outcomes([0.9] * 50 + [0.2] * 20, [5] * 49 + [None] + [4] * 20)).right.missed == 0.02


def test_jobs_that_nobody_judged_are_left_out():
    rows = outcomes([0.9] * 60, [5] * 40 + [None] * 20, system=["a"] * 40 + ["b"] * 20)
    found = fit_zones(rows)
    assert (found.right.n, found.right.n_rows, found.right.missed) == (40, 40, 0.0)


def test_rows_of_a_topic_are_not_independent_answers():
    # 15 topics with four equal answers each count as 15.
    rows = outcomes([0.9] * 60, [5] * 60, qids=[f"q{i // 4}" for i in range(60)], system=list("abcd") * 15)
    found = fit_zones(rows)
    assert math.isnan(found.right.value)
    assert found.right.why_none == "15 topics are too few, 29 may be enough"


def test_topics_by_strata_have_no_zones():
    rows = outcomes([0.9] * 60, [5] * 60).assign(weight=[0.5, 1.5] * 30)
    assert fit_zones(rows).right.why_none == "topics were drawn by strata"
    assert fit_zones(rows.assign(weight=1.0)).right.n == 60


def test_effective_number_by_hand():
    assert effective_number(np.array([0, 1, 2, 3])) == 4
    assert effective_number(np.array([0, 0, 1, 1])) == 2
    assert effective_number(np.array([0, 0, 0, 1])) == pytest.approx(16 / 10)
    assert effective_number(np.array([], dtype=int)) == 0


@given(st.integers(1, 200), st.data(), st.sampled_from([0.01, 0.1, 0.3]))
def test_p_value_is_the_exact_binomial_test(n, data, alpha):
    hits = data.draw(st.integers(0, n))
    expected = binomtest(hits, n, alpha, alternative="less").pvalue
    assert p_value(hits / n, n, alpha) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([40, 150, 400]), st.floats(0, 12))
def test_the_same_as_testing_every_threshold_by_scipy(seed, n, slope):
    """The fallback procedure written out anew: levels of all thresholds, by recursion, with binom.cdf."""
    rng = np.random.default_rng(seed)
    score = rng.random(n).round(3)
    right = rng.random(n) < 1 / (1 + np.exp(-slope * (score - 0.4) - 1))
    found = fit_zones(outcomes(score, np.where(right, 5, 4))).right
    starts = _starts(n, 0.05, 0.1)
    passed, level = [], 0.0
    above_before = 0
    for t in np.arange(99, -1, -1) / 100:
        above = int((score > t).sum())
        level += sum(0.05 / len(starts) for s in starts if above_before < s <= above)
        above_before = max(above, above_before)
        if level > 0 and binom.cdf(int((~right & (score > t)).sum()), above, 0.1) <= level:
            passed.append(t)
        else:
            level = 0.0
    if passed:
        assert found.value == passed[-1]
    else:
        assert math.isnan(found.value)


def test_starts_split_the_level():
    assert _starts(60, 0.05, 0.1) == [29]
    assert _starts(400, 0.05, 0.1) == [36, 72]  # 0.9^36 < 0.025 < 0.9^35


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"alpha": 0.0}, "alpha=0.0: allowed are 0.001 to 0.5"),
        ({"alpha": 1.2}, "alpha=1.2"),
        ({"alpha": float("nan")}, "alpha=nan"),
        ({"confidence": 1.0}, "confidence=1.0: allowed are 0.5 to 0.9999"),
    ],
)
def test_bad_settings_are_told(given, told):
    with pytest.raises(DataError, match=told):
        fit_zones(outcomes([0.5], [5]), **given)


def test_no_rows_no_verdicts_and_one_class():
    for rows in (outcomes([], []), outcomes([0.1, 0.2], [None, None])):
        found = fit_zones(rows)
        assert found.right.why_none == "there are no verdicts"
        assert math.isnan(found.metrics()["zone_right_share"])
    all_right = fit_zones(outcomes(np.linspace(0, 1, 100), [5] * 100))
    assert (all_right.right.value, all_right.right.n) == (0.0, 99)
    with pytest.raises(DataError, match="ir_score"):
        fit_zones(outcomes([float("nan")], [5]))
