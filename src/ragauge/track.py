"""The only room that knows MLflow: where runs are kept, and what is written into one."""

from __future__ import annotations

import getpass
import hashlib
import json
import logging
import os
import platform
import re
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from filelock import FileLock

from ragauge.errors import ConfigError, DataError, TrackingError
from ragauge.redact import redact

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as MlflowRun

    from ragauge.views import View

log = logging.getLogger(__name__)

# What people measure is theirs: MLflow's usage reports are off unless somebody turned them on.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
# A bar per downloaded file would bury what ragauge says.
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
# So would two lines per run with its address on the server.
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
# A server that restarts is waited for: a minute per request. MLflow's own seven retries wait four.
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "5")
# Whether a server is there at all is told sooner: two attempts of so many seconds.
_FIRST_LOOK = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "15"}

DEFAULT_FOLDER = Path("mlruns")
_ENTRIES_TAG = "ragauge.entries"  # <stage>/<digest> of every store entry that a job used, as a JSON list
_MAX_PARAM_CHARS = 6000  # MLflow's limit on a param value
_BATCH_METRICS = 1000  # MLflow's limits on one log_batch
_BATCH_PARAMS = 100
_PAGE = 1000  # runs or experiments of one search
_TABLES_TAG = "mlflow.loggedArtifacts"  # where MLflow's UI looks for tables
# What a predictor may be made of beside scikit-learn's own: splines, and calibration.
_MODEL_TYPES = [
    "ragauge.estimate._calibration.RightCalibrated",
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "scipy.interpolate._bsplines.BSpline",
]
_SETTINGS = "ragauge_settings"  # key of a model's metadata
_VIEW_TAG = "mlflow.sharedViewState."  # and the view's key: where MLflow's UI looks for it
_NOTE_TAG = "mlflow.note.content"
_OWN_NOTE_TAG = "ragauge.note.sha256"  # of the description that ragauge wrote


def tracking_uri(configured: str | None = None) -> str:
    """The config's URI, else MLFLOW_TRACKING_URI, else SQLite under mlruns/ in the working directory."""
    uri = configured or os.environ.get("MLFLOW_TRACKING_URI")
    return uri or f"sqlite:///{(DEFAULT_FOLDER / 'mlflow.db').absolute()}"


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
    """One open MLflow run; everything is logged in few calls, since every call is a transaction."""

    client: MlflowClient
    run_id: str
    experiment_id: str

    def tag(self, tags: Mapping[str, str]) -> None:
        """Sets tags."""
        from mlflow.entities import RunTag

        self.client.log_batch(self.run_id, tags=[RunTag(k, str(v)) for k, v in tags.items()])

    def metrics(
        self, values: Mapping[str, float], curves: Mapping[str, Mapping[int, float]] | None = None
    ) -> None:
        """Logs metrics (NaN ones are left out) and step charts {name: {step: value}} in one batch."""
        import time

        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        rows = [Metric(k, float(v), now, 0) for k, v in values.items() if v == v]
        for name, curve in (curves or {}).items():
            rows += [Metric(name, float(v), now, int(step)) for step, v in sorted(curve.items()) if v == v]
        for first in range(0, len(rows), _BATCH_METRICS):
            self.client.log_batch(self.run_id, metrics=rows[first : first + _BATCH_METRICS])

    def artifacts(self, folder: Path) -> None:
        """Uploads a folder's content."""
        self.client.log_artifacts(self.run_id, str(folder))

    def artifact(self, file: Path, folder: str) -> None:
        """Uploads one file into an artifact folder."""
        self.client.log_artifact(self.run_id, str(file), folder)

    def table(self, frame: pd.DataFrame, name: str, tags: Mapping[str, str] | None = None) -> None:
        """A frame as a table artifact that MLflow's UI pages through and sets side by side.

        `tags` are set with the one that makes it a table, at no further call.
        Written here and not by MLflow's log_table, which rounds numbers to ten digits.
        """
        cells = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
        text = json.dumps(
            {"columns": list(frame.columns), "data": cells}, ensure_ascii=False, default=lambda v: v.item()
        )
        self.client.log_text(self.run_id, text, name)
        known = json.loads(self.client.get_run(self.run_id).data.tags.get(_TABLES_TAG, "[]"))
        entry = {"path": name, "type": "table"}
        self.tag({_TABLES_TAG: json.dumps([*(e for e in known if e != entry), entry]), **(tags or {})})

    def traces(self, topics: Iterable[TopicTrace]) -> int:
        """Logs a trace per topic with retrieval, generation and judge spans; returns how many.

        Written one by one: MLflow's asynchronous export loses traces when a process ends.
        """
        import mlflow
        from mlflow.entities import Document, SpanType

        count = 0
        os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
        with _quiet():
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

    def predictor(
        self,
        model: Any,
        example: pd.DataFrame,
        settings: Mapping[str, Any],
        registered_name: str | None = None,
    ) -> None:
        """A fitted scikit-learn estimator as an MLflow model with signature and input example.

        `settings` say what its scores mean (`ragauge.prediction.settings_of`).
        """
        import mlflow
        import sklearn
        from mlflow.models import infer_signature

        signature = infer_signature(example, model.predict_proba(example))
        with _quiet():
            # MLflow refuses to resume a run of another experiment than the one it was last told.
            mlflow.set_experiment(experiment_id=self.experiment_id)
        with _quiet(), mlflow.start_run(run_id=self.run_id):
            mlflow.sklearn.log_model(
                model,
                name="predictor",
                signature=signature,
                input_example=example,
                pyfunc_predict_fn="predict_proba",
                # Given, because inferring them imports the model in a process of its own for seconds.
                pip_requirements=[f"scikit-learn=={sklearn.__version__}", f"pandas=={pd.__version__}"],
                registered_model_name=registered_name,
                skops_trusted_types=_MODEL_TYPES,
                metadata={_SETTINGS: json.dumps(settings, sort_keys=True)},
            )


