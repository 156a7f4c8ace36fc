"""Runs one job from a composed config to an exit code, with the errors that a user sees.

Exit codes: 0 done, 1 a job failed for an unforeseen reason, 2 config or data error, 3 a quality gate not met, 4 too
much missing, 130 interrupted, 143 ended by SIGTERM, 129 by SIGHUP.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragauge.commands import known
from ragauge.commands._composing import composed_once
from ragauge.commands.conf import (
    conf_folder,
    config_dir,
    has_config_path,
    of_base,
    of_swept,
    of_systems,
    quoted,
    refuse_excessive,
)
from ragauge.commands.errors import drop_output
from ragauge.contract import interruption
from ragauge.contract.current_job import run_begins
from ragauge.contract.errors import ConfigError, RagaugeError, full_disk, not_writable
from ragauge.contract.redact import guard_output, redact
from ragauge.contract.visible import visible
from ragauge.experiment.arguments import Prepare, origin_of, preparing

if TYPE_CHECKING:
    from omegaconf import DictConfig

log = logging.getLogger(__name__)

# Of the arguments of a command line: what prepares them for Hydra; None where Hydra reads them as they are.
Preparing = Callable[[Sequence[str]], Prepare | None]


@dataclass(frozen=True)
class Ended:
    """How the last job or sweep of this process ended, and the folder that it wrote (None: none)."""

    exit_code: int = 0
    folder: Path | None = None


# Set by the job of a single run, or by the pooled step of a sweep.
_ended = Ended()


# Where a sweep is tracked, for the runs of its workers if it is interrupted.
_sweep_tracking: list[str | None] = []


def sweep_begins(tracking: str | None) -> None:
    """Remembers the `tracking.uri` of a sweep until the process ends."""
    _sweep_tracking.append(tracking)


def close_runs_of_workers() -> None:
    """Marks as KILLED the runs of a sweep's worker processes, which an interrupted sweep has ended."""
    if not _sweep_tracking:
        return
    from ragauge import track

    for child in multiprocessing.active_children():
        child.join(10)
    for configured in _sweep_tracking:
        track.close_orphans_quietly(track.tracking_uri(configured))


def set_exit_code(code: int, folder: Path | None = None) -> None:
    """Remembers the exit code and folder of a job or sweep, since Hydra passes no return value through."""
    global _ended
    _ended = Ended(code, folder)


class Refused(SystemExit):
    """Carries an error out of a callback, where Hydra turns every Exception into a warning."""

    def __init__(self, error: ConfigError) -> None:
        super().__init__(error.exit_code)
        self.error = error


def main() -> int:
    """Runs the job or sweep of the command line; returns its exit code."""
    gc.set_threshold(50_000)  # of the default, 700, looking for garbage takes a tenth of a sweep
    return run_hydra("config", run_job, sys.argv[1:])


def run_hydra(
    config_name: str, task: Callable[[DictConfig], None], arguments: Sequence[str], preparing: Preparing = preparing
) -> int:
    """`run_composed` for a terminal: the exit code; prints expected errors in a line or two on stderr."""
    from ragauge.experiment.guard import OUTPUT

    try:
        return run_composed(config_name, task, arguments, preparing).exit_code
    except RagaugeError as error:
        print(f"error: {visible(error)}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # of --help and the like: a job records its errors
        drop_output()
        return 0
    except (OSError, ValueError) as error:  # a log file that cannot be opened is a ValueError
        folders = _output_folders(arguments)
        refused = next(filter(None, (not_writable(error, {OUTPUT: folder}) for folder in folders)), None)
        if (told := refused or full_disk(error, *folders)) is None:
            raise
        print(f"error: {visible(told)}", file=sys.stderr)
        return ConfigError.exit_code if refused else 1
    except KeyboardInterrupt as error:
        code = interruption.tell(error)
        close_runs_of_workers()
        return code


def run_composed(
    config_name: str, task: Callable[[DictConfig], None], arguments: Sequence[str], preparing: Preparing = preparing
) -> Ended:
    """Runs the task with a configuration composed by Hydra; returns how the job or sweep ended.

    preparing: changes to the arguments, such as `rerun=`; those of jobs and sweeps unless given.

    A job that fails is in its record and in the exit code. Raises ConfigError where Hydra refuses the configuration,
    any RagaugeError from before the first job, and KeyboardInterrupt.
    """
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from ragauge.experiment.setup.packages import refuse_shadowed

    guard_output()
    refuse_excessive(arguments)
    if config_name == "config":
        arguments = of_base(arguments)
    _register(arguments)
    set_exit_code(0)
    run_begins()

    # Hydra then raises instead of printing a trace and leaving with 1.
    full_error = os.environ.setdefault("HYDRA_FULL_ERROR", "1")
    stack = ExitStack()
    try:
        stack.enter_context(_command_line(arguments, preparing))
        refuse_shadowed(conf_folder(), config_dir())
        stack.enter_context(interruption.terminable())
        stack.enter_context(composed_once())
        hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name=config_name)(task)()
    except Refused as refused:
        raise refused.error from None
    except RecursionError:
        raise ConfigError("the configuration cannot be composed: a value in it is nested too deep") from None
    except (HydraException, OmegaConfBaseException) as error:
        if full_error not in ("", "0", "1"):
            raise
        from ragauge.commands.conf import explain

        raise ConfigError(redact(explain(error, config_name))) from error
    finally:
        stack.close()  # not before an error is explained: that takes the command line which caused it
    return _ended


