"""The configs of a sweep, composed once per system: its jobs at other budgets are copies.

Composing a config takes Hydra a tenth of a second, and it does so twice per job: before the sweep starts, so
that an override that cannot be is told then, and when the job runs.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, open_dict

if TYPE_CHECKING:
    from hydra.core.config_loader import ConfigLoader

_BUDGET = re.compile(r"n_tokens=(0|[1-9]\d*)")


class BudgetCopies:
    """A config loader of Hydra's that composes jobs which differ in nothing but n_tokens once."""

    def __init__(self, loader: ConfigLoader) -> None:
        self._loader = loader
        self._composed: dict[tuple[str, ...], DictConfig] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return BudgetCopies, (self._loader,)  # another process composes for itself

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        """The config of one job: what Hydra's own loader composes from the same overrides."""
        budgets = [i for i, override in enumerate(sweep_overrides) if _BUDGET.fullmatch(override)]
        if len(budgets) != 1:
            return self._loader.load_sweep_config(master_config, sweep_overrides)
        at = budgets[0]
        system = (*sweep_overrides[:at], "n_tokens", *sweep_overrides[at + 1 :])
        if system not in self._composed:
            self._composed[system] = self._loader.load_sweep_config(master_config, sweep_overrides)
        config = copy.deepcopy(self._composed[system])
        if not _set_budget(config, sweep_overrides[at]):
            return self._loader.load_sweep_config(master_config, sweep_overrides)
        return config


def _set_budget(config: DictConfig, override: str) -> bool:
    """Writes the budget wherever Hydra writes an override; False where that cannot be told."""
    budget = int(override.removeprefix("n_tokens="))
    old = f"n_tokens={config.n_tokens}"
    task = config.hydra.overrides.task
    folder = config.hydra.job.config.override_dirname
    names = str(config.hydra.job.override_dirname).split(folder.item_sep)
    listed = old.replace("=", folder.kv_sep)
    excluded = "n_tokens" in folder.exclude_keys
    if list(task).count(old) != 1 or names.count(listed) != (0 if excluded else 1):
        return False
    with open_dict(config):
        config.n_tokens = budget
        task[list(task).index(old)] = f"n_tokens={budget}"
        if not excluded:
            names[names.index(listed)] = f"n_tokens{folder.kv_sep}{budget}"
            config.hydra.job.override_dirname = folder.item_sep.join(names)
    return True
