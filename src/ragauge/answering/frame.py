"""Helpers of all answerers: questions by context, the frame `answers` from replies, and `llm=none`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ragauge.contract.answering import Generator
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.replies import CUT, Reply
from ragauge.contract.usage import usage_columns
from ragauge.contract.visible import is_blank

BLANK = "the answer holds no visible character"


def queries_of(topics: pd.DataFrame, contexts: pd.DataFrame) -> list[str]:
    """The question of every row of `contexts`; DataError for a context without a topic."""
    queries = contexts["qid"].map(topics.set_index("qid")["query"])
    if queries.isna().any():
        raise DataError(f"contexts frame: qid {contexts['qid'][queries.isna()].iloc[0]!r} is in no topic")
    return queries.tolist()


def answer_frame(
    contexts: pd.DataFrame, replies: Sequence[Reply], no_reply: str = "missing", *, may_be_empty: bool = False
) -> pd.DataFrame:
    """Frame `answers`, a row per context; a reply without text has the status `no_reply`.

    White space and zero-width characters alone are no text: the answer is missing, with BLANK as its error. With
    `may_be_empty` "" is an answer that says nothing. Where any reply has thoughts, they are the column `thoughts`.
    """
    said = [r.text is None or not is_blank(r.text) or (may_be_empty and r.text == "") for r in replies]
    replies = [r if ok else replace(r, text=None, error=BLANK) for r, ok in zip(replies, said, strict=True)]
    status = [no_reply if r.text is None else ("cut" if r.error == CUT else "ok") for r in replies]
    found = pd.DataFrame(
        {
            "qid": contexts["qid"].to_numpy(),
            "n_tokens": contexts["n_tokens"].to_numpy(),
            "answer": pd.array([r.text for r in replies], dtype="str"),
            "status": pd.array(status, dtype="str"),
            "error": pd.array([r.error for r in replies], dtype="str"),
            "cached": np.array([r.cached for r in replies], dtype=bool),
            **usage_columns([r.usage for r in replies]),
        }
    )
    thoughts = [r.thoughts for r in replies]
    return found.assign(thoughts=pd.array(thoughts, dtype="str")) if any(thoughts) else found


@dataclass(frozen=True)
class NoLLM(Generator):
    """No answers: retrieval alone is measured."""

    component = "none"
    kind = "none"

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers` without answers; every status is none."""
        return answer_frame(contexts, [Reply(None)] * len(contexts), no_reply="none")
