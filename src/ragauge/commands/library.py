"""`ragauge.run` and `ragauge.sweep`: the command line from Python, quiet, with results as objects."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from ragauge import track
from ragauge.commands import given
from ragauge.commands import main as cli
from ragauge.contract import errors
from ragauge.contract.errors import ConfigError, RagaugeError
from ragauge.contract.record import RECORD_FILE, JobRecord
from ragauge.contract.visible import Formatter
from ragauge.experiment import results
from ragauge.experiment.results import JobResult
from ragauge.experiment.sweep.jobs import records_in
from ragauge.store import default_folder

if TYPE_CHECKING:
    from omegaconf import DictConfig

# What Hydra would do to the logging of the whole process: `_job` writes the job's log instead.
_OWN_LOGGING = ("hydra.job_logging.root=null", "hydra.hydra_logging.root=null")
Overrides = Sequence[str] | Mapping[str, Any]  # texts as on the command line, or values by key
_PROGRAM = str(Path(__file__).resolve().parents[1] / "__main__.py")
_alone = threading.RLock()  # Hydra, sys.argv and standard output are the process's: one call at a time
_bar: tqdm | None = None  # counts the jobs of the sweep that this process runs


def run(overrides: Overrides, config_dir: str | Path | None, settings: Mapping[str, Any]) -> JobResult:
    """`ragauge.run`."""
    folder = _started(given.overrides(overrides, settings, swept=False), config_dir, sweep=False)
    record = JobRecord.read(folder / RECORD_FILE)
    _raise_failure(record, folder)
    with track.aside():
        return results.load_job(record)


def evaluate(
    samples: Any,
    metrics: Sequence[str],
    judge: str,
    app: Callable[[str], Any] | None,
    overrides: Overrides,
    settings: Mapping[str, Any],
) -> JobResult | results.SweepResult:
    """`ragauge.evaluate`."""
    if isinstance(metrics, str):
        raise ConfigError(f"metrics={metrics!r}: allowed are lists of names, such as ['em', 'f1']")
    folder = Path(settings.get("store") or default_folder()) / "samples"
    file = given.sample_file(samples, app, folder)
    own = {"experiment": "recorded", "recorded.path": file.path, "answers": [*metrics], "judge": judge}
    if app is not None or file.lacks_values:  # contexts that are not there are not known
        own["retriever.on_missing"] = "missing"
    own |= settings
    texts = [*given.overrides(overrides, {}, swept=False), *given.overrides((), own, swept=False)]
    if len(file.systems) < 2:
        return run(texts, None, {})
    return sweep([*texts, *given.overrides((), {"recorded.system": file.systems}, swept=True)], None, {})


def sweep(overrides: Overrides, config_dir: str | Path | None, settings: Mapping[str, Any]) -> results.SweepResult:
    """`ragauge.sweep`."""
    folder = _started(given.overrides(overrides, settings, swept=True), config_dir, sweep=True)
    records = records_in(folder)
    with track.aside():
        found = results.load_sweep(folder, records)
    if not found.groups:
        _raise_failure(next((r for r in records if r.exit_code), records[0]), folder)
        raise RagaugeError(f"the sweep could not be pooled, its jobs are kept: ragauge pool {folder}")
    return found


def _started(texts: list[str], config_dir: str | Path | None, sweep: bool) -> Path:
    """Runs the command line with these overrides; returns the folder that it wrote."""
    _check(texts)
    options = [] if config_dir is None else ["--config-dir", str(config_dir)]
    rerun = any(override.startswith("rerun=") for override in texts)
    with _alone, _apart():
        if rerun:
            _check_rerun(texts, sweep)
        mode = ["--multirun"] if sweep else []
        with _counted(_number_of_jobs(texts) if sweep and not rerun else None, sweep):
            try:
                ended = cli.run_composed("config", _job, [*mode, *options, *texts, *_OWN_LOGGING])
            except KeyboardInterrupt:
                cli.close_runs_of_workers()
                raise
    if ended.folder is None:  # what sweeps by other means than -m says so
        raise RagaugeError("no job was run")
    return ended.folder


def _check(overrides: Sequence[str]) -> None:
    """ConfigError for arguments that only print to a terminal."""
    for one in overrides:
        if one.startswith("-") or one.lstrip("+").startswith("hydra.mode="):
            raise ConfigError(
                f"{one}: options belong to the command line; run() is one job, sweep() is -m, config_dir= is "
                "--config-dir"
            )
        if one.replace(" ", "").lower() in ("dry_run=true", "dry_run=yes", "dry_run=on"):
            raise ConfigError(f"{one}: what would be needed is printed by the command line: ragauge {one} ...")


def _check_rerun(overrides: Sequence[str], sweep: bool) -> None:
    """ConfigError if run() gets the run of a sweep."""
    uri = next((o.partition("=")[2] for o in overrides if o.startswith("tracking.uri=")), None)
    [run_id] = [o.partition("=")[2] for o in overrides if o.startswith("rerun=")] or [""]
    found = track.Reader(track.tracking_uri(uri)).run(run_id)
    if found.tags.get("role") == "sweep" and not sweep:
        raise ConfigError(f"rerun={run_id} is a sweep: ragauge.sweep(['rerun={run_id}'])")


def _raise_failure(record: JobRecord, folder: Path) -> None:
    """Raises a failed job's error with its original class."""
    if not record.exit_code:
        return
    other = ConfigError if record.exit_code == ConfigError.exit_code else RagaugeError
    kind = getattr(errors, record.error_type, other)
    told = record.error
    if kind is RagaugeError:
        told = f"{told}; its traceback is in {folder}"
    elif kind is errors.GateError and record.run_id:
        told = f"{told}; its results: ragauge.load('{record.run_id}')"
    raise kind(told)


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """Restores Hydra's state, MLflow's address, output and sys.argv after the block.

    The program is ragauge's own, so that no conf/ beside the caller's is taken for its configuration.
    """
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.hydra_config import HydraConfig
    from hydra.core.utils import JobRuntime

    hydra, config = GlobalHydra.instance().hydra, HydraConfig.instance().cfg
    runtime = copy.deepcopy(JobRuntime.instance().conf)
    argv, hook, full_error = sys.argv, sys.excepthook, os.environ.get("HYDRA_FULL_ERROR")
    try:
        GlobalHydra.instance().clear()
        sys.argv = [_PROGRAM]
        with track.aside(), contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        sys.argv, sys.excepthook = argv, hook
        GlobalHydra.instance().hydra, HydraConfig.instance().cfg = hydra, config
        JobRuntime.instance().conf = runtime
        if full_error is None:
            os.environ.pop("HYDRA_FULL_ERROR", None)


