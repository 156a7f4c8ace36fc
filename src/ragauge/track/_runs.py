"""What is written into MLflow: runs, and an experiment's views and description."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge.track import provenance
from ragauge.track._connection import client_of, is_silence, quiet, reachable, reason, with_tags
from ragauge.track._models import log_predictor

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    from ragauge.track.views import View

log = logging.getLogger(__name__)

_MAX_PARAM_CHARS = 6000  # MLflow's limit on a param value
_BATCH = 1000  # MLflow's limits on one log_batch: metrics, params and tags together, and params
_BATCH_PARAMS = 100
_TABLES_TAG = "mlflow.loggedArtifacts"  # where MLflow's UI looks for tables
_VIEW_TAG = "mlflow.sharedViewState."  # and the view's key: where MLflow's UI looks for it
_NOTE_TAG = "mlflow.note.content"
_OWN_NOTE_TAG = "ragauge.note.sha256"  # of the description that ragauge wrote


@dataclass(frozen=True)
class TopicTrace:
    """What happened to one question: shown span by span in MLflow's Traces page."""

    qid: str
    query: str
    chunks: list[tuple[str, str]]  # docno and text, in the order of the context
    context: str
    answer: str | None
    verdict: dict[str, Any]
    scores: dict[str, float]


@dataclass
class Run:
    """One open MLflow run; what is written into `folder` becomes its artifacts.

    All is held back and written in few calls, since every call is a transaction: when the run ends, however
    it does, or by `flush`.
    """

    client: MlflowClient
    run_id: str
    experiment_id: str
    folder: Path
    tables: list[str]  # artifacts that are tables
    _tags: dict[str, str] = field(init=False, default_factory=dict)
    _metrics: list[Metric] = field(init=False, default_factory=list)

    def tag(self, tags: Mapping[str, str]) -> None:
        """Sets tags."""
        self._tags |= {k: str(v) for k, v in tags.items()}

    def metrics(
        self, values: Mapping[str, float], curves: Mapping[str, Mapping[int, float]] | None = None
    ) -> None:
        """Logs metrics (NaN ones are left out) and step charts {name: {step: value}}."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._metrics += [Metric(k, float(v), now, 0) for k, v in values.items() if v == v]
        for name, curve in (curves or {}).items():
            points = [(int(step), float(v)) for step, v in sorted(curve.items()) if v == v]
            self._metrics += [Metric(name, value, now, step) for step, value in points]

    def table(self, frame: pd.DataFrame, name: str) -> None:
        """A frame as a table artifact that MLflow's UI pages through and sets side by side.

        Written here and not by MLflow's log_table, which rounds numbers to ten digits.
        """
        cells = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
        text = json.dumps(
            {"columns": list(frame.columns), "data": cells}, ensure_ascii=False, default=lambda v: v.item()
        )
        (self.folder / name).write_text(text, encoding="utf-8")
        self.tables = list(dict.fromkeys([*self.tables, name]))
        self._tags[_TABLES_TAG] = json.dumps([{"path": path, "type": "table"} for path in self.tables])

    def flush(self) -> None:
        """Writes what is held back."""
        from mlflow.entities import RunTag

        if any(self.folder.iterdir()):
            self.client.log_artifacts(self.run_id, str(self.folder))
            shutil.rmtree(self.folder)
            self.folder.mkdir()
        tags = [RunTag(k, v) for k, v in self._tags.items()]
        rows = self._metrics
        while rows or tags:
            batch, rows = rows[: _BATCH - len(tags)], rows[_BATCH - len(tags) :]
            self.client.log_batch(self.run_id, metrics=batch, tags=tags)
            tags = []
        self._tags, self._metrics = {}, []

    def traces(self, topics: Iterable[TopicTrace]) -> int:
        """Logs a trace per topic with retrieval, generation and judge spans; returns how many.

        Written one by one: MLflow's asynchronous export loses traces when a process ends.
        """
        import mlflow
        from mlflow.entities import Document, SpanType

        count = 0
        os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
        with quiet():
            mlflow.set_experiment(experiment_id=self.experiment_id)
            with mlflow.start_run(run_id=self.run_id):
                for topic in topics:
                    with mlflow.start_span(topic.query[:80], span_type=SpanType.CHAIN) as root:
                        root.set_inputs({"qid": topic.qid, "question": topic.query})
                        with mlflow.start_span("retrieval", span_type=SpanType.RETRIEVER) as span:
                            span.set_inputs({"query": topic.query})
                            span.set_outputs([Document(t, {"docno": d}) for d, t in topic.chunks])
                            span.set_attributes(topic.scores)
                        with mlflow.start_span("generation", span_type=SpanType.LLM) as span:
                            span.set_inputs({"question": topic.query, "context": topic.context})
                            span.set_outputs(topic.answer)
                        with mlflow.start_span("judge", span_type=SpanType.EVALUATOR) as span:
                            span.set_inputs({"answer": topic.answer})
                            span.set_outputs(topic.verdict)
                        root.set_outputs({"answer": topic.answer, **topic.verdict})
                    count += 1
        return count

    def predictor(self, saved: Path, registered_name: str | None = None) -> None:
        """Logs the folder that `save_predictor` wrote as the run's model."""
        log_predictor(self.client, self.experiment_id, self.run_id, saved, registered_name)


