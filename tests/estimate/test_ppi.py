from __future__ import annotations

import math
import warnings
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from ragauge.contract.errors import DataError
from ragauge.estimate import (
    bootstrap_mean,
    choose_topics,
    class_shares,
    cross_fit,
    fit_predictor,
    ppi_shares,
)
from ragauge.estimate.powered import Powered, _lambdas, _Stratum, powered_means
from ragauge.estimate.ppi import SHARES, share_limits

PROBABILITIES = [f"p{c}" for c in range(1, 6)]


def class_probabilities(scores):
    """P(1..5) of a score: lack where it is low, right where it is high, class 3 rare."""
    weights = np.exp(
        np.column_stack([2 - 6 * scores, -0.5 + 0 * scores, -2.5 + 0 * scores, 0.8 - scores, -1 + 4 * scores])
    )
    return weights / weights.sum(axis=1, keepdims=True)


def population(n_topics, seed):
    """Scores, true probabilities and classes of topics drawn anew."""
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random(n_topics) < 0.2, 0.0, rng.beta(0.8, 0.8, n_topics))
    p = class_probabilities(scores)
    return scores, p, (rng.random(n_topics)[:, None] > p.cumsum(axis=1)).sum(axis=1) + 1


@cache
def names(n_topics):
    return pd.Series([f"q{i:05d}" for i in range(n_topics)])


@cache
def true_shares():
    """Of a population so large that nothing is left to chance."""
    return class_probabilities(population(2_000_000, 99)[0]).mean(axis=0)


def few_judged(n_topics=1000, n=200, seed=0, design="uniform"):
    scores, p, classes = population(n_topics, seed)
    frame = pd.DataFrame({"qid": names(n_topics), "ir_score": scores, "label": pd.array(classes, dtype="Int8")})
    frame[PROBABILITIES] = 0.8 * p + 0.04  # a predictor is never quite right
    chosen = choose_topics(frame.set_index("qid")["p5"], n, seed=seed, design=design)
    assert chosen["qid"].equals(frame["qid"])
    frame[["stratum", "judged"]] = chosen[["stratum", "judged"]]
    frame.loc[~frame["judged"], "label"] = pd.NA
    return frame


def test_one_stratum_is_what_ppi_python_says():
    with warnings.catch_warnings():  # ppi_py silences all warnings of the process when it is imported
        from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    frame = few_judged()
    judged = frame["judged"].to_numpy()
    for c, lam in ((1, 0.3), (4, 1.0), (5, 0.8)):
        y = (frame.loc[judged, "label"] == c).to_numpy(dtype=float)
        f, others = (frame.loc[rows, f"p{c}"].to_numpy() for rows in (judged, ~judged))
        stratum = _Stratum(1.0, y[:, None], f[:, None], others[:, None])
        (mean,), (variance,) = stratum.mean(np.full((len(y), 1), lam))
        assert mean == pytest.approx(ppi_mean_pointestimate(y, f, others, lam=lam)[0], abs=1e-9)
        lo, hi = (limit[0] for limit in ppi_mean_ci(y, f, others, alpha=0.05, lam=lam))
        assert 2 * 1.959964 * math.sqrt(variance) == pytest.approx(hi - lo, rel=0.005)  # n - 1 in place of n
    table = ppi_shares(frame).set_index("share")
    assert table.loc["judge_share_5", "classical"] == (frame.loc[judged, "label"] == 5).mean()


def test_lambda_of_a_topic_is_tuned_by_the_others():
    rng = np.random.default_rng(3)
    judged = np.arange(30) < 12
    stratum = np.arange(30) % 2
    y, f = rng.random((30, 3)), rng.random((30, 3))
    y = 0.6 * f + 0.4 * y
    parts = [
        _Stratum(0.5, y[judged & (stratum == s)], f[judged & (stratum == s)], f[~judged & (stratum == s)])
        for s in (0, 1)
    ]
    for together in (0, 2):
        lams = _lambdas(parts, together)
        for s, part in enumerate(parts):
            for i in range(len(part.y)):
                gain = cost = 0
                for number, other in enumerate(parts):
                    keep = np.arange(len(other.y)) != i if number == s else np.ones(len(other.y), bool)
                    ys, fs = other.y[keep], other.f[keep]
                    n = len(ys)
                    covariance = [np.cov(ys[:, c], fs[:, c])[0, 1] for c in range(3)]
                    gain = gain + 0.25 * np.array(covariance) / n
                    cost = cost + 0.25 * fs.var(axis=0, ddof=1) * (1 / n + 1 / len(other.others))
                expected = np.full(3, gain[:2].sum() / cost[:2].sum()) if together else gain / cost
                assert lams[s][i] == pytest.approx(np.clip(expected, 0, 1))


