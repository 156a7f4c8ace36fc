from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.contract.errors import DataError
from ragauge.estimate import cross_validate, fit_predictor, reliability_curve
from ragauge.estimate._scoring import CalibrationLine

PROBABILITIES = ["p1", "p2", "p3", "p4", "p5"]
MEASURES = {"log_loss", "brier", "log_loss_base", "brier_base", "auc_correct", "auc_lack", "ece"}
MEASURES |= {"calibration_slope", "calibration_intercept"}


def pooled(n_topics=120, n_systems=3, seed=0, classes=(1, 4, 5)):
    """Outcomes whose class depends on the score: lack low, right high."""
    rng = np.random.default_rng(seed)
    n = n_topics * n_systems
    scores = np.where(rng.random(n) < 0.2, 0.0, rng.random(n))
    weights = np.exp(np.column_stack([2 - 6 * scores, 0 * scores, -2 + 5 * scores]))
    drawn = (rng.random(n)[:, None] * weights.sum(1, keepdims=True) > weights.cumsum(1)).sum(1)
    return pd.DataFrame(
        {
            "qid": np.repeat([f"q{i}" for i in range(n_topics)], n_systems),
            "retriever": np.tile([f"r{i}" for i in range(n_systems)], n_topics),
            "ir_score": scores,
            "label": pd.array(np.asarray(classes)[drawn], dtype="Int8"),
        }
    )


@pytest.mark.parametrize("options", [{}, {"spline": True}, {"calibrate": True}])
def test_five_columns_that_sum_to_1(options):
    frame = pooled()
    predictor = fit_predictor(frame, **options)
    probabilities = predictor.predict_proba(frame)
    assert probabilities.shape == (len(frame), 5)
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert (probabilities[:, [1, 2]] == 0).all()
    assert predictor.classes == (1, 4, 5)
    assert (predictor.n_topics, predictor.n_rows, predictor.n_missing) == (120, 360, 0)


def test_a_higher_score_makes_right_likelier_and_lack_less_likely():
    grid = pd.DataFrame({"qid": list("abcde"), "ir_score": [0.0, 0.25, 0.5, 0.75, 1.0]})
    probabilities = fit_predictor(pooled()).predict_proba(grid)
    assert (np.diff(probabilities[:, 4]) > 0).all()
    assert (np.diff(probabilities[:, 0]) < 0).all()


def test_the_model_alone_is_a_scikit_learn_estimator_over_a_frame():
    from sklearn.base import clone, is_classifier

    frame = pooled()
    for calibrate in (False, True):
        predictor = fit_predictor(frame, calibrate=calibrate)
        assert is_classifier(predictor.model)
        clone(predictor.model)
        alone = predictor.model.predict_proba(frame[["ir_score"]])
        assert (alone == predictor.predict_proba(frame)[:, [0, 3, 4]]).all()
        assert set(predictor.model.predict(frame[["ir_score"]])) <= {1, 4, 5}


def test_class_shares_are_kept_by_the_fit():
    """Without a penalty on the intercepts the mean prediction is the share (the score equations)."""
    frame = pooled()
    shares = frame["label"].value_counts(normalize=True)
    means = fit_predictor(frame).predict_proba(frame).mean(axis=0)
    assert means[[0, 3, 4]] == pytest.approx([shares[1], shares[4], shares[5]], abs=1e-5)


def test_more_features_and_a_bool_among_them():
    frame = pooled().assign(found=lambda f: f["label"].eq(5).astype(bool), gap=0.5)
    features = ("ir_score", "found", "gap")
    predictor = fit_predictor(frame, features, spline=True)
    assert predictor.predict_proba(frame)[frame["found"], 4].min() > 0.8
    with pytest.raises(DataError, match="gap missing"):
        predictor.predict_proba(frame.drop(columns="gap"))
    with pytest.raises(DataError, match="not a finite number"):
        fit_predictor(frame.assign(gap=np.nan), features)
    with pytest.raises(DataError, match="spline=True"):
        fit_predictor(frame, ("gap",), spline=True)


