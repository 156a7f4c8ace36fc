"""A trace as one row of a samples file: question, passages, answer, expectations and attributes.

The columns are those of RAGAS's samples (user_input, retrieved_contexts, response, reference,
reference_contexts), so that a file of such rows is read as one. Every further scalar is an attribute.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ragauge.contract.redact import redact
from ragauge.contract.topics import CONVERSATION
from ragauge.plugins.traces.shapes import Passage, answer_of, docno_of, holds_texts, passages_of, question_of

if TYPE_CHECKING:
    from mlflow.entities import Span, Trace

# What a row holds beside attributes.
COLUMNS = (
    "id", "trace_id", "user_input", "retrieved_contexts", "retrieved_docnos", "response", "error",
    "seconds", "prompt_tokens", "completion_tokens", "cost_usd", "reference", "references",
    "reference_contexts", "evidence", "unanswerable",
)  # fmt: skip
# The attributes that every row has; null where the trace does not tell.
ATTRIBUTES = ("day", "model", "rounds", "state")
_SESSION = "mlflow.trace.session"
_LLM = ("CHAT_MODEL", "LLM")
_RETRIEVER = "RETRIEVER"
_EMBEDDING = "EMBEDDING"


@dataclass(frozen=True)
class Reading:
    """Settings for reading traces as rows.

    question, answer: compiled JMESPath expressions on the inputs and outputs of the root span; None for the
    usual shapes. contexts: union (of all rounds) or last. qid: trace_id or client_request_id. tags: names of
    tags, or of entries of the trace's metadata, that are attributes.
    """

    question: Any = None
    answer: Any = None
    contexts: str = "union"
    qid: str = "trace_id"
    tags: Sequence[str] = ()


@dataclass(frozen=True)
class Truth:
    """Truth in addition to the trace's own expectations: by trace id, and by question."""

    by_trace: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    by_question: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


def row_of(trace: Trace, how: Reading, truth: Truth) -> dict[str, Any]:
    """The row of one trace; `user_input` is null if no question is found, `response` without an answer."""
    info = trace.info
    root = next((span for span in trace.data.spans if span.parent_id is None), None)
    question = _found(how.question, question_of, root.inputs if root else None)
    answer = _found(how.answer, answer_of, root.outputs if root else None)
    rounds = _rounds(trace.data.spans)
    passages = _merged(rounds if how.contexts == "union" else rounds[-1:])
    known = [
        *expectations_on(trace),
        *truth.by_trace.get(info.trace_id, ()),
        *truth.by_question.get(question or "", ()),
    ]
    failed = str(info.state.value) == "ERROR"
    usage = info.token_usage or {}
    tags = {**info.trace_metadata, **info.tags}
    return {
        "id": info.client_request_id if how.qid == "client_request_id" else info.trace_id,
        "trace_id": info.trace_id,
        "user_input": question,
        "retrieved_contexts": [passage.text for passage in passages],
        "retrieved_docnos": [passage.document and docno_of(passage.document) for passage in passages],
        "response": None if failed else answer,
        "error": _error(root) if failed else None,
        **truth_columns(known),
        "day": f"{datetime.fromtimestamp(info.request_time / 1000, UTC):%Y-%m-%d}",
        "model": _model(trace.data.spans),
        "rounds": len(rounds),
        "seconds": None if info.execution_duration is None else info.execution_duration / 1000,
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "cost_usd": (info.cost or {}).get("total_cost"),
        "state": str(info.state.value),
        **({CONVERSATION: redact(tags[_SESSION])} if tags.get(_SESSION) else {}),
        **{name: redact(str(tags[name])) if name in tags else None for name in how.tags},
    }


