"""From a composed config to an exit code: one job, and the errors a user sees.

Exit codes: 0 done, 1 a job failed for a reason nobody foresaw, 2 config or data error, 3 a quality gate not
met, 4 too much missing, 130 interrupted.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge.contract.errors import ConfigError, RagaugeError

if TYPE_CHECKING:
    from omegaconf import DictConfig

log = logging.getLogger(__name__)

# What the process ends with: set by the job of a single run, or by the pooled step of a sweep.
_exit_code = 0


def set_exit_code(code: int) -> None:
    """Remembers what the process ends with; Hydra passes no return value through."""
    global _exit_code
    _exit_code = code


def main(hydra_main: Callable[[], Any]) -> int:
    """Runs the Hydra entry; its exit code, with config errors told in a line or two."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from ragauge.experiment.packages import refuse_shadowed

    # Hydra then raises instead of printing a trace and leaving with 1.
    full_error = os.environ.setdefault("HYDRA_FULL_ERROR", "1")
    stack = ExitStack()
    try:
        refuse_shadowed(_conf_folder(), _config_dir())
        stack.enter_context(_command_line())
        hydra_main()
    except RagaugeError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except (HydraException, OmegaConfBaseException) as error:
        if full_error not in ("", "0", "1"):
            raise
        print(f"error: {_explain(error)}", file=sys.stderr)
        return ConfigError.exit_code
    except KeyboardInterrupt:
        print(
            "interrupted; what is finished is kept, and the same command goes on from there", file=sys.stderr
        )
        return 130
    finally:
        stack.close()  # not before an error is told: that takes the command line which caused it
    return _exit_code


@contextmanager
def _command_line() -> Iterator[None]:
    """Where `rerun=<run id>` is asked for, the command line that runs it again while the block lasts."""
    if not any(argument.startswith("rerun=") for argument in sys.argv[1:]):
        yield
        return
    from ragauge.experiment import rerun

    given = sys.argv
    with rerun.prepared(given[1:], _conf_folder()) as arguments:
        sys.argv = [given[0], *arguments]
        try:
            yield
        finally:
            sys.argv = given


def _conf_folder() -> Path:
    """The folder of the configuration: the one given, or conf/ beside the program."""
    if "--config-path" in sys.argv[:-1]:
        return Path(sys.argv[sys.argv.index("--config-path") + 1])
    return Path(sys.argv[0]).resolve().parent / "conf"


def run_job(cfg: DictConfig) -> None:
    """Runs one job of a sweep, or a single one, and sets the exit code.

    A failure of a job is recorded, not raised: Hydra would otherwise keep the pooled step of the sweep from
    running.
    """
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    from ragauge.experiment import rerun
    from ragauge.experiment.job import JobFolder, execute

    hydra_cfg = HydraConfig.get()
    multirun = hydra_cfg.mode == RunMode.MULTIRUN
    choices = {str(k): str(v) for k, v in hydra_cfg.runtime.choices.items() if "/" not in str(k)}
    conf = next(s.path for s in hydra_cfg.runtime.config_sources if s.provider == "main")
    origin = rerun.origin(Path(conf), choices, hydra_cfg.overrides.task)
    folder = JobFolder(
        path=Path(hydra_cfg.runtime.output_dir),
        sweep=Path(hydra_cfg.sweep.dir).absolute() if multirun else None,
        number=int(hydra_cfg.job.num) if multirun else 0,
        choices=origin.choices if origin else choices,
        overrides=origin.overrides if origin else tuple(hydra_cfg.overrides.task),
        origin=origin,
    )
    set_exit_code(execute(cfg, folder))


def _explain(error: BaseException) -> str:
    """The message of a Hydra or OmegaConf error, with the keys that are allowed where a key is unknown."""
    text = str(error).strip()
    cause = str(error.__cause__ or "").strip()
    unknown = re.search(r"Could not override '([^']+)'", text)
    if unknown is None:
        return f"{text}\n{cause}".strip() if cause and cause not in text else text
    key = unknown.group(1)
    if "not in" not in cause and "Error merging" not in text and cause:
        return f"{key}: {cause.splitlines()[0]}"
    allowed = _allowed_keys(key)
    if not allowed:
        return f"{text}\n{cause}".strip()
    parent, _, name = key.rpartition(".")
    close = difflib.get_close_matches(name, allowed, n=1)
    hint = f" Did you mean {parent + '.' if parent else ''}{close[0]}?" if close else ""
    where = f"{parent} has" if parent else "the config has"
    return f"unknown key {key!r}.{hint} {where[0].upper() + where[1:]}: {', '.join(allowed)}"


def _allowed_keys(key: str) -> list[str]:
    """The keys beside an unknown one, for the parts that the command line chose."""
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from omegaconf import DictConfig, OmegaConf

    choices = [a for a in sys.argv[1:] if re.fullmatch(r"[a-z_]+=[A-Za-z0-9_]+", a)]
    config_dir = _config_dir()
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(_conf_folder().resolve()), version_base="1.3"):
            from ragauge.contract.groups import GROUPS

            groups = [a for a in choices if a.split("=")[0] in (*GROUPS, "experiment", "rerun")]
            if config_dir is not None:
                groups.append(f"hydra.searchpath=['file://{config_dir}']")
            cfg = compose("config", overrides=groups)
        parent = key.rpartition(".")[0]
        node = OmegaConf.select(cfg, parent) if parent else cfg
    except Exception:  # the error at hand is told; this look-up is only a courtesy
        return []
    if not isinstance(node, DictConfig):
        return []
    return sorted(str(k) for k in node if not str(k).startswith("_"))


def _config_dir() -> Path | None:
    """The folder that the command line adds to the configs, if any."""
    from hydra._internal.utils import get_args_parser

    given = get_args_parser().parse_known_args()[0].config_dir
    return Path(given).absolute() if given else None