def load_predictor(uri: str, model_uri: str) -> tuple[Any, dict[str, Any]]:
    """A logged predictor and the settings it was fitted under ({} where it does not say).

    `model_uri` is any of MLflow's: models:/<name>/<version>, runs:/<run id>/predictor, models:/m-<id>.
    """
    import mlflow
    from mlflow.exceptions import MlflowException
    from mlflow.models import get_model_info

    connect(uri)
    try:
        with _quiet():
            mlflow.set_tracking_uri(uri)
            metadata = get_model_info(model_uri).metadata or {}
            return mlflow.sklearn.load_model(model_uri), json.loads(metadata.get(_SETTINGS, "{}"))
    except (MlflowException, OSError) as error:
        raise ConfigError(f"predictor: {model_uri} cannot be loaded from MLflow: {error}") from error


def entries_tag(names: Iterable[str]) -> dict[str, str]:
    """The tag by which a run records the store entries (<stage>/<digest>) that it used."""
    return {_ENTRIES_TAG: json.dumps(sorted(set(names)))}


def _pages(search: Callable[..., Any]) -> Iterator[Any]:
    """What a search of MLflow finds, page by page."""
    token = None
    while True:
        page = search(max_results=_PAGE, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


@dataclass(frozen=True)
class LoggedRun:
    """What MLflow's database holds of a run, in plain values; `started` is in seconds since 1970."""

    run_id: str
    name: str
    status: str
    experiment_id: str
    experiment: str
    started: float
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]

    @property
    def going(self) -> bool:
        """Whether the run has not ended, and its process is not known to be gone."""
        here = self.tags.get("ragauge.host") == _machine()
        return self.status == "RUNNING" and not (here and not _alive(int(self.tags.get("ragauge.pid", "0"))))

    @property
    def entries(self) -> frozenset[str] | None:
        """The store entries (<stage>/<digest>) that the run recorded; None if it recorded none."""
        if _ENTRIES_TAG not in self.tags:
            return None
        try:
            return frozenset(json.loads(self.tags[_ENTRIES_TAG]))
        except (ValueError, TypeError) as error:
            raise ConfigError(f"run {self.run_id}: its tag {_ENTRIES_TAG} is no JSON list: {error}") from None


