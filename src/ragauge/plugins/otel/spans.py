"""A span, whatever tracer wrote it; the names of attributes that are read (docs/otel.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragauge.plugins.otel.attributes import decoded, documents, first, messages, moment, number
from ragauge.plugins.traces.shapes import Passage, answer_of, passages_of, question_of

RETRIEVER, LLM = "retriever", "llm"
_LLMS = ("llm", "chat", "chat_model", "completion", "text_completion", "generate_content", "generation")
_KINDS = {**dict.fromkeys(_LLMS, LLM), **dict.fromkeys(("retriever", "retrieval"), RETRIEVER)}
_KIND = (
    "openinference.span.kind", "gen_ai.operation.name", "mlflow.spanType", "langfuse.observation.type",
)  # fmt: skip
_INPUTS = (
    "input.value", "gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages", "mlflow.spanInputs",
    "langfuse.observation.input", "langfuse.trace.input", "gen_ai.retrieval.query.text",
)  # fmt: skip
_OUTPUTS = (
    "llm.output_messages", "output.value", "gen_ai.output.messages", "gen_ai.completion", "mlflow.spanOutputs",
    "langfuse.observation.output", "langfuse.trace.output",
)  # fmt: skip
_DOCUMENTS = ("retrieval.documents", "gen_ai.retrieval.documents")
_SUMS = {
    "prompt_tokens": (
        "llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens",
        "mlflow.chat.tokenUsage.input_tokens", "langfuse.observation.usage_details.input",
    ),
    "completion_tokens": (
        "llm.token_count.completion", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens",
        "mlflow.chat.tokenUsage.output_tokens", "langfuse.observation.usage_details.output",
    ),
    "cost_usd": ("llm.cost.total", "langfuse.observation.cost_details.total"),
}  # fmt: skip
_SESSION = ("session.id", "gen_ai.conversation.id", "langfuse.session.id", "mlflow.trace.session")
_MODEL = ("llm.model_name", "gen_ai.response.model", "gen_ai.request.model", "langfuse.observation.model.name")


@dataclass(frozen=True)
class Span:
    """A span: what it was asked and said, and a retriever's passages (None where they are not recorded).

    kind: RETRIEVER, LLM or None. start, end: seconds since 1970. sums: tokens and US dollars by the names of samples;
    a value that is not known is None. error: the reason why the span failed, else None.
    """

    trace: str
    id: str
    parent: str | None
    kind: str | None
    start: float | None
    end: float | None
    question: str | None
    answer: str | None
    passages: list[Passage] | None
    sums: Mapping[str, float | None]
    session: str | None
    model: str | None
    system: str | None
    error: str | None

    @property
    def seconds(self) -> float | None:
        """How long the span took; None if a time of it is not known."""
        return None if self.start is None or self.end is None else round(max(self.end - self.start, 0.0), 6)


@dataclass(frozen=True)
class Score:
    """The score that a person or an evaluator gave to a trace; `where` is the file and line."""

    trace: str
    name: str
    value: Any
    where: str


def span_of(
    ids: tuple[str, str, str | None], start: Any, end: Any, given: Mapping[str, Any], error: str | None, system: str
) -> Span:
    """The span with these attributes; ids are of trace, span and parent, `system` is the attribute that names it."""
    kinds = [str(decoded(given.get(key))).lower() for key in _KIND if given.get(key)]
    kind = next((_KINDS[name] for name in kinds if name in _KINDS), None)
    if not kinds and "gen_ai.request.model" in given:  # of instrumentations that name no operation
        kind = LLM
    outputs = _values(given, _OUTPUTS)
    said = (answer_of(messages(one, "assistant")) for one in outputs if kind != RETRIEVER)
    asked = (question_of(messages(one, "user")) for one in _values(given, _INPUTS))
    found = documents(first(given, _DOCUMENTS))
    if kind == RETRIEVER and found is None and outputs:
        found = passages_of(outputs[0])
    session, model, named = (first(given, keys) for keys in (_SESSION, _MODEL, (system,)))
    return Span(
        *ids,
        kind=kind,
        start=moment(start),
        end=moment(end),
        question=next(filter(None, asked), None),
        answer=next(filter(None, said), None),
        passages=found,
        sums={name: number(first(given, keys)) for name, keys in _SUMS.items()},
        session=None if session is None else str(session),
        model=None if model is None else str(model),
        system=None if named is None else str(named),
        error=error,
    )


def _values(given: Mapping[str, Any], keys: Sequence[str]) -> list[Any]:
    """The known values under the keys, decoded unless their type is plain text."""
    found = []
    for key in keys:
        side = key.partition(".")[0]
        plain = key.endswith(".value") and first(given, [f"{side}.mime_type"]) == "text/plain"
        value = given.get(key) if plain and key in given else first(given, [key])
        found += [] if value is None else [value]
    return found
