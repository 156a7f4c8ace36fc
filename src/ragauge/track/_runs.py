"""Writes into MLflow: runs, and an experiment's views and description."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse
from urllib.request import url2pathname

import pandas as pd

from ragauge.contract import provenance
from ragauge.contract.finding import Found
from ragauge.contract.metrics import COMMON, Declared, in_group
from ragauge.contract.redact import redact, redact_config, redact_tree
from ragauge.contract.visible import csv_text
from ragauge.track._lost import Point, close_orphans_once, emptied, lost_run
from ragauge.track.connection import client_of, is_silence, pages, reachable, reason, with_tags
from ragauge.track.models import log_network, log_predictor, save_predictor
from ragauge.track.views import OWN

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
_DIGEST_CHARS = 36  # MLflow's limit on a dataset's digest
_NOTE_TAG = "mlflow.note.content"
_OWN_NOTE_TAG = "ragauge.note.sha256"  # of the description that ragauge wrote


@dataclass
class Run:
    """An open MLflow run; files in `folder` become its artifacts.

    Values are buffered and written in few calls, since each call is a transaction: at the end of the run, or by
    `flush`.
    """

    client: MlflowClient
    run_id: str
    experiment_id: str
    folder: Path
    tables: list[str]  # artifacts that are tables
    logged: frozenset[Point] = frozenset()  # what MLflow holds of the metrics of a lost attempt at the job
    _tags: dict[str, str] = field(init=False, default_factory=dict)
    _metrics: list[Metric] = field(init=False, default_factory=list)

    def tag(self, tags: Mapping[str, str]) -> None:
        """Sets tags, without secrets."""
        self._tags |= _texts(tags)

    def add_to_note(self, sentences: Sequence[str]) -> None:
        """Adds sentences that the run's description lacks to its end."""
        if not sentences:
            return
        note = self._tags.get(_NOTE_TAG) or self.client.get_run(self.run_id).data.tags.get(_NOTE_TAG, "")
        new = [escape(redact(sentence), quote=False) for sentence in sentences]
        self._tags[_NOTE_TAG] = "\n\n".join([note, *(sentence for sentence in new if sentence not in note)])

    def metrics(
        self,
        values: Mapping[str, float],
        curves: Mapping[str, Mapping[int, float]] | None = None,
        declared: Declared = COMMON,
    ) -> None:
        """Logs metrics (NaN ones are left out) and step charts {name: {step: value}}, each in its group.

        declared: their declarations by findings.
        """
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._metrics += [Metric(in_group(k, declared), float(v), now, 0) for k, v in values.items() if v == v]
        for name, curve in (curves or {}).items():
            points = [(int(step), float(v)) for step, v in sorted(curve.items()) if v == v]
            self._metrics += [Metric(in_group(name), value, now, step) for step, value in points]

    def days(self, charts: Mapping[str, Mapping[int, float]]) -> None:
        """Logs charts by day {name: {YYYYMMDD: value}}: the step is the day, the time its midnight in UTC.

        So MLflow draws them by date where the x-axis is the wall time.
        """
        from mlflow.entities import Metric

        for name, values in charts.items():
            for day, value in sorted(values.items()):
                midnight = datetime.strptime(str(day), "%Y%m%d").replace(tzinfo=UTC)
                self._metrics.append(Metric(in_group(name), float(value), int(midnight.timestamp() * 1000), int(day)))

    def dataset(self, name: str, digest: str, source: Mapping[str, Any], profile: Mapping[str, int]) -> None:
        """Logs the dataset for MLflow's column *Dataset*; nothing of it is copied.

        digest: MLflow keeps its first 36 characters. source: where it comes from; profile: its sizes.
        """
        from mlflow.entities import Dataset, DatasetInput, InputTag
        from mlflow.exceptions import MlflowException

        said, sizes = (json.dumps(redact_tree(dict(part)), ensure_ascii=False) for part in (source, profile))
        known = Dataset(redact(name), digest[:_DIGEST_CHARS], "ragauge", said, profile=sizes)
        inputs = [DatasetInput(known, [InputTag("mlflow.data.context", "evaluation")])]
        try:
            self.client.log_inputs(self.run_id, inputs)
        except MlflowException as error:
            if not re.search("unique|duplicate", str(error), re.IGNORECASE):
                raise
            # Of two jobs that bring the same one at a time its database refuses the second, once.
            self.client.log_inputs(self.run_id, inputs)

    def file_of(self, artifact: str) -> Path | None:
        """The file of an artifact on this machine; None where a server keeps it."""
        at = urlparse(str(self.client.get_run(self.run_id).info.artifact_uri))
        return Path(url2pathname(at.path)) / artifact if at.scheme == "file" else None

    def table(self, frame: pd.DataFrame, name: str) -> None:
        """Logs a frame as a table artifact for MLflow's UI.

        Does not use MLflow's log_table, which rounds numbers to ten digits.
        """
        cells = frame.astype(object).to_numpy(copy=True)
        cells[frame.isna().to_numpy()] = None
        known = {"columns": list(frame.columns), "data": cells.tolist()}
        text = json.dumps(known, ensure_ascii=False, default=lambda v: v.item())
        (self.folder / name).write_text(text, encoding="utf-8")
        self.tables = list(dict.fromkeys([*self.tables, name]))
        self._tags[_TABLES_TAG] = json.dumps([{"path": path, "type": "table"} for path in self.tables])

    def flush(self) -> None:
        """Writes the buffered artifacts, tables, tags and metrics into MLflow."""
        from mlflow.entities import RunTag

        if any(self.folder.iterdir()):
            self.client.log_artifacts(self.run_id, str(self.folder))
            shutil.rmtree(self.folder)
            self.folder.mkdir()
        tags = [RunTag(k, v) for k, v in self._tags.items()]
        # MLflow's list shows them in this order.
        read_first = sorted(self._metrics, key=lambda metric: "/" in metric.key)
        rows = [m for m in read_first if (m.key, m.step, m.value) not in self.logged]
        while rows or tags:
            batch, rows = rows[: _BATCH - len(tags)], rows[_BATCH - len(tags) :]
            self.client.log_batch(self.run_id, metrics=batch, tags=tags)
            tags = []
        self._tags, self._metrics = {}, []

    def flushed(self) -> bool:
        """As `flush`; if MLflow does not answer, returns False and keeps the buffer for the next one."""
        try:
            self.flush()
        except Exception as error:
            if not is_silence(error):
                raise
            log.warning("MLflow does not answer (%s); the work goes on, and is logged at its end", reason(error))
            return False
        return True

    def predictor(self, saved: Path, registered_name: str | None = None) -> str:
        """Logs the folder that `save_predictor` wrote as the run's model, and returns its URI."""
        return log_predictor(self.client, self.experiment_id, self.run_id, saved, registered_name)

    def network(self, folder: Path, card: str, facts: Mapping[str, Any], registered_name: str | None = None) -> str:
        """Logs the folder of a network as the run's model, and returns its URI; `log_network` says how."""
        self.flush()
        given = (self.client, self.experiment_id, self.run_id, folder, card, facts, registered_name)
        return log_network(*given)


