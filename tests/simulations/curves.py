"""How often bands hold a whole curve, tests over all budgets reject, and a smallest budget is one."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.plugins.budgets.curves import compare_curves, curve_band, smallest_budget

BUDGETS = np.arange(100, 1100, 100)


def draw(n: int, mean_place: float, rng: np.random.Generator, systems: int = 1) -> list[np.ndarray]:
    """Scores [n topics, budgets] of each system: the share of two evidence parts found by N.

    A part stands at a place that is exponential around `mean_place`, sooner or later by the topic's ease,
    itself exponential and the same for all systems. The true mean is `found_by`.
    """
    ease = rng.exponential(size=(n, 1))
    places = [rng.exponential(size=(n, 2)) * mean_place / ease for _ in range(systems)]
    return [(place[:, :, None] <= BUDGETS).mean(axis=1) for place in places]


def found_by(mean_place: float) -> np.ndarray:
    """The true mean score of `draw` at each budget."""
    return 1 - 1 / (1 + BUDGETS / mean_place)


def band_coverage(n: int, mean_place: float, trials: int, seed: int) -> tuple[float, float]:
    """How often ten pointwise intervals hold the true curve together, and how often the band does."""
    rng, truth = np.random.default_rng(seed), found_by(mean_place)
    found = []
    for trial in range(trials):
        (x,) = draw(n, mean_place, rng)
        band = curve_band(pd.DataFrame(x, columns=BUDGETS), seed=trial)
        found.append(
            [((band[lo] <= truth) & (truth <= band[hi])).all() for lo, hi in (("lo", "hi"), ("band_lo", "band_hi"))]
        )
    alone, together = np.mean(found, axis=0)
    return float(alone), float(together)


def false_alarms(n: int, trials: int, seed: int) -> tuple[float, float]:
    """How often two equal systems differ at 5 % at the budget where they differ most: alone, over all."""
    rng, found = np.random.default_rng(seed), []
    for trial in range(trials):
        curves = {name: pd.DataFrame(x, columns=BUDGETS) for name, x in zip("ab", draw(n, 400, rng, 2), strict=True)}
        tests = compare_curves(curves, seed=trial)
        found.append([(tests[p] < 0.05).any() for p in ("p", "p_all_budgets")])
    alone, together = np.mean(found, axis=0)
    return float(alone), float(together)


def smallest_is_within(n: int, trials: int, seed: int, right: bool) -> tuple[float, float]:
    """How often a smallest budget is claimed that truly costs the margin or more, and how often one is.

    Scores: 1 from a place on, 0.1 before; at budgets under 600 exactly the margin of 0.01 is lost. Right
    answers: half at 600, 5 points (the margin) less at all others, which change from budget to budget.
    """
    rng = np.random.default_rng(seed)
    wrong = claimed = 0
    for trial in range(trials):
        if right:
            share = np.where(BUDGETS == 600, 0.5, 0.45)
            same, ease = rng.random((n, 1)) < 0.7, rng.random((n, 1))
            x = (np.where(same, ease, rng.random((n, len(BUDGETS)))) < share).astype(float)
            allowed = {600}
        else:
            late = rng.random((n, 1)) < 0.01 / 0.9
            x = np.where(late & (BUDGETS < 600), 0.1, 1.0)
            allowed = set(range(600, 1100, 100))
        found = smallest_budget(pd.DataFrame(x, columns=BUDGETS), 0.05 if right else 0.01, seed=trial)
        claimed += found is not None and found < BUDGETS[-1]
        wrong += found is not None and found not in allowed
    return wrong / trials, claimed / trials
