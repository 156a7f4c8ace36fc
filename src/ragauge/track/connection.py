"""Connects to MLflow, and reports a store that does not answer."""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from ragauge.contract.errors import ConfigError, TrackingError, full_disk, not_writable
from ragauge.contract.redact import redact
from ragauge.track._limits import limit_answers

if TYPE_CHECKING:
    from mlflow import MlflowClient

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


_VARIABLE = "MLFLOW_TRACKING_URI"
DEFAULT_FOLDER = Path("mlruns")
_WHERE = f"tracking.uri or {_VARIABLE} says where it is"
_LONGEST_REASON = 500  # characters; a server that is no MLflow may answer with a page
_MAKING = ".making-mlflow-"
# Addresses that options, configs and the environment of this process named; those of files are not among them.
_named_here: set[str] = set()
_PAGE = 500  # of one search: a server gives no more traces at a time


def tracking_uri(configured: str | None = None) -> str:
    """The config's URI, else MLFLOW_TRACKING_URI, else SQLite under mlruns/ in the working directory."""
    uri = configured or os.environ.get(_VARIABLE) or f"sqlite:///{(DEFAULT_FOLDER / 'mlflow.db').absolute()}"
    _named_here.add(_spelled(uri))
    return uri


def absolute_uri(uri: str) -> str:
    """The URI with the absolute path of a local database, so that it holds in every directory."""
    database = local_database(uri)
    return uri if database is None else f"sqlite:///{database.absolute()}"


def recorded_uri(recorded: str) -> str:
    """The URI on a job's record; if it had a password, which is not recorded, that of the environment.

    ConfigError for a server that only the record names: a record may be a colleague's, and MLflow's client would send
    this user's token or password there.
    """
    here = tracking_uri()
    if "***" in recorded:
        return here
    local = local_database(recorded) is not None or "://" not in recorded or recorded.startswith("file:")
    if local or _spelled(recorded) in _named_here:
        return recorded
    raise ConfigError(
        f"the folder's jobs are in MLflow at {redact(recorded)}; this command uses {redact(here)}. "
        f"To ask the folder's server, which may see your token or password, add --tracking-uri {redact(recorded)}"
    )


def _spelled(uri: str) -> str:
    """An address in its recorded spelling, for comparison."""
    return redact(absolute_uri(uri)).rstrip("/")


