"""The names of metrics that the code knows before a job runs."""

from __future__ import annotations

import pytest

from ragauge.contract.metrics import (
    METRICS,
    Metric,
    by_name,
    closest,
    in_group,
    is_known,
    measure_metrics,
    spelled,
    without_groups,
)
from ragauge.findings.of_sweeps import findings, metrics_of_sweeps
from ragauge.findings.order import declared, job_findings, metrics_of_jobs

OF_JOBS, OF_SWEEPS = metrics_of_jobs(), metrics_of_sweeps()
DECLARED = declared([*job_findings(), *findings()])


def test_a_name_is_known_by_itself_or_by_its_form() -> None:
    assert is_known("judge_share_missing_hi", OF_JOBS)
    assert is_known("seconds_contexts", OF_JOBS)
    assert is_known("judge_cost_usd", OF_JOBS)
    assert not is_known("judge_share_6", OF_JOBS)
    assert not is_known("ir_scor", OF_JOBS)
    assert not is_known("ir_score*", OF_JOBS)
    assert is_known("funnel_by_step_lost", ["funnel_by_*_lost"])
    assert not is_known("ir_score", OF_SWEEPS)
    assert measure_metrics(["em"])[:4] == ["em", "em_lo", "em_hi", "em_missing"]
    assert {"em_no_claims", "em_repeat_difference_hi", "em_repeat_topics"} < set(measure_metrics(["em"]))


@pytest.mark.parametrize(("wrong", "right"), [("ir_scor", "ir_score"), ("corect_share", "correct_share")])
def test_a_slip_of_the_pen_is_told(wrong: str, right: str) -> None:
    assert closest(wrong, OF_JOBS) == f" Did you mean {right}?"
    assert closest("zzz", OF_JOBS) == ""


def test_names_with_alternatives_are_spelled_and_charts_stand_apart() -> None:
    metrics = ("a{,_lo}_{x,y}", Metric("b{,/*}", chart=True), Metric("c", "what it is"))
    assert spelled(metrics) == ["a_x", "a_y", "a_lo_x", "a_lo_y", "c"]
    assert spelled(metrics, charts=True) == ["b", "b/*"]


def test_a_metric_is_in_the_group_that_it_declares_and_its_interval_among_intervals() -> None:
    of = by_name(
        [
            Metric("long{,_lo}", group="size"),
            Metric("part_*", group="judge"),
            Metric("top", group="size", headline=True),
        ]
    )
    assert [in_group(name, of) for name in ("long", "long_lo", "part_a", "top")] == [
        "size/long", "interval/long_lo", "judge/part_a", "top",
    ]  # fmt: skip


def test_words_of_a_metric_are_its_label_unless_it_has_a_noun() -> None:
    assert (METRICS["ir_score"].words, METRICS["correct"].words) == ("IR score", "right answers")
    assert (METRICS["ir_score"].difference, METRICS["correct_share"].difference) == ("IR score", "right, points")


def test_mlflow_folds_what_is_not_read_first_into_groups() -> None:
    named = {
        "correct_share": "correct_share",
        "correct_share_lo": "interval/correct_share_lo",
        "judge_share_missing": "judge_share_missing",
        "judge_share_missing_hi": "interval/judge_share_missing_hi",
        "em": "em",
        "em_missing": "missing/em_missing",
        "ndcg_at_10": "ndcg_at_10",
        "p_at_5": "ranking/p_at_5",
        "ir_score_at_n": "chart/ir_score_at_n",
        "judge_prompt_tokens": "cost/judge_prompt_tokens",
        "judge_prompt_spread": "judge/judge_prompt_spread",
        "seconds_per_topic": "cost/seconds_per_topic",
        "seconds_index": "stage/seconds_index",
        "slice/type/bridge/em_lo": "slice/type/bridge/em_lo",
        "of_a_package": "of_a_package",
    }
    assert {name: in_group(name, DECLARED) for name in named} == named
    assert list(without_groups(dict.fromkeys(named.values(), 0.5))) == list(named)


def test_every_known_metric_is_read_back_by_its_name_and_few_stand_alone() -> None:
    known = [name.replace("*", "x") for name in (*metrics_of_jobs(), *metrics_of_sweeps())]
    assert list(without_groups({in_group(name, DECLARED): 0.5 for name in known})) == list(dict.fromkeys(known))
    alone = {name for name in known if "/" not in in_group(name, DECLARED)}
    assert {"ir_score", "correct_share", "threshold_h", "predictor_auc_lack", "topics", "cost_usd"} <= alone