def test_the_classes_and_missing_verdicts_add_up_to_1():
    """On few judged topics each class had a lambda of its own, and the sum was 0.91 to 1.11."""
    for seed in range(6):
        frame = few_judged(n_topics=200, n=12, seed=seed)
        frame.loc[np.flatnonzero(frame["judged"])[:2], "label"] = pd.NA
        table = ppi_shares(frame).set_index("share")
        classes = [f"judge_share_{c}" for c in range(1, 6)]
        assert table.loc[[*classes, "judge_share_missing"], "estimate"].sum() == pytest.approx(1)
        estimates = table["estimate"]
        assert estimates["correct_share"] == estimates["judge_share_5"]
        assert estimates["hallucination_share"] == pytest.approx(
            estimates["judge_share_2"] + estimates["judge_share_4"]
        )
        assert (table["lo"] <= estimates + 1e-12).all()
        assert (estimates <= table["hi"] + 1e-12).all()


def test_shares_are_named_as_everywhere():
    frame = few_judged()
    assert set(SHARES) == set(class_shares(frame))
    table = ppi_shares(frame).set_index("share")
    assert table.index.tolist() == list(SHARES)
    assert table.loc["correct_share"].equals(table.loc["judge_share_5"])
    assert table.loc["hallucination_share", "classical"] == pytest.approx(
        table.loc[["judge_share_2", "judge_share_4"], "classical"].sum()
    )
    assert (table["lo"] <= table["estimate"]).all()
    assert (table["estimate"] <= table["hi"]).all()
    assert (table["n_judged"] == 200).all()
    assert (table["n_topics"] == 1000).all()


def test_a_predictor_that_knows_is_worth_many_judgements():
    table = ppi_shares(few_judged(n_topics=4000)).set_index("share")
    row = table.loc["correct_share"]
    assert row["effective_n"] > 280
    assert row["hi"] - row["lo"] < 0.85 * (row["classical_hi"] - row["classical_lo"])
    # nothing to gain where the predictor says the same of all
    blind = few_judged(n_topics=4000)
    blind[PROBABILITIES] = 0.2
    row = ppi_shares(blind).set_index("share").loc["correct_share"]
    assert (row["lam"], row["estimate"]) == (0, row["classical"])
    assert row["effective_n"] == pytest.approx(200)


def test_all_judged_is_the_classical_estimate():
    frame = few_judged(n_topics=300, n=300)
    assert frame["judged"].all()
    table = ppi_shares(frame).set_index("share")
    shares = class_shares(frame)
    for name, row in table.iterrows():
        assert row["estimate"] == row["classical"] == pytest.approx(shares[str(name)])
    boot = bootstrap_mean((frame["label"] == 5).to_numpy(dtype=float))
    row = table.loc["correct_share"]
    assert (row["lo"], row["hi"]) == pytest.approx((boot.lo, boot.hi), abs=0.012)


def test_a_class_nobody_saw_has_the_exact_upper_limit():
    frame = few_judged()
    frame.loc[frame["label"] == 3, "label"] = 4
    frame["p3"] = 0.0
    row = ppi_shares(frame).set_index("share").loc["judge_share_3"]
    assert (row["estimate"], row["lo"]) == (0, 0)
    # Clopper-Pearson for 0 of 200
    assert row["hi"] == pytest.approx(1 - 0.025 ** (1 / 200))


def test_a_missing_verdict_is_its_own_share_and_stays_below_the_line():
    frame = few_judged()
    judged = np.flatnonzero(frame["judged"])
    frame.loc[judged[:20], "label"] = pd.NA
    table = ppi_shares(frame).set_index("share")
    assert table.loc["judge_share_missing", "classical"] == 0.1
    classes = [f"judge_share_{c}" for c in range(1, 6)]
    assert table.loc[[*classes, "judge_share_missing"], "classical"].sum() == pytest.approx(1)


