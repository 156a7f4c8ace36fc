"""Seconds and bytes a topic of `tracking.evaluation=true`, beside MLflow's own calls one by one.

    python benchmarks/bench_mlflow_pages.py

MLflow stores in SQLite and, where its programs are on this machine, in a PostgreSQL server that the tests start.

A topic has five passages of 800 characters, a reference answer, two parts of evidence and six values of feedback.
MLflow's own calls are `start_span`, `log_expectation` and `log_feedback`, as an application makes them; 100 topics.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from timing import print_header, print_row

from ragauge.plugins.mlflow_pages.finding import write_evaluation
from ragauge.plugins.mlflow_pages.topics import Feedback, TopicTrace, Usage
from ragauge.track import Tracker
from servers import postgres_server

SIZES = (100, 1_000, 10_000)
BY_CALLS = 100
WAYS = ("one transaction a hundred topics", "MLflow's own calls")
PASSAGES, CHARACTERS = 5, 800
MEASURES = ("correct", "ir_score", "em", "f1", "rouge_l")


def topics(count: int) -> list[TopicTrace]:
    """Topics of the size of a usual job's."""
    passage = ("word " * CHARACTERS)[:CHARACTERS]
    evidence = [{"doc_uri": f"d{part}", "content": passage[:100]} for part in range(2)]
    feedback = {name: Feedback(0.5, "part 1 of 2 at 0.50: " + passage[:100]) for name in MEASURES}
    return [
        TopicTrace(
            qid=f"q{number}",
            query=f"Who wrote the book of number {number}?",
            chunks=[(f"d{place}%p0", passage) for place in range(PASSAGES)],
            context=passage * PASSAGES,
            answer="Goethe",
            verdict={"label": 5, "class": "right", "status": "ok"},
            scores={"ir_score": 0.5},
            model="m",
            usage=Usage(1000, 10, 0.001, 1.0),
            expectations={"expected_response": "Goethe", "expected_retrieved_context": evidence},
            feedback={
                "judge_class": Feedback(5, "right: the answer is the reference", Usage(300, 9, 0.001)),
                **feedback,
            },
        )
        for number in range(count)
    ]


def by_calls(tracker: Tracker, rows: Sequence[TopicTrace]) -> None:
    """The same by MLflow's own functions."""
    import mlflow
    from mlflow.entities import AssessmentSource

    os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
    mlflow.set_tracking_uri(tracker.uri)
    mlflow.set_experiment(experiment_id=tracker.experiment_id)
    code = AssessmentSource("CODE", "bench")
    for topic in rows:
        with mlflow.start_span("question") as root:
            root.set_inputs({"question": topic.query})
            for name in ("retrieval", "generation", "judge"):
                with mlflow.start_span(name) as span:
                    span.set_outputs(topic.chunks if name == "retrieval" else topic.context)
        for name, value in topic.expectations.items():
            mlflow.log_expectation(trace_id=root.trace_id, name=name, value=value, source=code)
        for name, told in topic.feedback.items():
            mlflow.log_feedback(
                trace_id=root.trace_id, name=name, value=told.value, rationale=told.rationale, source=code
            )


def size_of(uri: str) -> int:
    """Bytes of a database."""
    if uri.startswith("sqlite:///"):
        return Path(uri.removeprefix("sqlite:///")).stat().st_size
    import psycopg

    with psycopg.connect(uri) as connection:
        [size] = connection.execute("SELECT pg_database_size(current_database())").fetchone() or [0]
    return int(size)


def measure(store: str, uri: str, way: str, count: int) -> None:
    """Writes the topics into an experiment of its own, and prints the row."""
    from mlflow.entities import AssessmentSource

    source = AssessmentSource("LLM_JUDGE", "bench")
    tracker = Tracker(uri, f"{way} {count}")
    rows = topics(count)
    with tracker.run("job", {}, {}) as run:
        run.flush()
        before, begun, busy = size_of(uri), time.perf_counter(), time.process_time()
        if way == WAYS[0]:
            write_evaluation(run.client, run.experiment_id, run.run_id, rows, source, {})
        else:
            by_calls(tracker, rows)
        took, used = time.perf_counter() - begun, time.process_time() - busy
        size = size_of(uri) - before
    print_row(store, way, f"{count:,}", f"{took:.1f}", f"{1000 * used / count:.1f}", f"{size / count / 1000:.1f}")


def main() -> None:
    """Prints a row per store, way and number of topics."""
    print_header("store", "written by", "topics", "seconds", "processor ms a topic", "kB a topic")
    rows = [(WAYS[0], int(size)) for size in sys.argv[1:] or SIZES] + [(WAYS[1], BY_CALLS)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for way, count in rows:
            measure("SQLite", f"sqlite:///{Path(folder) / f'{way} {count}.db'}", way, count)
    with postgres_server() as server:
        for way, count in rows:
            measure("PostgreSQL", server, way, count)


if __name__ == "__main__":
    main()
