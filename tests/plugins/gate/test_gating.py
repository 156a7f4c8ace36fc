"""The tests against a baseline: by hand, by brute force, and what they refuse."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate.plan import topics_for_mean
from ragauge.plugins.gate.gating import (
    Paired,
    check_tolerance,
    comparable_metrics,
    decide,
    less_than_exchangeable,
    paired_difference,
    paired_test,
    tango,
    topics_to_decide,
)
from ragauge.plugins.gate.lower_bounds import skewed_mean

F1 = AnswerMeasureInfo("f1", "token F1", unit="share")
SECONDS = AnswerMeasureInfo("seconds", "seconds", direction="lower")


def frame(new: dict[str, list], base: dict[str, list]) -> pd.DataFrame:
    """Outcomes of the runs `new` and `base`; columns that are not given are the same in both."""
    rows = []
    for run_id, given in (("new", new), ("base", base)):
        n = len(next(iter(given.values())))
        columns = {"qid": [f"q{i}" for i in range(n)], "ir_score": [0.5] * n, "label": [5] * n} | given
        rows.append(pd.DataFrame(columns).assign(run_id=run_id))
    return pd.concat(rows, ignore_index=True).astype({"label": "Int8", "ir_score": float})


# --- yes or no ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("won", "lost", "n", "shift"),
    [(4, 11, 100, -0.05), (0, 0, 80, -0.05), (12, 2, 50, -0.1), (0, 3, 40, -0.02), (3, 0, 40, 0.05)],
)
def test_tangos_statistic_has_the_variance_of_the_likeliest_shares(won, lost, n, shift) -> None:
    def unlikely(share: float) -> float:
        shares = np.array([share + shift, share, 1 - 2 * share - shift])
        counts = np.array([won, lost, n - won - lost])
        return -float(counts[counts > 0] @ np.log(np.maximum(shares[counts > 0], 1e-300)))

    ends = (max(0.0, -shift), (1 - shift) / 2)
    share = optimize.minimize_scalar(unlikely, bounds=ends, method="bounded", options={"xatol": 1e-12}).x
    expected = (won - lost - n * shift) / np.sqrt(n * (2 * share + shift - shift**2))
    assert tango(won, lost, n, shift)[0] == pytest.approx(expected, abs=1e-6)


def test_without_a_shift_tangos_statistic_is_mcnemars() -> None:
    assert tango(3, 12, 60, 0.0)[0] == pytest.approx((3 - 12) / np.sqrt(15))


def test_shares_by_hand() -> None:
    # 80 topics and no difference: z = sqrt(n t / (1 - t)) at the tolerance t.
    same = paired_test(np.ones(80), np.ones(80), 0.05)
    assert same.p_pass == pytest.approx(stats.norm.sf(np.sqrt(80 * 0.05 / 0.95)))
    z2 = stats.norm.isf(0.05) ** 2
    assert same.lo == pytest.approx(-z2 / (80 + z2), abs=1e-6)
    assert (same.difference, same.hi) == (0, pytest.approx(-same.lo))
    assert decide([same]) == ["pass"]
    # Five lost and none won: one of 32 by McNemar's exact test, whatever the score test says.
    worse = paired_test(np.zeros(5), np.ones(5), 0.0)
    assert worse.p_regressed == 1 / 32
    assert (worse.difference, worse.lo) == (-1, -1)
    assert decide([worse]) == ["regressed"]
    assert decide([worse, worse]) == ["inconclusive"] * 2  # Holm: 2/32
    # Of hallucinations more is worse.
    more = paired_test(np.ones(5), np.zeros(5), 0.0, higher=False)
    assert (more.difference, more.p_regressed, more.hi) == (1, 1 / 32, 1)


# --- scores -------------------------------------------------------------------------------------------------


def test_scores_by_hand() -> None:
    d = np.array([-0.1, -0.3, 0.2, -0.2, -0.1, 0.1, -0.3, -0.2, -0.1, -0.4, -0.2, 0.1])
    found = paired_test(0.5 + d, np.full(12, 0.5), 0.02)
    assert stats.skew(d) > 0  # a longer tail of gains: one side is the t test, the other is corrected
    lower, plain = (stats.ttest_1samp(d, -0.02, alternative=side).pvalue for side in ("greater", "less"))
    corrected = skewed_mean(-d, 0.02, 0.05)
    assert corrected.p > plain
    exact = stats.permutation_test(
        (d, np.zeros(12)), lambda a, b, axis: (a - b).mean(axis), permutation_type="samples", vectorized=True,
        alternative="less", n_resamples=np.inf,
    ).pvalue  # fmt: skip
    assert found.p_pass == pytest.approx(lower)
    assert found.p_regressed == pytest.approx(max(corrected.p, exact))
    low, _ = stats.t.interval(0.9, 11, d.mean(), stats.sem(d))
    assert (found.lo, found.hi) == pytest.approx((low, -corrected.limit))
    less = paired_test(0.5 - d, np.full(12, 0.5), 0.02, higher=False)
    assert (less.p_pass, less.p_regressed) == pytest.approx((found.p_pass, found.p_regressed))
    assert (less.difference, less.lo, less.hi) == pytest.approx((-found.difference, -found.hi, -found.lo))


def test_few_topics_that_differ_do_not_pass_for_certain() -> None:
    same = np.full(80, 0.4)
    found = paired_test(same, same, 0.02)
    # How often none of 80 topics loses where 2 % do.
    assert found.p_pass == pytest.approx(0.98**80, abs=1e-7)
    assert found.lo == pytest.approx(0.05 ** (1 / 80) - 1, abs=1e-7)
    assert decide([found]) == ["inconclusive"]
    assert decide([paired_test(same, same, 0.05)]) == ["pass"]
    # A measure without bounds, of which all values are equal: nothing can differ.
    assert decide([paired_test(same, same, 0.0001, reach=0.0)]) == ["pass"]


def test_the_sign_flip_test_is_that_of_every_sign() -> None:
    d = np.array([-0.3, 0.1, 0.0, -0.2, -0.4])
    sums = [np.dot(signs, d[d != 0]) for signs in product((1, -1), repeat=4)]
    assert less_than_exchangeable(d) == np.mean(np.array(sums) <= d.sum() + 1e-12)
    assert less_than_exchangeable(np.zeros(4)) == 1
    many = np.r_[np.full(40, -0.1), np.full(10, 0.1)]
    assert less_than_exchangeable(many) < 0.001
    assert less_than_exchangeable(-many) > 0.99


def test_holm_counts_all_comparisons_of_a_gate_and_a_pass_needs_no_correction() -> None:
    def of(p_pass: float, p_regressed: float) -> Paired:
        return Paired(0, 0, 0, p_pass, p_regressed, 10, 0, 0, 0)

    found = [of(0.9, 0.01), of(0.9, 0.02), of(0.04, 0.9), of(0.06, 0.9)]
    assert decide(found) == ["regressed", "inconclusive", "pass", "inconclusive"]  # 4 x 0.01, 3 x 0.02
    assert decide([]) == []


def test_topics_of_a_second_look_are_planned_at_a_fifth_of_alpha() -> None:
    rng = np.random.default_rng(0)
    d = rng.normal(-0.06, 0.2, 50)
    found = paired_test(0.5 + d, np.full(50, 0.5), 0.05)
    assert decide([found]) == ["inconclusive"]
    spread, margin = d.std(ddof=1), d.mean() + 0.05
    each = 0.01 if margin > 0 else 0.01 / 3
    assert topics_to_decide(found, 3) == max(topics_for_mean(spread, abs(margin), 0.8, 2 * each), 51)
    same = paired_test(np.ones(20), np.ones(20), 0.0)
    assert topics_to_decide(same) == np.inf  # a tolerance of 0 asks for proof of being better


# --- from outcomes ------------------------------------------------------------------------------------------


def test_every_metric_is_read_from_the_outcomes_with_its_better_end() -> None:
    new = {"label": [1, 2, 3, 4, 5, 5, 1, None], "f1": [0.2] * 8, "seconds": [2.0] * 8}
    base = {"label": [5, 5, 5, 5, 5, 5, 1, 5], "f1": [0.4] * 8, "seconds": [1.0] * 8}
    rows = frame(new, base)
    wanted = {
        "ir_score": 0, "correct_share": -5 / 8, "hallucination_share": 2 / 7, "judge_share_1": 1 / 7,
        "judge_share_2": 1 / 7, "judge_share_3": 1 / 7, "judge_share_4": 1 / 7, "judge_share_5": -5 / 8,
        "judge_share_missing": 1 / 8, "f1": -0.2, "seconds": 1.0,
    }  # fmt: skip
    # Without a verdict an answer is not right, and unknown to be in another class.
    of_both = {"hallucination_share", *(f"judge_share_{c}" for c in range(1, 5))}
    answers = [F1, SECONDS]
    for metric, difference in wanted.items():
        found = paired_difference(rows, "new", "base", metric, 0.0, answers=answers)
        assert found.difference == pytest.approx(difference), metric
        assert found.margin <= 0, metric
        assert found.n == (7 if metric in of_both else 8), metric
    assert set(wanted) | {"rejection_share"} == set(comparable_metrics(answers))
    verdicts = paired_difference(rows, "new", "base", "correct_share", 0.0)
    assert verdicts.missing == 1 / 8


def test_a_sample_of_judged_topics_is_compared_by_the_prediction_powered_difference() -> None:
    rng = np.random.default_rng(1)
    n = 200
    judged = np.arange(n) < 80
    p = {f"p{c}": np.full(n, 0.1) for c in range(1, 5)} | {"p5": np.full(n, 0.6)}
    parts = [
        pd.DataFrame(
            {
                "qid": np.arange(n), "run_id": run_id, "ir_score": 0.5, "judged": judged, "stratum": 0,
                "label": pd.array(np.where(judged, np.where(rng.random(n) < rate, 5, 4), 0), dtype="Int8"),
                **p,
            }
        )
        for run_id, rate in (("new", 0.3), ("base", 0.8))
    ]  # fmt: skip
    rows = pd.concat(parts, ignore_index=True)
    rows.loc[~rows["judged"], "label"] = pd.NA
    found = paired_difference(rows, "new", "base", "correct_share", 0.05)
    own = rows[rows["judged"]].pivot(index="qid", columns="run_id", values="label").eq(5).astype(float)
    # Predictions that say nothing leave the mean over the judged topics.
    assert found.difference == pytest.approx((own["new"] - own["base"]).mean())
    assert (found.n, found.missing) == (80, 0)
    assert decide([found]) == ["regressed"]
    fewer = paired_difference(rows, "new", "base", "hallucination_share", 0.05)
    assert fewer.difference > 0.3
    assert decide([fewer]) == ["regressed"]


@pytest.mark.parametrize(
    ("metric", "tolerance", "message"),
    [
        ("ir_score", -0.1, "tolerance=-0.1: allowed are numbers from 0 to below 1"),
        ("ir_score", 2, "tolerance=2: allowed are numbers from 0 to below 1"),
        ("ir_score", "0.1", "tolerance='0.1': allowed are"),
        ("ir_score", float("nan"), "tolerance=nan: allowed are"),
        ("seconds", -1, "tolerance=-1: allowed are numbers from 0"),
        ("cost_usd", 0.1, "cost_usd has no value for every topic"),
    ],
)
def test_tolerances_that_cannot_be_tested_are_refused(metric, tolerance, message) -> None:
    with pytest.raises(ConfigError) as caught:
        check_tolerance(metric, tolerance, [F1, SECONDS])
    assert message in str(caught.value)
    check_tolerance("seconds", 5, [SECONDS])


def test_frames_that_cannot_be_compared_are_refused() -> None:
    rows = frame({"ir_score": [0.1, 0.2]}, {"ir_score": [0.1, 0.2]})
    with pytest.raises(ConfigError, match=r"alpha=1\.2"):
        paired_difference(rows, "new", "base", "ir_score", 0.1, alpha=1.2)
    with pytest.raises(DataError, match=r"0 topic.s. with a value in both runs; a comparison takes 2"):
        paired_difference(rows, "new", "other", "ir_score", 0.1)
    with pytest.raises(DataError, match="infinite"):
        paired_difference(rows.assign(seconds=np.inf), "new", "base", "seconds", 0.1, answers=[SECONDS])
    with pytest.raises(DataError, match=r"not a number in \[0, 1\]"):
        paired_difference(rows.assign(ir_score=7.0), "new", "base", "ir_score", 0.1)
    with pytest.raises(DataError, match="comparison takes 2"):
        paired_difference(rows.assign(label=pd.NA).astype({"label": "Int8"}), "new", "base", "correct_share", 0.1)