def test_rows_of_a_topic_are_one_observation():
    frame = few_judged()
    both = pd.concat([frame.assign(retriever="a"), frame.assign(retriever="b")])
    pd.testing.assert_frame_equal(ppi_shares(both), ppi_shares(frame))


def test_strata_by_hand():
    """Two strata of 6 and 2 topics, all predictions alike: weighted means and their variance."""
    frame = pd.DataFrame(
        {
            "qid": list("abcdefgh"),
            "stratum": [0, 0, 0, 0, 0, 0, 1, 1],
            "judged": [True, True, True, False, False, False, True, True],
            "label": pd.array([5, 4, 4, None, None, None, 5, 4], dtype="Int8"),
        }
    )
    frame[PROBABILITIES] = 0.2
    row = ppi_shares(frame).set_index("share").loc["correct_share"]
    estimate = 0.75 / 3 + 0.25 / 2
    assert row["estimate"] == pytest.approx(estimate)
    within = 0.75**2 * (1 / 3) / 3 + 0.25**2 * 0.5 / 2
    between = (0.75 * (1 / 3 - estimate) ** 2 + 0.25 * (1 / 2 - estimate) ** 2) / 8
    reach = 3.182446 * math.sqrt(within + between) / (estimate * (1 - estimate))  # t, df = 2 + 1
    logit = math.log(estimate / (1 - estimate))
    assert row["lo"] == pytest.approx(1 / (1 + math.exp(-(logit - reach))))
    assert row["hi"] == pytest.approx(1 / (1 + math.exp(-(logit + reach))))


def test_a_share_without_variance_has_the_exact_limits_of_its_draws():
    none, half = np.full(2, np.nan), np.full(2, 0.5)
    found = Powered(half, none, none, half, np.full(2, 0.01), none, 10, 9, alike=none)
    lo, hi = share_limits(half, np.array([0.0, 0.01]), found, 0.95)
    assert (lo[0], hi[0]) == pytest.approx((beta.ppf(0.025, 5, 6), beta.ppf(0.975, 6, 5)))
    assert lo[0] < lo[1] < 0.5 < hi[1] < hi[0]


