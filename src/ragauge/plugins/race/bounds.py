"""Bounds, valid at every look, on means over a finite number of topics in random order.

Source: Waudby-Smith & Ramdas 2024, Estimating means of bounded random variables by betting, section 5 (sampling without
replacement). A bettor begins with 1 and puts a fixed share of it on the next topic, at odds that are fair or worse if
the hypothesis is true. By Ville's inequality wealth then ever reaches 1 / alpha with probability at most alpha. So one
may look as often as one likes.
"""

from __future__ import annotations

import numpy as np

# Shares of the wealth that are put on the next topic. The wealth is split evenly among bettors with these shares, so
# that no spread of the differences has to be known.
_SHARES = np.array([0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.75, 0.95])
_HALVINGS = 14  # of [0, 1]: bounds of means are exact to 0.0001


class LeadTests:
    """Tests at every topic, for each system and several leads, whether it leads all others by that lead.

    A system's lead is its mean over the topics less that of the best other system. The hypothesis that it is more than
    `lead` says so of the difference to *every* other system. So the bet may be on a system of the bettor's choice for
    each topic, chosen by what was seen before: the one that was best until then. One test per system serves any number
    of systems, without a correction for their number.

    n_topics: the topics that the means are over. leads: float [leads], each in (-1, 1).
    """

    def __init__(self, n_systems: int, n_topics: int, leads: np.ndarray) -> None:
        self._n_topics, self._leads = n_topics, np.asarray(leads, dtype=float)
        self._sums = np.zeros(n_systems)
        self._seen = 0
        self._logs = np.zeros((len(self._leads), n_systems, len(_SHARES)))
        # float [leads, systems]: the highest log wealth until now.
        self.highest = np.zeros((len(self._leads), n_systems))

    def observe(self, running: np.ndarray, values: np.ndarray) -> None:
        """Bets on the next topics.

        running: int [running], at least two systems, a part of those of the last call. values: float [running, topics]
        in [0, 1], of the next topics of the random order.
        """
        n_new = values.shape[1]
        before = self._sums[running, None] + np.cumsum(values, axis=1) - values
        rival = _best_other(before)
        difference = values - np.take_along_axis(values, rival, axis=0)
        so_far = before - np.take_along_axis(before, rival, axis=0)
        seen = self._seen + np.arange(n_new)
        # In [0, 1], and high where the system is behind.
        behind, behind_before = (1 - difference) / 2, (seen - so_far) / 2
        of_all = (1 - self._leads[:, None, None]) / 2
        expected = _of_the_rest(of_all, behind_before, seen, self._n_topics)
        logs = self._logs[:, running, None, :] + _log_wealth(np.broadcast_to(behind, expected.shape), expected)
        self.highest[:, running] = np.maximum(self.highest[:, running], _mixed(logs).max(axis=2))
        self._logs[:, running] = logs[:, :, -1]
        self._sums[running] += values.sum(axis=1)
        self._seen += n_new

    def upper_bounds(self, alpha: float) -> np.ndarray:
        """float [systems]: the least of `leads` that bounds the system's lead from above, 1 if none does.

        Each holds for all looks together with probability at least 1 - alpha.
        """
        refuted = self.highest >= np.log(1 / alpha)
        return np.where(refuted, self._leads[:, None], 1.0).min(axis=0)


def mean_interval(values: np.ndarray, n_topics: int, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds (each float [series]) of means over n_topics, valid at any number of topics.

    values: float [series, topics seen] in [0, 1], the first topics of a random order. For each series they hold, for
    all numbers of topics seen together, with probability at least 1 - alpha. Exact where all topics were seen.
    """
    values = np.asarray(values, dtype=float)
    lower = _lower_bound(values, n_topics, alpha / 2)
    upper = 1 - _lower_bound(1 - values, n_topics, alpha / 2)
    return lower, upper


def upper_bounds(values: np.ndarray, n_topics: int, alpha: float) -> np.ndarray:
    """The upper bounds of `mean_interval` alone, each at the whole probability 1 - alpha."""
    return 1 - _lower_bound(1 - np.asarray(values, dtype=float), n_topics, alpha)


def difference_interval(differences: np.ndarray, n_topics: int, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """`mean_interval` of paired differences in [-1, 1]."""
    lower, upper = mean_interval((1 + np.asarray(differences, dtype=float)) / 2, n_topics, alpha)
    return 2 * lower - 1, 2 * upper - 1


def _lower_bound(values: np.ndarray, n_topics: int, alpha: float) -> np.ndarray:
    """float [series]: the highest mean refuted as too low, but at least the observed sum over n_topics."""
    seen = np.arange(values.shape[1])
    before = np.cumsum(values, axis=1) - values
    low, high = np.zeros(len(values)), np.ones(len(values))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        expected = _of_the_rest(middle[:, None], before, seen, n_topics)
        refuted = _mixed(_log_wealth(values, expected)).max(axis=1) >= np.log(1 / alpha)
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return np.maximum(low, values.sum(axis=1) / n_topics)


def _best_other(before: np.ndarray) -> np.ndarray:
    """int [systems, topics]: the index of the other system with the highest sum before each topic."""
    places = np.arange(before.shape[1])
    best = before.argmax(axis=0)
    without = before.copy()
    without[best, places] = -np.inf
    rival = np.repeat(best[None], len(before), axis=0)
    rival[best, places] = without.argmax(axis=0)
    return rival


def _of_the_rest(mean: np.ndarray, before: np.ndarray, seen: np.ndarray, n_topics: int) -> np.ndarray:
    """The mean of the unseen topics, if that of all n_topics is `mean` and the seen ones sum to `before`."""
    return (n_topics * mean - before) / (n_topics - seen)


def _log_wealth(values: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """float [..., topics, shares]: log wealth of bets that values in [0, 1] exceed their expectation.

    A share f of the wealth becomes f * value / expected. The wealth is infinite where the rest cannot have the
    expectation, which is then below 0, or 0 with a value above it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = values / expected
    impossible = (expected < 0) | ((expected == 0) & (values > 0))
    gain = np.where(expected > 0, gain, np.where(impossible, np.inf, 1.0))
    steps = np.log1p(_SHARES * (gain[..., None] - 1))
    wealth: np.ndarray = np.cumsum(steps, axis=-2)
    return wealth


def _mixed(logs: np.ndarray) -> np.ndarray:
    """float [...]: the log of the mean wealth over the shares (last axis)."""
    most = logs.max(axis=-1)
    finite = np.where(np.isfinite(most), most, 0.0)
    mixed: np.ndarray = np.log(np.exp(np.minimum(logs - finite[..., None], 700)).mean(axis=-1)) + finite
    return np.where(np.isfinite(most), mixed, np.inf)
