"""Spans of OpenTelemetry's real SDK, and of Phoenix and Langfuse in their published forms, as samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest

from plugins.otel.spanned_app import EXPECTED, ByMlflow, ByOpenTelemetry, ask_everything, otlp, typed_value
from processes import run
from ragauge.contract.metrics import without_groups
from ragauge.plugins.otel.command import main
from ragauge.plugins.otel.files import read
from ragauge.plugins.otel.samples import samples_of
from ragauge.plugins.traces.rows import Reading, Truth, is_request, row_of
from ragauge.track.connection import at

KEYS = ("user_input", "retrieved_contexts", "response", "rounds")
ROOT = {"traceId": "t1", "spanId": "s1", "startTimeUnixNano": "1750000000000000000",
        "endTimeUnixNano": "1750000001500000000"}  # fmt: skip


def write(file: Path, *rows: Any) -> Path:
    file.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows), encoding="utf-8")
    return file


def rows_in(*files: Path, label: str | None = None, system: str = "") -> list[dict[str, Any]]:
    """The samples of files, through the command."""
    out = files[0].with_name("samples.jsonl")
    arguments = [*map(str, files), "-o", str(out), *(["--label", label] if label else [])]
    assert main([*arguments, *(["--system", system] if system else [])]) == 0
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def request(*spans: dict[str, Any]) -> dict[str, Any]:
    """One OTLP request; attributes are given as a mapping."""
    typed = [{**span, "attributes": [{"key": k, "value": typed_value(v)} for k, v in span["attributes"].items()]}
             for span in spans]  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": typed}]}]}


def told(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row[key] for key in KEYS) for row in rows]


@pytest.fixture(scope="module")
def by_mlflow(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows that `dataset=mlflow_traces` reads from the application, oldest first."""
    uri = f"sqlite:///{tmp_path_factory.mktemp('traced') / 'mlflow.db'}"
    with pytest.MonkeyPatch.context() as patch, at(uri) as client:
        patch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
        mlflow.set_experiment(experiment_id=client.create_experiment("helpdesk"))
        ask_everything(ByMlflow())
        traces = mlflow.search_traces(return_type="list", order_by=["timestamp_ms ASC"])
        found = [(trace, row_of(trace, Reading(), Truth())) for trace in traces]
    mlflow.set_tracking_uri(None)  # type: ignore[arg-type]
    return [row for trace, row in found if is_request(trace, row)]