def _register(arguments: Sequence[str]) -> None:
    """Registers with Hydra the schema, packages' configs and the content of hydra.help.template."""
    from omegaconf import OmegaConf

    from ragauge.experiment.setup import config

    config.register()
    if not {"--help", "-h"}.isdisjoint(arguments):
        config.list_quickly()
    OmegaConf.register_new_resolver("ragauge.commands", lambda: "\n".join(known.lines()), replace=True)


def _output_folders(arguments: Sequence[str]) -> list[Path]:
    """The output folders of jobs and sweeps: outputs/, multirun/, or those in the arguments."""
    named = [a.split("=", 1)[1] for a in arguments if a.startswith(("hydra.run.dir=", "hydra.sweep.dir="))]
    return [Path(folder).absolute() for folder in ("outputs", "multirun", *named)]


@contextmanager
def _command_line(arguments: Sequence[str], preparing: Preparing) -> Iterator[None]:
    """Sets sys.argv to the arguments prepared for Hydra during the block.

    Arguments such as `rerun=<run id>` become other arguments, a relative `--config-path` an absolute one, measures with
    parameters get quotes, and a sweep takes keys that only some of its options have.
    """
    before = sys.argv
    sys.argv = given = [before[0], *of_systems(of_swept(quoted(arguments)))]
    with ExitStack() as stack:
        if (prepare := preparing(given[1:])) is not None:
            sys.argv = [given[0], *stack.enter_context(prepare(given[1:], conf_folder()))]
        elif has_config_path():
            # Of several the last counts. Hydra would look for a relative one beside this module.
            sys.argv = [*given, "--config-path", str(conf_folder())]
        try:
            yield
        finally:
            sys.argv = before


def run_job(cfg: DictConfig) -> None:
    """Runs a single job or one of a sweep, and sets the exit code.

    A failure of a job is recorded, not raised: Hydra would otherwise keep the pooled step of the sweep from
    running.
    """
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    from ragauge.experiment.job import execute
    from ragauge.experiment.request import JobFolder

    guard_output()  # a launcher may have started this process
    hydra_cfg = HydraConfig.get()
    multirun = hydra_cfg.mode == RunMode.MULTIRUN
    choices = {str(k): str(v) for k, v in hydra_cfg.runtime.choices.items() if "/" not in str(k)}
    conf = next(s.path for s in hydra_cfg.runtime.config_sources if s.provider == "main")
    origin = origin_of(Path(conf), choices, hydra_cfg.overrides.task)
    folder = JobFolder(
        path=Path(hydra_cfg.runtime.output_dir),
        sweep=Path(hydra_cfg.sweep.dir).absolute() if multirun else None,
        number=int(hydra_cfg.job.num) if multirun else 0,
        choices=origin.choices if origin else choices,
        overrides=origin.overrides if origin else tuple(hydra_cfg.overrides.task),
        origin=origin,
    )
    if folder.sweep is not None:
        with suppress(OSError):  # a worker may have worked for an earlier sweep
            run_begins((folder.sweep / "multirun.yaml").stat().st_mtime)
    with interruption.working():
        set_exit_code(execute(cfg, folder), folder.path)