@lru_cache(maxsize=16)
def connect(uri: str) -> MlflowClient:
    """A client of the MLflow store at the URI, after the store has answered.

    Raises ConfigError where the store does not answer within half a minute, or refuses the connection. One SQLite
    database that several processes create at a time would break, so the first look at a local one is locked.
    """
    for noisy in ("alembic", "mlflow"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # It logs every error of a database with its SQL, besides raising it.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
    import mlflow
    from mlflow import MlflowClient

    limit_answers()
    with _prepared(uri), quiet():
        try:
            if (database := local_database(uri)) is not None:
                _make_whole(database)
            mlflow.set_tracking_uri(uri)
            client = MlflowClient(uri)
            with _first_look():
                client.search_experiments(max_results=1)
        except _no_answers() as error:
            if _place_refuses(uri, error):
                raise
            if is_silence(error):
                raise ConfigError(f"MLflow at {redact(uri)} does not answer ({reason(error)}); {_WHERE}") from error
            raise ConfigError(f"MLflow at {redact(uri)}: {reason(error)}{_remedy(uri, error)}") from error
    return client


def has_experiment(uri: str, experiment: str) -> bool:
    """Whether the store answers and has an experiment of the name; creates nothing."""
    if missing_database(uri):
        return False
    try:
        client = connect(uri)
    except ConfigError:
        return False
    with reachable(uri):
        found = client.get_experiment_by_name(experiment)
    return found is not None and found.lifecycle_stage != "deleted"


@lru_cache(maxsize=16)
def client_of(uri: str, experiment: str) -> tuple[MlflowClient, str]:
    """A client, and the id of the experiment, which is created if it does not exist."""
    from mlflow.exceptions import MlflowException

    client = connect(uri)
    database = local_database(uri)
    slug = re.sub(r"[^\w.-]+", "_", experiment)
    # A server has a place of its own for artifacts.
    location = (database.parent / "artifacts" / slug).absolute().as_uri() if database else None
    with _prepared(uri), quiet(), reachable(uri):
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
            if not found.experiment_id:  # a server that answers {} to whatever it is asked
                raise ConfigError(f"MLflow at {redact(uri)}: what answers there is no MLflow; {_WHERE}")
            if found.lifecycle_stage == "deleted":
                client.restore_experiment(found.experiment_id)
            return client, found.experiment_id
        except _no_answers() as error:
            if is_silence(error) or _place_refuses(uri, error):
                raise
            raise ConfigError(f"MLflow at {redact(uri)}: {reason(error)}") from error


@contextmanager
def at(uri: str) -> Iterator[MlflowClient]:
    """A client of the MLflow store, which MLflow's own functions also use within the block."""
    import mlflow

    with _address_kept():
        client = connect(uri)
        mlflow.set_tracking_uri(uri)
        yield client


@contextmanager
def aside() -> Iterator[None]:
    """Makes ragauge connect again within the block, and restores MLflow's own address after it."""
    connect.cache_clear()
    client_of.cache_clear()
    with _address_kept():
        yield


@contextmanager
def _address_kept() -> Iterator[None]:
    """Restores the address of MLflow's own functions after the block."""
    import mlflow

    # Setting MLflow's URI sets the environment, too, which says where ragauge's own runs go.
    environment = os.environ.get(_VARIABLE)
    before = mlflow.get_tracking_uri() if mlflow.tracking.is_tracking_uri_set() else None
    try:
        yield
    finally:
        mlflow.set_tracking_uri(before)  # type: ignore[arg-type]
        os.environ.pop(_VARIABLE, None)
        if environment is not None:
            os.environ[_VARIABLE] = environment


def _no_answers() -> tuple[type[Exception], ...]:
    """The errors of MLflow's client if the store refuses, or is no MLflow store."""
    from google.protobuf.json_format import ParseError
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return MlflowException, SQLAlchemyError, ParseError, RecursionError


def _remedy(uri: str, error: BaseException) -> str:
    """The remedy for a local database whose tables another program left unfinished."""
    if local_database(uri) is None or not re.search(r"table \w+ already exists", str(error)):
        return ""
    return "; its tables are half made: delete the file if it holds no runs, or give tracking.uri another"


def _place_refuses(uri: str, error: BaseException) -> bool:
    """Whether a local database's disk is full or its folder not writable; a job reports that itself."""
    database = local_database(uri)
    return database is not None and bool(full_disk(error) or not_writable(error, {}, database))


def local_database(uri: str) -> Path | None:
    """The file of an SQLite database; None for a server."""
    local = re.fullmatch(r"sqlite:///(.+)", uri)
    return Path(local.group(1)) if local else None


def missing_database(uri: str) -> Path | None:
    """The path of an absent SQLite database; None if it exists, and for a server."""
    database = local_database(uri)
    return database if database is not None and not database.is_file() else None


@contextmanager
def _prepared(uri: str) -> Iterator[None]:
    """Holds a lock while an SQLite database is created or migrated; a server needs none."""
    database = local_database(uri)
    if database is None:
        yield
        return
    database.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(database.parent / ".prepare.lock"):
        yield


def _make_whole(database: Path) -> None:
    """Makes an absent database with MLflow's tables in a temporary file, renamed when complete.

    MLflow changes its tables a hundred times until they are those of today. A database that a full disk or a
    kill leaves in between it never repairs.
    """
    from mlflow import MlflowClient

    for left in database.parent.glob(f"{_MAKING}*"):  # by a process that was killed: the lock is ours
        shutil.rmtree(left, ignore_errors=True)
    if database.exists() and database.stat().st_size:
        return
    with tempfile.TemporaryDirectory(prefix=_MAKING, dir=database.parent) as folder:
        made = Path(folder) / database.name
        store = MlflowClient(f"sqlite:///{made}")._tracking_client.store  # makes the tables
        store.engine.dispose()
        made.replace(database)


@contextmanager
def _first_look() -> Iterator[None]:
    """Sets MLflow's client to few retries, short waits and no message per attempt."""
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
def reachable(uri: str) -> Iterator[None]:
    """Turns errors of an MLflow server that does not answer into a TrackingError.

    The next use then checks again whether the server is there.
    """
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        if not is_silence(error):
            raise
        connect.cache_clear()
        client_of.cache_clear()
        raise TrackingError(
            f"MLflow at {redact(uri)} stopped answering ({reason(error)}); what is finished is in the "
            "store, and the same command logs it when MLflow is back"
        ) from error


def is_silence(error: BaseException) -> bool:
    """Whether every attempt brought no answer or a server error from MLflow."""
    from mlflow.exceptions import MlflowException
    from requests.exceptions import RequestException

    return isinstance(error, MlflowException) and isinstance(error.__cause__ or error.__context__, RequestException)


def reason(error: BaseException) -> str:
    """One line on an error: the network error that caused it, else MLflow's message."""
    if is_silence(error):
        while (inner := error.__cause__ or error.__context__) is not None:
            error = inner
    text = " ".join(str(error).split()) or type(error).__name__
    text = re.sub(r" \[SQL: .*| \(Background on this error at: .*", "", text)
    if re.search(r"\b401\b|UNAUTHENTICATED|not authenticated", text):
        text += "; MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, say who asks"
    text = redact(text)
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"


@contextmanager
def quiet() -> Iterator[None]:
    """Hides messages of MLflow and Alembic below the level of a warning."""
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(before)


def pages(search: Callable[..., Any]) -> Iterator[Any]:
    """All results of a search of MLflow, which returns them in pages."""
    token = None
    while True:
        page = search(max_results=_PAGE, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def with_tags(tags: Mapping[str, str]) -> str:
    """MLflow's query for the runs that carry all of the tags."""
    return " and ".join(f"tags.`{k}` = '{v}'" for k, v in tags.items())
