"""The section on cost: every group that asked a chat model is in it, and latency where it was measured."""

from __future__ import annotations

from typing import Any

from ragauge.contract.groups import CALLS
from ragauge.findings.cost import COUNTED, costs, costs_of_jobs, latencies, stage_seconds


def record(**metrics: float) -> dict[str, Any]:
    return {"n_tokens": 100, "metrics": {"seconds_total": 9.0, **metrics}}


def test_answers_and_verdicts_are_always_shown_and_others_where_they_asked() -> None:
    assert list(costs([record(), record(rewriter_llm_calls=0)])) == ["Answers", "Verdicts"]
    shown = costs([record(rewriter_llm_calls=2, rewriter_cost_usd=0.5), record(rewriter_llm_calls_cached=3)])
    assert list(shown) == ["Queries", "Answers", "Verdicts"]
    assert shown["Queries"] == {
        "llm_calls": 2, "llm_calls_cached": 3, "prompt_tokens": 0, "completion_tokens": 0, "cost_usd": 0.5,
    }  # fmt: skip


def test_the_sums_of_a_job_are_over_all_who_asked() -> None:
    job = record(**{f"{prefix}{name}": 2.0 for prefix in CALLS for name in COUNTED})
    (row,) = costs_of_jobs(["sim"], [job])
    assert {row[name] for name in COUNTED} == {2.0 * len(CALLS)}
    assert (row["system"], row["n_tokens"], row["seconds"]) == ("sim", 100, 9.0)


def test_stages_are_summed_over_jobs_without_the_total_and_without_times_of_making() -> None:
    jobs = [record(seconds_run=1.0, seconds_made_index=50.0), record(seconds_run=2.0, seconds_answers=7.0)]
    assert stage_seconds(jobs) == {"answers": 7.0, "run": 3.0}


def test_latency_has_its_stages_in_order_and_the_total_last() -> None:
    times = {f"latency_{name}_p{q}": float(q) for name in ("total", "run", "answers") for q in (50, 95)}
    (row,) = latencies(["sim", "bm25"], [record(latency_topics=50, **times), record()])
    assert list(row["stages"]) == ["run", "answers", "total"]
    assert row["stages"]["total"] == (50.0, 95.0)
    assert row["topics"] == 50
