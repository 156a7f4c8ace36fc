"""`hydra/sweeper=race`: the class that Hydra calls. The race itself is imported when it begins."""

from collections.abc import Sequence

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper


class RaceSweeper(BasicSweeper):
    """Runs the jobs of a sweep once, each for as many topics as a race between them takes."""

    def __init__(self) -> None:
        super().__init__(max_batch_size=None)

    def get_job_batch(self) -> Sequence[Sequence[str]]:
        """The jobs, each with the number of topics that it answers."""
        from ragauge.plugins.race.sweeping import sampled_jobs

        assert self.hydra_context is not None
        assert self.config is not None
        return sampled_jobs(self.hydra_context.config_loader, self.config, super().get_job_batch())
