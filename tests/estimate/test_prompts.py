"""Verdicts by several of the judge's prompts: means over them, and what their choice adds to intervals."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from ragauge.estimate import bounded_mean, compare_pairs, leaderboard, ppi_shares, share_estimates
from ragauge.estimate.intervals import Estimate, paired_share_interval
from ragauge.estimate.pairs import sign_flip_p
from ragauge.estimate.prompts import (
    are_repeats,
    by_prompt,
    limits,
    other_labels,
    outcomes_of_repeats,
    p_of_sample,
)
from ragauge.estimate.summary import quality

# Right answers of ten topics by three prompts: 6, 7 and 5.
FIRST = [5, 5, 5, 5, 5, 5, 4, 4, 4, 1]
LABELS = {"label": FIRST, "label_2": [*FIRST[:6], 5, *FIRST[7:]], "label_3": [4, *FIRST[1:]]}


def outcomes(are: str | None = None, **columns: object) -> pd.DataFrame:
    labels = {name: pd.array(values, dtype="Int8") for name, values in LABELS.items()}
    frame = pd.DataFrame({"qid": np.arange(10), "ir_score": 0.5, **labels, **columns})
    return frame if are is None else frame.assign(prompts_are=are)


def test_shares_are_means_over_prompts_with_the_interval_of_the_topics_means() -> None:
    found = share_estimates(outcomes("fixed"))
    right = np.array([2 / 3, 1, 1, 1, 1, 1, 1 / 3, 0, 0, 0])
    wanted = bounded_mean(right)
    assert (found["correct_share"].value, found["correct_share"].lo) == pytest.approx((wanted.value, wanted.lo))
    assert sum(found[f"judge_share_{c}"].value for c in range(1, 6)) == pytest.approx(1)
    alone = outcomes().drop(columns=["label_2", "label_3"])
    assert share_estimates(alone) == share_estimates(alone.assign(prompts_are="sample"))


def test_a_sample_of_prompts_adds_t_of_two_degrees_of_freedom_on_either_side() -> None:
    fixed, sample = (share_estimates(outcomes(are))["correct_share"] for are in ("fixed", "sample"))
    reach = t.isf(0.025, 2) * np.std([0.6, 0.7, 0.5], ddof=1) / math.sqrt(3)
    assert sample.value == fixed.value == pytest.approx(0.6)
    assert sample.lo == pytest.approx(max(fixed.value - math.hypot(fixed.value - fixed.lo, reach), 0))
    assert sample.hi == pytest.approx(min(fixed.value + math.hypot(fixed.hi - fixed.value, reach), 1))
    board = leaderboard(outcomes("sample", retriever="a")).iloc[0]
    assert (board["correct_share_lo"], board["correct_share_hi"]) == (sample.lo, sample.hi)


def test_an_interval_over_prompts_stays_within_0_and_1() -> None:
    assert limits(np.array([0.9, 0.8, 0.97]), np.array([0.8, 1.0]), 0.95) == (0.0, 1.0)


def test_prompts_that_agree_cost_no_width() -> None:
    alike = outcomes("sample").assign(label_2=outcomes()["label"], label_3=outcomes()["label"])
    alone = outcomes().drop(columns=["label_2", "label_3"])
    for name, found in share_estimates(alike).items():
        wanted = share_estimates(alone)[name]
        assert (found.value, found.lo, found.hi) == pytest.approx((wanted.value, wanted.lo, wanted.hi))


def test_what_prompts_have_in_common_leaves_a_difference_and_their_difference_stays() -> None:
    rng = np.random.default_rng(0)
    right = rng.random((2, 200)) < np.array([[0.7], [0.55]])
    labels = {
        "label": right,
        "label_2": right & (np.arange(200) % 5 > 0),  # a common shift
        "label_3": np.stack([right[0], right[1] | (np.arange(200) % 10 == 0)]),  # one system alone
    }
    frame = pd.DataFrame(
        {"qid": np.tile(np.arange(200), 2), "retriever": np.repeat(["a", "b"], 200), "ir_score": np.nan}
    )
    frame = frame.assign(**{name: np.where(of.ravel(), 5, 4) for name, of in labels.items()})
    fixed, sample = (
        compare_pairs(frame.assign(prompts_are=are)).set_index("measure").loc["correct"] for are in ("fixed", "sample")
    )
    by_topic = np.array([of[0].astype(float) - of[1] for of in labels.values()])
    d = by_topic.mean(axis=0)
    wanted = paired_share_interval(d)
    assert (fixed["difference"], fixed["lo"], fixed["hi"]) == pytest.approx((wanted.value, wanted.lo, wanted.hi))
    assert fixed["p"] == sign_flip_p(d[:, None])[0]
    reach = t.isf(0.025, 2) * by_topic.mean(axis=1).std(ddof=1) / math.sqrt(3)
    assert sample["lo"] == pytest.approx(wanted.value - math.hypot(wanted.value - wanted.lo, reach))
    assert sample["p"] > fixed["p"]


def test_p_with_prompts_is_where_the_widened_interval_ends_at_0() -> None:
    of_prompts = (0.12, 0.1, 0.08)
    error = 0.04
    p = float(2 * t.sf(0.1 / error, 99))
    found = p_of_sample(p, Estimate(0.1, 0.02, 0.18, 100), of_prompts)
    reach = math.hypot(t.isf(found / 2, 99) * error, t.isf(found / 2, 2) * 0.02 / math.sqrt(3))
    assert reach == pytest.approx(0.1)
    assert p_of_sample(p, Estimate(0.1, 0.02, 0.18, 100), (0.1, 0.1, 0.1)) == p
    assert p_of_sample(1.0, Estimate(0.0, -0.1, 0.1, 100), of_prompts) == 1


def test_a_judged_sample_has_means_over_prompts_too() -> None:
    frame = pd.concat([outcomes("fixed")] * 4, ignore_index=True)
    frame = frame.assign(qid=np.arange(40), judged=np.arange(40) % 2 == 0, stratum=0)
    frame = frame.assign(**dict.fromkeys(("p1", "p2", "p3", "p4", "p5"), 0.2))
    each = [ppi_shares(one)["classical"] for one in by_prompt(frame)]
    fixed, sample = ppi_shares(frame), ppi_shares(frame.assign(prompts_are="sample"))
    assert np.allclose(fixed["classical"], np.mean(each, axis=0))
    assert np.allclose(fixed["estimate"], sample["estimate"])
    reach = t.isf(0.025, 2) * np.std([one.iloc[-1] for one in each], ddof=1) / math.sqrt(3)
    right = [table.iloc[-1] for table in (fixed, sample)]
    assert right[1]["lo"] == pytest.approx(
        right[0]["estimate"] - math.hypot(right[0]["estimate"] - right[0]["lo"], reach)
    )


def test_rows_that_fewer_prompts_judged_keep_their_first_verdict() -> None:
    frame = outcomes()
    frame.loc[0, "label_3"] = pd.NA
    assert [one["label"][0] for one in by_prompt(frame)] == [5, 5, 5]


def test_repeats_are_verdicts_on_further_answers_and_measures_their_means() -> None:
    # topic, answer, verdict on it: class (0: none could be read), judged or not; F1 of the answer.
    rows = [
        ("a", 0, 0, 5, "ok", 1.0), ("a", 0, 1, 4, "ok", 1.0), ("a", 1, 0, 0, "unreadable", 0.5),
        ("a", 1, 1, 1, "ok", 0.5),
        ("b", 0, 0, 2, "ok", 0.25), ("b", 0, 1, None, None, 0.25), ("b", 1, 0, 3, "ok", None),
    ]  # fmt: skip
    repeated = pd.DataFrame(rows, columns=["qid", "sample", "repeat", "label", "judge_status", "f1"]).assign(
        n_tokens=100, answer="x", answer_status="ok", label=lambda f: f["label"].astype("Int8")
    )
    first = pd.DataFrame({"qid": ["a", "b", "c"], "label": pd.array([5, 2, None], dtype="Int8"), "f1": 0.0})
    found = outcomes_of_repeats(first, repeated)
    assert are_repeats(found)
    assert {name: found[name].tolist() for name in ("label_2", "label_3", "label_4")} == {
        "label_2": [4, pd.NA, pd.NA], "label_3": [0, 3, pd.NA], "label_4": [1, pd.NA, pd.NA],
    }  # fmt: skip
    assert found["f1"].tolist()[:2] == [0.75, 0.25]
    assert np.isnan(found["f1"][2])
    assert other_labels(outcomes_of_repeats(first, repeated, judged=False)) == []
    # A verdict that could not be read is missing, and a further one that nobody asked for is the first.
    assert [one["label"].fillna(0).tolist() for one in by_prompt(found)] == [[5, 2, 0], [4, 2, 0], [0, 3, 0], [1, 2, 0]]


def test_how_far_wordings_move_the_share_of_right_answers_is_a_metric() -> None:
    values = quality(outcomes("sample"))
    assert [values[f"correct_share_prompt_{k}"] for k in (1, 2, 3)] == pytest.approx([0.6, 0.7, 0.5])
    assert values["judge_prompt_spread"] == pytest.approx(0.2)
    assert "judge_prompt_spread" not in quality(outcomes().drop(columns=["label_2", "label_3"]))