class Reader:
    """Reads the runs of every experiment of an MLflow store; deleted ones are not there."""

    def __init__(self, uri: str) -> None:
        local = re.fullmatch(r"sqlite:///(.+)", uri)
        if local and not Path(local.group(1)).is_file():
            raise ConfigError(
                f"no MLflow database at {local.group(1)}; name yours by --tracking-uri (of run.py: "
                "tracking.uri=) or MLFLOW_TRACKING_URI"
            )
        self.uri = uri
        self._mlflow = connect(uri)
        with _reachable(uri):
            found = _pages(self._mlflow.search_experiments)
            self._experiments = {e.experiment_id: e.name for e in found}

    def run(self, prefix: str) -> LoggedRun:
        """The run whose id begins so; ConfigError where none or several do, with what there is."""
        found: list[LoggedRun] = []
        if re.fullmatch(r"[0-9a-f]{1,32}", prefix):
            found = self._search(f"attributes.run_id LIKE '{prefix}%'", limit=20)
        if len(found) == 1:
            return found[0]
        where = f"MLflow at {redact(self.uri)} holds"
        if found:
            raise ConfigError(f"{where} several runs {prefix}…: {_listed(found)}")
        newest = self._search("tags.role LIKE '%'", limit=10, order="attributes.start_time DESC")
        hint = f"; the newest are {_listed(newest)}" if newest else ", and none of ragauge's"
        raise ConfigError(f"{where} no run {prefix}{hint}")

    def search(self, tags: Mapping[str, str], experiment_id: str) -> list[LoggedRun]:
        """The runs of an experiment that carry all of the tags, oldest first."""
        query = " and ".join(f"tags.`{k}` = '{v}'" for k, v in tags.items())
        return self._search(query, experiments=[experiment_id])

    def measured(self, entry: str | None = None) -> list[LoggedRun]:
        """All of ragauge's runs, the newest first, or those that used the store entry."""
        used = "tags.ragauge_version != ''" if entry is None else f"tags.`{_ENTRIES_TAG}` LIKE '%{entry}%'"
        return self._search(used, order="attributes.start_time DESC")

    def jobs(self, sweep: LoggedRun) -> list[LoggedRun]:
        """The runs of a sweep's jobs, in the order of the jobs."""
        found = self.search({"sweep_id": sweep.tags["sweep_id"], "role": "job"}, sweep.experiment_id)
        return sorted(found, key=lambda run: int(run.tags.get("job", 0)))

    def metrics(self, run_id: str) -> dict[str, float]:
        """The metrics of a run by name; those of a step chart over budgets as `<name>[<n_tokens>]`."""
        values: dict[str, float] = {}
        for name, value in sorted(self._mlflow.get_run(run_id).data.metrics.items()):
            if "_at_n" in name:
                points = sorted(self.history(run_id, name).items())
                values |= {f"{name}[{step}]": point for step, point in points}
            else:
                values[name] = value
        return values

    def history(self, run_id: str, metric: str) -> dict[int, float]:
        """The points of a step chart: {step: value}."""
        points = self._mlflow.get_metric_history(run_id, metric)
        return {point.step: point.value for point in sorted(points, key=lambda point: point.timestamp)}

    def text(self, run_id: str, artifact: str) -> str:
        """The text of an artifact; DataError where the run has none of this name."""
        from mlflow.exceptions import MlflowException

        with tempfile.TemporaryDirectory() as folder:
            try:
                return Path(self._mlflow.download_artifacts(run_id, artifact, folder)).read_text("utf-8")
            except (MlflowException, OSError) as error:
                raise DataError(f"run {run_id} has no artifact {artifact}, which is needed") from error

    def files(self, run_id: str, folder: str) -> dict[str, str]:
        """The texts of the files in an artifact folder of a run by name; {} where there is no such folder."""
        from mlflow.exceptions import MlflowException

        try:
            if not self._mlflow.list_artifacts(run_id, folder):
                return {}
            with tempfile.TemporaryDirectory() as scratch, _quiet():
                path = Path(self._mlflow.download_artifacts(run_id, folder, scratch))
                return {file.name: file.read_text("utf-8") for file in path.iterdir() if file.is_file()}
        except (MlflowException, OSError) as error:
            raise ConfigError(f"the artifacts of run {run_id} cannot be read: {error}") from error

    def table(self, run_id: str, name: str) -> pd.DataFrame:
        """The frame that `Run.table` logged; columns that hold anything but one kind of value are objects."""
        table = json.loads(self.text(run_id, name))
        return pd.DataFrame(table["data"], columns=table["columns"])

    def _search(
        self,
        query: str,
        experiments: list[str] | None = None,
        limit: int | None = None,
        order: str = "attributes.start_time",
    ) -> list[LoggedRun]:
        from mlflow.exceptions import MlflowException

        search = partial(
            self._mlflow.search_runs, experiments or list(self._experiments), query, order_by=[order]
        )
        try:
            found = list(islice(_pages(search), limit))
        except MlflowException as error:
            raise ConfigError(f"MLflow at {redact(self.uri)}: {error}") from error
        return [self._plain(run) for run in found]

    def _plain(self, run: MlflowRun) -> LoggedRun:
        return LoggedRun(
            run_id=run.info.run_id,
            name=run.info.run_name or "",
            status=run.info.status,
            experiment_id=run.info.experiment_id,
            experiment=self._experiments[run.info.experiment_id],
            started=run.info.start_time / 1000,
            params=dict(run.data.params),
            tags=dict(run.data.tags),
            metrics=dict(run.data.metrics),
        )


