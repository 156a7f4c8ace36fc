"""The gate over clusters of topics."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.contract.outcomes import CLUSTER
from ragauge.plugins.gate.gating import paired_difference, paired_test, topics_to_decide


def test_copies_of_a_topic_decide_no_more_than_one():
    rng = np.random.default_rng(0)
    own, other = rng.random(40), rng.random(40)
    once = paired_test(own, other, 0.05)
    clusters = np.repeat(np.arange(40), 5)
    many = paired_test(np.repeat(own, 5), np.repeat(other, 5), 0.05, clusters=clusters)
    assert (many.p_pass, many.p_regressed) == pytest.approx((once.p_pass, once.p_regressed))
    assert (many.lo, many.hi, many.n) == pytest.approx((once.lo, once.hi, 200))
    assert topics_to_decide(many) == pytest.approx(5 * topics_to_decide(once), rel=0.1)


def test_shares_are_tested_over_clusters():
    own, other = np.repeat([1.0, 0.0, 1.0, 1.0] * 5, 5), np.repeat([1.0, 1.0, 1.0, 1.0] * 5, 5)
    alone = paired_test(own, other, 0.1)
    over = paired_test(own, other, 0.1, clusters=np.repeat(np.arange(20), 5))
    assert alone.p_regressed < 0.01 < 0.05 < over.p_regressed
    # Of three clusters, four topics and one and one, each worse by .1: where one more cluster loses everything, it
    # lies at twice a topic's reach, as the largest has twice the mean of two topics, and another mean below it.
    uneven = paired_test(np.full(6, 0.4), np.full(6, 0.5), 0.3, clusters=np.array([0, 0, 0, 0, 1, 2]))
    assert uneven.p_pass == pytest.approx((1 - 0.2 / (2 + 0.1 - 0.1)) ** 3, abs=1e-7)
    assert (uneven.difference, uneven.n) == (pytest.approx(-0.1), 6)
    with pytest.raises(DataError, match="1 cluster"):
        paired_test(own, other, 0.1, clusters=np.zeros(100, dtype=int))


def test_clusters_of_the_outcomes_are_taken():
    n = 60
    rng = np.random.default_rng(1)
    of = pd.DataFrame({"qid": [f"q{i}" for i in range(n)], CLUSTER: [f"d{i // 6}" for i in range(n)]})
    ease = np.repeat(rng.normal(0, 0.3, n // 6), 6)
    frames = [
        of.assign(run_id=run, ir_score=np.clip(0.5 + ease * sign, 0, 1), label=pd.array([None] * n, "Int8"))
        for run, sign in (("new", 1), ("old", -1))
    ]
    rows = pd.concat(frames, ignore_index=True)
    over, alone = (
        paired_difference(part, "new", "old", "ir_score", 0.02) for part in (rows, rows.drop(columns=CLUSTER))
    )
    assert over.difference == pytest.approx(alone.difference)
    assert over.n == alone.n == n
    assert over.hi - over.lo > 1.5 * (alone.hi - alone.lo)