@pytest.mark.parametrize("convention", ["openinference", "gen_ai"])
def test_an_application_traced_by_opentelemetry_and_by_mlflow_gives_equal_samples(
    convention: str, by_mlflow: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = ByOpenTelemetry(convention)
    ask_everything(app)
    spans = app.spans[::-1]  # a collector writes them in any order, and in several requests
    rows = rows_in(write(tmp_path / "traces.jsonl", otlp(spans[:7]), otlp(spans[7:])))
    assert told(rows) == EXPECTED
    asked = [row for row in by_mlflow if row["user_input"]]  # MLflow's rows have the heartbeat, which asks nothing
    assert told(asked) == EXPECTED
    tokens = [(40, 5), (70, 10), (20, 5), None, (8, 5)]
    for row, mine in zip(rows, tokens, strict=True):
        assert (mine is None) == ("prompt_tokens" not in row)  # what is not known is no key, and not 0
        assert mine is None or (row["prompt_tokens"], row["completion_tokens"]) == mine
    assert [(row["prompt_tokens"], row["completion_tokens"]) for row in asked if row["prompt_tokens"]] == [
        one for one in tokens if one
    ]
    assert rows[0]["docnos"] == ["mill.md", "arl.md"]
    assert rows[3]["error"].startswith("TimeoutError: the model did not answer; key ")
    assert "sk-abc" not in rows[3]["error"]
    out = capsys.readouterr().out
    assert "5 samples of 6 traces" in out
    assert "left out: 1 traces without a question (" in out
    assert "1 traces failed: they have an error and no answer\n1 traces have empty contexts" in out


def test_printed_spans_of_the_sdk_give_the_samples_of_otlp(tmp_path: Path) -> None:
    app = ByOpenTelemetry("openinference")
    ask_everything(app)
    printed = tmp_path / "printed.json"  # as ConsoleSpanExporter prints them: objects over several lines
    printed.write_text("\n".join(span.to_json() for span in app.spans), encoding="utf-8")
    rows = rows_in(printed)
    whole = rows_in(write(tmp_path / "otlp.json", otlp(app.spans)))
    assert told(rows) == EXPECTED
    assert [{**row, "qid": row["qid"].removeprefix("0x")} for row in rows] == [
        {**row, "seconds": pytest.approx(row["seconds"], abs=2e-6)} for row in whole
    ]


def test_values_of_a_trace_worked_out_by_hand(tmp_path: Path) -> None:
    spans = [
        {**ROOT, "attributes": {"session.id": "talk", "http.route": "/ask"}},  # a web server's span asks nothing
        {**ROOT, "spanId": "s2", "parentSpanId": "s1", "startTimeUnixNano": "1750000000100000000",
         "attributes": {"input.value": '["a", "plain text"]', "input.mime_type": "text/plain"}},
        {**ROOT, "spanId": "s3", "parentSpanId": "s2", "startTimeUnixNano": "1750000000200000000",
         "attributes": {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7, "gen_ai.request.model": "m",
                        "gen_ai.output.messages": [{"role": "assistant", "parts": [
                            {"type": "reasoning", "content": "Hm."}, {"type": "text", "content": "Yes."}]}]}},
        {**ROOT, "spanId": "s4", "parentSpanId": "s3", "startTimeUnixNano": "1750000000300000000",
         "attributes": {"openinference.span.kind": "LLM", "llm.token_count.prompt": 7, "llm.cost.total": 0.5}},
        {**ROOT, "traceId": "t2", "startTimeUnixNano": "1750000009000000000", "endTimeUnixNano": "0",
         "attributes": {"gen_ai.conversation.id": "talk", "gen_ai.request.model": "m"},
         "events": [{"name": "gen_ai.content.prompt", "attributes": [{"key": "gen_ai.prompt", "value": {
             "stringValue": '[{"role": "user", "content": "And why?"}]'}}]},
                    {"name": "gen_ai.content.completion", "attributes": [{"key": "gen_ai.completion", "value": {
                        "stringValue": '[{"role": "assistant", "content": "So."}]'}}]}]},
    ]  # fmt: skip
    one, two = rows_in(write(tmp_path / "a.jsonl", request(*spans)))
    # The call within the call is the same tokens again. The tracer knows no retrieval: contexts are unknown, not empty.
    assert one == {
        "qid": "t1", "user_input": '["a", "plain text"]', "retrieved_contexts": None, "response": "Yes.", "rounds": 0,
        "seconds": 1.5, "prompt_tokens": 7, "model": "m", "day": "2025-06-15", "conversation": "talk", "turn": 1,
        "history": [],
    }  # fmt: skip
    assert (two["user_input"], two["response"], two["turn"]) == ("And why?", "So.", 2)
    assert two["history"] == ['["a", "plain text"]', "Yes."]


def test_documents_without_texts_are_docnos_and_unrecorded_ones_unknown(tmp_path: Path) -> None:
    def trace(name: str, **documents: Any) -> list[dict[str, Any]]:
        root = {**ROOT, "traceId": name, "attributes": {"input.value": "Why?", "output.value": "So."}}
        kind = {"openinference.span.kind": "RETRIEVER", "input.value": "why"}
        child = {**ROOT, "traceId": name, "spanId": "r", "parentSpanId": "s1", "attributes": {**kind, **documents}}
        return [root, child]

    only_ids = {"gen_ai.retrieval.documents": [{"id": "a b", "score": 0.9}, {"id": 7, "score": 0.8}]}
    mixed = {"retrieval.documents.0.document.content": "x", "retrieval.documents.1.document.content": "y",
             "retrieval.documents.1.document.id": "d"}  # fmt: skip
    spans = [*trace("ids", **only_ids), *trace("none"), *trace("mixed", **mixed), *trace("nothing", **{
        "output.value": "[]", "output.mime_type": "application/json"})]  # fmt: skip
    rows = {row["qid"]: row for row in rows_in(write(tmp_path / "a.jsonl", request(*spans)))}
    assert (rows["ids"]["retrieved_contexts"], rows["ids"]["docnos"]) == (None, ["a%20b", "7"])
    assert rows["none"]["retrieved_contexts"] is None
    assert "docnos" not in rows["none"]
    assert rows["mixed"]["retrieved_contexts"] == ["x", "y"]
    assert rows["mixed"]["docnos"] == ["text-2d711642b726b044", "d"]  # SHA-256 of x
    assert rows["nothing"]["retrieved_contexts"] == []


PHOENIX = [
    {"name": "query", "span_kind": "CHAIN", "parent_id": None, "start_time": "2026-03-01T10:00:00.000000+00:00",
     "end_time": "2026-03-01T10:00:02.250000+00:00", "status_code": "OK", "status_message": "", "events": [],
     "context.span_id": "1a", "context.trace_id": "tr1", "attributes.openinference.span.kind": "CHAIN",
     "attributes.input.value": "Who built the mill?", "attributes.input.mime_type": "text/plain",
     "attributes.output.value": "Tessa Holm.", "attributes.retrieval.documents": None,
     "attributes.llm.token_count.prompt": None, "attributes.llm.token_count.completion": None,
     "attributes.llm.model_name": None, "attributes.metadata": {"variant": "new"}},
    {"name": "retrieve", "span_kind": "RETRIEVER", "parent_id": "1a", "start_time": "2026-03-01T10:00:00.100000+00:00",
     "end_time": "2026-03-01T10:00:00.300000+00:00", "status_code": "OK", "status_message": "", "events": [],
     "context.span_id": "1b", "context.trace_id": "tr1", "attributes.openinference.span.kind": "RETRIEVER",
     "attributes.input.value": "mill", "attributes.input.mime_type": None, "attributes.output.value": None,
     "attributes.retrieval.documents": [
         {"document.id": "d1", "document.content": "Tessa Holm built the mill.", "document.score": 0.9},
         {"document.id": "d2", "document.content": "A bridge spans the Arl.", "document.score": 0.2}],
     "attributes.llm.token_count.prompt": None, "attributes.llm.token_count.completion": None,
     "attributes.llm.model_name": None, "attributes.metadata": None},
    {"name": "llm", "span_kind": "LLM", "parent_id": "1a", "start_time": "2026-03-01T10:00:00.300000+00:00",
     "end_time": "2026-03-01T10:00:02.200000+00:00", "status_code": "OK", "status_message": "", "events": [],
     "context.span_id": "1c", "context.trace_id": "tr1", "attributes.openinference.span.kind": "LLM",
     "attributes.input.value": None, "attributes.input.mime_type": None, "attributes.output.value": None,
     "attributes.retrieval.documents": None, "attributes.llm.token_count.prompt": 52.0,
     "attributes.llm.token_count.completion": 4.0, "attributes.llm.model_name": "gpt-x", "attributes.metadata": None},
]  # fmt: skip
OF_PHOENIX = {
    "qid": "tr1", "user_input": "Who built the mill?",
    "retrieved_contexts": ["Tessa Holm built the mill.", "A bridge spans the Arl."], "docnos": ["d1", "d2"],
    "response": "Tessa Holm.", "rounds": 1, "seconds": 2.25, "prompt_tokens": 52, "completion_tokens": 4,
    "model": "gpt-x", "day": "2026-03-01",
}  # fmt: skip


def test_phoenix_s_table_of_spans(tmp_path: Path) -> None:
    assert rows_in(write(tmp_path / "spans.jsonl", *PHOENIX)) == [OF_PHOENIX]
    frame = pd.DataFrame(PHOENIX)
    for key in ("start_time", "end_time"):
        frame[key] = pd.to_datetime(frame[key])
    frame.to_parquet(tmp_path / "spans.parquet")
    assert rows_in(tmp_path / "spans.parquet") == [OF_PHOENIX]
    frame.to_json(tmp_path / "frame.jsonl", orient="records", lines=True)  # times in milliseconds or microseconds
    assert rows_in(tmp_path / "frame.jsonl") == [OF_PHOENIX]
    # A page of its API: ids in an object, attributes under dotted names.
    page = [{"context": {"trace_id": row["context.trace_id"], "span_id": row["context.span_id"]},
             "attributes": {k.removeprefix("attributes."): v for k, v in row.items() if k.startswith("attributes.")},
             **{k: v for k, v in row.items() if "." not in k}} for row in PHOENIX]  # fmt: skip
    assert rows_in(write(tmp_path / "page.json", {"data": page, "next_cursor": None})) == [OF_PHOENIX]
    (row,) = rows_in(tmp_path / "spans.jsonl", system="metadata.variant")
    assert row == {**OF_PHOENIX, "system": "new", "trace_id": "tr1"}


TRACE = {"id": "lf1", "timestamp": "2026-03-01T10:00:00.000Z", "name": "ask",
         "input": {"question": "Who built the mill?"}, "output": {"answer": "Tessa Holm."},
         "sessionId": "s", "latency": 2.5, "totalCost": 0.002}  # fmt: skip
OBSERVATIONS = [
    {"id": "o1", "traceId": "lf1", "type": "SPAN", "name": "ask", "startTime": "2026-03-01T10:00:00.000Z",
     "endTime": "2026-03-01T10:00:02.400Z", "parentObservationId": None, "level": "DEFAULT",
     "input": {"question": "Who built the mill?"}, "output": "Tessa Holm."},
    {"id": "o2", "traceId": "lf1", "type": "RETRIEVER", "name": "find", "startTime": "2026-03-01T10:00:00.100Z",
     "endTime": "2026-03-01T10:00:00.200Z", "parentObservationId": "o1", "level": "DEFAULT", "input": "mill",
     "output": [{"page_content": "Tessa Holm built the mill.", "metadata": {"source": "mill.md"}}]},
    {"id": "o3", "traceId": "lf1", "type": "GENERATION", "name": "call", "startTime": "2026-03-01T10:00:00.300Z",
     "endTime": "2026-03-01T10:00:02.300Z", "parentObservationId": "o1", "level": "DEFAULT", "model": "gpt-x",
     "input": [{"role": "user", "content": "Use this: …"}], "output": {"role": "assistant", "content": "Tessa Holm."},
     "usage": {"input": 30, "output": 3, "total": 33, "unit": "TOKENS"}, "calculatedTotalCost": 0.002},
]  # fmt: skip
SCORES = [
    {"id": "c1", "traceId": "lf1", "name": "quality", "value": 4, "source": "ANNOTATION", "dataType": "NUMERIC"},
    {"id": "c2", "traceId": "lf1", "name": "user feedback", "value": 1, "source": "API", "dataType": "BOOLEAN"},
]
OF_LANGFUSE = {
    "qid": "lf1", "user_input": "Who built the mill?", "retrieved_contexts": ["Tessa Holm built the mill."],
    "docnos": ["mill.md"], "response": "Tessa Holm.", "rounds": 1, "seconds": 2.4, "prompt_tokens": 30,
    "completion_tokens": 3, "cost_usd": 0.002, "model": "gpt-x", "day": "2026-03-01",
}  # fmt: skip
OF_TALK = {"conversation": "s", "turn": 1, "history": []}


def test_langfuse_s_observations_traces_and_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = {"score_user_feedback": 1, "label": 4}
    assert rows_in(write(tmp_path / "observations.jsonl", *OBSERVATIONS)) == [OF_LANGFUSE]
    whole = {**OF_LANGFUSE, "seconds": 2.5, **OF_TALK, **said}
    one = write(tmp_path / "trace.json", {**TRACE, "observations": OBSERVATIONS, "scores": SCORES})
    assert rows_in(one, label="quality") == [whole]
    assert "recorded.path=" in (out := capsys.readouterr().out)
    assert "judge=recorded" in out
    page = write(tmp_path / "page.json", {"trace": TRACE, "observations": OBSERVATIONS, "scores": SCORES})
    assert rows_in(page, label="quality") == [whole]
    files = [write(tmp_path / f"{n}.jsonl", *rows) for n, rows in enumerate((OBSERVATIONS, SCORES, [TRACE]))]
    assert rows_in(*files, label="quality") == [whole]
    unlabelled = {key: value for key, value in whole.items() if key != "label"}
    assert rows_in(*reversed(files)) == [{**unlabelled, "score_quality": 4}]
    # The exports to a bucket: other names, and values as JSON texts.
    names = {"traceId": "trace_id", "startTime": "start_time", "endTime": "end_time", "usage": "usage_details",
             "parentObservationId": "parent_observation_id", "calculatedTotalCost": "total_cost"}  # fmt: skip
    bucket = [{names.get(k, k): json.dumps(v) if k in ("input", "output", "usage") else v for k, v in row.items()}
              | {"session_id": "s"} for row in OBSERVATIONS]  # fmt: skip
    assert rows_in(write(tmp_path / "bucket.jsonl", *bucket)) == [{**OF_LANGFUSE, **OF_TALK}]
    failed = [{**OBSERVATIONS[0], "level": "ERROR", "statusMessage": "no\nanswer", "output": None}, *OBSERVATIONS[1:]]
    (row,) = rows_in(write(tmp_path / "failed.jsonl", *failed))
    assert (row["response"], row["error"]) == (None, "no answer")
    bad = write(tmp_path / "bad.jsonl", *OBSERVATIONS, {**SCORES[0], "value": 0.5})
    assert main([str(bad), "-o", str(tmp_path / "x.jsonl"), "--label", "quality"]) == 2
    assert f"{bad}, line 4: trace lf1 has quality=0.5; a label is 1 to 5" in capsys.readouterr().err
    assert main([str(bad), "-o", str(tmp_path / "x.jsonl"), "--label", "grade"]) == 2
    assert "--label grade: no score has this name" in capsys.readouterr().err


def test_systems_are_paired_by_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spans = []
    for version, times in (("1", 2), ("2", 1), ("", 1)):
        app = ByOpenTelemetry("openinference", **({"service.version": version} if version else {}))
        for _ in range(times):
            ask_everything(app)
        spans.append(otlp(app.spans))
    rows = rows_in(write(tmp_path / "a.jsonl", *spans), system="service.version")
    own = [row["trace_id"] for row in rows]
    assert [row["system"] for row in rows] == ["1"] * 10 + ["2"] * 5
    # The second time that a system is asked is another topic, and the other system has it once.
    assert [row["qid"] for row in rows] == [*own[:10], *own[:5]]
    out = capsys.readouterr().out
    assert "15 samples of 24 traces" in out
    assert "left out: 5 traces without the attribute service.version (" in out
    assert "next: ragauge -m experiment=recorded" in out
    assert main([str(tmp_path / "a.jsonl"), "-o", str(tmp_path / "x.jsonl"), "--system", "service.name2"]) == 2
    assert "20 traces without the attribute service.name2" in capsys.readouterr().err


def test_conversations_of_two_systems_are_one(tmp_path: Path) -> None:
    asked = [("1", "a", "Who?"), ("1", "a", "Why?"), ("2", "b", "Who?"), ("2", "b", "Why?")]
    spans = [{**ROOT, "traceId": f"t{n}", "startTimeUnixNano": f"{n + 1}000000000", "attributes": {
        "session.id": talk, "v": system, "input.value": question, "output.value": f"By {system}."}}
        for n, (system, talk, question) in enumerate(asked)]  # fmt: skip
    rows = rows_in(write(tmp_path / "a.jsonl", request(*spans)), system="v")
    assert [(row["qid"], row["conversation"], row["turn"]) for row in rows] == [("t0", "a", 1), ("t1", "a", 2)] * 2
    assert [row["history"] for row in rows] == [[], ["Who?", "By 1."], [], ["Who?", "By 2."]]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"resourceSpans": [', "not a line of JSON"),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "a"}]}]}]}', "KeyError 'spanId'"),
        ('{"resourceSpans": 3}', "no span of its form"),
        ('{"question": "Why?", "answer": "So."}', "neither OTLP (resourceSpans), Phoenix (context.trace_id) nor"),
        ('{"context.trace_id": "a", "context.span_id": null}', "'context.span_id' is missing"),
    ],
)
def test_a_broken_line_is_named(line: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.jsonl", request({**ROOT, "attributes": {"input.value": "Q", "output.value": "A"}}))
    file.write_text(f"{file.read_text()}{line}\n", encoding="utf-8")
    out = tmp_path / "out.jsonl"
    assert main([str(file), "-o", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {file}, line 2: ")
    assert why in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_what_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "gone.jsonl")]) == 2
    assert "gone.jsonl: there is no such file" in capsys.readouterr().err
    silent = write(tmp_path / "a.jsonl", request({**ROOT, "attributes": {"input.value": "Q"}}))
    assert main([str(silent), "-o", str(tmp_path / "x.jsonl")]) == 2
    assert "no trace has a question and an answer; left out: 1 traces without an answer (t1)" in capsys.readouterr().err
    own = write(tmp_path / "mine.jsonl", {"of": "a person"})
    assert main([str(silent), "-o", str(own)]) == 2
    assert "ragauge did not write it" in capsys.readouterr().err
    spans, scores = read([silent, silent])  # a span that stands twice counts once
    assert (len(spans), scores) == (1, [])
    assert samples_of(spans) == ([], {"an answer": ["t1"]})