def _listed(runs: Iterable[LoggedRun]) -> str:
    """The runs in a few words each, a line each."""
    return "".join(
        f"\n  {run.run_id}  {datetime.fromtimestamp(run.started):%Y-%m-%d %H:%M}  "
        f"{run.status:<8}  {run.experiment}: {run.name}"
        for run in runs
    )


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

        client, experiment_id = _client(self.uri, self.experiment)
        all_tags = {
            **{k: str(v) for k, v in tags.items()},
            **origin_tags(),
            "ragauge.host": _machine(),
            "ragauge.pid": str(os.getpid()),
            **({_NOTE_TAG: note} if note else {}),
        }
        with _reachable(self.uri):
            created = client.create_run(experiment_id, run_name=name, tags=all_tags)
            run = Run(client, created.info.run_id, experiment_id)
            with self._ended(run):
                rows = [Param(k, param_text(v)) for k, v in params.items()]
                for first in range(0, len(rows), _BATCH_PARAMS):
                    client.log_batch(run.run_id, params=rows[first : first + _BATCH_PARAMS])
                yield run

    @contextmanager
    def resume(self, run_id: str) -> Iterator[Run]:
        """An ended run, to log more into it; it ends as one of `run` does."""
        client, experiment_id = _client(self.uri, self.experiment)
        run = Run(client, run_id, experiment_id)
        with _reachable(self.uri), self._ended(run):
            yield run

    @contextmanager
    def _ended(self, run: Run) -> Iterator[None]:
        """Ends the run by how the block ends; one that MLflow's silence ended cannot be."""
        try:
            yield
        except BaseException as error:
            if not _is_silence(error):
                interrupted = isinstance(error, KeyboardInterrupt)
                try:
                    if not interrupted:
                        run.tag({"error": f"{type(error).__name__}: {error}"[:5000]})
                    run.client.set_terminated(run.run_id, status="KILLED" if interrupted else "FAILED")
                except Exception as second:
                    # The first error is the one to tell.
                    log.warning("run %s stays open: %s", run.run_id, _reason(second))
            raise
        run.client.set_terminated(run.run_id, status="FINISHED")

    def replace_runs(self, tags: Mapping[str, str]) -> None:
        """Deletes the runs that carry all of the tags (an earlier pooling of the same sweep)."""
        client, experiment_id = _client(self.uri, self.experiment)
        query = " and ".join(f"tags.`{k}` = '{v}'" for k, v in tags.items())
        with _reachable(self.uri):
            for run in client.search_runs([experiment_id], query):
                client.delete_run(run.info.run_id)

    def close_orphans(self) -> int:
        """Marks runs as KILLED whose process on this machine is gone; returns how many.

        A process that was killed cannot end its own run, and MLflow would show it as running for ever.
        """
        client, experiment_id = _client(self.uri, self.experiment)
        query = f"attributes.status = 'RUNNING' and tags.`ragauge.host` = '{_machine()}'"
        with _reachable(self.uri):
            orphans = [
                run
                for run in client.search_runs([experiment_id], query)
                if not _alive(int(run.data.tags.get("ragauge.pid", "0")))
            ]
            for run in orphans:
                client.set_terminated(run.info.run_id, status="KILLED")
        return len(orphans)

    def colour(self, colours: Mapping[str, str]) -> None:
        """Gives runs {id: colour, such as #0072B2} in MLflow's charts and lists."""
        client, _ = _client(self.uri, self.experiment)
        with _reachable(self.uri):
            for run_id, value in colours.items():
                client.set_tag(run_id, "mlflow.runColor", value)

    @property
    def experiment_id(self) -> str:
        """The experiment's id, made if need be."""
        return _client(self.uri, self.experiment)[1]

    def present(self, saved: Iterable[View], note: str, replace: bool = True) -> None:
        """Saves views of the experiment and its description, shown above its runs.

        A description that somebody else wrote, or changed, stays; without `replace` every one does.
        """
        import time

        client, experiment_id = _client(self.uri, self.experiment)
        with _reachable(self.uri):
            tags = client.get_experiment(experiment_id).tags
            new = {_VIEW_TAG + view.key: view.encoded(int(time.time() * 1000)) for view in saved}
            there = tags.get(_NOTE_TAG)
            if not there or (replace and _digest(there) == tags.get(_OWN_NOTE_TAG)):
                new |= {_NOTE_TAG: note, _OWN_NOTE_TAG: _digest(note)}
            for key, value in new.items():
                if replace or key not in tags:
                    client.set_experiment_tag(experiment_id, key, value)