def test_one_class_has_probability_1():
    frame = pooled().assign(label=pd.array([5] * 360, dtype="Int8"))
    for calibrate in (False, True):
        assert (fit_predictor(frame, calibrate=calibrate).predict_proba(frame)[:, 4] == 1).all()


def test_without_labels_there_is_nothing_to_fit():
    with pytest.raises(DataError, match="no label among 360"):
        fit_predictor(pooled().assign(label=pd.array([pd.NA] * 360, dtype="Int8")))


def test_missing_labels_are_left_out_and_counted():
    frame = pooled()
    frame.loc[frame.index[:30], "label"] = pd.NA
    predictor = fit_predictor(frame)
    assert (predictor.n_rows, predictor.n_missing, predictor.n_topics) == (330, 30, 110)
    validated = cross_validate(frame, n_boot=10)
    assert (len(validated.out_of_fold), validated.n_missing) == (330, 30)


def test_no_rows_to_predict():
    assert fit_predictor(pooled()).predict_proba(pooled().head(0)).shape == (0, 5)


def test_a_topic_is_in_one_fold_only():
    validated = cross_validate(pooled(), n_boot=10)
    assert validated.out_of_fold.groupby("qid")["fold"].nunique().max() == 1
    assert validated.out_of_fold["fold"].nunique() == validated.n_splits == 5
    assert list(validated.out_of_fold.columns) == ["qid", "retriever", "label", *PROBABILITIES, "fold"]


def test_out_of_fold_rows_come_from_the_other_folds():
    frame = pooled()
    table = cross_validate(frame, n_boot=10).out_of_fold
    inside = (table["fold"] == 2).to_numpy()
    twin = fit_predictor(frame[~inside]).predict_proba(frame[inside])
    assert table.loc[inside, PROBABILITIES].to_numpy() == pytest.approx(twin)


def test_measures_by_hand():
    """A topic that teaches nothing: three topics of one class, one of another, each its own fold."""
    frame = pd.DataFrame({"qid": list("abcd"), "ir_score": [0.5] * 4, "label": pd.array([5, 5, 5, 1], dtype="Int8")})
    e = cross_validate(frame, n_splits=4, n_boot=50).estimates
    # The right ones are given P(5) = 2/3 by the others, the lack P(5) = 1 and so P(1) = 0.
    log_loss = (3 * -math.log(2 / 3) + -math.log(1e-6)) / 4
    assert e["log_loss"].value == pytest.approx(log_loss, abs=1e-4)
    assert e["log_loss_base"].value == pytest.approx(log_loss)
    assert e["brier_base"].value == pytest.approx((3 * 2 / 9 + 2) / 4)
    assert math.isnan(e["auc_correct"].value)  # no fold has a right answer and another one
    # Bins of P(5): 0.6-0.7 holds three right ones, each 1/3 off: of the square of their sum, 1, the pairs of
    # different topics are 6/9, times 3/2. The last bin holds one, which makes no pair.
    assert e["ece"].value == pytest.approx(math.sqrt((6 / 9) * (3 / 2) / 3 / 4), abs=1e-4)
    assert math.isnan(e["calibration_slope"].value)  # no fold has both


def test_measures_agree_with_scikit_learn():
    from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

    validated = cross_validate(pooled(), spline=True, n_boot=20)
    table = validated.out_of_fold
    p, y = table[PROBABILITIES].to_numpy(), table["label"].to_numpy(dtype=int)
    e = validated.estimates
    assert e["log_loss"].value == pytest.approx(log_loss(y, p, labels=[1, 2, 3, 4, 5]))
    assert e["brier"].value == pytest.approx(brier_score_loss(y, p, labels=[1, 2, 3, 4, 5], scale_by_half=False))
    for name, positive, scores in (("auc_correct", y == 5, p[:, 4]), ("auc_lack", y == 1, p[:, 0])):
        won = pairs = 0.0
        for number in range(5):
            inside = (table["fold"] == number).to_numpy()
            n = positive[inside].sum() * (~positive[inside]).sum()
            won, pairs = won + n * roc_auc_score(positive[inside], scores[inside]), pairs + n
        assert e[name].value == pytest.approx(won / pairs)


