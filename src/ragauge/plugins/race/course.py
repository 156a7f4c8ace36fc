"""The course of a race: when and by which bound each system is dropped, and the final results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_count, require_number
from ragauge.plugins.race.bounds import LeadTests, difference_interval, mean_interval

BEATEN, WITHIN = "beaten", "within the margin"

# Values in [0, 1] of some systems on the first n topics of the order: float [systems, n]; a row with a missing value is
# of a system that failed. None: the money ran out.
Ask = Callable[[Sequence[int], int], np.ndarray | None]


@dataclass(frozen=True)
class Rules:
    """When a race looks, and when it drops a system.

    margin: a system is dropped when it is known to lead no other by more. alpha: the probability, at most, that the
    system which leads all others by more is dropped. first, batch: topics until the first look, and between two.
    """

    margin: float = 0.03
    alpha: float = 0.05
    first: int = 60
    batch: int = 20

    def __post_init__(self) -> None:
        require_number("race.margin", self.margin, 0.0, 0.5)
        require_number("race.alpha", self.alpha, 0.0001, 0.5)
        require_count("race.first", self.first, 2)
        require_count("race.batch", self.batch, 1)


@dataclass(frozen=True)
class Look:
    """The bounds after n topics: `upper` bounds the lead of each running system from above."""

    n: int
    upper: dict[int, float]


@dataclass(frozen=True)
class Dropped:
    """When and why a system left the race.

    upper: the upper bound of its lead. rival: the best other system then.
    """

    n: int
    upper: float
    rival: int
    why: str


@dataclass
class Course:
    """An ended or running race.

    values: float [systems, topics seen], missing where a system had been dropped. failed: systems that could not be
    answered, at the topics that were seen before. why: how the race ended.
    """

    n_topics: int
    rules: Rules
    values: np.ndarray
    running: list[int]
    looks: list[Look] = field(default_factory=list)
    dropped: dict[int, Dropped] = field(default_factory=dict)
    failed: dict[int, int] = field(default_factory=dict)
    why: str = ""

    @property
    def used(self) -> list[int]:
        """The topics on which each system was answered."""
        return [int(n) for n in np.isfinite(self.values).sum(axis=1)]

    @property
    def best(self) -> int:
        """The running system with the highest mean, the first of ties. At least one must be running."""
        return self.running[int(self.values[self.running].mean(axis=1).argmax())]

    def results(self) -> pd.DataFrame:
        """A row per system, [system, topics, mean, low, high, difference, difference_low, difference_high].

        Means and differences from the best are over the topics on which the system was answered. Intervals are about
        all n_topics, and hold although the race stopped where it did, each with probability 1 - alpha: those of
        differences for whichever system is best in the end. A system without any topic has no row.
        """
        best, alpha = self.best, self.rules.alpha
        rows = []
        for system, n in enumerate(self.used):
            if n == 0:
                continue
            own = self.values[system, :n]
            difference = own - self.values[best, :n]
            low, high = (float(bound[0]) for bound in mean_interval(own[None], self.n_topics, alpha))
            least, most = 0.0, 0.0
            if system != best:
                pairs = alpha / (len(self.values) - 1)
                bounds = difference_interval(difference[None], self.n_topics, pairs)
                least, most = (float(bound[0]) for bound in bounds)
            rows.append((system, n, own.mean(), low, high, difference.mean(), least, most))
        names = ["system", "topics", "mean", "low", "high", "difference", "difference_low", "difference_high"]
        return pd.DataFrame(rows, columns=names)


def run_race(
    ask: Ask,
    n_systems: int,
    n_topics: int,
    rules: Rules,
    leads: Sequence[float] = (),
    tell: Callable[[Course], None] | None = None,
) -> Course:
    """Runs a race of at least two systems to its end.

    leads: further values that upper bounds may have; they have at least 0 and the margin. tell: called after each look.

    After each batch of topics a system is dropped whose lead is known to be at most the margin; the system with the
    highest mean stays. Every topic is used where several systems are left until the end.
    """
    every = np.unique([*leads, 0.0, rules.margin])
    tests = LeadTests(n_systems, n_topics, every)
    course = Course(n_topics, rules, np.empty((n_systems, 0)), list(range(n_systems)))

    def look(n: int) -> Look:
        seen = course.looks[-1].n if course.looks else 0
        tests.observe(np.array(course.running), course.values[course.running, seen:])
        upper = tests.upper_bounds(rules.alpha)
        return Look(n, {system: float(upper[system]) for system in course.running})

    race_on(course, ask, look, tell)
    return course


def race_on(
    course: Course, ask: Ask, look: Callable[[int], Look], tell: Callable[[Course], None] | None = None
) -> None:
    """Asks batch by batch until the race is over, and drops systems by the bounds of each look."""
    rules, n_topics, n = course.rules, course.n_topics, 0
    while len(course.running) > 1 and n < n_topics:
        ahead = min(rules.first if n == 0 else n + rules.batch, n_topics)
        running = course.running
        asked = ask(running, ahead)
        if asked is None:
            course.why = "the money ran out"
            return
        course.failed |= {s: n for s, row in zip(running, asked, strict=True) if np.isnan(row).any()}
        batch = asked[[s not in course.failed for s in running], n:]
        course.running = [s for s in running if s not in course.failed]
        new = np.full((len(course.values), ahead - n), np.nan)
        new[course.running] = batch
        course.values = np.hstack([course.values, new])
        n = ahead
        if len(course.running) < 2:
            break
        course.looks.append(look(n))
        _drop(course)
        if tell is not None:
            tell(course)
    left = {0: "no system is left", 1: "one system is left"}
    course.why = left.get(len(course.running), "all topics are answered")


def _drop(course: Course) -> None:
    """Drops the systems whose lead is at most the margin."""
    n, upper, best = course.looks[-1].n, course.looks[-1].upper, course.best
    for system in list(course.running):
        if system != best and upper[system] <= course.rules.margin:
            why = BEATEN if upper[system] <= 0 else WITHIN
            course.dropped[system] = Dropped(n, upper[system], best, why)
            course.running.remove(system)