@lru_cache(maxsize=16)
def connect(uri: str) -> MlflowClient:
    """A client of the MLflow store at the URI, which has answered.

    Raises ConfigError where nobody answers, within half a minute, or where it refuses us. One SQLite database
    that several processes create at a time would break, so the first look at a local one is locked.
    """
    for noisy in ("alembic", "mlflow"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    import mlflow
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    with _prepared(uri), _quiet():
        try:
            mlflow.set_tracking_uri(uri)
            client = MlflowClient(uri)
            with _first_look():
                client.search_experiments(max_results=1)
        except (MlflowException, SQLAlchemyError) as error:
            if _is_silence(error):
                raise ConfigError(
                    f"MLflow at {redact(uri)} does not answer ({_reason(error)}); tracking.uri or "
                    "MLFLOW_TRACKING_URI says where it is"
                ) from error
            raise ConfigError(f"MLflow at {redact(uri)}: {_reason(error)}") from error
    return client


@lru_cache(maxsize=16)
def _client(uri: str, experiment: str) -> tuple[MlflowClient, str]:
    """A client and the id of the experiment, both made if need be."""
    from mlflow.exceptions import MlflowException

    client = connect(uri)
    folder = _local_folder(uri)
    slug = re.sub(r"[^\w.-]+", "_", experiment)
    # A server has a place of its own for artifacts.
    location = (folder / "artifacts" / slug).absolute().as_uri() if folder is not None else None
    with _prepared(uri), _quiet(), _reachable(uri):
        try:
            found = client.get_experiment_by_name(experiment)
            if found is None:
                try:
                    return client, client.create_experiment(experiment, artifact_location=location)
                except MlflowException:
                    # Another process or machine made it meanwhile.
                    found = client.get_experiment_by_name(experiment)
                    if found is None:
                        raise
            if found.lifecycle_stage == "deleted":
                client.restore_experiment(found.experiment_id)
            return client, found.experiment_id
        except MlflowException as error:
            if _is_silence(error):
                raise
            raise ConfigError(f"MLflow at {redact(uri)}: {_reason(error)}") from error


def _local_folder(uri: str) -> Path | None:
    """The folder of an SQLite database; None for a server."""
    local = re.fullmatch(r"sqlite:///(.+)", uri)
    return Path(local.group(1)).parent if local else None


@contextmanager
def _prepared(uri: str) -> Iterator[None]:
    """Lets one process at a time prepare an SQLite database; a server sees to that itself."""
    folder = _local_folder(uri)
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".prepare.lock"):
        yield


