"""Mock systems of known quality, a judge that errs, and labels of a few: their order, and their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau

from ragauge.contract.errors import DataError
from ragauge.estimate.human import powered_share

SHARES = tuple(0.70 + 0.025 * i for i in range(9))  # of yes: nine systems 2.5 points apart (ARES, section 4)


@dataclass(frozen=True)
class Judge:
    """P(yes) of answers that are right (column 0 of `alpha`, `beta`: Beta) and of wrong ones (column 1).

    moved: by how much, on the logit scale, systems differ in how the judge sees their wrong answers.
    """

    right: tuple[float, float]
    wrong: tuple[float, float]
    moved: float = 0.0

    def probabilities(self, truth: np.ndarray, system: int, rng: np.random.Generator) -> np.ndarray:
        """float64 [topics] in (0, 1)."""
        yes, no = rng.beta(*self.right, len(truth)), rng.beta(*self.wrong, len(truth))
        # Worse systems err in ways that the judge does not see.
        shift = self.moved * (len(SHARES) - 1 - system) / (len(SHARES) - 1)
        odds = np.exp(shift) * no / (1 - no)
        return np.where(truth == 1, yes, odds / (1 + odds))


# P > 0.5 for 97 % of right answers; of wrong ones for 3, 19 and 50 %.
GOOD, FAIR, POOR = Judge((8, 2), (2, 8)), Judge((5, 2), (2, 3.5)), Judge((4, 2), (2, 2))
UNEVEN = Judge((5, 2), (2, 3.5), moved=1.5)
JUDGES = {"good": GOOD, "fair": FAIR, "poor": POOR, "errs on worse systems": UNEVEN}


@dataclass(frozen=True)
class Found:
    """Means over trials: Kendall's tau of the nine systems, and coverage of their 95 % intervals.

    Of the estimate by PPI++, of the labels alone, and of the judge alone (the share with P > 0.5, with a
    normal interval over topics). shared: PPI with one system's labels for all, as ARES does; width: of the
    interval by PPI++ over that of the labels alone.
    """

    tau: float
    tau_labels: float
    tau_judge: float
    coverage: float
    coverage_labels: float
    coverage_judge: float
    coverage_shared: float
    width: float


def simulated(judge: Judge, n_labels: int, n_topics: int, trials: int, seed: int) -> Found:
    """Nine systems' answers to the same number of topics, `n_labels` of each labelled at random."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(trials):
        truths = [(rng.random(n_topics) < share).astype(float) for share in SHARES]
        seen = [judge.probabilities(truth, i, rng) for i, truth in enumerate(truths)]
        rows.append(trial(truths, seen, n_labels, rng))
    return Found(*np.mean(rows, axis=0))


def trial(
    truths: Sequence[np.ndarray], seen: Sequence[np.ndarray], n_labels: int, rng: np.random.Generator
) -> list[float]:
    """The values of `Found` for systems of these truths and probabilities, in the order of SHARES."""
    estimates, alone, judged, held, held_alone, held_judge, held_shared, widths = ([] for _ in range(8))
    middle = len(SHARES) // 2
    drawn = rng.permutation(len(truths[0]))[:n_labels]
    shared = (truths[middle][drawn], seen[middle][drawn])
    for share, truth, p in zip(SHARES, truths, seen, strict=True):
        labels = np.full(len(truth), np.nan)
        at = rng.permutation(len(truth))[:n_labels]
        labels[at] = truth[at]
        try:
            found = powered_share(labels, p)
        except DataError:  # one draw in a thousand is taken for none
            continue
        powered, only = found.powered, found.labels_only
        yes = float((p > 0.5).mean())
        reach = 1.96 * np.sqrt(yes * (1 - yes) / len(p))
        estimates.append(powered.value)
        alone.append(only.value)
        judged.append(yes)
        held.append(powered.lo <= share <= powered.hi)
        held_alone.append(only.lo <= share <= only.hi)
        held_judge.append(abs(yes - share) <= reach)
        held_shared.append(_shared(p, *shared, share))
        widths.append((powered.hi - powered.lo) / (only.hi - only.lo))
    order = np.arange(len(estimates))
    taus = [float(np.nan_to_num(kendalltau(order, x).statistic)) for x in (estimates, alone, judged)]
    held_all = [float(np.mean(x)) for x in (held, held_alone, held_judge, held_shared)]
    return [*taus, *held_all, float(np.mean(widths))]


def _shared(p: np.ndarray, label: np.ndarray, predicted: np.ndarray, share: float) -> bool:
    """Whether PPI (lambda = 1) with the labels of another system holds the share."""
    estimate = p.mean() + (label - predicted).mean()
    error = np.sqrt(p.var(ddof=1) / len(p) + (label - predicted).var(ddof=1) / len(label))
    return bool(abs(estimate - share) <= 1.96 * error)
