"""The section on cost: every group that asked a chat model is in it, and latency where it was measured."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd

from ragauge.contract.groups import GROUPS
from ragauge.contract.replies import CUT
from ragauge.findings.cost import Cost, costs, costs_of_parts, costs_of_replies, notes_of_replies


def record(**metrics: float) -> dict[str, Any]:
    return {"n_tokens": 100, "metrics": {"seconds_total": 9.0, **metrics}}


REPLIES = pd.DataFrame(
    {"qid": ["a", "b", "c"], "calls": [2, 1, 0], "cached": [False, True, False], "prompt_tokens": [7, 5, 0],
     "completion_tokens": [3, 2, 0], "cost_usd": [0.5, 0.25, 0.0]}
)  # fmt: skip


def test_calls_that_were_answered_before_are_counted_apart_and_cost_nothing() -> None:
    assert costs_of_replies(REPLIES, "judge_") == {
        "judge_llm_calls": 2, "judge_llm_calls_cached": 1, "judge_llm_usage_unknown": 0, "judge_prompt_tokens": 7,
        "judge_completion_tokens": 3, "judge_cost_usd": 0.5,
    }  # fmt: skip


def test_what_servers_had_in_their_cache_is_a_metric_and_a_column_where_one_reports_it() -> None:
    nan = float("nan")
    told = costs_of_replies(REPLIES.assign(cached_tokens=[4.0, 5.0, nan], written_tokens=[nan, 2.0, nan]))
    assert told["cached_tokens"] == 4  # the others came from the ledger, and so did all that was written
    assert "written_tokens" not in told
    assert costs_of_replies(REPLIES.assign(cached_tokens=[0.0, nan, nan]))["cached_tokens"] == 0

    def rows(*metrics: dict[str, float]) -> list[list[Any]]:
        records: Any = [SimpleNamespace(**record(**one)) for one in metrics]
        jobs: Any = SimpleNamespace(records=records, systems=["a", "b"][: len(records)], outcomes=pd.DataFrame())
        grid: Any = Cost().show(jobs, costs(records), {}).sections[0].blocks[0]
        return [[column.title for column in grid.columns[1:]], [cell.value for cell in grid.rows[0][1:]]]

    assert rows(told, {}) == [
        ["Calls", "Cached", "Prompt tokens", "Read from cache", "Completion tokens", "US dollars"],
        [2, 1, 7, 4, 3, 0.5],
    ]
    assert rows(costs_of_replies(REPLIES))[0] == ["Calls", "Cached", "Prompt tokens", "Completion tokens", "US dollars"]


def test_replies_that_were_cut_or_had_thoughts_are_counted_and_said() -> None:
    error = pd.array([CUT, f"{CUT}: 5; expected", None], dtype="str")
    found = costs_of_replies(REPLIES.assign(error=error, thoughts=pd.array([None, None, "Hm."], dtype="str")))
    assert (found["llm_cut"], found["llm_thoughts"]) == (2, 1)
    assert notes_of_replies({**found, "judge_llm_cut": 4}, 3) == [
        "Replies cut at the token limit: answers 2 of 3, verdicts 4; max_tokens (num_predict) of the model's chat sets "
        "it",
        "Replies with thoughts, which are no part of what is measured: answers 1 of 3",
    ]
    assert notes_of_replies(costs_of_replies(REPLIES)) == []


def test_answers_from_other_contexts_cost_what_they_took_when_they_were_made() -> None:
    stage = SimpleNamespace(name="varied_verdicts", group="", uses=(), label="varied", makes=["replies"],
                            replies_as="robust_judge_")  # fmt: skip
    entry = SimpleNamespace(made=True, frame=lambda name: REPLIES.assign(qid="a", variant=[0, 1, 2]))
    pipeline = SimpleNamespace(
        stages=[stage], chat_of=lambda stage: None, entry=lambda label: entry,
        components=SimpleNamespace(**dict.fromkeys(GROUPS, SimpleNamespace(counts=(), topic_counts=()))),
        tools=SimpleNamespace(counted={}), frame=lambda name: pd.DataFrame({"qid": ["a"]}),
    )  # fmt: skip
    found = costs_of_parts(pipeline)
    assert (found["robust_judge_llm_calls"], found["robust_judge_cost_usd"]) == (2, 0.5)
