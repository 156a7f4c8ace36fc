"""Races on tables in which every answer of every system is known: what is dropped, paid for and covered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import beta, norm

from ragauge.plugins.race.course import Course, Rules, run_race
from ragauge.plugins.race.strata import interleaved, run_stratified_race

MARGIN = 0.03
# Means of the other systems below the second best, by shape of spread: of the share of systems that is ahead of it.
SHAPES = {
    "all others equal": lambda share: 0.0 * share,
    "evenly spread over 30 points": lambda share: 0.3 * share,
    "one near, the others 20 points lower": lambda share: 0.2 * (share > 0),
    "half near, half 20 points lower": lambda share: 0.2 * (share >= 0.5),
}


@dataclass(frozen=True)
class Setting:
    """A table of systems and topics, drawn anew for each trial.

    lead: of the first system, over all topics, exactly but for the last topic; None: all systems are equal before
    the topics are drawn. likeness: correlation of two systems' latent qualities of an answer. share: mean of the
    second best. skewed: values from 0 to 1, most of them near 0 or 1, in place of right and wrong.
    """

    systems: int
    topics: int
    lead: float | None
    shape: str = "all others equal"
    share: float = 0.55
    likeness: float = 0.5
    skewed: bool = False


def table(setting: Setting, rng: np.random.Generator) -> np.ndarray:
    """float [systems, topics] in [0, 1]; topics are in random order."""
    below = SHAPES[setting.shape](np.arange(setting.systems - 1) / max(setting.systems - 1, 1))
    first = setting.share + (setting.lead or 0.0)
    means = np.clip([first, *(setting.share - below)], 0.005, 0.995)
    shared, own = rng.standard_normal(setting.topics), rng.standard_normal((setting.systems, setting.topics))
    latent = np.sqrt(setting.likeness) * shared + np.sqrt(1 - setting.likeness) * own
    if setting.skewed:
        values = beta.ppf(norm.cdf(latent), 0.3 * means[:, None], 0.3 * (1 - means[:, None]))
    else:
        values = (latent > -ndtri(means)[:, None]).astype(float)
    if setting.lead is not None:
        _set_lead(values, setting.lead, rng)
    return values


def _set_lead(values: np.ndarray, lead: float, rng: np.random.Generator) -> None:
    """Changes random values of the first system to 1 or 0 until its lead is just at least `lead`."""
    wanted = (values[1:].mean(axis=1).max() + lead) * values.shape[1]
    order = rng.permutation(values.shape[1])
    raises = values[0].sum() < wanted
    sums = values[0].sum() + np.cumsum((1.0 if raises else 0.0) - values[0, order])
    n = np.searchsorted(sums, wanted - 1e-9) + 1 if raises else np.searchsorted(-sums, -wanted + 1e-9)
    values[0, order[:n]] = 1.0 if raises else 0.0


def raced(values: np.ndarray, rules: Rules) -> Course:
    """The race on a table whose columns are in random order."""
    return run_race(lambda systems, n: values[list(systems), :n], *values.shape, rules)


@dataclass(frozen=True)
class Found:
    """The figures of trials of one setting.

    wrong: share of races that dropped the first system. short: share whose best system is more than the margin below
    the best of all topics. calls: mean share of the answers of the whole grid. means, differences: share of intervals
    at the end that hold the value of all topics.
    """

    wrong: float
    short: float
    calls: float
    means: float
    differences: float


def races(setting: Setting, trials: int, seed: int, margin: float = MARGIN, intervals: int = 0) -> Found:
    """Figures of that many races; those of intervals of the first `intervals` of them."""
    rng = np.random.default_rng(seed)
    wrong, short, calls = [], [], []
    held: list[tuple[float, float]] = []
    for trial in range(trials):
        values = table(setting, rng)
        truth = values.mean(axis=1)
        course = raced(values, Rules(margin=margin))
        wrong.append(0 in course.dropped)
        short.append(truth[course.best] < truth.max() - margin - 1e-9)
        calls.append(sum(course.used) / values.size)
        if trial < intervals:
            held.append(_held(course, truth))
    means, differences = np.mean(held, axis=0) if held else (np.nan, np.nan)
    return Found(float(np.mean(wrong)), float(np.mean(short)), float(np.mean(calls)), float(means), float(differences))


def races_with_additions(setting: Setting, first: int, trials: int, seed: int, batch: int = 60) -> Found:
    """Figures of races over `first` topics and those that were added because the first system was not the best there.

    The topics on which the first system is furthest behind come first, with noise, and the rest is added.
    """
    rng = np.random.default_rng(seed)
    wrong, short, calls, held = [], [], [], []
    of = interleaved((first, setting.topics - first))
    for _ in range(trials):
        values = table(setting, rng)
        behind = values[1:].max(axis=0) - values[0] + rng.normal(0, 1, setting.topics)
        ranked = np.argsort(-behind)
        order = np.empty(setting.topics, dtype=int)
        order[of == 0], order[of == 1] = rng.permutation(ranked[:first]), rng.permutation(ranked[first:])
        values = values[:, order]
        truth = values.mean(axis=1)
        course = run_stratified_race(
            lambda systems, n, values=values: values[list(systems), :n], len(values), of, Rules(batch=batch)
        )
        wrong.append(0 in course.dropped)
        short.append(truth[course.best] < truth.max() - MARGIN - 1e-9)
        calls.append(sum(course.used) / values.size)
        held.append(_held(course, truth))
    means, differences = np.mean(held, axis=0)
    return Found(float(np.mean(wrong)), float(np.mean(short)), float(np.mean(calls)), float(means), float(differences))


def _held(course: Course, truth: np.ndarray) -> tuple[float, float]:
    """Shares of the intervals of means and of differences that hold the values of all topics."""
    rows = course.results()
    apart = truth - truth[course.best]
    others = rows["system"] != course.best
    means = (rows["low"] - 1e-9 <= truth) & (truth <= rows["high"] + 1e-9)
    differences = (rows["difference_low"] - 1e-9 <= apart) & (apart <= rows["difference_high"] + 1e-9)
    return float(means.mean()), float(differences[others].mean())
