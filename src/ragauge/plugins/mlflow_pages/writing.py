"""Writes topics into MLflow as traces with expectations and feedback, many in one transaction."""

from __future__ import annotations

import base64
import copy
import json
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from ragauge.contract.errors import TrackingError
from ragauge.contract.progress import progress
from ragauge.plugins.mlflow_pages.topics import Feedback, TopicTrace, Usage
from ragauge.track import answer_digest
from ragauge.track.feedback import ANSWER_TAG, OWN_TAG

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Assessment, AssessmentSource, Span, TraceInfo

_BATCH = 100  # traces whose spans are written, and that are linked to a run, in one request: MLflow's limit on links
_NAME_CHARS = 80
_PREVIEW_CHARS = 1000  # MLflow's limit
_SOURCE_RUN = "mlflow.assessment.sourceRunId"
_JUDGE_CALL = {"prompt_tokens": "judgeInputTokens", "completion_tokens": "judgeOutputTokens", "cost_usd": "judgeCost"}


def write_traces(
    client: MlflowClient, experiment_id: str, run_id: str, topics: Iterable[TopicTrace], source: AssessmentSource,
    said_by: str | None = None,
) -> dict[str, str]:  # fmt: skip
    """Writes a trace of the run per topic, with expectations and feedback; returns their ids by qid.

    source: MLflow's source of the feedback; said_by: the id of its run, None for `run_id`. The ids are random
    whatever seed Python's generator has. A hundred traces are one transaction in a database; to a server the spans of
    a hundred are one request, and each trace with its assessments is one. TrackingError where the server does not take
    spans (MLflow before 3.4).
    """
    from mlflow.tracing.client import TracingClient

    store = TracingClient(client.tracking_uri).store
    found: dict[str, str] = {}
    rows = iter(topics)
    start = 0
    with progress(None, "writing traces", "trace") as bar:
        while batch := list(islice(rows, _BATCH)):
            infos: list[TraceInfo] = []
            spans: list[Span] = []
            for topic in batch:
                number = secrets.token_hex(16)
                found[topic.qid] = f"tr-{number}"
                start = max(time.time_ns(), start + 1_000_000)  # MLflow orders a session's traces by milliseconds
                info = _info(topic, found[topic.qid], experiment_id, run_id, start)
                info.assessments = [
                    *_expectations(topic, info.trace_id), *assessments(topic, info.trace_id, source, said_by or run_id)
                ]  # fmt: skip
                infos.append(info)
                spans += _spans(topic, number, start)
            with _one_transaction(store, infos) as opened:
                try:
                    opened.log_spans(experiment_id, spans)
                except NotImplementedError as error:
                    raise TrackingError(f"MLflow at {client.tracking_uri} takes no spans: {error}") from error
            bar.update(len(batch))
    return found


@contextmanager
def _one_transaction(store: Any, infos: Sequence[TraceInfo]) -> Iterator[Any]:
    """Starts the traces in MLflow's store; yields the store, whose writes join the same transaction.

    MLflow commits each trace by itself, which takes most of its time. So a copy of the store gets one session, which
    sends the rows of all traces at once. A server has no session: there each trace is a request.
    """
    if not hasattr(store, "ManagedSessionMaker"):
        for info in infos:
            store.start_trace(info)
        yield store
        return
    own = copy.copy(store)
    own.get_experiment = cache(store.get_experiment)
    with store.ManagedSessionMaker(read_only=False) as session:
        own.ManagedSessionMaker = lambda **_: nullcontext(session)
        session.flush = lambda *_: None
        for info in infos:
            own.start_trace(info)
        del session.flush
        yield own


def assessments(topic: TopicTrace, trace_id: str, source: AssessmentSource, run_id: str) -> Iterator[Assessment]:
    """The feedback on a topic's answer as MLflow's assessments of a run; the judge's with its tokens and cost."""
    from mlflow.entities import Feedback as Logged

    for name, told in topic.feedback.items():
        yield Logged(
            name=name,
            value=told.value,
            source=source,
            trace_id=trace_id,
            rationale=told.rationale,
            metadata={_SOURCE_RUN: run_id, **judge_call(told)},
        )


def judge_call(told: Feedback) -> dict[str, str]:
    """MLflow's metadata on the judge's call behind a feedback; {} if no LLM was asked."""
    usage = told.usage or Usage()
    values = {name: getattr(usage, field) for field, name in _JUDGE_CALL.items()}
    return {f"mlflow.assessment.{name}": str(value) for name, value in values.items() if value}


def link(client: MlflowClient, run_id: str, trace_ids: Sequence[str]) -> None:
    """Links traces to a run, so that its page shows them."""
    for first in range(0, len(trace_ids), _BATCH):
        client.link_traces_to_run(list(trace_ids[first : first + _BATCH]), run_id)


