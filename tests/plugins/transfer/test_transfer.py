from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from ragauge.contract.errors import DataError
from ragauge.plugins.transfer.measured import _kendall_tau, leave_one_out


def sweep(shift, n_topics=300, seed=0, systems=5, lift=0.0):
    """Retrievers of rising quality whose classes follow from the score alone, but for the last's `lift`."""
    rng = np.random.default_rng(seed)
    parts = []
    for system in range(systems):
        scores = np.clip(rng.beta(1, 1.5, n_topics) + shift * system, 0, 1)
        right = rng.random(n_topics) < np.clip(0.1 + 0.7 * scores + (lift if system == systems - 1 else 0), 0, 1)
        label = np.where(right, 5, np.where(rng.random(n_topics) < 0.6 - 0.5 * scores, 1, 4))
        parts.append(
            pd.DataFrame(
                {
                    "qid": [f"q{i}" for i in range(n_topics)],
                    "retriever": f"r{system}",
                    "ir_score": scores,
                    "label": pd.array(label, dtype="Int8"),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def test_where_the_score_says_it_all_the_shares_transfer():
    transfer = leave_one_out(sweep(0.15), n_boot=200)
    assert len(transfer.table) == 5 * 5
    assert transfer.mean_absolute_error.value < 0.02
    assert transfer.mean_absolute_error.value < transfer.mean_absolute_error_base.value / 3
    assert transfer.kendall_tau.value == 1
    inside = (transfer.table["lo"] <= 0) & (transfer.table["hi"] >= 0)
    assert inside.mean() >= 0.8
    for _, group in transfer.table.groupby("group"):
        assert group["predicted"].sum() == pytest.approx(1)
        assert group["judged"].sum() == pytest.approx(1)


def test_a_retriever_that_answers_better_than_its_score_stands_out():
    table = leave_one_out(sweep(0.0, lift=0.3), n_boot=200).table
    row = table[(table["group"] == "r4") & (table["class"] == 5)].iloc[0]
    assert row["hi"] < -0.15


def test_shares_at_each_budget():
    frame = pd.concat([sweep(0.1, 60, seed).assign(n_tokens=n) for seed, n in ((1, 100), (2, 200))])
    transfer = leave_one_out(frame, at="n_tokens", n_boot=20)
    assert len(transfer.table) == 2 * 5 * 5
    right = transfer.table[transfer.table["class"] == 5]
    taus = [kendalltau(of["predicted"], of["judged"]).statistic for _, of in right.groupby("n_tokens")]
    assert taus[0] != taus[1]
    assert transfer.kendall_tau.value == pytest.approx(sum(taus) / 2)
    row = transfer.table[(transfer.table["n_tokens"] == 200) & (transfer.table["group"] == "r1")].iloc[4]
    chosen = frame[(frame["n_tokens"] == 200) & (frame["retriever"] == "r1")]
    assert (row["judged"], row["n"]) == ((chosen["label"] == 5).mean(), 60)


def test_any_column_can_be_left_out_and_missing_labels_are_counted():
    frame = sweep(0.1, 60).rename(columns={"retriever": "llm"})
    frame.loc[frame.index[:7], "label"] = pd.NA
    transfer = leave_one_out(frame, by="llm", n_boot=20)
    assert (transfer.by, transfer.n_missing) == ("llm", 7)
    assert transfer.table["n"].iloc[0] == 53


def test_fewer_than_two_groups_give_nothing():
    frame = sweep(0.1, 30, systems=2)
    frame.loc[frame["retriever"] == "r1", "label"] = pd.NA
    for part in (frame, frame.head(0)):
        transfer = leave_one_out(part, n_boot=20)
        assert transfer.table.empty
        assert list(transfer.table.columns)[:3] == ["group", "n_tokens", "class"]
        assert math.isnan(transfer.kendall_tau.value)


def test_groups_come_in_their_order_whatever_that_of_the_rows():
    frame = sweep(0.1, 60, systems=3)
    shuffled = frame.sample(frac=1, random_state=4)
    assert shuffled["retriever"].iloc[0] != "r0"
    table = leave_one_out(shuffled, n_boot=0).table
    assert table["group"].tolist() == sorted(["r0", "r1", "r2"] * 5)
    assert table["judged"].to_numpy() == pytest.approx(leave_one_out(frame, n_boot=0).table["judged"])
    at = pd.concat([shuffled.assign(n_tokens=200), shuffled.assign(n_tokens=100)])
    found = leave_one_out(at, n_boot=0, at="n_tokens").table
    assert found["n_tokens"].tolist() == [100] * 15 + [200] * 15
    assert found["group"].tolist() == table["group"].tolist() * 2


def test_what_at_allows():
    with pytest.raises(DataError, match="allowed are 'pooled' and 'n_tokens'"):
        leave_one_out(sweep(0.1, 10), at="topic")


def test_kendall_tau_agrees_with_scipy():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 4, (2, 50, 6)).astype(float)
    expected = [kendalltau(a, b).statistic for a, b in zip(x, y, strict=True)]
    assert _kendall_tau(x, y) == pytest.approx(np.array(expected), nan_ok=True)
    assert np.isnan(_kendall_tau(np.ones(3), np.arange(3.0)))


def left_out(frame, weights=None, **options):
    """What `predict_left_out` makes of a frame of retrievers, a cell for each."""
    from ragauge.estimate.outcomes import class_indicators, labels_of, topic_codes
    from ragauge.plugins.transfer.refits import Options, predict_left_out

    settings = {"features": ("ir_score",), "spline": False, "calibrate": False, "penalty": 1.0, "seed": 0}
    weights = np.ones(len(frame)) if weights is None else weights
    groups = pd.factorize(frame["retriever"], sort=True)[0]
    topics, _ = topic_codes(frame["qid"])
    truth = class_indicators(labels_of(frame))
    return predict_left_out(frame, truth, weights, topics, groups, groups, Options(**settings | options))


@pytest.mark.parametrize("classes", [5, 2])
@pytest.mark.parametrize("spline", [False, True])
def test_a_topic_moves_the_fits_as_a_refit_would(classes, spline):
    """The derivative against fits in which one topic weighs a little more. Hardly any penalty: columns are
    standardised, so that its scale would move, too."""
    frame = sweep(0.1, n_topics=40, systems=3)
    if classes == 2:
        frame["label"] = pd.array(np.where(frame["label"] == 5, 5, 4), dtype="Int8")
    got = left_out(frame.assign(weight=1.0), spline=spline, penalty=1e-3)
    groups = pd.factorize(frame["retriever"], sort=True)[0]

    def shares(weights):
        found = left_out(frame.assign(weight=weights), weights, spline=spline, penalty=1e-3)
        both = (found.predicted, found.base)
        return np.array([[p[groups == g].mean(axis=0) for g in range(3)] for p in both])

    step = 0.02
    number = int(np.flatnonzero(np.unique(frame["qid"]) == "q17")[0])
    up, down = (shares(np.where(frame["qid"] == "q17", 1 + sign * step, 1.0)) for sign in (1, -1))
    predicted, base = (up - down) / (2 * step)
    assert np.abs(predicted).max() > 3e-3
    assert got.moved[number] == pytest.approx(predicted, abs=5e-4 if spline else 3e-5)
    assert got.moved_base[number] == pytest.approx(base, abs=1e-5)


def test_bins_of_many_rows_give_the_fits_of_the_rows(monkeypatch):
    frame = sweep(0.1, n_topics=200)
    exact, exact_mapped = left_out(frame), left_out(frame, calibrate=True)
    monkeypatch.setattr("ragauge.plugins.transfer.refits._MANY_ROWS", 10)
    binned, binned_mapped = left_out(frame), left_out(frame, calibrate=True)
    assert binned.predicted == pytest.approx(exact.predicted, abs=2e-4)
    assert binned.moved == pytest.approx(exact.moved, abs=1e-6)
    # The nested folds of calibration are others.
    means = [found.predicted.mean(axis=0) for found in (binned_mapped, exact_mapped)]
    assert means[0] == pytest.approx(means[1], abs=5e-3)


def test_a_row_of_weight_2_counts_as_two():
    frame = sweep(0.1, n_topics=60, systems=3)
    times = np.tile(np.random.default_rng(1).integers(1, 4, 60), 3)
    one = leave_one_out(frame.assign(weight=times.astype(float)), n_boot=50)
    other = leave_one_out(frame.loc[frame.index.repeat(times)], n_boot=50)
    for column in ("predicted", "judged", "lo", "hi"):
        assert one.table[column].to_numpy() == pytest.approx(other.table[column].to_numpy(), abs=1e-5)
    assert one.mean_absolute_error.hi == pytest.approx(other.mean_absolute_error.hi, abs=1e-5)
    assert one.mean_absolute_error_perfect == pytest.approx(other.mean_absolute_error_perfect, abs=1e-5)


def test_an_interval_of_a_mean_absolute_error_does_not_go_below_0():
    from ragauge.plugins.transfer.measured import _error

    nothing = np.zeros((1, 2, 5))
    resampled = np.random.default_rng(0).normal(0, 0.1, (200, 2, 5))
    error = _error(nothing, resampled, np.zeros((2, 5)), np.zeros((2, 5)), 50, 0.95)
    assert (error.value, error.lo) == (0, 0)  # moved to have its middle at 0, it would begin at about -0.04
    assert 0.01 < error.hi < 0.1


def test_topics_that_no_other_group_has_do_not_stop_it():
    frame = sweep(0.1, 30, systems=2)
    frame = frame[(frame["retriever"] == "r0") | (frame["qid"] == "q1")]
    assert leave_one_out(frame, n_boot=20).table["predicted"].notna().all()


def test_one_topic_gives_nothing():
    frame = sweep(0.1, 30, systems=3)
    transfer = leave_one_out(frame[frame["qid"] == "q3"], n_boot=20)
    assert transfer.table.empty
    assert math.isnan(transfer.mean_absolute_error_perfect)
