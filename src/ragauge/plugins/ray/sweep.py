"""Runs the jobs of a sweep as Ray tasks: sends, follows, cancels, and reruns them if their machine dies.

Ray does not repeat a task by itself here: so it is known, and logged, which job runs for which time and why.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge import __version__
from ragauge.contract import interruption
from ragauge.contract.errors import ConfigError
from ragauge.contract.progress import progress
from ragauge.contract.record import RECORD_FILE, Record
from ragauge.contract.redact import redact
from ragauge.contract.visible import visible
from ragauge.plugins.ray.job import Ended, Sent, run_here, run_sent
from ragauge.plugins.ray.sweep_cluster import check, connected

if TYPE_CHECKING:
    from hydra.core.utils import JobReturn
    from hydra.types import HydraContext, TaskFunction
    from omegaconf import DictConfig

_MARKS = ".ray"  # in the sweep's folder: which job began where, while the sweep runs
_LOOK = 1.0  # seconds between two looks at what began
_GRACE = 20.0  # seconds that cancelled jobs have for closing their MLflow runs
_PATIENCE = 30.0  # seconds after which it is said that no job has begun


@dataclass
class _Job:
    """One job of the sweep: its task, and its progress."""

    number: int
    overrides: Sequence[str]
    title: str
    config: DictConfig
    folder: Path
    attempt: int = 0
    where: str | None = None  # the machine on which its latest attempt began
    since: float = 0.0
    ended: bool = False
    record: str | None = field(init=False)  # what stood in the folder before the sweep

    def __post_init__(self) -> None:
        self.record = self._text()

    def written(self) -> Record | None:
        """The record that the job wrote at its end; None while unwritten or if interrupted."""
        text = self._text()
        if text is None or text == self.record:
            return None
        record = Record.read(self.folder / RECORD_FILE)
        return None if record.exit_code in interruption.CODES else record

    def _text(self) -> str | None:
        with suppress(OSError):
            return (self.folder / RECORD_FILE).read_text(encoding="utf-8")
        return None


def launch(
    sweep: tuple[HydraContext, TaskFunction, DictConfig],
    settings: Mapping[str, Any],
    overrides: Sequence[Sequence[str]],
    first: int,
) -> list[JobReturn]:
    """Runs a job on Ray for each list of overrides; returns how each ended, in order.

    settings: the fields of the launcher's config. ConfigError for one that cannot be used, where Ray is not
    installed or does not answer, and where a machine cannot run the jobs.
    """
    from hydra.core.utils import JobReturn, JobStatus, configure_log

    check(settings)
    config = sweep[2]
    configure_log(config.hydra.hydra_logging, config.hydra.verbose)
    folder = Path(str(config.hydra.sweep.dir)).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    same = set[str].intersection(*map(set, overrides))
    jobs = [
        _composed(sweep, given, first + place, " ".join(o for o in given if o not in same))
        for place, given in enumerate(overrides)
    ]
    marks = folder / _MARKS
    shutil.rmtree(marks, ignore_errors=True)
    marks.mkdir()
    try:
        with connected(settings) as ray, progress(len(jobs), "jobs", "job") as bar:
            _Sweep(ray, settings, folder, marks, sweep, bar).run(jobs)
    finally:
        shutil.rmtree(marks, ignore_errors=True)
        configure_log(config.hydra.hydra_logging, config.hydra.verbose)
    returned = []
    for job in jobs:
        done = JobReturn(overrides=job.overrides, status=JobStatus.COMPLETED)
        done._return_value = None  # the job's record says how it ended
        returned.append(done)
    return returned


def _composed(
    sweep: tuple[HydraContext, TaskFunction, DictConfig], overrides: Sequence[str], number: int, own: str
) -> _Job:
    """A job with its config, composed here: other machines need no configuration, and errors come at once.

    own: the overrides that tell it from the sweep's other jobs.
    """
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf, open_dict

    context, _, config = sweep
    composed = context.config_loader.load_sweep_config(config, list(overrides))
    with open_dict(composed):
        composed.hydra.job.id = f"{composed.hydra.job.name}_{number}"
        composed.hydra.job.num = number
    before = HydraConfig.instance().cfg
    HydraConfig.instance().set_config(composed)
    try:
        subdir = str(OmegaConf.select(composed, "hydra.sweep.subdir"))
    finally:
        HydraConfig.instance().cfg = before
    folder = Path(str(config.hydra.sweep.dir)).absolute() / subdir
    return _Job(number, list(overrides), f"#{number} {own}".strip(), composed, folder)


class _Sweep:
    """A running sweep: its tasks, and its log lines."""

    def __init__(
        self,
        ray: Any,
        settings: Mapping[str, Any],
        folder: Path,
        marks: Path,
        sweep: tuple[HydraContext, TaskFunction, DictConfig],
        bar: Any,
    ) -> None:
        self._ray, self._settings, self._folder, self._marks, self._bar = ray, settings, folder, marks, bar
        self._context, self._task, _ = sweep
        self._begin = ray.remote(
            num_cpus=settings["num_cpus"],
            num_gpus=settings["num_gpus"],
            max_retries=0,
            scheduling_strategy="SPREAD",
        )(run_sent)
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if any(fnmatchcase(name, pattern) for pattern in settings["environment"])
        }
        self._out: dict[Any, _Job] = {}
        self._done = self._failed = self._of = 0

    def run(self, jobs: Sequence[_Job]) -> None:
        """Runs the jobs to their ends; if interrupted, or a job is refused, ends all others."""
        self._of = len(jobs)
        began, told = time.monotonic(), False
        try:
            for job in jobs:
                self._send(job)
            while self._out:
                ready, _ = self._ray.wait(list(self._out), num_returns=1, timeout=_LOOK)
                self._tell_begun()
                for task in ready:
                    self._end(task, self._out.pop(task))
                if not told and time.monotonic() - began > _PATIENCE:
                    told = True
                    self._tell_waiting(jobs)
        except BaseException:
            self._cancel()
            raise

    def _send(self, job: _Job) -> None:
        from hydra.core.singleton import Singleton

        sent = Sent(
            job.number,
            job.attempt,
            os.getcwd(),
            str(self._folder),
            str(self._marks),
            self._environment,
            __version__,
            self._ray.cloudpickle.dumps((self._context, self._task, job.config, Singleton.get_state())),
        )
        job.where = None
        self._out[self._begin.remote(sent)] = job

    def _end(self, task: Any, job: _Job) -> None:
        """Logs how a task ended; resends its job if lost."""
        from ray.exceptions import RayError, RayTaskError, RuntimeEnvSetupError

        try:
            ended: Ended = self._ray.get(task)
        except (RayTaskError, RuntimeEnvSetupError) as error:
            cause = getattr(error, "cause", None) or error
            why = str(cause).strip().splitlines()[0] if str(cause).strip() else ""
            raise ConfigError(
                f"job {job.title} cannot be run by Ray: {type(cause).__name__}: {why}; every machine "
                "needs the same ragauge, and the packages that the sweep uses"
            ) from None
        except RayError as error:
            self._lose(job, error)
            return
        if ended.refused is not None:
            raise ConfigError(f"job {job.title}: {ended.refused}")
        for text, stream in ((ended.out, sys.stdout), (ended.err, sys.stderr)):
            if text:
                self._bar.write(text.rstrip("\n"), file=stream)
        self._close(job)

    def _lose(self, job: _Job, error: Exception) -> None:
        if job.written():  # it had come to its end; only the news of it was lost
            self._close(job)
            return
        where = f"on {job.where}" if job.where else "before it began"
        why = f"{type(error).__name__}: its machine or process is gone ({where})"
        if job.attempt >= self._settings["max_retries"]:
            why = f"lost {job.attempt + 1} time(s), the last by {why}"
            with interruption.lost(why):
                run_here(self._context, self._task, job.config)
            self._close(job)
            return
        job.attempt += 1
        self._tell(f"{job.title}: lost by {why}; run again, {job.attempt} of {self._settings['max_retries']}")
        self._send(job)

    def _close(self, job: _Job) -> None:
        record = job.written()
        job.ended = True
        failed = record is not None and record.status == "FAILED"
        self._failed += failed
        self._done += not failed
        self._bar.update()
        took = f" in {time.monotonic() - job.since:.0f} s on {job.where}" if job.where and job.since else ""
        counts = f"{self._done + self._failed} of {self._of}"
        counts += f", {self._failed} failed" if self._failed else ""
        self._tell(f"{job.title}: {'failed' if failed else 'done'}{took} ({counts})")

    def _tell_begun(self) -> None:
        """Logs which jobs have started since the last look."""
        for job in self._out.values():
            mark = self._marks / f"{job.number}.{job.attempt}"
            if job.where is None and mark.is_file() and (where := mark.read_text(encoding="utf-8")):
                job.where, job.since = where, time.monotonic()
                self._tell(f"{job.title}: runs on {where}")
        running = [f"#{job.number}" for job in self._out.values() if job.where]
        self._bar.set_postfix_str(f"running {' '.join(running)}" if running else "", refresh=False)

    def _tell_waiting(self, jobs: Sequence[_Job]) -> None:
        """Warns if no machine has the resources that a job reserves: Ray waits silently."""
        if any(job.where or job.ended for job in jobs):
            return
        asked = {"CPU": self._settings["num_cpus"], "GPU": self._settings["num_gpus"]}
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if not any(all(node.get(what, 0) >= n for what, n in asked.items()) for node in nodes):
            self._tell(
                f"no job has begun: none of the {len(nodes)} machine(s) has num_cpus={asked['CPU']:g} and "
                f"num_gpus={asked['GPU']:g}; the sweep waits for one"
            )

    def _cancel(self) -> None:
        """Cancels all sent jobs: waiting ones do not start, running ones close their MLflow runs."""
        out = list(self._out)
        if not out:
            return
        running = sum(job.where is not None for job in self._out.values())
        self._tell(f"ending {running} running job(s); {len(out) - running} are not begun")
        with suppress(Exception):
            for task in reversed(out):
                self._ray.cancel(task, force=False)
            _, left = self._ray.wait(out, num_returns=len(out), timeout=_GRACE)
            for task in left:
                self._ray.cancel(task, force=True)
            # A run is closed for a process that is gone.
            self._ray.wait(out, num_returns=len(out), timeout=_GRACE)

    def _tell(self, line: str) -> None:
        self._bar.write(visible(redact(line), one_line=True), file=sys.stderr)