def _job(cfg: DictConfig) -> None:
    """Runs one job with its log in its folder; warnings go to stderr, errors are raised at the end."""
    from hydra.core.hydra_config import HydraConfig

    hydra: Any = HydraConfig.get()
    file = logging.FileHandler(Path(hydra.runtime.output_dir) / f"{hydra.job.name}.log", encoding="utf-8")
    file.setFormatter(logging.Formatter(hydra.job_logging.formatters.full.format))
    console = logging.StreamHandler(sys.stderr)
    console.addFilter(lambda record: record.levelno == logging.WARNING)
    console.setFormatter(Formatter("%(message)s"))
    own = logging.getLogger("ragauge")
    before = own.level, own.propagate
    own.setLevel(logging.INFO)
    own.propagate = False
    for handler in (file, console):
        own.addHandler(handler)
    try:
        cli.run_job(cfg)
    finally:
        for handler in (file, console):
            own.removeHandler(handler)
        file.close()
        own.level, own.propagate = before
        if _bar is not None:
            _bar.update()


@contextlib.contextmanager
def _counted(total: int | None, sweep: bool) -> Iterator[None]:
    """Shows a progress bar of a sweep's jobs during the block, on a terminal or below a notebook cell."""
    global _bar
    if not sweep:
        yield
        return
    shown = sys.stderr.isatty() or _in_notebook()
    with tqdm(
        total=total, desc="jobs", unit="job", delay=1.0, leave=False, dynamic_ncols=True, disable=not shown
    ) as _bar:
        try:
            yield
        finally:
            _bar = None


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _number_of_jobs(overrides: Sequence[str]) -> int | None:
    """The number of jobs of the overrides; None if they are unreadable, which is an error later."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
        return math.prod(len(list(o.sweep_string_iterator())) for o in parsed if o.is_sweep_override())
    except HydraException:
        return None