def test_intervals_are_those_of_resampled_topics():
    """The fast replicates against the measures of really resampled rows, with ties in the scores."""
    from sklearn.metrics import roc_auc_score

    from ragauge.estimate._scoring import Auc
    from ragauge.estimate.intervals import topic_weights
    from ragauge.estimate.outcomes import topic_codes

    frame = pooled(n_topics=40)
    score = frame["ir_score"].round(1).to_numpy()
    right = (frame["label"] == 5).to_numpy(dtype=bool)
    topics, n = topic_codes(frame["qid"])
    (weights,) = topic_weights(n, 20, seed=0)
    got = Auc(score, right, topics)(weights)
    twins = [roc_auc_score(np.repeat(right, w[topics]), np.repeat(score, w[topics])) for w in weights]
    assert got == pytest.approx(twins)
    # The same within three folds of topics, whose pairs are added up.
    folds = topics % 3
    got = Auc(score, right, topics, folds)(weights)
    for value, w in zip(got, weights, strict=True):
        drawn = np.repeat(np.arange(len(score)), w[topics])
        won = pairs = 0.0
        for f in range(3):
            rows = drawn[folds[drawn] == f]
            above, below = score[rows][right[rows]], score[rows][~right[rows]]
            won += (np.sign(above[:, None] - below[None, :]) / 2 + 0.5).sum()
            pairs += len(above) * len(below)
        assert value == pytest.approx(won / pairs)


def test_the_score_predicts_better_than_the_base_rate():
    e = cross_validate(pooled(400)).estimates
    assert e["log_loss"].hi < e["log_loss_base"].lo
    assert e["auc_correct"].lo > 0.7
    for name, estimate in e.items():
        assert estimate.lo <= estimate.value <= estimate.hi, name


def test_same_result_every_time():
    one, two = (cross_validate(pooled(), calibrate=True, n_boot=50) for _ in range(2))
    assert one.estimates == two.estimates
    pd.testing.assert_frame_equal(one.out_of_fold, two.out_of_fold)


def test_calibration_mends_a_bent_curve():
    """Right above 0.6 only: a straight logit misses the step, the isotonic map finds it."""
    rng = np.random.default_rng(2)
    scores = rng.random(1500)
    frame = pd.DataFrame(
        {"qid": np.arange(1500).astype(str), "ir_score": scores, "label": np.where(scores > 0.6, 5, 4)}
    )
    frame.loc[rng.random(1500) < 0.2, "label"] = 5
    plain = cross_validate(frame, n_boot=10).estimates["ece"].value
    mapped = cross_validate(frame, calibrate=True, n_boot=10).estimates["ece"].value
    assert mapped < plain / 2


@pytest.mark.parametrize("n_topics", [0, 1])
def test_too_few_topics_give_nan(n_topics):
    validated = cross_validate(pooled(n_topics))
    assert set(validated.estimates) == MEASURES
    assert all(math.isnan(value) for value in validated.metrics().values())
    assert len(validated.out_of_fold) == n_topics * 3
    assert validated.n_splits == 0
    assert validated.reliability["n"].sum() == 0


def test_one_class_only_has_no_auc():
    frame = pooled(10).assign(label=pd.array([4] * 30, dtype="Int8"))
    metrics = cross_validate(frame).metrics()
    assert metrics["predictor_log_loss"] == metrics["predictor_brier"] == 0
    assert math.isnan(metrics["predictor_auc_correct"])
    assert math.isnan(metrics["predictor_auc_lack"])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([1, 2, 3, 4, 5, None])), max_size=12),
    st.booleans(),
    st.booleans(),
)
def test_a_small_job_never_fails(rows, spline, calibrate):
    frame = pd.DataFrame(
        {
            "qid": [f"q{i // 2}" for i in range(len(rows))],
            "ir_score": np.array([score for score, _ in rows], dtype=float),
            "label": pd.array([label for _, label in rows], dtype="Int8"),
        }
    )
    validated = cross_validate(frame, spline=spline, calibrate=calibrate, n_boot=20)
    if validated.n_splits:
        assert math.isfinite(validated.metrics()["predictor_log_loss"])
        sums = validated.out_of_fold[PROBABILITIES].sum(axis=1)
        assert sums.to_numpy() == pytest.approx(1)


