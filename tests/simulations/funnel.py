"""Coverage of the intervals of a funnel's change between two steps, and of where failures come from."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.contract.outcomes import CAUSE
from ragauge.diagnose.failures import failure_origins
from ragauge.diagnose.funnel import funnel
from ragauge.estimate.intervals import Estimate, bootstrap_mean

# Of topics, how many lose, and how many gain; a loss is uniform between 0.2 and 1, a gain up to 0.5.
CHANGES = {
    "1 % lose": (0.01, 0.0),
    "5 % lose, 1 % gain": (0.05, 0.01),
    "30 % lose, 5 % gain": (0.3, 0.05),
    "80 % lose": (0.8, 0.0),
}
_LOSS, _GAIN = (0.2, 1.0), (0.0, 0.5)


def true_change(name: str) -> float:
    """The expected change of a topic."""
    lose, gain = CHANGES[name]
    return float(gain * np.mean(_GAIN) - lose * np.mean(_LOSS))


def drawn(name: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """The changes of n topics, in [-1, 1]."""
    lose, gain = CHANGES[name]
    u = rng.random(n)
    found: np.ndarray = np.where(u < lose, -rng.uniform(*_LOSS, n), 0.0)
    return np.where(u > 1 - gain, rng.uniform(*_GAIN, n), found)


def of_funnel(changes: np.ndarray) -> Estimate:
    """The change as the funnel has it, of topics that had half of their evidence, or all that they lose."""
    before = np.maximum(0.5, -changes)
    parts = pd.DataFrame({"qid": np.arange(len(changes)), "part": 0, "candidates": before, "context": before + changes})
    row = funnel(parts).iloc[1]
    return Estimate(row["change"], row["change_lo"], row["change_hi"], len(changes))


def by_bootstrap(changes: np.ndarray) -> Estimate:
    """The same with a percentile interval over resampled topics."""
    return bootstrap_mean(changes, n_boot=500)


def change_coverage(name: str, n: int, trials: int, seed: int, bootstrap: bool = False) -> float:
    """How often the interval of the change holds the true one."""
    rng = np.random.default_rng(seed)
    interval = by_bootstrap if bootstrap else of_funnel
    found = [interval(drawn(name, n, rng)) for _ in range(trials)]
    truth = true_change(name)
    return float(np.mean([e.lo <= truth <= e.hi for e in found]))


SYSTEMS = 5
# The share of a topic's failures that come from retrieval, as Beta(a, b) over topics; None: the same in all.
ORIGINS: dict[str, tuple[float, float] | None] = {
    "45 %, the same in every topic": None,
    "39 %, topics lean to one origin": (0.45, 0.55),
    "2.6 %, a few topics": (0.03, 0.97),
}
_FAILS = (1.5, 1.0)  # Beta of the share of systems that fail on a topic; it raises the share of retrieval


def _failures(name: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """bool [topics, systems]: which answers fail, and which of them would fail for retrieval."""
    fails, shape = rng.beta(*_FAILS, n), ORIGINS[name]
    lean = np.full(n, 0.45) if shape is None else rng.beta(*shape, n) * (0.5 + 0.5 * fails)
    return rng.random((n, SYSTEMS)) < fails[:, None], rng.random((n, SYSTEMS)) < lean[:, None]


def origin_coverage(name: str, n: int, trials: int, seed: int) -> float:
    """How often the interval of the share of failures that come from retrieval holds the true share.

    n topics, on each of which each of five systems may fail. The truth is that of 400,000 topics.
    """
    rng = np.random.default_rng(seed)
    failed, lost = _failures(name, 400_000, rng)
    truth, hits = (failed & lost).sum() / failed.sum(), 0
    keys = {"qid": np.repeat(np.arange(n), SYSTEMS), "system": np.tile(np.arange(SYSTEMS), n)}
    for _ in range(trials):
        failed, lost = _failures(name, n, rng)
        cause = np.where(failed, np.where(lost, "not retrieved", "generation error"), None)
        row = failure_origins(pd.DataFrame({**keys, CAUSE: cause.ravel()})).set_index("origin").loc["retrieval"]
        hits += bool(row["lo"] <= truth <= row["hi"])
    return hits / trials
