"""`hydra/launcher=ray`: its settings, and the class that Hydra calls. Ray is imported when it is used.

Without `from __future__ import annotations`: Hydra runs this file before it is a module that is known, and
`dataclass` would look for the names of the annotations there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf


@dataclass
class RayLauncherConf:
    """Where the jobs of a sweep run, and what each of them takes."""

    _target_: str = "hydra_plugins.ragauge_ray.launcher.RayLauncher"
    # host:port of a cluster's head (the sweep is started on a machine of the cluster); null: Ray is started
    # here for the sweep, and stopped after it.
    address: str | None = None
    # Jobs at a time where Ray is started here; null: as many as cores and num_cpus allow.
    n_jobs: int | None = None
    # What a job reserves of its machine.
    num_cpus: float = 1.0
    num_gpus: float = 0.0
    # How often a job whose machine or process died is run again.
    max_retries: int = 3
    # Variables of this environment that jobs get, too: names, or patterns such as MLFLOW_*.
    environment: list[str] = field(default_factory=lambda: ["RAGAUGE_*", "MLFLOW_*", "PG*", "*_API_KEY", "AWS_*"])
    # Ray's runtime environment, such as {pip: [...]}; what stands in it is seen by all who see the cluster.
    runtime_env: dict[str, Any] = field(default_factory=dict)


class RayLauncher(Launcher):
    """Runs the jobs of a sweep as tasks of Ray."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._sweep: tuple[HydraContext, TaskFunction, DictConfig] | None = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Takes what a sweep's jobs have in common."""
        self._sweep = (hydra_context, task_function, config)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Runs a job for each of the lists of overrides; how each ended, in their order."""
        from ragauge.plugins.ray import sweep

        assert self._sweep is not None
        settings = OmegaConf.to_container(OmegaConf.create(self._settings), resolve=True)
        return sweep.launch(self._sweep, settings, job_overrides, initial_job_idx)


ConfigStore.instance().store(group="hydra/launcher", name="ray", node=RayLauncherConf, provider="ragauge")