def test_reliability_by_hand():
    curve = reliability_curve(np.array([0.0, 0.05, 0.95, 1.0, 1.0]), np.array([0, 1, 1, 1, 0]))
    assert curve["n"].tolist() == [2, 0, 0, 0, 0, 0, 0, 0, 0, 3]
    assert curve["predicted"].iloc[[0, 9]].tolist() == pytest.approx([0.025, 2.95 / 3])
    assert curve["observed"].iloc[[0, 9]].tolist() == pytest.approx([0.5, 2 / 3])
    assert curve["predicted"].isna().sum() == 8


def test_calibration_error_is_the_product_of_pairs_of_topics():
    """Brute force over all ordered pairs of different topics of a bin, rows weighted."""
    from ragauge.estimate._scoring import CalibrationError, bins

    rng = np.random.default_rng(0)
    topics, p, weight = rng.integers(0, 12, 60), rng.random(60), rng.uniform(0.5, 2, 60)
    y = rng.random(60) < p**2
    squared = 0.0
    for b in range(10):
        inside = bins(p) == b
        gap = {t: (weight * (y - p))[inside & (topics == t)].sum() for t in set(topics[inside])}
        pairs = [gap[s] * gap[t] for s in gap for t in gap if s != t]
        if pairs:
            squared += sum(pairs) * len(gap) / (len(gap) - 1) / weight[inside].sum()
    squared /= weight.sum()
    (found,) = CalibrationError(p, y, topics, 12, weight)(np.ones((1, 12), dtype=int))
    assert found == pytest.approx(np.sign(squared) * math.sqrt(abs(squared)))


def test_slope_and_intercept_agree_with_statsmodels():
    import statsmodels.api as sm

    validated = cross_validate(pooled(), n_boot=200)
    table = validated.out_of_fold
    p = table["p5"].to_numpy()
    y = (table["label"] == 5).to_numpy(dtype=float)
    logit = np.log(p / (1 - p))
    within = np.column_stack([np.eye(5)[table["fold"]], logit])
    slope = sm.GLM(y, within, family=sm.families.Binomial()).fit().params[-1]
    intercept = sm.GLM(y, np.ones(len(y)), family=sm.families.Binomial(), offset=logit).fit().params[0]
    e = validated.estimates
    assert e["calibration_slope"].value == pytest.approx(slope, abs=1e-6)
    assert e["calibration_intercept"].value == pytest.approx(intercept, abs=1e-6)
    assert e["calibration_slope"].lo < slope < e["calibration_slope"].hi


def test_a_fold_of_one_outcome_says_nothing_of_the_slope():
    p, folds = np.array([0.2, 0.6, 0.4, 0.8, 0.3, 0.7]), np.array([0, 0, 0, 0, 1, 1])
    happened = np.array([False, True, True, False, True, True])

    def slope(n: int) -> float:
        line = CalibrationLine(p[:n], happened[:n], np.arange(n), n, np.ones(n), folds[:n])
        return float(line(np.ones((1, n)))[0, 0])

    assert slope(6) == pytest.approx(slope(4))


def test_separated_classes_have_no_slope():
    frame = pooled().assign(label=lambda f: pd.array(np.where(f["ir_score"] > 0.5, 5, 1), dtype="Int8"))
    estimates = cross_validate(frame, n_boot=10, penalty=1e-3).estimates
    assert math.isnan(estimates["calibration_slope"].value)
    assert estimates["auc_correct"].value == 1


