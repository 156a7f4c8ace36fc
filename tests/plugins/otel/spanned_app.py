"""A small RAG application, traced by MLflow or by OpenTelemetry's SDK under two conventions.

OTLP JSON is written here by hand from the SDK's spans, as its specification says: ids in hexadecimal, whole numbers as
texts, typed values. The package with OpenTelemetry's own encoder is no dependency of ragauge.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

DOCUMENTS = {
    "mill.md": "Tessa Holm built the mill.",
    "arl.md": "A bridge spans the Arl.",
    "port.md": "The server listens on port 4711.",
}
FAILURE = "the model did not answer; key sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
# The rows that the traces of `ask_everything` are, worked out by hand: question, contexts, answer, rounds.
EXPECTED = [
    ("Who built the mill?", [DOCUMENTS["mill.md"], DOCUMENTS["arl.md"]], "Tessa Holm.", 1),
    ("Which port?", [DOCUMENTS["port.md"], DOCUMENTS["arl.md"], DOCUMENTS["mill.md"]], "4711", 2),
    ("What spans the Arl?", [DOCUMENTS["arl.md"]], "A bridge.", 1),
    ("Why is it slow?", [DOCUMENTS["port.md"]], None, 1),
    ("Are you there?", [], "Hello.", 0),
]


def ask_everything(tracer: Any) -> None:
    """Asks with one search, with two of which one is repeated in part, a hybrid, a failure, and none."""

    def find(query: str, *names: str, parts: Sequence[str] = ()) -> None:
        with tracer.span("find", "RETRIEVER", query) as end:
            for part in parts:  # a hybrid's own retrievers find what the hybrid then leaves out
                find(query, part)
            end([{"page_content": DOCUMENTS[name], "metadata": {"source": name}} for name in names])

    def answer(question: str, text: str, prompt: int) -> str:
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"Answer: {question}"}]
        with tracer.span("call", "LLM", {"messages": messages}) as end:
            end({"choices": [{"message": {"role": "assistant", "content": text}}]}, tokens=(prompt, 5))
        return text

    with tracer.span("ask", "CHAIN", {"question": "Who built the mill?", "top": 2}) as end:
        find("mill", "mill.md", "arl.md")
        end({"answer": answer("Who built the mill?", "Tessa Holm.", 40), "sources": ["mill.md"]})
    with tracer.span("ask", "AGENT", "Which port?") as end:
        find("port", "port.md", "arl.md")
        answer("Search again?", "yes", 10)
        find("server port", "arl.md", "mill.md")
        end(answer("Which port?", "4711", 60))
    with tracer.span("ask", "CHAIN", {"question": "What spans the Arl?"}) as end:
        find("Arl", "arl.md", parts=("arl.md", "port.md"))
        end(answer("What spans the Arl?", "A bridge.", 20))
    with suppress(TimeoutError), tracer.span("ask", "CHAIN", "Why is it slow?"):
        find("slow", "port.md")
        raise TimeoutError(FAILURE)
    with tracer.span("ask", "CHAIN", "Are you there?") as end:
        end(answer("Are you there?", "Hello.", 8))
    with tracer.span("heartbeat", "CHAIN", None) as end:
        end("ok")


class ByMlflow:
    """Traces by MLflow's own functions."""

    @contextmanager
    def span(self, name: str, kind: str, inputs: Any) -> Iterator[Any]:
        import mlflow

        with mlflow.start_span(name, span_type=kind) as span:
            if inputs is not None:
                span.set_inputs(inputs)

            def end(outputs: Any, tokens: tuple[int, int] | None = None) -> None:
                span.set_outputs(outputs)
                if tokens:
                    usage = {"input_tokens": tokens[0], "output_tokens": tokens[1], "total_tokens": sum(tokens)}
                    span.set_attribute("mlflow.chat.tokenUsage", usage)

            yield end


