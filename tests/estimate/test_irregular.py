"""Every estimate on a sweep that is uneven in all ways, against plain loops and other libraries."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from irregular_sweep import (
    BUDGETS,
    N_TOPICS,
    NEVER,
    UNANSWERABLE,
    WITHOUT_EVIDENCE,
    WITHOUT_HITS,
    irregular_sweep,
)
from ragauge.estimate import compare_pairs, fit_predictor, fit_thresholds, leaderboard
from ragauge.estimate.intervals import bootstrap_mean, bounded_mean
from ragauge.estimate.outcomes import fit_rows
from ragauge.estimate.thresholds import share_by_zone


@pytest.fixture(scope="module")
def sweep() -> pd.DataFrame:
    return irregular_sweep()


def rows_of(frame: pd.DataFrame) -> list[dict]:
    """With 0 for a missing verdict."""
    return frame.assign(label=frame["label"].fillna(0).astype(int)).to_dict("records")


def test_the_sweep_is_as_uneven_as_it_says(sweep: pd.DataFrame) -> None:
    assert sweep.groupby(["system", "n_tokens"]).ngroups == sweep["job"].nunique() == 11
    assert len(sweep) == 11 * N_TOPICS
    assert not sweep["label"].eq(NEVER).any()
    assert set(sweep["label"].dropna()) == {1, 2, 4, 5}
    assert sweep["label"].isna().sum() >= 10
    assert sweep["ir_score"].nunique() == 5
    assert sweep[sweep["qid"].isin(WITHOUT_HITS)]["n_used"].eq(0).all()


@pytest.mark.parametrize("n_tokens", [100, 200, 250, 300, 400])
def test_the_leaderboard_of_a_budget_has_the_systems_that_have_it(sweep: pd.DataFrame, n_tokens: int) -> None:
    board = leaderboard(sweep[sweep["n_tokens"] == n_tokens], "system", n_boot=50).set_index("system")
    there = [name for name, of in BUDGETS.items() if n_tokens in of]
    assert sorted(board.index) == there
    means = {}
    for name in there:
        rows = [r for r in rows_of(sweep) if r["system"] == name and r["n_tokens"] == n_tokens]
        scores = [r["ir_score"] for r in rows if r["qid"] != WITHOUT_EVIDENCE]
        counted = [r["label"] for r in rows if r["qid"] != UNANSWERABLE]
        assert len(counted) == N_TOPICS - 1
        row = board.loc[name]
        means[name] = float(np.mean(scores))
        mean = bounded_mean(np.array(scores))
        assert (row["ir_score"], row["ir_score_lo"], row["ir_score_hi"]) == pytest.approx(
            (means[name], mean.lo, mean.hi)
        )
        missing = counted.count(0)
        for one in (1, 2, 3, 4, 5):
            assert row[f"judge_share_{one}"] == counted.count(one) / 22
        assert row["judge_share_missing"] == missing / 22
        assert row["judge_share_3"] == 0
        assert row["judge_share_3_hi"] == pytest.approx(bounded_mean(np.zeros(22)).hi)
        assert (row["n_topics"], row["n_classed"]) == (23, 22)
    assert list(board.index) == sorted(there, key=lambda name: -means[name])


@pytest.mark.parametrize("side", ["h", "k"])
def test_no_threshold_disagrees_less_with_the_classes(sweep: pd.DataFrame, side: str) -> None:
    rows = fit_rows(sweep)
    found = fit_thresholds(rows, n_boot=0, n_splits=0)
    threshold = getattr(found, side)
    known = [r for r in rows_of(rows) if r["label"]]
    assert threshold.n == len(known)
    assert found.n_missing == len(rows) - len(known)
    assert found.n_topics == N_TOPICS - 2  # without the one without evidence, and the unanswerable one

    def disagreements(at: float) -> int:
        if side == "h":
            return sum((r["ir_score"] < at) != (r["label"] == 1) for r in known)
        return sum((r["ir_score"] > at) != (r["label"] == 5) for r in known)

    least = min(disagreements(at) for at in np.arange(-0.125, 1.2, 0.125))
    assert threshold.disagreements == disagreements(threshold.value) == least
    assert threshold.accuracy == 1 - least / len(known)
    # The constant answer that is better for each system at each budget.
    guessed = 0
    for job in {r["job"] for r in known}:
        of_target = [r["label"] == (1 if side == "h" else 5) for r in known if r["job"] == job]
        guessed += max(sum(of_target), len(of_target) - sum(of_target))
    assert threshold.base_rate == pytest.approx(guessed / len(known))


def test_thresholds_are_resampled_by_topic_and_not_by_row(sweep: pd.DataFrame) -> None:
    """Each row twice says nothing new: neither does it move an interval."""
    rows = fit_rows(sweep)
    once, twice = (fit_thresholds(f, n_boot=200, seed=2) for f in (rows, pd.concat([rows, rows])))
    for side in ("h", "k"):
        one, other = getattr(once, side), getattr(twice, side)
        assert (one.value, one.lo, one.hi) == (other.value, other.lo, other.hi)
        assert (one.set_min, one.set_max) == (other.set_min, other.set_max)
        assert one.gain.value == pytest.approx(other.gain.value)
        assert (one.gain.lo, one.gain.hi) == pytest.approx((other.gain.lo, other.gain.hi))


def test_zones_are_shares_of_all_rows(sweep: pd.DataFrame) -> None:
    rows = fit_rows(sweep)
    table = share_by_zone(rows, 0.25, 0.5, n_boot=100, seed=1).set_index("zone")
    scores = rows["ir_score"].to_numpy()
    # A score on a threshold is between.
    assert table["share"].to_dict() == pytest.approx(
        {"above_k": (scores > 0.5).mean(), "between": ((scores == 0.25) | (scores == 0.5)).mean(),
         "below_h": (scores == 0).mean(), "missing": 0}
    )  # fmt: skip
    right = rows["label"].eq(5).fillna(False).to_numpy(dtype=float)
    gap = bootstrap_mean((scores > 0.5) - right, rows["qid"], 100, 1)
    assert table.loc["above_k", ["difference", "lo", "hi"]].tolist() == pytest.approx([gap.value, gap.lo, gap.hi])


def test_pairs_are_compared_on_the_topics_that_both_have(sweep: pd.DataFrame) -> None:
    at = sweep[(sweep["n_tokens"] == 200) & ~((sweep["system"] == "sim") & (sweep["qid"] == "q2"))]
    table = compare_pairs(at, "system").set_index(["measure", "a", "b"])
    for a, b in itertools.combinations(["bm25", "mmr", "sim"], 2):
        one, other = (at[at["system"] == name].set_index("qid") for name in (a, b))
        both = one.index.intersection(other.index)
        scored = both.drop(WITHOUT_EVIDENCE)
        difference = (one["ir_score"][scored] - other["ir_score"][scored]).to_numpy()
        row = table.loc[("ir_score", a, b)]
        assert (row["difference"], row["n"]) == (pytest.approx(difference.mean()), len(scored))
        classed = both.drop(UNANSWERABLE)
        right = [frame["label"][classed].eq(5).fillna(False) for frame in (one, other)]
        won, lost = (right[0] & ~right[1]).sum(), (right[1] & ~right[0]).sum()
        row = table.loc[("correct", a, b)]
        assert (row["difference"], row["n"]) == (pytest.approx((won - lost) / len(classed)), len(classed))
        assert row["p"] == pytest.approx(binomtest(won, won + lost).pvalue if won + lost else 1.0)


def test_a_class_that_no_answer_has_is_never_predicted(sweep: pd.DataFrame) -> None:
    rows = fit_rows(sweep)
    predicted = fit_predictor(rows, ("ir_score", "n_used")).predict_proba(rows)
    known = rows["label"].notna().to_numpy()
    x = rows[["ir_score", "n_used"]].to_numpy(dtype=float)
    scaler = StandardScaler().fit(x[known])
    model = LogisticRegression(C=1.0, max_iter=2000, tol=1e-10)
    model.fit(scaler.transform(x[known]), rows["label"][known].astype(int))
    assert list(model.classes_) == [1, 2, 4, 5]
    values = np.asarray(predicted)
    assert values.shape == (len(rows), 5)
    assert (values[:, NEVER - 1] == 0).all()
    assert values[:, [0, 1, 3, 4]] == pytest.approx(model.predict_proba(scaler.transform(x)), abs=1e-4)