def log_found(
    run: Run,
    found: Found,
    declared: Declared = COMMON,
    settings: Mapping[str, Any] | None = None,
    registered_name: str | None = None,
) -> None:
    """Logs metrics with their charts, tables, files and the model of one finding.

    declared: the metrics that findings declare.
    settings: the meaning of the scores, for a model that is no folder yet; registered_name: that of the model in
        MLflow's registry.
    """
    run.metrics(found.metrics, found.steps, declared)
    run.days(found.days)
    for name, frame in found.logged.items():
        run.table(frame, f"{name}.json")
    for name, frame in found.tables.items():
        _path(run, f"tables/{name}.csv").write_text(csv_text(frame), encoding="utf-8", newline="")
    for name, write in found.files.items():
        write(_path(run, name))
    if isinstance(found.model, Path):
        run.predictor(found.model, registered_name)
    elif found.model is not None:
        model, example = found.model
        with tempfile.TemporaryDirectory() as scratch:
            saved = Path(scratch) / "model"
            save_predictor(saved, model, example, settings or {})
            run.predictor(saved, registered_name)


def _path(run: Run, artifact: str) -> Path:
    """The path of an artifact before it is in MLflow."""
    path = run.folder / artifact
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


class Tracker:
    """The MLflow store of one experiment."""

    def __init__(self, uri: str, experiment: str) -> None:
        self.uri = uri
        self.experiment = experiment

    @contextmanager
    def run(
        self,
        name: str,
        params: Mapping[str, Any],
        tags: Mapping[str, str],
        note: str | None = None,
        ended: str | None = None,
    ) -> Iterator[Run]:
        """Opens a run, which ends FINISHED, FAILED with its error, or KILLED if interrupted.

        No secret gets into its name, params, tags and note. Where the tags name a job of a sweep, the run of an attempt
        at it that did not end is taken over. One that did end has the id `ended`. Raises TrackingError where MLflow
        stops answering; such a run stays open until `close_orphans`.
        """
        from mlflow.entities import Param, RunTag

        client, experiment_id = client_of(self.uri, self.experiment)
        close_orphans_once(self.uri)
        all_tags = {
            **_texts(tags),
            **provenance.origin_tags(),
            **provenance.process_tags(),
            **({_NOTE_TAG: redact(note)} if note else {}),
        }
        rows = {k: param_text(v) for k, v in redact_config(params).items()}
        with reachable(self.uri):
            lost = lost_run(client, experiment_id, all_tags, rows, ended)
            if lost is None:
                created = client.create_run(experiment_id, run_name=redact(name), tags=all_tags)
                run_id, logged = created.info.run_id, frozenset[Point]()
            else:
                run_id, logged = lost.info.run_id, emptied(client, lost)
                client.log_batch(run_id, tags=[RunTag(k, v) for k, v in all_tags.items()])
            with _open(client, run_id, experiment_id, [], logged) as run:
                given = [Param(k, v) for k, v in rows.items()]
                for first in range(0, len(given), _BATCH_PARAMS):
                    client.log_batch(run.run_id, params=given[first : first + _BATCH_PARAMS])
                yield run

    @contextmanager
    def resume(self, run_id: str) -> Iterator[Run]:
        """Reopens an ended run to log more into it; it ends as in `run`."""
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

    def supersede(self, tags: Mapping[str, str], current: Collection[str]) -> int:
        """Removes ended runs with all of the tags, except `current` ones, from their sweep; returns their number.

        They are of earlier attempts: their tag `sweep_id` becomes `superseded_in`.
        """
        client, experiment_id = client_of(self.uri, self.experiment)
        with reachable(self.uri):
            earlier = list(pages(lambda **page: client.search_runs([experiment_id], with_tags(tags), **page)))
            ended = [run for run in earlier if run.info.run_id not in current and run.info.status != "RUNNING"]
            for run in ended:
                client.set_tag(run.info.run_id, "superseded_in", tags["sweep_id"])
                client.delete_tag(run.info.run_id, "sweep_id")
        return len(ended)

    def colour(self, colours: Mapping[str, str]) -> None:
        """Sets the colours of runs {id: colour, such as #0072B2} in MLflow's charts and lists."""
        self.tag_runs("mlflow.runColor", colours)

    def group(self, groups: Mapping[str, str]) -> None:
        """Sets the tag `group`, the name of the group of comparable jobs, on runs {id: name}."""
        self.tag_runs("group", {run_id: redact(name) for run_id, name in groups.items()})

    def tag_runs(self, tag: str, values: Mapping[str, str]) -> None:
        """Sets a tag on runs {id: value}, ended ones included."""
        client, _ = client_of(self.uri, self.experiment)
        with reachable(self.uri):
            for run_id, value in values.items():
                client.set_tag(run_id, tag, value)

    @property
    def experiment_id(self) -> str:
        """The experiment's id; the experiment is created if it does not exist."""
        return client_of(self.uri, self.experiment)[1]

    def present(self, saved: Iterable[View], note: str, replace: bool = True) -> None:
        """Saves views of the experiment and its description, shown above its runs.

        A description that a user wrote, or changed, stays; without `replace` every one does. With it, views of
        ragauge's that are not among these are gone.
        """
        client, experiment_id = client_of(self.uri, self.experiment)
        with reachable(self.uri):
            note = redact(note)
            tags = client.get_experiment(experiment_id).tags
            new = {_VIEW_TAG + view.key: view.encoded(int(time.time() * 1000)) for view in saved}
            there = tags.get(_NOTE_TAG)
            if not there or (replace and _digest(there) == tags.get(_OWN_NOTE_TAG)):
                new |= {_NOTE_TAG: note, _OWN_NOTE_TAG: _digest(note)}
            own = [key for key in tags if key.startswith(_VIEW_TAG + OWN)]
            for key in [key for key in own if replace and key not in new]:
                client.delete_experiment_tag(experiment_id, key)
            for key, value in new.items():
                if replace or key not in tags:
                    client.set_experiment_tag(experiment_id, key, value)


@contextmanager
def _open(
    client: MlflowClient, run_id: str, experiment_id: str, tables: list[str], logged: frozenset[Point] = frozenset()
) -> Iterator[Run]:
    """Flushes and ends an MLflow run as FINISHED, FAILED or KILLED, depending on the end of the block.

    A run that failed because MLflow did not answer is left open.
    """
    with tempfile.TemporaryDirectory() as folder:
        run = Run(client, run_id, experiment_id, Path(folder), tables, logged)
        try:
            yield run
            run.flush()
        except BaseException as error:
            if not is_silence(error):
                interrupted = isinstance(error, KeyboardInterrupt)
                if not interrupted:
                    # Cut when it is clean: of a key that the cut went through no form would be left to know.
                    run.tag({"error": redact(f"{type(error).__name__}: {error}")[:5000]})
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


def _texts(tags: Mapping[str, Any]) -> dict[str, str]:
    """Tags as texts for MLflow, without secrets."""
    return {name: str(value) for name, value in redact_config(tags).items()}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def param_text(value: Any) -> str:
    """A value as MLflow's text of a param."""
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