class ByOpenTelemetry:
    """Traces by OpenTelemetry's SDK; `convention` is openinference or gen_ai."""

    def __init__(self, convention: str, **resource: str) -> None:
        self.finished = InMemorySpanExporter()
        provider = TracerProvider(resource=Resource({"service.name": "helpdesk", **resource}))
        provider.add_span_processor(SimpleSpanProcessor(self.finished))
        self._tracer, self._names = provider.get_tracer("app"), globals()[f"_{convention}"]

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.finished.get_finished_spans()

    @contextmanager
    def span(self, name: str, kind: str, inputs: Any) -> Iterator[Any]:
        with self._tracer.start_as_current_span(name) as span:  # records an exception, and sets the status
            span.set_attributes(self._names(kind, inputs, None, None))

            def end(outputs: Any, tokens: tuple[int, int] | None = None) -> None:
                span.set_attributes(self._names(kind, inputs, outputs, tokens))
                span.set_status(Status(StatusCode.OK))

            yield end


def _openinference(kind: str, inputs: Any, outputs: Any, tokens: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"openinference.span.kind": kind}
    for side, value in (("input", inputs), ("output", outputs)):
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value)
            mime = "text/plain" if isinstance(value, str) else "application/json"
            found |= {f"{side}.value": text, f"{side}.mime_type": mime}
    if kind == "RETRIEVER":
        for number, one in enumerate(outputs or ()):
            at = f"retrieval.documents.{number}.document"
            found |= {f"{at}.content": one["page_content"], f"{at}.metadata": json.dumps(one["metadata"])}
    if tokens:
        found |= {"llm.token_count.prompt": tokens[0], "llm.token_count.completion": tokens[1]}
    return found


def _gen_ai(kind: str, inputs: Any, outputs: Any, tokens: Any) -> dict[str, Any]:
    operations = {"RETRIEVER": "retrieval", "LLM": "chat"}
    found: dict[str, Any] = {"gen_ai.operation.name": operations.get(kind, "invoke_agent")}
    if kind == "RETRIEVER":
        found["gen_ai.retrieval.query.text"] = inputs
        if outputs is not None:
            texts = [(one["metadata"]["source"], one["page_content"]) for one in outputs]
            documents = [{"id": name, "score": 0.5, "content": text} for name, text in texts]
            found["gen_ai.retrieval.documents"] = json.dumps(documents)
        return found

    def message(role: str, value: Any) -> str:
        if isinstance(value, Mapping) and "messages" in value:
            said = [(one["role"], one["content"]) for one in value["messages"]]
        elif isinstance(value, Mapping) and "choices" in value:
            said = [("assistant", value["choices"][0]["message"]["content"])]
        else:
            said = [(role, value if isinstance(value, str) else next(iter(value.values())))]
        call = {"type": "tool_call", "id": "1", "name": "search", "arguments": {"q": "x"}}
        parts = [{"role": role, "parts": [call, {"type": "text", "content": text}]} for role, text in said]
        return json.dumps(parts)

    for key, role, value in (("input", "user", inputs), ("output", "assistant", outputs)):
        if value is not None:
            found[f"gen_ai.{key}.messages"] = message(role, value)
    if tokens:
        found |= {"gen_ai.usage.input_tokens": tokens[0], "gen_ai.usage.output_tokens": tokens[1]}
    return found


def otlp(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """One ExportTraceServiceRequest of the SDK's spans, as the collector's file exporter writes it."""
    by_resource = [{"attributes": _typed(spans[0].resource.attributes)}] if spans else []
    scopes = [{"scope": {"name": "app"}, "spans": [_span(span) for span in spans]}]
    return {"resourceSpans": [{"resource": resource, "scopeSpans": scopes} for resource in by_resource]}


def _span(span: ReadableSpan) -> dict[str, Any]:
    status: dict[str, Any] = {"code": span.status.status_code.value} if span.status.status_code.value else {}
    return {
        "traceId": f"{span.context.trace_id:032x}",
        "spanId": f"{span.context.span_id:016x}",
        "parentSpanId": f"{span.parent.span_id:016x}" if span.parent else "",
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": _typed(span.attributes or {}),
        "events": [
            {"timeUnixNano": str(event.timestamp), "name": event.name, "attributes": _typed(event.attributes or {})}
            for event in span.events
        ],
        "status": {**status, **({"message": span.status.description} if span.status.description else {})},
    }


def _typed(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": typed_value(value)} for key, value in attributes.items()]


def typed_value(value: Any) -> dict[str, Any]:
    """A value in OTLP JSON."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": _typed(value)}}
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [typed_value(one) for one in value]}}
    return {"stringValue": str(value)}
