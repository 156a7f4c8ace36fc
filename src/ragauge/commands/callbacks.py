"""Hydra callbacks that refuse keys before anything is written, and pool a sweep's jobs after it."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.global_hydra import GlobalHydra
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from ragauge.commands import main as cli
from ragauge.contract.errors import ConfigError
from ragauge.contract.job_files import begin_attempt
from ragauge.experiment.setup.config import refuse_keys

if TYPE_CHECKING:
    from hydra.core.config_loader import ConfigLoader

_MOST_KEPT = 500  # configs, a quarter of a megabyte each
_BUDGET = re.compile(r"n_tokens=(0|[1-9]\d*)")


class KeyGuard:
    """Hydra's config loader, which refuses the config of a sweep's job that holds a key.

    An option of a swept group may hold one, which the sweep's own config does not. Hydra composes each config twice,
    a tenth of a second each time. Of jobs that differ in n_tokens alone the first is composed, others are copies.
    """

    def __init__(self, loader: ConfigLoader) -> None:
        self._loader = loader
        self._composed: dict[tuple[str, ...], DictConfig] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyGuard, (self._loader,)

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        """The config of one job; ConfigError if it holds a key."""
        budgets = [one for one in sweep_overrides if _BUDGET.fullmatch(one)]
        system = tuple("n_tokens" if one in budgets else one for one in sweep_overrides)
        if len(budgets) < 2 and (composed := self._composed.get(system)) is not None:
            config = copy.deepcopy(composed)
            if not budgets or _takes_budget(config, budgets[0]):
                OmegaConf.copy_cache(from_config=master_config, to_config=config)  # times that were resolved since
                return config
        config = self._loader.load_sweep_config(master_config, sweep_overrides)
        refuse_keys(config)
        if len(self._composed) < _MOST_KEPT:
            self._composed[system] = copy.deepcopy(config)
        return config


def _takes_budget(config: DictConfig, override: str) -> bool:
    """Writes a budget wherever Hydra writes an override; False if another is there in another spelling."""
    # As they stand: an interpolation of another override, which may read a key, is written back as one.
    kept: Any = OmegaConf.to_container(config.hydra, resolve=False)
    old, task = f"n_tokens={config.n_tokens}", kept["overrides"]["task"]
    names = kept["job"]["override_dirname"].split(",")
    if task.count(old) != 1 or names.count(old) != 1:
        return False
    config.hydra.overrides.task[task.index(old)] = names[names.index(old)] = override
    config.n_tokens, config.hydra.job.override_dirname = int(override.partition("=")[2]), ",".join(names)
    return True


class KeysCallback(Callback):
    """Checks a run or a sweep for keys and links before its first job."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Ends the run before Hydra writes the config, if that holds a key."""
        _refuse_keys(config)
        _refuse_links(Path(config.hydra.run.dir).absolute())

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Ends the process if the config holds a key or no job; remembers the sweep's tracking URI."""
        _refuse_keys(config)
        _refuse_no_jobs(config)
        sweep = Path(config.hydra.sweep.dir).absolute()
        _refuse_links(sweep, *(path for path in sorted(sweep.glob("*")) if path.name.isdecimal()))
        hydra = GlobalHydra.instance().hydra
        if hydra is not None:
            hydra.config_loader = KeyGuard(hydra.config_loader)  # type: ignore[assignment]
        begin_attempt(Path(config.hydra.sweep.dir).absolute())
        cli.sweep_begins(config.tracking.uri)


class SweepCallback(KeysCallback):
    """Pools a sweep after its last job, too."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Pools the jobs' records; its exit code becomes that of the process."""
        from ragauge.experiment.sweep import pooling

        cli.set_exit_code(pooling.finish(config), Path(config.hydra.sweep.dir).absolute())


def _refuse_keys(config: DictConfig) -> None:
    try:
        refuse_keys(config)
    except ConfigError as error:
        raise cli.Refused(error) from None


# What Hydra writes into the folder of a run or a sweep: through a link, where one is there.
_OF_HYDRA = (
    "run.log",
    "multirun.yaml",
    ".hydra",
    *(f".hydra/{name}.yaml" for name in ("config", "hydra", "overrides")),
)


def _refuse_links(*folders: Path) -> None:
    """Ends the process if a file to be written by Hydra is a link, pipe or device, or a job's folder is a link.

    The first folder is the one that the user named; it may be a link itself.
    """
    for number, folder in enumerate(folders):
        for path in (*([folder] if number else []), *(folder / name for name in _OF_HYDRA)):
            if path.is_symlink() or (path.exists() and not path.is_file() and not path.is_dir()):
                raise cli.Refused(
                    ConfigError(
                        f"{path} is there, and no plain file or folder: it would be written through; delete it, or "
                        "choose another folder by hydra.run.dir (of a sweep: hydra.sweep.dir)"
                    )
                )


def _refuse_no_jobs(config: DictConfig) -> None:
    """Ends the process if an empty range or choice leaves the sweep without a job."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    hydra = GlobalHydra.instance().hydra
    parser = OverridesParser.create(None if hydra is None else hydra.config_loader)
    for override in parser.parse_overrides(list(config.hydra.overrides.task)):
        if override.is_discrete_sweep() and not any(True for _ in override.sweep_string_iterator()):
            why = "the end of a range is not part of it" if override.is_range_sweep() else "nothing matches"
            raise cli.Refused(ConfigError(f"{override.input_line}: holds no value, so there is no job to run; {why}"))
