"""The configuration folder that repeats logged jobs, and the origin of a job composed from it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragauge import track
from ragauge.contract.groups import ENGINE, GROUPS
from ragauge.plugins.rerun.comparison import compared
from ragauge.plugins.rerun.jobs import LoggedJob, is_under

_PLAN = "rerun.json"  # in the configuration folder: the logged jobs that it runs again


@dataclass(frozen=True)
class Origin:
    """The job that a job repeats; `sweep` is the sweep's run, if that was asked for.

    `choices` and `overrides` are the new job's: the logged ones, and what was given beside `rerun=`.
    logged: the tags of the old run.
    """

    run_id: str
    sweep: str | None
    choices: Mapping[str, str]
    overrides: tuple[str, ...]
    logged: Mapping[str, str]

    @property
    def record(self) -> dict[str, Any]:
        """Its entry in `job.json`."""
        return {"rerun": {"run_id": self.run_id, "sweep": self.sweep}}

    @property
    def tags(self) -> dict[str, str]:
        """The tag of the new run that names the old one."""
        return {"rerun_of": self.run_id}

    def changed(self, tags: Mapping[str, str]) -> list[str]:
        """The tags (such as dataset_digest) that differ between new and old run."""
        return [
            f"{name} is {value} here, the run had {self.logged.get(name, 'none on record')}"
            for name, value in tags.items()
            if self.logged.get(name) != value
        ]

    def compared(self, tracker: track.Tracker, run: track.Run) -> list[str]:
        """The metrics of both runs against each other, as lines to print."""
        run.flush()
        return [compared(track.Reader(tracker.uri), self.run_id, run.run_id)[0]]


def origin(conf: Path, choices: Mapping[str, str], overrides: Sequence[str]) -> Origin | None:
    """The origin of the job composed from this configuration folder; None if it is no rerun."""
    plan_file = conf / _PLAN
    if not plan_file.is_file():
        return None
    plan = json.loads(plan_file.read_text(encoding="utf-8"))
    job = plan["jobs"][choices["rerun"]]
    further = [o for o in overrides if not o.startswith("rerun=")]
    replaced = [_key(o) for o in further]
    return Origin(
        run_id=job["run_id"],
        sweep=plan["sweep"],
        choices={
            group: job["tags"].get(group, "?") if option == choices["rerun"] else option
            for group, option in choices.items()
            if group != "rerun"
        },
        overrides=(*(o for o in job["overrides"] if not is_under(_key(o), replaced)), *further),
        logged=job["tags"],
    )


def write_conf(folder: Path, conf: Path, jobs: Sequence[LoggedJob], source: track.LoggedRun) -> None:
    """Writes a configuration folder with the jobs' own values as defaults, and the plan of the rerun."""
    from omegaconf import OmegaConf

    shutil.copytree(conf, folder, dirs_exist_ok=True)
    groups = [group for group in GROUPS if all(group in job.config for job in jobs)]
    for job in jobs:
        own = {key: value for key, value in job.config.items() if key not in groups}
        texts = {group: OmegaConf.to_yaml(OmegaConf.create(job.config[group])) for group in groups}
        texts["rerun"] = "# @package _global_\n" + OmegaConf.to_yaml(OmegaConf.create(own))
        for group, text in texts.items():
            (folder / group).mkdir(exist_ok=True)
            (folder / group / f"{job.option}.yaml").write_text(text, encoding="utf-8")
    root: Any = OmegaConf.to_container(OmegaConf.load(conf / "config.yaml"), resolve=False)
    chosen = [entry for entry in root["defaults"] if isinstance(entry, dict)]
    defaults = [
        "schema",
        *(entry for entry in root["defaults"] if str(entry).startswith("hydra/")),
        "_self_",
        {"rerun": jobs[0].option},
        *({group: "${rerun}"} for group in groups),
        # A group that the run did not have yet keeps today's choice; where work is done is not the run's.
        *(entry for entry in chosen if set(entry) & ({*GROUPS, ENGINE} - set(groups))),
        *(entry for entry in chosen if any("hydra/" in key for key in entry)),
    ]
    here = {"store": root.get("store"), "tracking": {"uri": root.get("tracking", {}).get("uri")}}
    primary = OmegaConf.create({"defaults": defaults, **here, "hydra": root.get("hydra", {})})
    OmegaConf.save(primary, folder / "config.yaml")
    plan = {
        "sweep": source.run_id if source.tags["role"] == "sweep" else None,
        "jobs": {
            job.option: {"run_id": job.run.run_id, "overrides": job.overrides, "tags": dict(job.run.tags)}
            for job in jobs
        },
    }
    (folder / _PLAN).write_text(json.dumps(plan, ensure_ascii=False), encoding="utf-8")


def _key(override: str) -> str:
    return override.lstrip("+~").split("=", 1)[0]
