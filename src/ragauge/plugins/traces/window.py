"""Reads a window of an experiment's traces, and stores it as one file named by its content."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge.contract.errors import ConfigError
from ragauge.contract.progress import progress
from ragauge.contract.redact import redact
from ragauge.plugins.traces.rows import Reading, Truth, is_request, row_of
from ragauge.plugins.traces.shapes import question_of
from ragauge.track.connection import at, missing_database, pages, quiet, reachable, reason
from ragauge.track.feedback import OWN_TAG

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Trace

log = logging.getLogger(__name__)

_SCORER_TAG = "mlflow.trace.sourceScorer"  # on the traces of MLflow's own judges
_GOING = "IN_PROGRESS"  # of a trace whose root span has not ended; other spans may be there
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True)
class Window:
    """Selects traces: of an experiment at a URI, that pass a filter, in [since, until) in milliseconds."""

    uri: str
    experiment: str
    filter: str | None
    since: int | None
    until: int | None
    evaluation_dataset: str | None = None

    def describe(self) -> str:
        """The window in words, for messages."""
        when = [f"{word} {iso(ms)}" for word, ms in (("since", self.since), ("until", self.until)) if ms is not None]
        passing = [f"that pass {self.filter!r}"] if self.filter else []
        return " ".join([f"experiment {self.experiment!r}", *when, *passing])


def milliseconds(key: str, value: str | int | None, now: float) -> int | None:
    """A point in time in milliseconds since 1970: of ISO 8601 (UTC by default), or before `now`.

    The latter is a number with m, h, d or w, such as 7d. ConfigError, which names the key, for anything else.
    """
    if value is None:
        return None
    text = str(value).strip()
    ago = re.fullmatch(r"(\d{1,5})([mhdw])", text)
    try:
        if ago:
            return int((now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}).total_seconds()) * 1000)
        told = datetime.fromisoformat(text)
        moment = told if told.tzinfo else told.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"dataset.{key}={value!r}: allowed are ISO times such as 2026-11-15 or 2026-11-15T08:00+01:00, "
            "and times ago such as 30m, 12h, 7d or 4w"
        ) from None


def iso(ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC; without fraction for whole seconds."""
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds" if ms % 1000 else "seconds")


@lru_cache(maxsize=1)
def process_start() -> float:
    """The common end, in seconds since 1970, of all windows of this process that end now."""
    return time.time()


def snapshot(window: Window, how: Reading, folder: Path) -> Path:
    """The file of the window's rows in the folder, a JSON line per trace, oldest first; written if missing.

    Its name is the SHA-256 of its content: a window that is read again with nothing new is the same file.
    ConfigError where there is no such experiment, filter or evaluation dataset, or no trace in the window.
    """
    return kept_by_content(_rows(window, how), folder)


def kept_by_content(rows: Iterable[Mapping[str, Any]], folder: Path) -> Path:
    """The file of the rows in the folder, a JSON line each; its name is the SHA-256 of its content."""
    text = "".join(json.dumps(row, ensure_ascii=True, sort_keys=True) + "\n" for row in rows)
    data = text.encode("ascii")
    path = folder.absolute() / f"{hashlib.sha256(data).hexdigest()}.jsonl"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{uuid.uuid4().hex}.tmp")
        draft.write_bytes(data)
        os.replace(draft, path)
    return path


def _rows(window: Window, how: Reading) -> list[dict[str, Any]]:
    if database := missing_database(window.uri):
        raise ConfigError(f"dataset.uri={window.uri}: no MLflow database at {database}")
    with at(window.uri) as client, reachable(window.uri):
        experiment_id = experiment_of(client, window.experiment, window.uri)
        truth = _evaluation_dataset(client, window.evaluation_dataset, window.uri)
        going = _going(client, window, experiment_id)
        found: list[dict[str, Any]] = []
        own = building = 0
        with progress(None, "reading traces", "trace") as bar:
            for trace in _search(client, window, experiment_id, include_spans=True):
                if trace.info.state == _GOING:  # counted by `_going`
                    continue
                if OWN_TAG in trace.info.tags or _SCORER_TAG in trace.info.tags:
                    own += 1
                elif is_request(trace, row := row_of(trace, how, truth)):
                    found.append(row)
                else:
                    building += 1
                bar.update()
    left_out = {
        "still going": going,
        "of ragauge or of MLflow's judges": own,
        "without question, retrieval and answer, such as those of building an index": building,
    }
    told = "; ".join(f"{n} trace(s) {what}" for what, n in left_out.items() if n)
    if told:
        log.info("%s: %s: left out", window.describe(), told)
    if not found:
        raise ConfigError(f"dataset: no trace in {window.describe()}{f' ({told})' if told else ''}")
    return found


def _search(client: MlflowClient, window: Window, experiment_id: str, **more: Any) -> Iterator[Trace]:
    """The traces of the window, oldest first; ConfigError with MLflow's message for a bad filter."""
    from mlflow.exceptions import MlflowException

    state = more.pop("state", None)
    conditions = [window.filter] if window.filter else []
    conditions += [f"trace.timestamp_ms >= {window.since}"] if window.since is not None else []
    conditions += [f"trace.timestamp_ms < {window.until}"] if window.until is not None else []
    conditions += [f"trace.status = '{state}'"] if state else []
    search = partial(
        client.search_traces,
        locations=[experiment_id],
        filter_string=" AND ".join(conditions) or None,
        order_by=["timestamp_ms ASC"],
        **more,
    )
    try:
        with quiet():
            yield from pages(search)
    except MlflowException as error:
        raise ConfigError(f"dataset.filter={window.filter!r}: MLflow says: {reason(error)}") from error


def _going(client: MlflowClient, window: Window, experiment_id: str) -> int:
    """The number of unfinished traces in the window."""
    return sum(1 for _ in _search(client, window, experiment_id, include_spans=False, state=_GOING))


def experiment_of(client: MlflowClient, name: str, uri: str) -> str:
    """The id of an experiment by its name; ConfigError with the existing names."""
    with quiet():
        found = client.get_experiment_by_name(name)
        if found is None or found.lifecycle_stage == "deleted":
            names = sorted(e.name for e in pages(client.search_experiments))
            shown = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
            raise ConfigError(
                f"dataset.experiment={name!r}: MLflow at {redact(uri)} has no such experiment; it has {shown}"
            )
    return str(found.experiment_id)


def _evaluation_dataset(client: MlflowClient, name: str | None, uri: str) -> Truth:
    """The expectations in an evaluation dataset of MLflow, by source trace and by question.

    A record that was made from a trace holds for every trace of the same question.
    """
    from mlflow.exceptions import MlflowException

    if name is None:
        return Truth()
    quoted = name.replace("'", "''")
    try:
        with quiet():
            found = list(client.search_datasets(filter_string=f"name = '{quoted}'"))
            if not found:
                raise ConfigError(
                    f"dataset.evaluation_dataset={name!r}: MLflow at {redact(uri)} has no evaluation dataset "
                    "of this name"
                )
            records = client.get_dataset(found[0].dataset_id).records
    except MlflowException as error:
        raise ConfigError(f"dataset.evaluation_dataset={name!r}: MLflow says: {reason(error)}") from error
    by_trace: dict[str, list[dict[str, Any]]] = {}
    by_question: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        told = dict(record.expectations or {})
        if record.source_id and str(record.source_type) == "TRACE":
            by_trace.setdefault(record.source_id, []).append(told)
        if question := question_of(record.inputs):
            by_question.setdefault(question, []).append(told)
    return Truth(by_trace, by_question)
