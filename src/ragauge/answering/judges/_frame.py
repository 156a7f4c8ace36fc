"""Verdicts as rows, and what a judge needs to know of a topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError

NO_ANSWER = "no answer"


@dataclass(frozen=True)
class Verdict:
    """One verdict: a class or None, how it came about, and what it cost.

    status: `ok`, `no answer` (nothing to judge), `missing` (no reply came), `unreadable` (a reply that is no
    verdict, kept in `raw`), `none` (no judge). `request` names the call, which several verdicts may share.
    """

    label: int | None
    status: str = "ok"
    raw: str | None = None
    reason: str | None = None
    error: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    cached: bool = False
    request: str | None = None


def verdict_frame(keys: pd.DataFrame, verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """The key columns with the fields of the verdicts, row by row."""
    columns: dict[str, object] = {name: keys[name].to_numpy() for name in keys.columns}
    columns["label"] = pd.array([v.label for v in verdicts], dtype="Int8")
    for name in ("status", "raw", "reason", "error", "request"):
        columns[name] = pd.array([getattr(v, name) for v in verdicts], dtype="str")
    for name, dtype in (
        ("prompt_tokens", np.int64), ("completion_tokens", np.int64), ("cost_usd", float),
        ("seconds", float), ("cached", bool),
    ):  # fmt: skip
        columns[name] = np.array([getattr(v, name) for v in verdicts], dtype=dtype)
    return pd.DataFrame(columns)


@dataclass(frozen=True)
class Truth:
    """What an answer is compared with."""

    query: str
    reference: str
    evidence: tuple[str, ...]


def truths(topics: pd.DataFrame, evidence: pd.DataFrame, qids: pd.Series) -> dict[str, Truth]:
    """Question, reference answer and evidence (in the order of its parts) of every qid.

    DataError for a qid without topic or evidence.
    """
    wanted = list(dict.fromkeys(qids))
    parts = evidence[evidence["qid"].isin(wanted)].sort_values(["qid", "part"])
    texts = {str(qid): tuple(rows) for qid, rows in parts.groupby("qid")["text"]}
    of_topics = topics[topics["qid"].isin(wanted)]
    found = {
        qid: Truth(query, answer, texts.get(qid, ()))
        for qid, query, answer in zip(of_topics["qid"], of_topics["query"], of_topics["answer"], strict=True)
    }
    for qid in wanted:
        if qid not in found:
            raise DataError(f"answers frame: qid {qid!r} is in no topic")
        if not found[qid].evidence:
            raise DataError(f"evidence frame: none for qid {qid!r}")
    return found
