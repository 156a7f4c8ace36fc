"""The names of metrics that the code knows before a job runs."""

from __future__ import annotations

import pytest

from ragauge.contract.metric_names import Metric, closest, is_known, measure_metrics, spelled
from ragauge.findings.order import metrics_of_jobs, metrics_of_sweeps

OF_JOBS, OF_SWEEPS = metrics_of_jobs(), metrics_of_sweeps()


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
    declared = ("a{,_lo}_{x,y}", Metric("b{,/*}", chart=True), Metric("c", "what it is"))
    assert spelled(declared) == ["a_x", "a_y", "a_lo_x", "a_lo_y", "c"]
    assert spelled(declared, charts=True) == ["b", "b/*"]