def test_about_these_topics_the_variance_is_that_of_drawing_among_them():
    values = np.array([1, 1, 0, 1, 0, 0, 1, 0, 1, 1], dtype=float)[:, None]
    predicted = np.array([0.9, 0.8, 0.3, 0.6, 0.2, 0.4, 0.7, 0.5, 0.9, 0.4])[:, None]
    drawn = [np.isin(np.arange(10), chosen) for chosen in combinations(range(10), 5)]
    found = [powered_means(values, predicted, judged, np.zeros(10), fixed=True) for judged in drawn]
    for name, near in (("classical", 1e-12), ("estimate", 0.02)):
        means = np.array([getattr(one, name)[0] for one in found])
        variance = {"classical": "classical_variance", "estimate": "variance"}[name]
        assert means.mean() == pytest.approx(0.6, abs=1e-3)
        assert np.mean([getattr(one, variance)[0] for one in found]) == pytest.approx(means.var(), rel=near)
    of_clusters = powered_means(values, predicted, drawn[0], np.zeros(10), 0, np.arange(10) // 2, fixed=True)
    assert of_clusters.variance == found[0].variance


def test_shares_say_what_they_are_about_by_their_column():
    frame = few_judged(400, 200)
    wide, narrow = (ppi_shares(frame.assign(sample_target=of)) for of in ("population", "topics"))
    pd.testing.assert_frame_equal(wide, ppi_shares(frame))
    pd.testing.assert_series_equal(wide["estimate"], narrow["estimate"])
    assert ((narrow["hi"] - narrow["lo"]) < 0.85 * (wide["hi"] - wide["lo"]))[[0, 4]].all()
    assert narrow["effective_n"].between(0.8 * wide["effective_n"], 1.25 * wide["effective_n"]).iloc[[0, 4]].all()
    mixed = frame.assign(sample_target=["topics"] * 399 + [None])
    pd.testing.assert_frame_equal(ppi_shares(mixed), wide)


def test_what_cannot_be_estimated():
    frame = few_judged(n_topics=20, n=10)
    with pytest.raises(DataError, match="1 of 20 topics are judged"):
        ppi_shares(frame.assign(judged=[True] + [False] * 19))
    both = pd.concat([frame, frame.assign(judged=~frame["judged"])])
    with pytest.raises(DataError, match="column judged differs between rows of qid="):
        ppi_shares(both)
    with pytest.raises(DataError, match="p5 missing"):
        ppi_shares(frame.drop(columns="p5"))


def test_cross_fitting_predicts_no_topic_from_itself():
    frame = few_judged(n_topics=120, n=60).drop(columns=PROBABILITIES)
    fitted = cross_fit(frame, seed=1)
    assert fitted[PROBABILITIES].sum(axis=1).to_numpy() == pytest.approx(1)
    # changing a judged topic's own label leaves its own prediction as it is
    one = int(np.flatnonzero(frame["judged"])[0])
    changed = frame.copy()
    changed.loc[one, "label"] = 2
    again = cross_fit(changed, seed=1)
    assert (again.loc[one, PROBABILITIES] == fitted.loc[one, PROBABILITIES]).all()
    other = int(np.flatnonzero(~frame["judged"])[0])
    assert (again.loc[other, PROBABILITIES] != fitted.loc[other, PROBABILITIES]).any()


def test_a_topic_that_is_not_judged_is_predicted_by_the_mean_of_the_models_of_all_folds():
    rng = np.random.default_rng(5)
    scores = np.tile([0.2, 0.5, 0.8], 30)
    labels = np.where(rng.random(90) < scores, 5, 1)
    frame = pd.DataFrame(
        {
            "qid": [f"q{i}" for i in range(90)],
            "ir_score": scores,
            "label": pd.array(labels, dtype="Int8"),
            "judged": [True] * 87 + [False] * 3,
        }
    )
    p5 = cross_fit(frame, n_splits=5)["p5"]
    for score in (0.2, 0.5, 0.8):
        of_models = p5[frame["judged"] & (scores == score)].drop_duplicates()  # a model per fold
        assert len(of_models) == 5
        assert p5[~frame["judged"] & (scores == score)].tolist() == pytest.approx([of_models.mean()])


def test_cross_fitting_takes_labels_of_judged_topics_only():
    frame = few_judged(n_topics=120, n=60).drop(columns=PROBABILITIES)
    leaking = frame.copy()
    leaking.loc[~frame["judged"], "label"] = 2
    pd.testing.assert_frame_equal(cross_fit(leaking)[PROBABILITIES], cross_fit(frame)[PROBABILITIES])
    with pytest.raises(DataError, match="1 judged topics"):
        cross_fit(frame.assign(judged=[i == int(np.flatnonzero(frame["judged"])[0]) for i in range(120)]))


def test_human_shares_from_a_judge():
    """A judge's verdicts as predictions, people's labels for a few: an imperfect judge is corrected."""
    rng = np.random.default_rng(0)
    human = rng.choice([1, 4, 5], 2000, p=[0.2, 0.3, 0.5])
    judge = np.where(rng.random(2000) < 0.15, 5, human)  # too kind
    frame = pd.DataFrame({"qid": np.arange(2000).astype(str), "judged": np.arange(2000) < 200})
    frame["label"] = pd.array(human, dtype="Int8")
    frame.loc[~frame["judged"], "label"] = pd.NA
    frame[PROBABILITIES] = judge[:, None] == np.arange(1, 6)
    row = ppi_shares(frame.assign(**frame[PROBABILITIES].astype(float))).set_index("share").loc["correct_share"]
    assert (judge == 5).mean() > 0.55
    assert row["lo"] < 0.5 < row["hi"]
    assert row["effective_n"] > 400


def covered(design, trials, fit):
    """Share of trials whose interval holds the truth, by class and for the classical one of class 5."""
    truth = true_shares()
    inside = []
    for trial in range(trials):
        frame = few_judged(7404, 200, trial, design)
        table = ppi_shares(cross_fit(frame, seed=trial) if fit else frame)
        inside.append(((table["lo"][:5] <= truth) & (truth <= table["hi"][:5])).to_numpy())
    return np.mean(inside, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "trials", "fit"), [("uniform", 120, False), ("neyman", 120, False), ("neyman", 60, True)]
)
def test_intervals_cover_as_they_say(design, trials, fit):
    """200 of 7,404 topics judged: shares of 0.30, 0.08, 0.01, 0.21 and 0.41."""
    coverage = covered(design, trials, fit)
    assert 0.93 <= coverage.mean() <= 0.97
    # the noise of so many trials has a standard error of 0.020 (120) or 0.028 (60)
    assert coverage.min() >= 0.9


