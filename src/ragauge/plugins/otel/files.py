"""Reads spans and scores from files: OTLP JSON, flat spans as Phoenix and OpenTelemetry's SDKs write them, Langfuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.redact import redact
from ragauge.datasets.fields import BadRow, short
from ragauge.datasets.files import parsed, table_rows
from ragauge.plugins.otel.attributes import moment, number
from ragauge.plugins.otel.spans import Score, Span, span_of

_FAILED = (2, "2", "ERROR", "STATUS_CODE_ERROR")
_PREFIX = "attributes."
_FORMS = "OTLP (resourceSpans), Phoenix (context.trace_id) nor Langfuse (traceId)"
_OBSERVED = {  # Langfuse's fields, of its API and of its exports, as attributes
    "langfuse.observation.type": ("type",),
    "langfuse.observation.input": ("input",),
    "langfuse.observation.output": ("output",),
    "langfuse.observation.usage_details": ("usageDetails", "usage_details", "usage"),
    "langfuse.observation.cost_details.total": ("calculatedTotalCost", "totalCost", "total_cost"),
    "langfuse.observation.model.name": ("model", "providedModelName", "provided_model_name"),
    "langfuse.session.id": ("sessionId", "session_id"),
}


def read(files: Sequence[Path], system: str = "") -> tuple[list[Span], list[Score]]:
    """The distinct spans and scores of the files, which are JSON Lines, JSON, Parquet or CSV, packed or not.

    system: the attribute that names a span's system. DataError names file and line of a row that cannot be read.
    """
    found: dict[tuple[str, ...], Span | Score] = {}
    for file in files:
        if not file.is_file():
            raise ConfigError(f"{file}: there is no such file")
        for where, row in table_rows(file):
            try:
                for one in _of_row(parsed(row), where, system):
                    found.setdefault((one.trace, *((one.id,) if isinstance(one, Span) else ("score", one.name))), one)
            except BadRow as bad:
                raise DataError(f"{where}: {bad}") from None
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise DataError(f"{where}: no span of its form: {type(error).__name__} {error}") from None
    return [v for v in found.values() if isinstance(v, Span)], [v for v in found.values() if isinstance(v, Score)]


def _of_row(row: Mapping[str, Any], where: str, system: str) -> Iterator[Span | Score]:
    """The spans and scores of a row; BadRow for a row of no known form."""
    if "resourceSpans" in row:
        yield from _of_otlp(row["resourceSpans"], system)
    elif isinstance(row.get("data"), list):  # a page of an API
        for one in row["data"]:
            yield from _of_row(one, where, system)
    elif "context.trace_id" in row or isinstance(row.get("context"), Mapping):
        yield _of_flat(row, system)
    else:  # a trace that Langfuse's page downloads is an object within
        yield from _of_langfuse(
            {**row, **row["trace"]} if isinstance(row.get("trace"), Mapping) else row, where, system
        )


def _of_otlp(resources: Any, system: str) -> Iterator[Span]:
    for resource in resources:
        shared = _typed((resource.get("resource") or {}).get("attributes"))
        for span in (span for scope in resource.get("scopeSpans") or [] for span in scope.get("spans") or []):
            ids = (span["traceId"], span["spanId"], span.get("parentSpanId"))
            events = [_typed(event.get("attributes")) for event in span.get("events") or []]
            status = span.get("status") or {}
            error = _error(events, status.get("message")) if status.get("code") in _FAILED else None
            given = {**shared, **_of_events(events), **_typed(span.get("attributes"))}
            yield span_of(ids, span.get("startTimeUnixNano"), span.get("endTimeUnixNano"), given, error, system)


def _typed(attributes: Any) -> dict[str, Any]:
    """OTLP's list of {key, value: {stringValue: …}} as a mapping."""
    return {one["key"]: _value(one.get("value")) for one in attributes or []}


def _value(given: Any) -> Any:
    """The value in {stringValue}, {intValue}, {arrayValue: {values}} or {kvlistValue: {values}}; None if empty."""
    for kind, value in (given or {}).items():
        if kind == "arrayValue":
            return [_value(one) for one in value.get("values") or []]
        return _typed(value.get("values")) if kind == "kvlistValue" else value
    return None


def _of_flat(row: Mapping[str, Any], system: str) -> Span:
    """The span in a row of Phoenix's table or API, or as an SDK prints it."""
    at = row["context"] if "context" in row else {key: row.get(f"context.{key}") for key in ("trace_id", "span_id")}
    if not at.get("trace_id") or not at.get("span_id"):
        raise BadRow("'context.trace_id' or 'context.span_id' is missing")
    events = [event.get("attributes") or {} for event in row.get("events") or []]
    status = row.get("status") or {}
    failed = (row.get("status_code") or status.get("status_code")) in _FAILED
    error = _error(events, row.get("status_message") or status.get("description")) if failed else None
    given = {
        **((row.get("resource") or {}).get("attributes") or {}),
        **_of_events(events),
        **({"openinference.span.kind": row["span_kind"]} if row.get("span_kind") else {}),
        **(row.get("attributes") or {}),
        **{key.removeprefix(_PREFIX): value for key, value in row.items() if key.startswith(_PREFIX)},
    }
    ids = (at["trace_id"], at["span_id"], row.get("parent_id"))
    return span_of(ids, row.get("start_time"), row.get("end_time"), given, error, system)


def _of_langfuse(row: Mapping[str, Any], where: str, system: str) -> Iterator[Span | Score]:
    """An observation, a score, or a trace (a span whose id is the trace's) with its observations and scores."""
    trace, start = _any(row, "traceId", "trace_id"), _any(row, "startTime", "start_time", "timestamp")
    score = _any(row, "value", "stringValue", "string_value")
    if trace and "name" in row and "type" not in row and score is not None:
        yield Score(trace, row["name"], score, where)
        return
    if "id" not in row or not ("type" in row if trace else "timestamp" in row):
        raise BadRow(f"neither {_FORMS}: {short(row)}")
    end, begun, latency = _any(row, "endTime", "end_time"), moment(start), number(row.get("latency"))
    if not trace and begun is not None and latency is not None:
        end = begun + latency
    given = {**row, **{name: value for name, keys in _OBSERVED.items() if (value := _any(row, *keys)) is not None}}
    error = _error([], _any(row, "statusMessage", "status_message")) if row.get("level") == "ERROR" else None
    parent = _any(row, "parentObservationId", "parent_observation_id")
    yield span_of((trace or row["id"], row["id"], parent), start, end, given, error, system)
    for one in [*(row.get("observations") or []), *(row.get("scores") or [])]:
        if isinstance(one, Mapping):  # a list of traces names them by id
            yield from _of_langfuse({"traceId": row["id"], **one}, where, system)


def _any(row: Mapping[str, Any], *keys: str) -> Any:
    return next((row[key] for key in keys if row.get(key) not in (None, "")), None)


def _of_events(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The attributes of GenAI's events, which are read as if they were the span's."""
    return {key: value for event in events for key, value in event.items() if key.startswith("gen_ai.")}


def _error(events: Sequence[Mapping[str, Any]], message: Any) -> str:
    """A failure in one line: the exception, or the status message."""
    raised = [f"{one['exception.type']}: {one.get('exception.message')}" for one in events if "exception.type" in one]
    return redact(" ".join(str([*raised, message or "the span's status is ERROR"][0]).split()))[:500]