def truth_columns(known: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The expectation columns of a row, from mappings of MLflow's expectations."""
    references, evidence = _references(known), _evidence(known)
    return {
        "reference": references[0] if references else None,
        "references": references,
        "reference_contexts": [part["text"] for part in evidence if part["text"]],
        "evidence": evidence,
        "unanswerable": any(told.get("unanswerable") is True for told in known),
    }


def is_request(trace: Trace, row: Mapping[str, Any]) -> bool:
    """False for a trace that splits or embeds texts, or has neither question, retrieval nor answer."""
    root = next((span for span in trace.data.spans if span.parent_id is None), None)
    if row["user_input"] or row["rounds"]:
        return root is None or root.span_type != _EMBEDDING
    return row["response"] is not None and not holds_texts(root and root.inputs)


def _found(path: Any, usual: Any, value: Any) -> str | None:
    """The text at a JMESPath of the value, or without one at the usual places."""
    if path is None:
        found: str | None = usual(value)
        return found
    told = path.search(value)
    return told if isinstance(told, str) and told.strip() else None


def _rounds(spans: Sequence[Span]) -> list[list[Passage]]:
    """The passages of each RETRIEVER span, in time order; a nested span is part of its parent's round."""
    by_id = {span.span_id: span for span in spans}

    def within(span: Span) -> bool:
        seen = set()
        while (parent := by_id.get(span.parent_id or "")) is not None and parent.span_id not in seen:
            if parent.span_type == _RETRIEVER:
                return True
            seen.add(parent.span_id)
            span = parent
        return False

    outer = [span for span in spans if span.span_type == _RETRIEVER and not within(span)]
    return [passages_of(span.outputs) for span in sorted(outer, key=lambda span: span.start_time_ns)]


def _merged(rounds: Iterable[Sequence[Passage]]) -> list[Passage]:
    """The passages of all rounds, each text once, at its first place."""
    first: dict[str, Passage] = {}
    for passage in (passage for one in rounds for passage in one):
        first.setdefault(passage.text, passage)
    return list(first.values())


def _model(spans: Sequence[Span]) -> str | None:
    """The model of the last LLM call, which answered."""
    found = None
    for span in sorted(spans, key=lambda span: span.start_time_ns):
        if span.span_type in _LLM:
            asked = span.get_attribute("invocation_params")
            places = (
                asked if isinstance(asked, dict) else {},
                span.inputs if isinstance(span.inputs, dict) else {},
            )
            named = [span.get_attribute("mlflow.llm.model")]
            named += [place.get(key) for place in places for key in ("model", "model_name")]
            found = next((name for name in named if isinstance(name, str) and name), found)
    return found


def _error(root: Span | None) -> str:
    """A trace's failure in one line: its exception, or its status."""
    for event in root.events if root else ():
        attributes = event.attributes or {}
        if "exception.type" in attributes:
            what, why = (str(attributes.get(f"exception.{key}", "")) for key in ("type", "message"))
            return redact(" ".join(f"{what}: {why}".split()))[:500]
    told = root.status.description if root else ""
    return redact(" ".join(told.split()))[:500] or "the trace's state is ERROR"


def expectations_on(trace: Trace) -> list[dict[str, Any]]:
    """The valid expectations on a trace, the newest first, each as a mapping from name to value."""
    newest_first = sorted(trace.info.assessments, key=lambda a: (-(a.last_update_time_ms or 0), str(a.assessment_id)))
    return [
        {told.name: decoded(told.expectation.value)}
        for told in newest_first
        if told.expectation is not None and told.valid is not False
    ]


def decoded(value: Any) -> Any:
    """The value, parsed if it is a JSON list: people type such lists into MLflow's page."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _references(known: Iterable[Mapping[str, Any]]) -> list[str]:
    """The expected responses; without any, the expected facts as one text, one per line."""
    known = list(known)
    responses = [told["expected_response"] for told in known if "expected_response" in told]
    texts = [text for text in responses if isinstance(text, str) and text.strip()]
    if not texts:
        facts: Any = next((told["expected_facts"] for told in known if told.get("expected_facts")), [])
        lines = [fact for fact in facts if isinstance(fact, str) and fact.strip()] if isinstance(facts, list) else []
        texts = ["\n".join(lines)] if lines else []
    return list(dict.fromkeys(texts))


def _evidence(known: Iterable[Mapping[str, Any]]) -> list[dict[str, str | None]]:
    """The passages to be retrieved: text, docno or both of each."""
    parts: dict[tuple[str | None, str | None], None] = {}
    for told in known:
        listed = told.get("expected_retrieved_context")
        for one in listed if isinstance(listed, list) else []:
            texts = passages_of([one])
            document = texts[0].document if texts else (one.get("doc_uri") if isinstance(one, Mapping) else None)
            docno = docno_of(document) if isinstance(document, str) and document.strip() else None
            if texts or docno:
                parts[docno, texts[0].text if texts else None] = None
    return [{"docno": docno, "text": text} for docno, text in parts]
