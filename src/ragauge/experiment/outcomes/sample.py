"""Which topics of a job are judged, where it is not all of them."""

from __future__ import annotations

from dataclasses import dataclass

from ragauge.contract.errors import ConfigError


@dataclass(frozen=True)
class Sample:
    """How many topics are judged and how they are chosen: `uniform`, or `neyman` by predicted P(5)."""

    n: int
    design: str = "uniform"
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.n, int) or isinstance(self.n, bool) or self.n < 2:
            raise ConfigError(f"judge.sample={self.n}: allowed are integers of at least 2, null for all")
        if self.design not in ("uniform", "neyman"):
            raise ConfigError(f"judge.sample_design={self.design}: allowed are uniform, neyman")
