"""Traces as samples for `experiment=recorded`: one row per trace, with RAGAS's names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from ragauge.contract.errors import DataError
from ragauge.contract.redact import redact
from ragauge.contract.topics import CONVERSATION, HISTORY, TURN
from ragauge.plugins.otel.attributes import number
from ragauge.plugins.otel.spans import LLM, RETRIEVER, Score, Span
from ragauge.plugins.traces.shapes import Passage, docno_of
from ragauge.retrieval.passages import name_of

Row = dict[str, Any]


def samples_of(
    spans: Iterable[Span], scores: Iterable[Score] = (), label: str | None = None, system: str = ""
) -> tuple[list[Row], dict[str, list[str]]]:
    """The samples of the traces, oldest first, and the ids of traces that are left out, by what they lack.

    Scores become attributes `score_<name>`; the one named `label` is the label, and DataError unless it is 1 to 5.
    system: the attribute that names the systems, whose equal questions then have one qid.
    """
    traces: dict[str, list[Span]] = {}
    for span in sorted(spans, key=lambda span: (span.start is None, span.start or 0.0)):
        traces.setdefault(span.trace, []).append(span)
    said = _columns(scores, label)
    rows: list[Row] = []
    left_out: dict[str, list[str]] = {}
    for trace, its in traces.items():
        row = {**_row(trace, its), **said.get(trace, {})}
        lacking = {
            "a question": row["user_input"] is None,
            "an answer": row["response"] is None and "error" not in row,
            f"the attribute {system}": system and "system" not in row,
        }
        if any(lacking.values()):
            left_out.setdefault(next(what for what, lacks in lacking.items() if lacks), []).append(trace)
        else:
            rows.append(row)
    if all(row["rounds"] == 0 for row in rows):  # the tracer knows no retrieval: contexts are unknown, not empty
        rows = [{**row, "retrieved_contexts": None} for row in rows]
    _number_turns(rows)
    if system:
        _pair_systems(rows)
    return rows, left_out


def _row(trace: str, spans: Sequence[Span]) -> Row:
    """The row of a trace; its question or answer is None if it has none, its contexts if they are unknown.

    Question, answer, seconds and error are those of the root span. Without them the question is that of the first span
    with one, and the answer that of the last LLM span. Tokens and US dollars are sums over the outermost LLM spans.
    """
    known = {span.id for span in spans}
    tops = [span for span in spans if span.parent not in known] or spans[:1]
    root = next((span for span in tops if span.id == trace), tops[0])
    llms, retrievers = _outermost(LLM, spans), _outermost(RETRIEVER, spans)
    error = next((span.error for span in (root, tops[0]) if span.error), None)
    answers = [root.answer, *(span.answer for span in reversed(llms))]
    session = _first(span.session for span in (root, *spans))
    sums = {key: _sum(span.sums[key] for span in llms) for key in root.sums}
    columns = {
        "error": error,
        "seconds": _first(span.seconds for span in (root, *tops)),
        **{key: value if value is None or key == "cost_usd" else int(value) for key, value in sums.items()},
        "model": _first(span.model for span in reversed(llms)),
        "day": None if root.start is None else f"{datetime.fromtimestamp(root.start, UTC):%Y-%m-%d}",
        "system": _first(span.system for span in (root, *spans)),
        CONVERSATION: session and redact(session),
    }
    return {
        "qid": trace,
        "user_input": _first(span.question for span in (root, *spans)),
        **_contexts(retrievers),
        "response": None if error else _first(answers),
        "rounds": len(retrievers),
        **{key: value for key, value in columns.items() if value is not None},
    }


def _outermost(kind: str, spans: Sequence[Span]) -> list[Span]:
    """The spans of a kind that are within no other span of it, in the order of time."""
    by_id = {span.id: span for span in spans}

    def above(span: Span) -> Iterator[Span]:
        seen = {span.id}
        while (parent := by_id.get(span.parent or "")) is not None and parent.id not in seen:
            seen.add(parent.id)
            yield parent
            span = parent

    return [one for one in spans if one.kind == kind and all(outer.kind != kind for outer in above(one))]


def _contexts(retrievers: Sequence[Span]) -> Row:
    """The contexts of all rounds, each text once at its first place, and docnos where a document has a name.

    Contexts are None where a retriever span has no documents, or one of them no text.
    """
    merged: dict[str, Passage] = {}
    for passage in (passage for span in retrievers for passage in span.passages or []):
        merged.setdefault(passage.text or f"without a text: {passage.document}", passage)
    texts = [passage.text for passage in merged.values()]
    known = all(texts) and all(span.passages is not None for span in retrievers)
    docnos = [docno_of(one.document) if one.document else name_of(one.text) for one in merged.values()]
    named = any(passage.document for passage in merged.values())
    return {"retrieved_contexts": texts if known else None, **({"docnos": docnos} if named else {})}


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _columns(scores: Iterable[Score], label: str | None) -> dict[str, Row]:
    """The columns of scores, by trace."""
    found: dict[str, Row] = {}
    for score in scores:
        row = found.setdefault(score.trace, {})
        if score.name != label:
            row[f"score_{re.sub(r'[^0-9A-Za-z]+', '_', score.name)}"] = score.value
        elif number(score.value) in (1, 2, 3, 4, 5):
            row["label"] = int(float(score.value))
        else:
            raise DataError(f"{score.where}: trace {score.trace} has {label}={score.value!r}; a label is 1 to 5")
    if label and not any("label" in row for row in found.values()):
        raise DataError(f"--label {label}: no score has this name")
    return found


def _number_turns(rows: Iterable[Row]) -> None:
    """Gives each row of a session its turn, and the questions and answers before it."""
    said: dict[str, list[str]] = {}
    for row in rows:
        if CONVERSATION in row:
            earlier = said.setdefault(row[CONVERSATION], [])
            row |= {TURN: len(earlier) // 2 + 1, HISTORY: list(earlier)}
            earlier += [row["user_input"], row["response"] or ""]


def _pair_systems(rows: Iterable[Row]) -> None:
    """Gives the n-th trace of a question in each system one qid and conversation, those of the first system's."""
    counts: Counter[tuple[Any, ...]] = Counter()
    firsts: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        asked = (row["user_input"], *row.get(HISTORY, [])[::2])
        counts[asked, row["system"]] += 1
        first = firsts.setdefault((asked, counts[asked, row["system"]]), row)
        row |= {"trace_id": row["qid"], **{key: first[key] for key in ("qid", CONVERSATION) if key in first}}
