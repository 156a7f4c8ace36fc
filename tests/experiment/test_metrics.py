"""The metrics of a job, worked out by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from ragauge.estimate import judge_agreement, summary
from ragauge.findings.cost import costs_of_replies
from ragauge.findings.ir_score import curve_of
from ragauge.findings.terminal import job_line


def outcomes(scores: list[float], labels: list[int | None]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "qid": [f"q{i}" for i in range(len(scores))],
            "ir_score": scores,
            "label": pd.array(labels, dtype="Int8"),
        }
    )


def replies(*rows: tuple[str, int, int, float, bool], **columns: list) -> pd.DataFrame:
    names = ["qid", "prompt_tokens", "completion_tokens", "cost_usd", "cached"]
    return pd.DataFrame(rows, columns=names).assign(**columns)


# --- quality and estimates ---------------------------------------------------------------------------------


def test_missing_verdicts_stay_in_the_denominator() -> None:
    values = summary.quality(outcomes([1.0, 0.5, 0.5, 0.25, 0.0], [5, 2, 4, 1, None]))
    shares = {"1": 0.2, "2": 0.2, "3": 0.0, "4": 0.2, "5": 0.2, "missing": 0.2}
    assert {k: values[f"judge_share_{k}"] for k in shares} == pytest.approx(shares)
    assert values["correct_share"] == pytest.approx(0.2)
    assert values["hallucination_share"] == pytest.approx(0.4)
    assert values["ir_score"] == pytest.approx(0.45)
    assert 0 <= values["ir_score_lo"] < 0.45 < values["ir_score_hi"] <= 1
    assert 0 <= values["correct_share_lo"] < 0.2 < values["correct_share_hi"] <= 1


def test_the_interval_of_the_correct_share_counts_missing_verdicts_as_not_correct() -> None:
    # One hit of two: the Poisson limit -log(0.95) / 2 is further out than Wilson's (0.095), on both sides.
    values = summary.quality(outcomes([1.0, 1.0], [5, None]))
    assert values["correct_share"] == 0.5
    assert values["correct_share_lo"] == pytest.approx(-math.log(0.95) / 2)
    assert values["correct_share_hi"] == pytest.approx(1 + math.log(0.95) / 2)
    # Wilson's limit of two of two, 2 / (2 + 1.96^2)
    assert values["ir_score_lo"] == pytest.approx(2 / (2 + 1.959964**2))
    assert values["ir_score_hi"] == 1


def test_no_verdict_at_all_is_a_share_of_its_own() -> None:
    values = summary.quality(outcomes([0.5, 0.5], [None, None]))
    assert values["judge_share_missing"] == 1
    assert not [name for name in values if name.startswith(("correct_", "hallucination_", "judge_share_1"))]
    unasked = summary.quality(outcomes([0.5, 0.5], [None, None]).assign(judge_status="none"))
    assert {*unasked} == {"ir_score", "ir_score_lo", "ir_score_hi"}


def test_of_a_sample_the_shares_are_those_of_all_topics() -> None:
    # The prediction is right everywhere. Of the others 5 of 30 are right, of the judged one half; lambda of a
    # judged topic, by the nine others, is (1/9) / (1/9 + 1/30) = 10/13.
    frame = outcomes([0.0] * 30 + [1.0] * 10, [1] * 5 + [None] * 25 + [5] * 5 + [None] * 5)
    right = frame["ir_score"].to_numpy()
    columns = {f"p{c}": 0.0 for c in (2, 3, 4)} | {"p1": 1 - right, "p5": right}
    values = summary.quality(frame.assign(judged=frame["label"].notna(), **columns))
    assert values["correct_share"] == pytest.approx(0.5 + 10 / 13 * (1 / 6 - 0.5))
    assert values["correct_share_classical"] == pytest.approx(0.5)
    assert values["judge_share_1"] + values["correct_share"] == pytest.approx(1)
    assert values["correct_share_lo"] < values["correct_share"] < values["correct_share_hi"]
    assert values["judged_topics"] == 10
    assert values["correct_share_effective_n"] > 10
    assert values["ir_score"] == pytest.approx(0.25)
    assert values["judge_share_missing"] == 0


def test_every_share_has_an_interval_that_holds_it() -> None:
    values = summary.quality(outcomes([1.0, 0.5, 0.25, 0.0], [5, 5, 4, 1]))
    shares = [f"judge_share_{c}" for c in (1, 2, 3, 4, 5, "missing")]
    for name in ("ir_score", "correct_share", "hallucination_share", *shares):
        assert 0 <= values[f"{name}_lo"] <= values[name] < values[f"{name}_hi"] <= 1, name
    # Nothing was hit, and still there is an upper limit: Wilson's, 1.96^2 / (4 + 1.96^2).
    assert (values["judge_share_2"], values["judge_share_2_lo"]) == (0, 0)
    assert values["judge_share_2_hi"] == pytest.approx(1.959964**2 / (4 + 1.959964**2))


def test_without_replicates_there_are_values_and_no_bootstrap_intervals() -> None:
    frame = outcomes([1.0, 0.5, 0.25, 0.0], [5, 5, 4, 1])
    estimates = summary.estimate(frame, 0, 0)
    assert math.isnan(estimates.metrics["threshold_k_lo"])
    kappa = judge_agreement(frame, frame).kappa
    assert kappa.value == 1
    assert kappa.lo < 1  # which takes none


def test_thresholds_by_hand_and_a_predictor_of_the_score() -> None:
    scores = [0.0, 0.1, 0.2, 0.4, 0.5, 0.6, 0.8, 0.9, 1.0]
    found = summary.estimate(outcomes(scores, [1, 1, 1, 4, 2, 3, 5, 5, 5]), 50, 0)
    # Every score below 0.2 < h <= 0.4 lacks information, every one above 0.6 <= k < 0.8 is right.
    assert found.metrics["threshold_h"] == pytest.approx(0.3)
    assert found.metrics["threshold_k"] == pytest.approx(0.7)
    for name in "hk":
        assert found.metrics[f"threshold_{name}_accuracy"] == 1
        assert found.metrics[f"threshold_{name}_base_rate"] == pytest.approx(6 / 9)
        assert found.metrics[f"threshold_{name}_degenerate"] == 0
    assert found.thresholds.k.value == found.metrics["threshold_k"]
    assert found.example["ir_score"].tolist() == scores[:5]
    low, high = found.model.predict_proba(pd.DataFrame({"ir_score": [0.0, 1.0]}))
    classes = found.model.classes_.tolist()
    assert low[classes.index(1)] > high[classes.index(1)]
    assert high[classes.index(5)] > low[classes.index(5)]


def test_without_verdicts_there_is_no_predictor_and_no_number() -> None:
    found = summary.estimate(outcomes([0.5, 1.0], [None, None]), 20, 0)
    assert found.model is None
    assert math.isnan(found.metrics["threshold_h"])
    assert math.isnan(found.metrics["predictor_log_loss"])


def test_a_predictor_reads_other_columns_where_no_evidence_is_known() -> None:
    frame = outcomes([0.1, None, None, 0.9, None, None], [1, 1, 4, 5, 5, 5])
    frame["question_coverage"] = [0.0, 0.1, 0.5, 0.9, None, 1.0]
    found = summary.estimate(frame, 20, 0, ["question_coverage"])
    # Thresholds are of the two rows with a score, the predictor of the five with its column.
    assert found.thresholds.k.n == 2
    assert found.validation.n_topics == 5
    assert found.example["question_coverage"].tolist() == [0.0, 0.1, 0.5, 0.9, 1.0]
    alone = summary.estimate(frame.assign(ir_score=float("nan")), 20, 0, ["question_coverage"])
    assert math.isnan(alone.thresholds.k.value)
    assert alone.metrics["predictor_brier"] == found.metrics["predictor_brier"]
    assert summary.estimate(frame.assign(ir_score=float("nan")), 20, 0).model is None


# --- costs -------------------------------------------------------------------------------------------------


def test_cached_replies_are_counted_apart_and_cost_nothing() -> None:
    frame = replies(
        ("q1", 10, 2, 0.5, False),
        ("q2", 20, 3, 0.25, False),
        ("q3", 30, 4, 0.75, True),
        ("q4", 0, 0, 0.0, False),  # no reply came, or nobody was asked
    )
    assert costs_of_replies(frame) == {
        "llm_calls": 2,
        "llm_calls_cached": 1,
        "llm_usage_unknown": 0,
        "prompt_tokens": 30,
        "completion_tokens": 5,
        "cost_usd": 0.75,
    }


def test_calls_are_counted_where_the_server_tells_no_tokens() -> None:
    frame = replies(
        ("q1", 0, 0, 0.5, False),  # its usage is not known
        ("q2", 0, 0, 0.75, False),  # answered at the third call, two of unknown usage
        ("q3", 0, 0, 0.0, True),
        ("q4", 0, 0, 0.0, False),
        calls=[1, 3, 1, 0],
        usage_unknown=[1, 2, 1, 0],
    )
    found = costs_of_replies(frame)
    assert (found["llm_calls"], found["llm_calls_cached"], found["llm_usage_unknown"]) == (4, 1, 3)
    assert found["cost_usd"] == 1.25


def test_verdicts_of_one_request_are_one_call() -> None:
    frame = replies(
        ("q1", 10, 1, 0.5, False),
        ("q1", 10, 1, 0.5, False),
        ("q2", 7, 1, 0.25, True),
        ("q2", 7, 1, 0.25, True),
        ("q3", 0, 0, 0.0, False),
        request=["a", "a", "b", "b", None],
    )
    assert costs_of_replies(frame, "judge_") == {
        "judge_llm_calls": 1,
        "judge_llm_calls_cached": 1,
        "judge_llm_usage_unknown": 0,
        "judge_prompt_tokens": 20,
        "judge_completion_tokens": 2,
        "judge_cost_usd": 1.0,
    }


# --- curve and line ----------------------------------------------------------------------------------------


def test_the_curve_is_the_mean_over_topics_at_every_budget() -> None:
    scores = pd.DataFrame(
        {"qid": ["a", "a", "b", "b"], "n_tokens": [200, 100, 100, 200], "value": [1.0, 0.5, 0.0, 0.5]}
    )
    assert curve_of(scores) == {100: 0.25, 200: 0.75}


BASE = {"ir_score": 0.51234, "cost_usd": 0.0, "seconds_total": 12.345}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "IR score 0.512  12.3 s"),
        # The shares of a job without verdicts say nothing.
        ({"judge_share_missing": 1.0, "correct_share": 0.0}, "IR score 0.512  12.3 s"),
        (
            {
                "judge_share_missing": 0.1,
                "correct_share": 0.425,
                "judge_share_1": 0.2,
                "hallucination_share": 0.275,
            },
            "IR score 0.512  right 42%  lack 20%  hallucination 28%  no verdict 10%  12.3 s",
        ),
        (
            {"predicted_correct_share": 0.5, "predicted_hallucination_share": 0.25},
            "IR score 0.512  predicted right 50%, hallucination 25%  12.3 s",
        ),
        ({"cost_usd": 0.25, "judge_cost_usd": 0.5}, "IR score 0.512  0.7500 USD  12.3 s"),
    ],
)
def test_a_job_in_one_line(more: dict[str, float], expected: str) -> None:
    assert job_line("bm25", {**BASE, **more}) == f"{'bm25':<32} {expected}"


# --- the line of a job --------------------------------------------------------------------------------------


def test_the_line_of_a_job_adds_up_the_money_of_all_who_asked() -> None:
    from ragauge.contract.groups import CALLS

    values = {"ir_score": 0.5, "seconds_total": 1.0}
    values |= {f"{prefix}cost_usd": 0.25 for prefix in CALLS}
    assert {"rewriter_", "retriever_", "reranker_", "compressor_", "", "judge_"} <= set(CALLS)
    assert f"{0.25 * len(CALLS):.4f} USD" in job_line("job", values)