@pytest.mark.slow
def test_a_job_on_the_samples_gives_the_values_worked_out_by_hand(tmp_path: Path) -> None:
    app = ByOpenTelemetry("openinference")
    ask_everything(app)
    rows = rows_in(write(tmp_path / "traces.jsonl", otlp(app.spans)))
    # Exact match of "Tessa Holm." and "4711" is 1, of "A bridge." 0; the failed trace has no answer to compare.
    truth = ["Tessa Holm", "4711", "a boat", "the cache", None]
    # Evidence: all of it, one part of two, all; the second part of Z has no character in common with any context.
    evidence = [["Tessa Holm built the mill."], ["The server listens on port 4711.", "ZZZZZZZ"],
                ["A bridge spans the Arl."], [], []]  # fmt: skip
    for row, reference, parts in zip(rows, truth, evidence, strict=True):
        row |= {"reference_contexts": parts, **({"reference": reference} if reference else {})}
    file = write(tmp_path / "known.jsonl", *rows)
    done = run(tmp_path, "experiment=recorded", f"recorded.path={file}", "answers=[em]", "judge=lexical",
               "max_missing_share=0.25", "bootstrap=20", "tokenizer=words", "hydra.run.dir=job")  # fmt: skip
    assert done.returncode == 0, done.stderr
    metrics = without_groups(json.loads((tmp_path / "job" / "job.json").read_text())["metrics"])
    assert metrics["em"] == pytest.approx(2 / 3)
    assert metrics["ir_score"] == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert metrics["recorded_prompt_tokens"] == 40 + 10 + 60 + 20 + 8
    assert metrics["recorded_completion_tokens"] == 5 * 5
    outcomes = pd.read_parquet(tmp_path / "job" / "outcomes.parquet").set_index("query")
    assert outcomes["answer_status"].tolist().count("ok") == 4
    assert outcomes.loc["Which port?", "rounds"] == 2
