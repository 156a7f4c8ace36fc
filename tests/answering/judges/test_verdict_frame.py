"""The frame of verdicts: its types whatever the verdicts hold, and what an answer is compared with."""

from __future__ import annotations

import pandas as pd
import pytest

from ragauge.answering.judges import Verdict, truths, verdict_frame
from ragauge.contract import frames
from ragauge.contract.errors import DataError

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
