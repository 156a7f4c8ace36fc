"""Seconds and memory to read a window of 10,000 traces of a LangChain application, from SQLite and a server.

    python benchmarks/bench_traces.py

The traces are those of tests/plugins/traces/traced_app.py, each retrieving five passages of 800 characters, written
many times with other ids through MLflow's own store. The server is one of MLflow's on this machine, over the same
database; a tenth of the window is read from it.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import psutil
from timing import against, print_header, print_row

from ragauge.plugins.traces.components import MlflowTraces
from ragauge.track import connect
from ragauge.track.connection import at

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))
TRACES, BY_SERVER, BATCH = 10_000, 1_000, 250
GOAL = 60.0  # seconds
APP, WINDOW = "helpdesk", "window"
PASSAGES, CHARACTERS = 5, 800
START = 1_700_000_000_000_000_000  # nanoseconds since 1970 of the first trace; one every second


def copies(spans: list[Any], number: int) -> Iterator[dict[str, Any]]:
    """The spans of a trace under other ids, a second later than those of the trace before it."""
    trace_id = uuid.uuid4().hex
    ids = {span.span_id: uuid.uuid4().hex[:16] for span in spans}
    shift = START + number * 1_000_000_000 - spans[0].start_time_ns
    for span in spans:
        copy = deepcopy(span.to_dict())
        copy["trace_id"] = _encoded(trace_id)
        copy["span_id"] = _encoded(ids[span.span_id])
        if span.parent_id:
            copy["parent_span_id"] = _encoded(ids[span.parent_id])
        copy["start_time_unix_nano"] += shift
        copy["end_time_unix_nano"] += shift
        copy["attributes"]["mlflow.traceRequestId"] = json.dumps(f"tr-{trace_id}")
        if span.span_type == "RETRIEVER":
            texts = [f"{number} {i} ".ljust(CHARACTERS, "x") for i in range(PASSAGES)]
            found = [{"page_content": text, "metadata": {"source": f"{i}.md"}} for i, text in enumerate(texts)]
            copy["attributes"]["mlflow.spanOutputs"] = json.dumps(found)
        yield copy


def _encoded(hexadecimal: str) -> str:
    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()


def write(uri: str) -> int:
    """Writes the window; returns how many spans it has."""
    from mlflow.entities import Span
    from mlflow.tracking._tracking_service.utils import _get_store

    subprocess.run(
        [sys.executable, str(TESTS / "plugins" / "traces" / "traced_app.py"), uri], check=True, capture_output=True
    )
    spans = 0
    with at(uri) as client:
        app = client.get_experiment_by_name(APP).experiment_id
        found = client.search_traces(locations=[app], order_by=["timestamp_ms ASC"])
        kinds = [trace.data.spans for trace in found if any(s.span_type == "RETRIEVER" for s in trace.data.spans)]
        window = client.create_experiment(WINDOW)
        store = _get_store(uri)
        for first in range(0, TRACES, BATCH):
            rows = [
                Span.from_dict(copy)
                for number in range(first, first + BATCH)
                for copy in copies(kinds[number % len(kinds)], number)
            ]
            store.log_spans(window, rows)
            spans += len(rows)
    return spans


def timed(source: MlflowTraces) -> tuple[float, int]:
    """Seconds from nothing to the dataset, and how many topics it has."""
    began = time.perf_counter()
    topics = len(source.load().topics)
    return time.perf_counter() - began, topics


def main() -> None:
    """Prints the table."""
    from servers import mlflow_server

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        uri = f"sqlite:///{scratch / 'mlflow.db'}"
        began = time.perf_counter()
        spans = write(uri)
        wrote = time.perf_counter() - began
        size = (scratch / "mlflow.db").stat().st_size / 1e6
        print(f"{TRACES:,} traces with {spans:,} spans, {size:,.0f} MB of SQLite, written in {wrote:.0f} s\n")
        print_header("from", "traces", "seconds", "traces per second", "memory")
        connect(uri)
        before = psutil.Process().memory_info().rss
        seconds, topics = timed(MlflowTraces(experiment=WINDOW, uri=uri, folder=scratch / "traces"))
        assert topics == TRACES
        memory = f"{(psutil.Process().memory_info().rss - before) / 1e6:,.0f} MB"
        told = f"{seconds:.1f}{against(GOAL, seconds, at_most=True)}"
        print_row("SQLite", f"{topics:,}", told, f"{topics / seconds:,.0f}", memory)
        with mlflow_server(uri, scratch / "artifacts", scratch / "server.log") as url:
            until = (START // 10**9) + BY_SERVER
            source = MlflowTraces(
                experiment=WINDOW, uri=url, folder=scratch / "traces",
                until=time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(until)),
            )  # fmt: skip
            seconds, topics = timed(source)
        assert topics == BY_SERVER
        print_row("an MLflow server", f"{topics:,}", f"{seconds:.1f}", f"{topics / seconds:,.0f}", "")


if __name__ == "__main__":
    main()