def test_a_fitted_predictor_feeds_the_design():
    frame = few_judged()
    p5 = fit_predictor(frame).predict_proba(frame)[:, 4]
    chosen = choose_topics(pd.Series(p5, index=frame["qid"]), n=100)
    assert chosen["judged"].sum() == 100


def test_an_earlier_class_that_is_never_wrong_predicts_the_class():
    frame = few_judged(n_topics=300, n=100)
    earlier = population(300, 0)[2]
    found = cross_fit(frame.assign(earlier_label=pd.array(earlier, dtype="Int8")))
    right = (earlier == 5).astype(float)
    alone = cross_fit(frame)
    assert np.abs(found["p5"] - right).mean() < 0.4 * np.abs(alone["p5"] - right).mean()
    assert ppi_shares(found).set_index("share").loc["correct_share", "effective_n"] > 180


def test_a_row_without_a_score_is_predicted_by_its_earlier_class_alone():
    frame = few_judged(n_topics=300, n=100)
    earlier = pd.Series(population(300, 0)[2], dtype="Int8")
    frame["earlier_label"] = earlier.where(earlier.index % 7 > 0)
    frame.loc[frame.index % 3 == 0, "ir_score"] = np.nan
    found = cross_fit(frame)
    lacking = found[frame["ir_score"].isna() & ~frame["judged"]]
    of_class = lacking.groupby(lacking["earlier_label"].fillna(0).astype(int))["p5"]
    assert (of_class.nunique() == 1).all()
    assert of_class.first()[5] > 0.7 > 0.3 > of_class.first()[1]
    assert np.allclose(found[PROBABILITIES].sum(axis=1), 1)


def test_an_earlier_class_that_is_missing_throughout_changes_no_number():
    frame = few_judged(n_topics=200, n=60)
    found = cross_fit(frame.assign(earlier_label=pd.array([pd.NA] * 200, dtype="Int8")))
    assert np.allclose(found[PROBABILITIES], cross_fit(frame)[PROBABILITIES], atol=1e-6)


def test_labels_that_all_agree_have_the_exact_interval_whatever_their_weights_sum_to():
    """Weighted sums of ones come to .9999999999999999 and 1.0000000000000002, in strata and by probabilities."""
    rng = np.random.default_rng(7)
    for trial in range(40):
        n, k = [(28, 10), (60, 20), (200, 50)][trial % 3]
        judged = np.isin(np.arange(n), rng.choice(n, k, replace=False))
        frame = pd.DataFrame(
            {"qid": names(n), "label": pd.array(np.where(judged, 5, None), dtype="Int8"), "judged": judged}
        )
        frame[PROBABILITIES] = rng.dirichlet(np.ones(5), n)
        stratum = np.where(judged, rng.permutation(n) % 3, np.arange(n) % 3)
        stratum[np.flatnonzero(judged)[:6]] = [0, 0, 1, 1, 2, 2]
        for column, values in (("stratum", stratum), ("probability", rng.uniform(0.1, 0.6, n))):
            table = ppi_shares(frame.assign(**{column: values})).set_index("share")
            right, wrong = table.loc["correct_share"], table.loc["judge_share_4"]
            assert (right["classical"], right["classical_hi"], right["hi"]) == (1, 1, 1)
            assert (wrong["classical"], wrong["classical_lo"], wrong["lo"]) == (0, 0, 0)
            assert 1 <= right["effective_n"] <= k
            assert right["classical_lo"] == pytest.approx(beta.ppf(0.025, right["effective_n"], 1))
            assert right["lo"] <= right["classical_lo"] + 1e-12
            assert table.iloc[:6]["estimate"].sum() == pytest.approx(1)
            assert table[["estimate", "lo", "hi"]].stack().between(0, 1).all()