@pytest.mark.parametrize("options", [{}, {"spline": True}, {"calibrate": True}])
def test_a_row_of_weight_2_counts_as_two(options):
    frame = pooled()
    rng = np.random.default_rng(1)
    times = rng.integers(1, 4, 120)[np.arange(360) // 3]
    weighted, repeated = frame.assign(weight=times.astype(float)), frame.loc[frame.index.repeat(times)]
    grid = pd.DataFrame({"ir_score": np.linspace(0, 1, 21)})
    one, other = (fit_predictor(f, **options).model.predict_proba(grid) for f in (weighted, repeated))
    assert one == pytest.approx(other, abs=1e-4)
    one, other = (cross_validate(f, **options, n_boot=50) for f in (weighted, repeated))
    for name in MEASURES:
        for limit in ("value", "lo", "hi"):
            got, expected = getattr(one.estimates[name], limit), getattr(other.estimates[name], limit)
            assert got == pytest.approx(expected, abs=2e-3), name
    for column in ("predicted", "observed"):
        assert one.reliability[column].to_numpy() == pytest.approx(
            other.reliability[column].to_numpy(), abs=5e-3, nan_ok=True
        )


def test_a_weight_must_be_above_0():
    frame = pooled().assign(weight=1.0)
    frame.loc[4, "weight"] = 0.0
    for call in (fit_predictor, cross_validate):
        with pytest.raises(DataError, match=r"column weight, row 4: 0\.0 is not a number above 0"):
            call(frame)


def within(low, high, n=300):
    """Scores in a part of [0, 1], half right at the low end, most at the high end."""
    rng = np.random.default_rng(3)
    score = rng.uniform(low, high, n)
    right = rng.random(n) < 0.5 + 0.4 * (score - low) / (high - low)
    label = pd.array(np.where(right, 5, 4), dtype="Int8")
    return pd.DataFrame({"qid": np.arange(n).astype(str), "ir_score": score, "label": label})


def test_a_spline_is_constant_outside_of_its_scores():
    frame = within(0.3, 0.6)
    predictor = fit_predictor(frame, spline=True)
    low, high = predictor.model.feature_range_["ir_score"]
    assert (low, high) == (frame["ir_score"].min(), frame["ir_score"].max())
    at = pd.DataFrame({"qid": list("abcd"), "ir_score": [0.0, low, high, 1.0]})
    p = predictor.predict_proba(at)[:, 4]
    assert p[0] == pytest.approx(p[1])
    assert p[3] == pytest.approx(p[2])
    assert 0.3 < p[1] < 0.7 < p[2] < 1


def test_a_spline_is_tame_where_scores_have_a_gap():
    frame = pd.concat([within(0.0, 0.02, 150), within(0.9, 1.0, 150).assign(qid=lambda f: "b" + f["qid"])])
    grid = pd.DataFrame({"qid": np.arange(101).astype(str), "ir_score": np.linspace(0, 1, 101)})
    p = fit_predictor(frame, spline=True).predict_proba(grid)[:, 4]
    assert 0.05 < p.min() < p.max() < 0.999


@pytest.mark.parametrize("scores", [[0.5] * 6, [0.0, 1.0] * 3, [0.4, 0.4 + 1e-7] * 3])
def test_a_spline_of_few_distinct_scores(scores):
    label = pd.array([5, 4, 5, 5, 4, 1], dtype="Int8")
    frame = pd.DataFrame({"qid": list("abcdef"), "ir_score": scores, "label": label})
    p = fit_predictor(frame, spline=True).predict_proba(frame)
    assert p.sum(axis=1) == pytest.approx(1)
    assert p.mean(axis=0)[[0, 3, 4]] == pytest.approx([1 / 6, 1 / 3, 1 / 2], abs=1e-4)


def test_a_straight_logit_goes_on_outside_of_its_scores():
    """The truth is a straight logit: where the scores of the fit end says nothing of it."""
    predictor = fit_predictor(within(0.3, 0.6))
    p = predictor.predict_proba(pd.DataFrame({"qid": list("abc"), "ir_score": [0.0, 0.3, 0.6]}))[:, 4]
    logit = np.log(p / (1 - p))
    assert logit[1] - logit[0] == pytest.approx(logit[2] - logit[1])
