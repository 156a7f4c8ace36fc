"""Clusters of topics: by hand, and against what must not change."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from ragauge.contract.outcomes import CLUSTER
from ragauge.estimate import bounded_mean, compare_pairs, cross_fit, fit_thresholds, ppi_shares, share_estimates
from ragauge.estimate.best import best_systems, top_optimism
from ragauge.estimate.clusters import (
    clustered_line,
    clustered_text,
    clustering,
    clusterings,
    connected,
    same_clusters,
)
from ragauge.estimate.intervals import (
    bootstrap_mean,
    effective_topics,
    expanded,
    paired_mean,
    paired_share_interval,
    wilson_interval,
)
from ragauge.estimate.outcomes import by_cluster, clusters_by_topic
from ragauge.estimate.powered import powered_means
from ragauge.estimate.slices import macro_averages, mixed_slicings, slice_estimates
from ragauge.estimate.validation import cross_validate

OWN = np.arange(6)  # each topic its own cluster
X = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0])
TWO = np.array(["a", "a", "b", "b", "c", "c"])


def frame(n: int = 24, per: int = 3, seed: int = 0, systems: tuple[str, ...] = ("s", "t")) -> pd.DataFrame:
    """Outcomes of topics in clusters of `per`, whose topics are alike."""
    rng = np.random.default_rng(seed)
    ease = np.repeat(rng.random(n // per), per)
    rows = [
        pd.DataFrame(
            {
                "qid": [f"q{i:02d}" for i in range(n)],
                "system": system,
                "retriever": system,
                "ir_score": np.clip(ease + rng.normal(0, 0.1, n), 0, 1).round(2),
                "label": pd.array(np.where(rng.random(n) < ease, 5, rng.choice([1, 2, 3], n)), dtype="Int8"),
                CLUSTER: [f"d{i // per}" for i in range(n)],
            }
        )
        for system in systems
    ]
    return pd.concat(rows, ignore_index=True)


def test_a_share_over_clusters_by_hand():
    # Sums 2, 0, 1 of 2 rows each. A quarter of a cluster of root(2) rows at each end: p = 3.3536 / 6.7071 = 0.5.
    # Residuals 1, -1, 0 over 1 - 2 / 6, times root(2 / 3): squares 2 * 1.5 = 3; unseen 0.25 * 2 * 0.5 = 0.25.
    n = 3 * 0.25 * (3 + 0.5 / math.sqrt(2)) * 4 / 3.25
    sums, rows = np.array([2.0, 0.0, 1.0]), np.full(3, 2.0)
    assert effective_topics(sums, rows, None, 6) == pytest.approx(n)
    few = (1.959964 / t.isf(0.025, 2)) ** 2
    found = bounded_mean(X, level=0.95, clusters=TWO)
    assert (found.lo, found.hi) == pytest.approx(wilson_interval(0.5, n * few), abs=1e-6)
    assert found.n == 6


def test_paired_differences_over_clusters_by_hand():
    # Sums 1, 0, -1 of clusters of 2; of an added cluster root(2) rows. Squares 2 * (1 / (2 / 3))^2 * 2 / 3 = 3.
    d = np.array([1.0, 0.0, 0.0, 0.0, -1.0, 0.0])
    reach = t.isf(0.1, 2) * math.sqrt(3 + 2) / (6 + 2 * math.sqrt(2))
    shares = paired_share_interval(d, level=0.8, clusters=TWO)
    assert (shares.value, shares.lo, shares.hi, shares.n) == pytest.approx((0, -reach, reach, 6))
    reach = t.isf(0.025, 2) * math.sqrt(3 / 4 + 1) / (6 + math.sqrt(2))
    scores = paired_mean(d / 2, clusters=TWO)
    assert (scores.lo, scores.hi) == pytest.approx((-reach, reach))
    missing = paired_mean(np.append(d / 2, np.nan), clusters=np.append(TWO, "c"))
    assert missing == scores


def test_topics_that_are_their_own_clusters_have_the_intervals_of_topics():
    d = X - np.roll(X, 2)
    assert bounded_mean(X, clusters=OWN) == bounded_mean(X)
    assert paired_share_interval(d, clusters=OWN) == paired_share_interval(d)
    assert paired_mean(d / 2, clusters=OWN) == paired_mean(d / 2)
    assert bootstrap_mean(X, clusters=OWN) == bootstrap_mean(X)
    rows = frame().assign(**{CLUSTER: lambda f: f["qid"]})
    alone = rows.drop(columns=CLUSTER)
    assert share_estimates(rows) == share_estimates(alone)
    numbers = ["difference", "lo", "hi", "n"]
    assert compare_pairs(rows)[numbers].equals(compare_pairs(alone)[numbers])
    assert fit_thresholds(rows, 50) == fit_thresholds(alone, 50)
    assert cross_validate(rows, n_boot=50).estimates == cross_validate(alone, n_boot=50).estimates


def test_one_cluster_has_no_interval():
    one = np.zeros(6, dtype=int)
    for found in (bounded_mean(X, clusters=one), paired_mean(X, clusters=one), bootstrap_mean(X, clusters=one)):
        assert found.value == 0.5
        assert math.isnan(found.lo)
    assert math.isnan(top_optimism(pd.DataFrame({"a": X, "b": 1 - X}), clusters=one))


def test_percentiles_over_few_clusters_reach_as_far_as_student():
    assert expanded(0.95, np.ones(6), 6) == 0.95
    from scipy.stats import norm

    of = -math.sqrt(3 / 2) * t.isf(0.025, 2)
    assert expanded(0.95, np.full(3, 2.0), 6) == pytest.approx(1 - 2 * norm.cdf(of))
    # Unequal sizes 1, 1, 4: (6^2 / 18) - 1 is one degree of freedom.
    assert expanded(0.95, np.array([1.0, 1.0, 4.0]), 6) > expanded(0.95, np.full(3, 2.0), 6)


def test_sums_over_clusters_keep_the_order_of_their_numbers():
    assert by_cluster(np.array([[1.0], [2.0], [4.0]]), np.array([1, 0, 1])).tolist() == [[2.0], [5.0]]
    rows = frame(6, 3)
    assert clusters_by_topic(rows, pd.Index(["q05", "q00"])).tolist() == [1, 0]
    assert clusters_by_topic(rows.drop(columns=CLUSTER), pd.Index(["q00"])) is None


def test_tests_flip_whole_clusters():
    # Six topics in three clusters, a better in every one: the flips of three clusters give 2 / 8.
    a = frame(6, 2, systems=("a",)).assign(ir_score=0.9, label=5)
    b = frame(6, 2, systems=("b",)).assign(ir_score=0.5, label=1)
    found = compare_pairs(pd.concat([a, b], ignore_index=True)).set_index("measure")
    assert found["p"].to_dict() == {"ir_score": 0.25, "correct": 0.25, "hallucination": 1.0}
    assert compare_pairs(pd.concat([a, b]).drop(columns=CLUSTER)).set_index("measure")["p"]["correct"] == 2 / 64


def test_best_systems_over_clusters_are_those_of_their_sums():
    rng = np.random.default_rng(1)
    x = pd.DataFrame(rng.random((12, 3)), columns=list("abc"))
    clusters = np.repeat(np.arange(4), 3)
    sums = x.groupby(clusters).sum()
    assert best_systems(x, clusters=clusters).equals(best_systems(sums))
    gap = x.mask(rng.random(x.shape) < 0.2)
    found = best_systems(gap, clusters=clusters)
    assert ((found["p_best"] >= 0) & (found["p_best"] <= 1)).all()


def test_powered_means_over_clusters_of_one_topic_have_nearly_the_variance_of_topics():
    rng = np.random.default_rng(2)
    y = (rng.random(200) < 0.4).astype(float)[:, None]
    f = np.clip(y * 0.6 + 0.2 + rng.normal(0, 0.1, y.shape), 0, 1)
    judged, stratum = rng.random(200) < 0.4, rng.integers(0, 2, 200)
    alone = powered_means(y, f, judged, stratum)
    own = powered_means(y, f, judged, stratum, clusters=np.arange(200))
    assert own.estimate == pytest.approx(alone.estimate)
    assert own.variance == pytest.approx(alone.variance, rel=0.03)
    assert own.classical_variance == pytest.approx(alone.classical_variance, rel=0.03)
    # All topics twice over tell no more than once.
    twice = powered_means(
        np.repeat(y, 2, 0), np.repeat(f, 2, 0), np.repeat(judged, 2), np.repeat(stratum, 2),
        clusters=np.repeat(np.arange(200), 2),
    )  # fmt: skip
    assert twice.variance == pytest.approx(own.variance, rel=0.03)
    assert twice.df == pytest.approx(judged.sum() - 1)


def test_shares_of_a_judged_sample_are_wider_over_clusters():
    rows = frame(120, 10, systems=("s",))
    judged = np.random.default_rng(3).random(120) < 0.6
    rows = rows.assign(judged=judged, label=rows["label"].mask(~judged))
    found = cross_fit(rows)
    assert found[CLUSTER].equals(rows[CLUSTER])
    wide, narrow = (ppi_shares(part).set_index("share") for part in (found, found.drop(columns=CLUSTER)))
    assert wide["estimate"].equals(narrow["estimate"])
    width = {name: float((of["hi"] - of["lo"])["correct_share"]) for name, of in (("w", wide), ("n", narrow))}
    assert width["w"] > 1.2 * width["n"]


def test_folds_hold_whole_clusters():
    out = cross_validate(frame(systems=("s",)), n_boot=0).out_of_fold
    cluster = frame(systems=("s",))[CLUSTER]
    assert out["fold"].groupby(cluster.to_numpy()).nunique().eq(1).all()


def test_losses_over_few_clusters_are_those_of_fits_without_each():
    rows = frame()
    found = cross_validate(rows, n_boot=20).estimates["brier"]
    of = rows[CLUSTER].unique()
    logs = np.log([cross_validate(rows[rows[CLUSTER] != one], n_boot=0).estimates["brier"].value for one in of])
    error = np.sqrt((len(of) - 1) / len(of) * ((logs - logs.mean()) ** 2).sum())
    reach = t.isf(0.025, len(of) - 1) * error
    assert (found.lo, found.hi) == pytest.approx((found.value * np.exp(-reach), found.value * np.exp(reach)))


def test_slices_that_share_clusters_err_alike():
    rows = frame(60, 6, systems=("s",)).assign(**{"slice:k": lambda f: np.where(np.arange(60) % 2, "odd", "even")})
    assert mixed_slicings(rows) == ["k"]
    assert mixed_slicings(rows.assign(**{"slice:k": rows[CLUSTER].isin(["d0", "d1"]).map(str)})) == []
    assert mixed_slicings(rows.drop(columns=CLUSTER)) == []
    estimates = slice_estimates(rows)
    apart, alike = (macro_averages(estimates, mixed=mixed).set_index("measure") for mixed in ((), ("k",)))
    assert ((alike["hi"] - alike["lo"]) > 1.2 * (apart["hi"] - apart["lo"]))[["ir_score", "correct_share"]].all()


def test_intraclass_correlation_by_hand():
    # Means 1, 0, 0.5: between (2 * (0.25 + 0.25)) / 2 = 0.5, within 0.5 / 3; (0.5 - 1/6) / (0.5 + 1/6) = 0.5.
    found = clustering(X, TWO)
    assert (found.n_topics, found.n_clusters, found.largest) == (6, 3, 2)
    assert found.icc == pytest.approx(0.5)
    assert found.width_ratio > 1.3
    assert math.isnan(clustering(X, OWN).icc)
    assert clustering(X, OWN).width_ratio == 1
    assert math.isnan(clustering(X, np.zeros(6)).width_ratio)
    assert math.isnan(clustering(np.ones(6), TWO).icc)


def test_what_is_said_of_clusters_is_of_the_topics_that_are_judged() -> None:
    rows = pd.DataFrame(
        {"qid": list("abcdefgh"), "ir_score": [*(X / 2), 1.0, 1.0], "unanswerable": [False] * 7 + [True]}
    )
    rows = rows.assign(label=pd.array([5, 5, 4, 1, 5, 2, pd.NA, 1], dtype="Int8"), judged=[True] * 6 + [False, True])
    rows = rows.assign(**{CLUSTER: [*TWO, "c", "a"], "evidence_cluster": list("xxyyxyxx")})
    [right] = found = clusterings(rows)
    wide, narrow = bounded_mean(X, clusters=TWO), bounded_mean(X)
    times = f"{(wide.hi - wide.lo) / (narrow.hi - narrow.lo):.2f}"
    assert right == clustering(X, TWO, "right answers")
    assert "intraclass" not in clustered_text(found, True)  # the interval of one over three clusters is useless
    right = replace(right, n_clusters=10)
    found = [right]
    of = "10 clusters of 6 topics (the largest has 2)"
    correlation = "intraclass correlation of right answers 0.50, "
    assert (
        clustered_text(found, True)
        == f"intervals and tests are over {of}: {correlation}{times} times the width over topics"
    )
    assert clustered_line(found, True) == f"intervals over 10 clusters of topics are {times} times as wide"
    assert clustered_text(found, False) == (
        f"topics share documents of their evidence: {of}, {correlation}intervals over clusters would be {times} times "
        "as wide: cluster=document makes them so"
    )
    assert clustered_line(found, False) == f"shared documents: cluster=document makes intervals {times} times as wide"
    # Of several systems their range; alone, a widening of less than a tenth is no line on the terminal.
    less = replace(right, width_ratio=1.05, icc=0.25)
    assert "0.25 to 0.50" in clustered_text([right, less], True)
    assert f"1.05 to {times} times" in clustered_line([less, right], False)
    assert clustered_line([less], False) == ""
    assert "intraclass" not in clustered_text([replace(right, icc=math.nan)], True)
    # Without chosen clusters those of shared documents count, and without verdicts the IR scores.
    unjudged = rows.drop(columns=CLUSTER).assign(label=pd.array([pd.NA] * 8, dtype="Int8"))
    assert clusterings(unjudged) == [
        clustering(unjudged["ir_score"].to_numpy(), rows["evidence_cluster"], "the IR score")
    ]
    assert clusterings(unjudged.drop(columns="evidence_cluster")) == []
    assert clusterings(unjudged.assign(evidence_cluster=rows["qid"])) == []
    [together] = clusterings(unjudged.assign(evidence_cluster="x"))
    assert clustered_text([together], False).startswith("all 8 topics hang together through shared documents")
    assert clustered_line([together], False).startswith("all topics share documents, intervals may be too narrow")


def test_topics_are_connected_by_documents_of_their_evidence():
    evidence = pd.DataFrame({"qid": ["a", "a", "b", "c", "d", "e", "x"], "docno": ["1", "2", "2", "3", "3", None, "1"]})
    found = connected(evidence, ["a", "b", "c", "d", "e", "f"])
    assert found.to_dict() == {"a": "1", "b": "1", "c": "3", "d": "3", "e": "e", "f": "f"}
    assert connected(evidence.iloc[:0], ["a"]).to_dict() == {"a": "a"}


def test_a_topic_of_several_jobs_is_in_one_cluster():
    rows = pd.DataFrame({"qid": ["a", "a", "b"], CLUSTER: ["d", None, None]})
    assert same_clusters(rows)[CLUSTER].tolist() == ["d", "d", "b"]
