"""Reads MLflow runs into plain Python values."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import pandas as pd

from ragauge.contract import provenance
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.metrics import in_group, without_groups
from ragauge.contract.redact import redact
from ragauge.track._lost import close_orphans_once
from ragauge.track.connection import connect, local_database, missing_database, pages, quiet, reachable, with_tags

if TYPE_CHECKING:
    from mlflow.entities import Run as MlflowRun

_ENTRIES_TAG = "ragauge.entries"  # <stage>/<digest> of every store entry that a job used, as a JSON list


def entries_tag(names: Iterable[str]) -> dict[str, str]:
    """The tag with the store entries (<stage>/<digest>) that a run used."""
    return {_ENTRIES_TAG: json.dumps(sorted(set(names)))}


@dataclass(frozen=True)
class LoggedRun:
    """An MLflow run in plain values; `started` is in seconds since 1970."""

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
        """True if the MLflow run is RUNNING and its process may still be alive."""
        return self.status == "RUNNING" and provenance.process_alive(self.tags) is not False

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
    """Reads the runs of every experiment of an MLflow store, except for deleted ones."""

    def __init__(self, uri: str) -> None:
        if database := missing_database(uri):
            raise ConfigError(
                f"no MLflow database at {database}; name yours by --tracking-uri (of run.py: "
                "tracking.uri=) or MLFLOW_TRACKING_URI"
            )
        self.uri = uri
        self._mlflow = connect(uri)
        close_orphans_once(uri)
        with reachable(uri):
            found = pages(self._mlflow.search_experiments)
            self._experiments = {e.experiment_id: e.name for e in found}

    def run(self, prefix: str) -> LoggedRun:
        """The MLflow run whose id begins with the text; ConfigError with a list unless exactly one does."""
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
        return self._search(with_tags(tags), experiments=[experiment_id])

    def tagged(self, name: str, value: str | None, experiment: str) -> list[LoggedRun]:
        """ragauge's finished runs of an experiment with this tag, the newest first; None is any value.

        ConfigError for a name or value that MLflow cannot search for.
        """
        if not name.strip() or re.search(r"[`'\"\\\s]", name) or re.search(r"['\\\n]", value or ""):
            raise ConfigError(
                f"tag {name!r}{'' if value is None else f'={value!r}'}: allowed are a name, and name=value, "
                "without quotes, backslashes and (in the name) spaces"
            )
        ids = [id for id, other in self._experiments.items() if other == experiment]
        if not ids:
            return []
        has = f"tags.`{name}` LIKE '%'" if value is None else f"tags.`{name}` = '{value}'"
        found = self._search(f"{has} and attributes.status = 'FINISHED'", ids, order="attributes.start_time DESC")
        return [run for run in found if run.tags.get("role") in ("job", "sweep")]

    def measured(self, entry: str | None = None) -> list[LoggedRun]:
        """ragauge's runs, the newest first; only those that used the store entry, if given."""
        used = "tags.ragauge_version != ''" if entry is None else f"tags.`{_ENTRIES_TAG}` LIKE '%{entry}%'"
        return self._search(used, order="attributes.start_time DESC")

    def jobs(self, sweep: LoggedRun) -> list[LoggedRun]:
        """The runs of a sweep's jobs in order, or of one group's if the run has the tag `group`."""
        tag = "sweep_id" if "sweep_id" in sweep.tags else "superseded_in"
        found = self.search({tag: sweep.tags[tag], "role": "job"}, sweep.experiment_id)
        if sweep.tags.get("role") == "sweep" and "group" in sweep.tags:
            found = [run for run in found if run.tags.get("group") == sweep.tags["group"]]
        return sorted(found, key=lambda run: int(run.tags.get("job", 0)))

    def metrics(self, run_id: str) -> dict[str, float]:
        """The metrics of a run by name; points of a step chart are `<name>[<step>]`."""
        values: dict[str, float] = {}
        for name, value in sorted(without_groups(self._mlflow.get_run(run_id).data.metrics).items()):
            if "_at_n" in name or name.endswith("_at_day"):
                points = sorted(self.history(run_id, name).items())
                values |= {f"{name}[{step}]": point for step, point in points}
            else:
                values[name] = value
        return values

    def history(self, run_id: str, metric: str) -> dict[int, float]:
        """{step: value} of one metric of an MLflow run."""
        points = self._mlflow.get_metric_history(run_id, in_group(metric))
        return {point.step: point.value for point in sorted(points, key=lambda point: point.timestamp)}

    def text(self, run_id: str, artifact: str) -> str:
        """The text of an artifact; DataError where the run has none of this name."""
        from mlflow.exceptions import MlflowException

        self._require_reachable(run_id)
        with tempfile.TemporaryDirectory() as folder:
            try:
                return Path(self._mlflow.download_artifacts(run_id, artifact, folder)).read_text("utf-8")
            except (MlflowException, OSError) as error:
                raise DataError(f"run {run_id} has no artifact {artifact}, which is needed") from error

    def files(self, run_id: str, folder: str) -> dict[str, str]:
        """The texts of the files in an artifact folder of a run by name; {} where there is no such folder."""
        return {name: content.decode(errors="replace") for name, content in self.contents(run_id, folder).items()}

    def contents(self, run_id: str, folder: str) -> dict[str, bytes]:
        """The files in an artifact folder of a run by name; {} where there is no such folder."""
        from mlflow.exceptions import MlflowException

        self._require_reachable(run_id)
        try:
            if not self._mlflow.list_artifacts(run_id, folder):
                return {}
            with tempfile.TemporaryDirectory() as scratch, quiet():
                path = Path(self._mlflow.download_artifacts(run_id, folder, scratch))
                return {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}
        except (MlflowException, OSError) as error:
            raise ConfigError(f"the artifacts of run {run_id} cannot be read: {error}") from error

    def _require_reachable(self, run_id: str) -> None:
        """ConfigError if a local database locates a run's files on a server.

        The database may be a colleague's, and MLflow's client would send this user's token to that server.
        """
        if local_database(self.uri) is None:
            return
        place = urlparse(str(self._mlflow.get_run(run_id).info.artifact_uri))
        if place.netloc and place.scheme in ("http", "https", "mlflow-artifacts"):
            raise ConfigError(
                f"run {run_id} of {self.uri} has its files at {redact(place.geturl())}: a server that a database "
                "names is not asked; let --tracking-uri or MLFLOW_TRACKING_URI name the MLflow server itself"
            )

    def table(self, run_id: str, name: str) -> pd.DataFrame:
        """The frame that `Run.table` logged; columns of mixed values are objects."""
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

        search = partial(self._mlflow.search_runs, experiments or list(self._experiments), query, order_by=[order])
        try:
            found = list(islice(pages(search), limit))
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
            metrics=without_groups(run.data.metrics),
        )


def _listed(runs: Iterable[LoggedRun]) -> str:
    """The runs in a few words each, a line each."""
    return "".join(
        f"\n  {run.run_id}  {datetime.fromtimestamp(run.started):%Y-%m-%d %H:%M}  "
        f"{run.status:<8}  {run.experiment}: {run.name}"
        for run in runs
    )
