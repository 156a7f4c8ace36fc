"""Races over topics extended after an earlier race: each extension is a stratum with its own error.

The added topics may have been chosen because of what the earlier race showed. So its topics are no random part of all.
But the order within each stratum is random. A bound of a paired difference over all
topics is the mean of the strata's bounds, weighted by their sizes. Stratum s = 1, 2, ... has the error alpha / 2^s, so
that all strata together have less than alpha, however often topics are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ragauge.plugins.race.bounds import mean_interval, upper_bounds
from ragauge.plugins.race.course import Ask, Course, Look, Rules, race_on

LEAST = 2  # topics of each stratum among the first, without which it has no variance


def interleaved(sizes: Sequence[int]) -> np.ndarray:
    """int [topics]: the stratum of each next topic, so that all strata are answered in proportion.

    The first topics are LEAST of each stratum.
    """
    first = [s for s, size in enumerate(sizes) for _ in range(min(LEAST, size))]
    places = [(np.arange(size)[LEAST:] + 0.5) / size for size in sizes]
    order = np.argsort(np.concatenate(places), kind="stable")
    return np.concatenate([first, np.repeat(np.arange(len(sizes)), [len(p) for p in places])[order]]).astype(int)


def errors(alpha: float, n_strata: int) -> list[float]:
    """The error of each stratum."""
    return [alpha / 2 ** (s + 1) for s in range(n_strata)]


@dataclass
class StratifiedCourse(Course):
    """A race over strata. of: int [topics], the stratum of each topic in asking order."""

    of: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int))

    @property
    def _weights(self) -> np.ndarray:
        return np.bincount(self.of) / len(self.of)

    @property
    def best(self) -> int:
        """The running system with the highest weighted mean."""
        n = self.values.shape[1]
        means = [self.values[self.running][:, self.of[:n] == s].mean(axis=1) for s in range(len(self._weights))]
        return self.running[int((self._weights @ np.array(means)).argmax())]

    def results(self) -> pd.DataFrame:
        """Like a race of one stratum: means and limits of the strata, weighted by their sizes."""
        best, alphas = self.best, errors(self.rules.alpha, len(self._weights))
        rows = []
        for system, n in enumerate(self.used):
            if n == 0:
                continue
            own, apart = self.values[system, :n], (1 + self.values[system, :n] - self.values[best, :n]) / 2
            pairs = [alpha / (len(self.values) - 1) for alpha in alphas]
            mean, difference = self._weighted(own, alphas), 2 * self._weighted(apart, pairs) - 1
            rows.append((system, n, *mean, *(difference if system != best else np.zeros(3))))
        names = ["system", "topics", "mean", "low", "high", "difference", "difference_low", "difference_high"]
        return pd.DataFrame(rows, columns=names)

    def _weighted(self, values: np.ndarray, alphas: Sequence[float]) -> np.ndarray:
        """Mean, lower and upper limit of values in [0, 1] on the first topics."""
        sizes = np.bincount(self.of)
        parts = [values[self.of[: len(values)] == s] for s in range(len(sizes))]
        limits = [
            (part.mean(), *(float(limit[0]) for limit in mean_interval(part[None], int(size), alpha)))
            for part, size, alpha in zip(parts, sizes, alphas, strict=True)
        ]
        weighted: np.ndarray = self._weights @ np.array(limits)
        return weighted


def run_stratified_race(
    ask: Ask, n_systems: int, of: np.ndarray, rules: Rules, tell: Callable[[Course], None] | None = None
) -> StratifiedCourse:
    """Runs a race to its end, like `run_race`, over topics of the strata `of` in the order of `ask`."""
    sizes = np.bincount(of)
    alphas = [alpha / max(n_systems - 1, 1) for alpha in errors(rules.alpha, len(sizes))]
    # Of the difference of each system from each other, in each stratum; they hold at all looks, so the least does.
    upper = np.ones((len(sizes), n_systems, n_systems))
    course = StratifiedCourse(len(of), rules, np.empty((n_systems, 0)), list(range(n_systems)), of=of)

    def look(n: int) -> Look:
        running = np.array(course.running)
        a, b = (x.ravel() for x in np.meshgrid(running, running, indexing="ij"))
        a, b = a[a != b], b[a != b]
        for s, (size, alpha) in enumerate(zip(sizes, alphas, strict=True)):
            seen = course.values[:, of[:n] == s]
            found = 2 * upper_bounds((1 + seen[a] - seen[b]) / 2, int(size), alpha) - 1
            upper[s, a, b] = np.minimum(upper[s, a, b], found)
        leads = (np.bincount(of) / len(of) @ upper.reshape(len(sizes), -1)).reshape(n_systems, n_systems)
        np.fill_diagonal(leads, 1.0)
        return Look(n, {system: float(leads[system].min()) for system in course.running})

    race_on(course, ask, look, tell)
    return course
