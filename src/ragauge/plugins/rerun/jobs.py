"""The logged jobs of a run, read from MLflow; refuses jobs that cannot be repeated unchanged."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragauge import track
from ragauge.contract.errors import ConfigError
from ragauge.contract.groups import ENGINE, GROUPS
from ragauge.contract.progress import progress
from ragauge.contract.provenance import PACKAGES_FILE, read_packages
from ragauge.contract.redact import redact
from ragauge.contract.settings import Settings
from ragauge.experiment.setup.config import logged_yaml

# Where a run works and writes, and whom it trusts: the user's own. What the run is stays the same.
HERE = ("store", "tracking.uri", "register_predictor", "trust", ENGINE)


@dataclass(frozen=True)
class LoggedJob:
    """A logged job: its unresolved config without output folders, and its overrides."""

    run: track.LoggedRun
    config: dict[str, Any]
    overrides: tuple[str, ...]
    packages: dict[str, str]

    @property
    def option(self) -> str:
        """The name of its option in the config groups of the rerun."""
        return f"run_{self.run.run_id}"


def logged_jobs(
    reader: track.Reader, source: track.LoggedRun, arguments: Sequence[str], told: list[str]
) -> list[LoggedJob]:
    """The logged jobs of a run, in order; appends remarks on their state to `told`."""
    role = source.tags.get("role")
    if role == "training":
        raise ConfigError(f"rerun={source.run_id}: this run is a training: ragauge train rerun={source.run_id}")
    if role not in ("job", "sweep"):
        raise ConfigError(f"rerun={source.run_id}: this run was not made by ragauge (it has no tag role)")
    runs = [source] if role == "job" else reader.jobs(source)
    if role == "sweep" and {a.split("=")[0] for a in arguments} & {"--cfg", "-c", "--info", "--help", "-h"}:
        raise ConfigError("--cfg, --info and --help show one configuration: give the id of one of the jobs")
    jobs = []
    with progress(len(runs), "reading the logged jobs", "job") as bar:
        for run in runs:
            if run.status != "FINISHED":
                reason = run.tags.get("error", "no error on record")
                told.append(f"{run.name} ({run.run_id}) is {run.status}: {reason}")
            if run.params.get("register_predictor", "null") != "null":
                told.append("the predictor is not registered again; to do so: register_predictor=<name>")
            files = reader.files(run.run_id, "config")
            if "config.yaml" in files:
                jobs.append(_read_job(run, files))
            else:
                told.append(f"{run.name} ({run.run_id}) ended before its configuration was logged; left out")
            bar.update()
    if not jobs:
        raise ConfigError(
            f"rerun={source.run_id}: no config/config.yaml among the artifacts of {len(runs)} job(s) in "
            f"MLflow at {redact(reader.uri)}: they failed before it was logged, or it cannot be reached"
        )
    if role == "job" and "sweep_id" in source.tags and jobs[0].config.get("judge", {}).get("mode") == "batch":
        told.append("judge.mode=batch judged this job beside the others of its sweep: rerun the sweep for that")
    return jobs


def _read_job(run: track.LoggedRun, files: Mapping[str, str]) -> LoggedJob:
    where = f"rerun={run.run_id}: its config/config.yaml"
    if not re.fullmatch(r"[\w-]+", run.run_id):  # it becomes a file's name
        raise ConfigError(f"rerun={run.run_id!r}: no id of an MLflow run")
    config = logged_yaml(files["config.yaml"], where)
    if not isinstance(config, dict):
        raise ConfigError(f"{where} is no mapping")
    for key in ("tracking", "estimate", *GROUPS):
        if not isinstance(config.get(key, {}), dict):
            raise ConfigError(f"{where}: {key} is no mapping")
        if key in GROUPS and "defaults" in config.get(key, {}):
            # Hydra would take it for instructions, not for a value.
            raise ConfigError(f"{where}: {key}.defaults is not allowed in a logged configuration")
    for key in HERE:
        *parents, name = key.split(".")
        node = config
        for parent in parents:
            node = node.get(parent, {})
        node.pop(name, None)
    overrides = logged_yaml(files.get("overrides.yaml", "[]"), where.replace("config.yaml", "overrides.yaml"))
    return LoggedJob(run, config, tuple(map(str, overrides)), read_packages(files.get(PACKAGES_FILE, "")))


def unknown_keys(job: LoggedJob) -> list[str]:
    """Keys unknown to this version, in the root and in its nodes with a schema."""

    def missing(config: Mapping[str, Any], schema: Any, prefix: str) -> list[str]:
        nodes: dict[str, Any] = {f.name: f.default_factory for f in dataclasses.fields(schema)}
        found = []
        for key, value in config.items():
            if key not in nodes:
                found.append(f"{prefix}{key}")
            elif dataclasses.is_dataclass(nodes[key]):
                found += missing(value, nodes[key], f"{prefix}{key}.")
        return found

    return missing(job.config, Settings, "")


def runnable(job: LoggedJob, given: Sequence[str], left_out: set[str]) -> LoggedJob:
    """The job without the keys to leave out; ConfigError for values that cannot be reused unchanged."""
    where = f"rerun={job.run.run_id}: "
    unknown = [key for key in unknown_keys(job) if key not in left_out]
    flat = track.flatten(job.config)
    if unknown:
        raise ConfigError(
            f"{where}its configuration has {unknown[0]}={flat.get(unknown[0], '...')}, which this version "
            f"does not know (it was made by ragauge {job.run.tags.get('ragauge_version', '?')}); to run it "
            f"without: '~{unknown[0]}'"
        )
    for key, value in flat.items():
        if is_under(key, given) or not isinstance(value, str):
            continue
        if "***" in value:
            raise ConfigError(f"{where}{key} was logged as {value!r} to keep a secret; give {key}=...")
        place = Path(value)
        if key in ("llm.ledger", "judge.ledger") and place.is_absolute() and not place.parent.is_dir():
            raise ConfigError(
                f"{where}{key}={value} is not here; give {key}=<file>, or {key}=null to pay the calls again"
            )
    config = {key: value for key, value in job.config.items() if key not in left_out}
    for key in left_out:
        parent, _, name = key.rpartition(".")
        if parent:
            config[parent] = {k: v for k, v in config[parent].items() if k != name}
    return dataclasses.replace(job, config=config)


def is_under(key: str, keys: Iterable[str]) -> bool:
    """Whether a dotted key is one of the keys or lies below one."""
    return any(key == other or key.startswith(f"{other}.") for other in keys)
