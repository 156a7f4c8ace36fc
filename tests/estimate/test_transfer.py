from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.estimate import fit_predictor, leave_one_out
from ragauge.estimate.transfer import _kendall_tau


def sweep(shift, n_topics=300, seed=0, systems=5, lift=0.0):
    """Retrievers of rising quality whose classes follow from the score alone, but for the last's `lift`."""
    rng = np.random.default_rng(seed)
    parts = []
    for system in range(systems):
        scores = np.clip(rng.beta(1, 1.5, n_topics) + shift * system, 0, 1)
        right = rng.random(n_topics) < np.clip(
            0.1 + 0.7 * scores + (lift if system == systems - 1 else 0), 0, 1
        )
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


def test_the_left_out_group_is_not_in_the_fit():
    frame = sweep(0.1, n_topics=50)
    table = leave_one_out(frame, n_boot=10).table
    out = (frame["retriever"] == "r2").to_numpy()
    expected = fit_predictor(frame[~out]).predict_proba(frame[out]).mean(axis=0)
    assert table.loc[table["group"] == "r2", "predicted"].to_numpy() == pytest.approx(expected)
    row = table[(table["group"] == "r2") & (table["class"] == 5)].iloc[0]
    assert row["judged"] == (frame.loc[out, "label"] == 5).mean()
    assert row["difference"] == pytest.approx(row["predicted"] - row["judged"])


def test_shares_at_each_budget():
    frame = pd.concat([sweep(0.1, 60, seed).assign(n_tokens=n) for seed, n in ((1, 100), (2, 200))])
    transfer = leave_one_out(frame, at="n_tokens", n_boot=20)
    assert len(transfer.table) == 2 * 5 * 5
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


def test_same_result_every_time():
    frame = sweep(0.1, 60)
    one, two = (leave_one_out(frame, n_boot=50) for _ in range(2))
    assert one.mean_absolute_error == two.mean_absolute_error
    pd.testing.assert_frame_equal(one.table, two.table)


def test_what_at_allows():
    with pytest.raises(DataError, match="allowed are 'pooled' and 'n_tokens'"):
        leave_one_out(sweep(0.1, 10), at="topic")


def test_kendall_tau_agrees_with_scipy():
    from scipy.stats import kendalltau

    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 4, (2, 50, 6)).astype(float)
    expected = [kendalltau(a, b).statistic for a, b in zip(x, y, strict=True)]
    assert _kendall_tau(x, y) == pytest.approx(np.array(expected), nan_ok=True)
    assert np.isnan(_kendall_tau(np.ones(3), np.arange(3.0)))