def _expectations(topic: TopicTrace, trace_id: str) -> Iterator[Assessment]:
    from mlflow.entities import AssessmentSource, Expectation

    dataset = AssessmentSource(source_type="CODE", source_id="dataset")
    for name, value in topic.expectations.items():
        yield Expectation(name=name, value=value, source=dataset, trace_id=trace_id)


def _info(topic: TopicTrace, trace_id: str, experiment_id: str, run_id: str, start: int) -> TraceInfo:
    from mlflow.entities import TraceInfo, TraceLocation, TraceState

    metadata = {"mlflow.sourceRun": run_id, "mlflow.trace_schema.version": "3"}
    if topic.usage.prompt_tokens is not None:
        metadata["mlflow.trace.tokenUsage"] = json.dumps(_tokens(topic.usage))
    if topic.conversation is not None:  # of this run alone: another system answers the same conversation
        metadata["mlflow.trace.session"] = f"{topic.conversation} {run_id[:8]}"
    if topic.cost:
        metadata["mlflow.trace.cost"] = json.dumps(topic.cost)
    return TraceInfo(
        trace_id=trace_id,
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=start // 1_000_000,
        state=TraceState.OK if topic.error is None else TraceState.ERROR,
        request_preview=topic.query[:_PREVIEW_CHARS],
        response_preview=(topic.answer or topic.error or "")[:_PREVIEW_CHARS],
        client_request_id=topic.qid,
        execution_duration=round((topic.usage.seconds or 0.0) * 1000),
        trace_metadata=metadata,
        tags={
            OWN_TAG: topic.qid,
            ANSWER_TAG: answer_digest(topic.answer),
            "mlflow.traceName": _name(topic),
        },
    )


def _spans(topic: TopicTrace, number: str, start: int) -> list[Span]:
    """The spans of a topic: root, retrieval, generation and judge; the root lasts as long as the answer took.

    The root's input is the question alone: so rows of several runs join, whatever qid their datasets give it.
    """
    from mlflow.entities import Span

    end = start + round((topic.usage.seconds or 0.0) * 1e9)
    root, error = _id(8), topic.error if topic.answer is None else None
    documents = [{"page_content": text, "metadata": {"doc_uri": docno}, "id": docno} for docno, text in topic.chunks]
    usage = None if topic.usage.prompt_tokens is None else _tokens(topic.usage)
    llm = {"mlflow.chat.tokenUsage": usage, "mlflow.llm.cost": topic.cost, "mlflow.llm.model": topic.model}
    llm = {name: value for name, value in llm.items() if value}
    question = {"question": topic.query}
    reference = {key: topic.expectations[key] for key in ("expected_response",) if key in topic.expectations}
    parts: list[tuple[str, str, tuple[int, int], Any, Any, Mapping[str, Any]]] = [
        ("retrieval", "RETRIEVER", (start, start), {"query": topic.query}, documents, topic.scores),
        ("generation", "LLM", (start, end), {**question, "context": topic.context}, topic.answer, llm),
        ("judge", "EVALUATOR", (end, end), {"answer": topic.answer, **reference}, topic.verdict, {}),
    ]
    outputs = {"answer": topic.answer}  # of more entries MLflow's comparison hides the first
    rows = [
        (root, None, (_name(topic), "CHAIN", (start, end), question, outputs, {})),
        *((_id(8), root, p) for p in parts),
    ]
    return [
        Span.from_dict(
            {
                "trace_id": base64.b64encode(bytes.fromhex(number)).decode(),
                "span_id": own,
                "parent_span_id": parent,
                "name": name,
                "start_time_unix_nano": begin,
                "end_time_unix_nano": stop,
                "events": [],
                "status": {"code": "STATUS_CODE_ERROR" if failed else "STATUS_CODE_OK", "message": failed or ""},
                "attributes": {
                    key: json.dumps(value, ensure_ascii=False)
                    for key, value in {
                        "mlflow.traceRequestId": f"tr-{number}",
                        "mlflow.spanType": kind,
                        "mlflow.spanInputs": given,
                        "mlflow.spanOutputs": made,
                        **attributes,
                    }.items()
                },
                "links": [],
            }
        )
        for own, parent, (name, kind, (begin, stop), given, made, attributes) in rows
        for failed in [error if kind in ("CHAIN", "LLM") else None]
    ]


def _name(topic: TopicTrace) -> str:
    """The name of a topic's trace and of its root span."""
    return " ".join(topic.query.split())[:_NAME_CHARS] or "question"


def _tokens(usage: Usage) -> dict[str, int]:
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}


def _id(size: int) -> str:
    return base64.b64encode(secrets.token_bytes(size)).decode()
