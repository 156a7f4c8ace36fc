"""Makes Hydra compose a job's configuration once.

By itself it composes everything first for `hydra.mode` alone, and then again: half a second of each call.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def composed_once() -> Iterator[None]:
    """Within the block, `hydra.main` reuses the configuration that it composed to learn the mode, for a single job."""
    from hydra._internal import hydra as module
    from hydra.core.utils import configure_log
    from hydra.types import RunMode
    from omegaconf import DictConfig

    class ComposingOnce(module.Hydra):
        _kept: tuple[list[str], DictConfig] | None = None

        def get_mode(self, config_name: str | None, overrides: list[str]) -> Any:
            try:
                cfg = super().compose_config(config_name, overrides, RunMode.RUN)
            except Exception:  # a sweep's overrides; whatever else is wrong is raised where it is composed again
                return super().get_mode(config_name, overrides)
            self._kept = list(overrides), cfg
            return cfg.hydra.mode

        def compose_config(
            self,
            config_name: str | None,
            overrides: list[str],
            run_mode: RunMode,
            with_log_configuration: bool = False,
            *more: Any,
            **named: Any,
        ) -> DictConfig:
            kept, self._kept = self._kept, None
            added = overrides[len(kept[0]) :] if kept is not None and overrides[: len(kept[0])] == kept[0] else None
            if kept is None or run_mode != RunMode.RUN or added not in ([], ["hydra.mode=RUN"]):
                return super().compose_config(config_name, overrides, run_mode, with_log_configuration, *more, **named)
            cfg = kept[1]
            cfg.hydra.mode = RunMode.RUN
            cfg.hydra.overrides.hydra.extend(added)
            if with_log_configuration:
                configure_log(cfg.hydra.hydra_logging, cfg.hydra.verbose)
                module.log = logging.getLogger(module.__name__)
            return cfg

    before = module.Hydra
    module.Hydra = ComposingOnce  # type: ignore[misc]
    try:
        yield
    finally:
        module.Hydra = before  # type: ignore[misc]
