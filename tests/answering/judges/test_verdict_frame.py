"""The frame of verdicts: its types whatever the verdicts hold, and what several answers of one request share."""

from __future__ import annotations

import pandas as pd
import pytest

from ragauge.answering.judges._frame import Verdict, divided, spread, truths, verdict_frame
from ragauge.contract import frames
from ragauge.contract.errors import DataError
from ragauge.llms.calls import Reply

KEYS = pd.DataFrame({"qid": ["a", "b"], "n_tokens": [100, 100]})


def test_columns_have_their_types_also_where_no_verdict_says_anything() -> None:
    nothing = verdict_frame(KEYS, [Verdict(None, "missing"), Verdict(None, "missing")])
    some = verdict_frame(KEYS, [Verdict(5, raw="x", reason="y", error=None, request="r"), Verdict(None)])
    frames.check("verdicts", some)
    assert nothing.dtypes.equals(some.dtypes)
    assert {name: str(nothing[name].dtype) for name in ("label", "status", "raw", "reason", "error", "request")} == {
        "label": "Int8", **dict.fromkeys(("status", "raw", "reason", "error", "request"), "str"),
    }  # fmt: skip
    none = verdict_frame(KEYS.head(0), [])
    assert none.dtypes.drop("qid").equals(some.dtypes.drop("qid"))


def test_what_a_request_took_is_divided_among_its_answers_and_adds_up() -> None:
    reply = Reply("raw", None, 10, 5, 0.3, 1.5, calls=2)
    first, second, third = divided(reply, [(5, "r"), (1, None), (3, "s")], 3, "a list")
    assert [v.label for v in (first, second, third)] == [5, 1, 3]
    assert {v.status for v in (first, second, third)} == {"ok"}
    assert [v.reason for v in (first, second, third)] == ["r", None, "s"]
    assert [v.prompt_tokens for v in (first, second, third)] == [3, 3, 4]
    assert [v.completion_tokens for v in (first, second, third)] == [1, 2, 2]
    assert [v.cost_usd for v in (first, second, third)] == pytest.approx([0.1] * 3)
    assert [v.seconds for v in (first, second, third)] == [0.5] * 3
    unread = divided(reply, None, 2, "a list")
    assert [(v.label, v.status, v.raw) for v in unread] == [(None, "unreadable", "raw")] * 2
    assert unread[0].reason == unread[0].error
    assert "a list" in str(unread[0].error)
    (missing,) = divided(Reply(None, "time-out"), None, 1, "a list")
    assert (missing.status, missing.error, missing.reason) == ("missing", "time-out", None)


def test_equal_answers_to_a_topic_cost_once_and_calls_stand_at_the_first_of_a_request() -> None:
    rows = pd.DataFrame({"qid": ["a", "a", "b", "b"], "answer": ["x", "x", "y", None]})
    of = {("a", "x"): Verdict(5, cost_usd=0.5, seconds=1.0, calls=2, usage_unknown=1, request="r"),
          ("b", "y"): Verdict(1, cost_usd=0.5, seconds=1.0, calls=2, usage_unknown=1, request="r")}  # fmt: skip
    found = spread(rows, of)
    assert [v.label for v in found] == [5, 5, 1, None]
    assert [v.cost_usd for v in found] == [0.5, 0.0, 0.5, 0.0]
    assert [v.seconds for v in found] == [1.0, 0.0, 1.0, 0.0]
    assert [v.cached for v in found] == [False, True, False, False]
    assert [v.calls for v in found] == [2, 0, 0, 0]
    assert [v.usage_unknown for v in found] == [1, 0, 0, 0]
    assert found[3].status == "no answer"


def test_a_topic_is_compared_with_its_reference_and_evidence_in_order() -> None:
    topics = pd.DataFrame({"qid": ["a", "b", "c"], "query": ["A?", "B?", "C?"], "answer": ["x", None, "z"]})
    evidence = pd.DataFrame({"qid": ["a", "a", "c"], "part": [1, 0, 0], "text": ["two", "one", None]})
    found = truths(topics, evidence, pd.Series(["a", "c", "a"]))
    assert list(found) == ["a", "c"]
    assert (found["a"].query, found["a"].references, found["a"].evidence) == ("A?", ("x",), ("one", "two"))
    assert found["c"].evidence == ()
    with pytest.raises(DataError, match="qid 'd' is in no topic"):
        truths(topics, evidence, pd.Series(["a", "d"]))
    with pytest.raises(DataError, match="qid 'b' has no reference answer to judge by"):
        truths(topics, evidence, pd.Series(["b"]))