@contextmanager
def _first_look() -> Iterator[None]:
    """Has MLflow's client give up early, and without a line per attempt."""
    before = {name: os.environ.get(name) for name in _FIRST_LOOK}
    attempts = logging.getLogger("urllib3.connectionpool")
    level = attempts.level
    os.environ.update(_FIRST_LOOK)
    attempts.setLevel(logging.ERROR)
    try:
        yield
    finally:
        attempts.setLevel(level)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _reachable(uri: str) -> Iterator[None]:
    """Tells MLflow's silence as a TrackingError, and has the next use look anew whether it is there."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        if not _is_silence(error):
            raise
        connect.cache_clear()
        _client.cache_clear()
        raise TrackingError(
            f"MLflow at {redact(uri)} stopped answering ({_reason(error)}); what is finished is in the "
            "store, and the same command logs it when MLflow is back"
        ) from error


def _is_silence(error: BaseException) -> bool:
    """Whether MLflow's server gave no answer, or none but server errors, on every attempt."""
    from mlflow.exceptions import MlflowException
    from requests.exceptions import RequestException

    return isinstance(error, MlflowException) and isinstance(
        error.__cause__ or error.__context__, RequestException
    )


def _reason(error: BaseException) -> str:
    """What went wrong, in a line: the error at the bottom of a server's silence, else MLflow's message."""
    if _is_silence(error):
        while (inner := error.__cause__ or error.__context__) is not None:
            error = inner
    text = " ".join(str(error).split()) or type(error).__name__
    if re.search(r"\b401\b|UNAUTHENTICATED|not authenticated", text):
        text += (
            "; MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, say who asks"
        )
    return redact(text)


@contextmanager
def _quiet() -> Iterator[None]:
    """Holds back MLflow's and Alembic's chatter below a warning."""
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(before)


@lru_cache(maxsize=1)
def _machine() -> str:
    """This machine's name, told from another machine of the same name by its network address."""
    return f"{socket.gethostname()}/{uuid.getnode():012x}"


@lru_cache(maxsize=1)
def origin_tags() -> dict[str, str]:
    """Who ran what code: MLflow's own tags, which its UI shows, and ragauge's."""
    from ragauge import __version__

    commit = _git("rev-parse", "HEAD")
    dirty = bool(commit and _git("status", "--porcelain", "--untracked-files=no"))
    tags = {
        "mlflow.source.name": "run.py",
        "mlflow.source.type": "LOCAL",
        "ragauge_version": __version__,
    }
    try:
        tags["mlflow.user"] = getpass.getuser()
    except (OSError, KeyError):
        log.debug("no user name on this machine")
    if commit:
        tags |= {"mlflow.source.git.commit": commit, "git_commit": commit + ("-dirty" if dirty else "")}
    return tags


@lru_cache(maxsize=1)
def installed_packages() -> dict[str, str]:
    """The versions of Python (and what it runs on) and of every installed package but ragauge, by name."""
    versions: dict[str, str] = {}
    for found in metadata.distributions():
        # What an interrupted pip leaves behind has no name; the first of two on the path is imported.
        if found.name:
            versions.setdefault(found.name.lower().replace("_", "-"), found.version)
    versions.pop("ragauge", None)
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        **dict(sorted(versions.items())),
    }


def _git(*args: str) -> str | None:
    try:
        # Where the code is, which need not be where it was started.
        command = ["git", "-C", str(Path(__file__).parent), *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def param_text(value: Any) -> str:
    """A value as the text that MLflow holds of a param."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text[:_MAX_PARAM_CHARS]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one level of dotted keys; lists stay values."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
