"""What of the topics is left out for want of it, and evidence that stands in no document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ragauge.contract.visible import visible

_LACKING = {
    "without_evidence": "have no evidence: {scored}",
    "lost_evidence": "have evidence that is in no document, or not in the one it names",
    "without_reference": "have no reference answer: they are not judged",
    "unanswerable": "are unanswerable: right is class 1 there, and they are counted apart",
}
_LOST = 10  # parts of the evidence that are listed
_SHOWN = 200  # characters of one


def lacking_text(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """What of the topics is left out for want of it, a sentence each, from the metrics of the jobs.

    Topics are named as far as a record has their qids (`lacking`, by what they lack).
    """
    metrics = [record["metrics"] for record in records]
    topics = max(m.get("topics", 0) for m in metrics)
    most = {name: max(m.get(f"topics_{name}", 0) for m in metrics) for name in _LACKING}
    others = most["without_evidence"] + most["unanswerable"] < topics
    scored = "the IR score is of the others" if others else "there is no IR score"
    return [
        f"{n:.0f} of {topics:.0f} topics {_LACKING[name].format(scored=scored)}{_named(records, name, n)}"
        for name, n in most.items()
        if n
    ]


def _named(records: Sequence[Mapping[str, Any]], name: str, n: float) -> str:
    qids = max((record.get("lacking", {}).get(name, []) for record in records), key=len)
    more = ", …" if len(qids) < n else ""
    return f" ({', '.join(map(visible, qids))}{more})" if qids else ""


def lost_text(lost: pd.DataFrame) -> list[str]:
    """A line for each of the first ten lost parts of the evidence, with the text nearest to it.

    lost: qid, part, docno, text, near_docno, near (`ragauge.measures.located.locate`).
    """
    lines = []
    for row in lost.head(_LOST).to_dict("records"):
        named = isinstance(row["docno"], str)
        where = f"not in document {row['docno']!r}, which it names" if named else "in no document"
        if not isinstance(row["near"], str):
            near = "no sentence there is like it"
        elif row["near"] == row["text"]:
            near = f"document {row['near_docno']!r} holds it"
        else:
            near = f"nearest, in {row['near_docno']!r}: {_quoted(row['near'])}"
        lines.append(f"qid {row['qid']!r}, part {row['part']}: {_quoted(row['text'])} is {where}; {near}")
    more = len(lost) - len(lines)
    return [*lines, *([f"{more:,} more such parts are in lost_evidence.json"] if more else [])]


def _quoted(text: str) -> str:
    shown = visible(text, one_line=True)
    return repr(shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…")