class Tracker:
    """The MLflow store of one experiment."""

    def __init__(self, uri: str, experiment: str) -> None:
        self.uri = uri
        self.experiment = experiment

    @contextmanager
    def run(
        self, name: str, params: Mapping[str, Any], tags: Mapping[str, str], note: str | None = None
    ) -> Iterator[Run]:
        """An open run, which ends FINISHED, or FAILED with its error, or KILLED if interrupted.

        Raises TrackingError where MLflow stops answering; such a run stays open until `close_orphans`.
        """
        from mlflow.entities import Param

        client, experiment_id = client_of(self.uri, self.experiment)
        all_tags = {
            **{k: str(v) for k, v in tags.items()},
            **provenance.origin_tags(),
            "ragauge.host": provenance.machine(),
            "ragauge.pid": str(os.getpid()),
            **({_NOTE_TAG: note} if note else {}),
        }
        with reachable(self.uri):
            created = client.create_run(experiment_id, run_name=name, tags=all_tags)
            with _open(client, created.info.run_id, experiment_id, []) as run:
                rows = [Param(k, param_text(v)) for k, v in params.items()]
                for first in range(0, len(rows), _BATCH_PARAMS):
                    client.log_batch(run.run_id, params=rows[first : first + _BATCH_PARAMS])
                yield run

    @contextmanager
    def resume(self, run_id: str) -> Iterator[Run]:
        """An ended run, to log more into it; it ends as one of `run` does."""
        client, experiment_id = client_of(self.uri, self.experiment)
        with reachable(self.uri):
            known = json.loads(client.get_run(run_id).data.tags.get(_TABLES_TAG, "[]"))
            with _open(client, run_id, experiment_id, [table["path"] for table in known]) as run:
                yield run

    def replace_runs(self, tags: Mapping[str, str]) -> None:
        """Deletes the runs that carry all of the tags (an earlier pooling of the same sweep)."""
        client, experiment_id = client_of(self.uri, self.experiment)
        with reachable(self.uri):
            for run in client.search_runs([experiment_id], with_tags(tags)):
                client.delete_run(run.info.run_id)

    def close_orphans(self) -> int:
        """Marks runs as KILLED whose process on this machine is gone; returns how many.

        A process that was killed cannot end its own run, and MLflow would show it as running for ever.
        """
        client, experiment_id = client_of(self.uri, self.experiment)
        query = f"attributes.status = 'RUNNING' and tags.`ragauge.host` = '{provenance.machine()}'"
        with reachable(self.uri):
            orphans = [
                run
                for run in client.search_runs([experiment_id], query)
                if not provenance.alive(int(run.data.tags.get("ragauge.pid", "0")))
            ]
            for run in orphans:
                client.set_terminated(run.info.run_id, status="KILLED")
        return len(orphans)

    def colour(self, colours: Mapping[str, str]) -> None:
        """Gives runs {id: colour, such as #0072B2} in MLflow's charts and lists."""
        client, _ = client_of(self.uri, self.experiment)
        with reachable(self.uri):
            for run_id, value in colours.items():
                client.set_tag(run_id, "mlflow.runColor", value)

    @property
    def experiment_id(self) -> str:
        """The experiment's id, made if need be."""
        return client_of(self.uri, self.experiment)[1]

    def present(self, saved: Iterable[View], note: str, replace: bool = True) -> None:
        """Saves views of the experiment and its description, shown above its runs.

        A description that somebody else wrote, or changed, stays; without `replace` every one does.
        """
        client, experiment_id = client_of(self.uri, self.experiment)
        with reachable(self.uri):
            tags = client.get_experiment(experiment_id).tags
            new = {_VIEW_TAG + view.key: view.encoded(int(time.time() * 1000)) for view in saved}
            there = tags.get(_NOTE_TAG)
            if not there or (replace and _digest(there) == tags.get(_OWN_NOTE_TAG)):
                new |= {_NOTE_TAG: note, _OWN_NOTE_TAG: _digest(note)}
            for key, value in new.items():
                if replace or key not in tags:
                    client.set_experiment_tag(experiment_id, key, value)


@contextmanager
def _open(client: MlflowClient, run_id: str, experiment_id: str, tables: list[str]) -> Iterator[Run]:
    """The run, written and ended by how the block ends; one that MLflow's silence ended cannot be."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(client, run_id, experiment_id, Path(folder), tables)
        try:
            yield run
            run.flush()
        except BaseException as error:
            if not is_silence(error):
                interrupted = isinstance(error, KeyboardInterrupt)
                if not interrupted:
                    run.tag({"error": f"{type(error).__name__}: {error}"[:5000]})
                try:
                    try:
                        run.flush()
                    finally:
                        client.set_terminated(run_id, status="KILLED" if interrupted else "FAILED")
                except Exception as second:
                    # The first error is the one to tell.
                    log.warning("run %s stays open: %s", run_id, reason(second))
            raise
        client.set_terminated(run_id, status="FINISHED")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def param_text(value: Any) -> str:
    """A value as the text that MLflow holds of a param."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text[:_MAX_PARAM_CHARS]


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one level of dotted keys; lists stay values."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
