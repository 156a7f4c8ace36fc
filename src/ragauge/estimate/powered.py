"""Means over all topics from a judged sample: prediction-powered inference by strata (PPI++).

The estimate of Angelopoulos, Duchi & Zrnic (2023, arXiv:2311.01453), summed over strata (Fisch et al. 2024,
arXiv:2406.04291). ppi-python gives the same for a given lambda. ragauge tunes lambda differently. Each judged topic's
lambda comes from the other judged topics: it does not depend on the values that it multiplies, and the estimate has
no bias on few topics. One lambda serves all strata, since ten topics of a stratum could not determine its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragauge.contract.errors import DataError
from ragauge.estimate.intervals import cluster_variance

# Topics that `difference_test` adds, of which one differs, as often to either side (Agresti & Min 2005).
_ADDED = 2.0
_ROUNDING = 1e-9  # what sums of shares are off by at most


@dataclass(frozen=True)
class Powered:
    """Estimates of means over all topics, float64 [columns] each, and their variances.

    `lam` is the mean lambda of the judged topics, `classical` the estimate of lambda = 0. `spread` is the
    variance of one topic's value. `n` is how many topics drawn uniformly have the strata's weights (Kish),
    `df` the degrees of freedom of the variances. For clusters both are fewer (`powered_means`). `alike` is the value
    that all judged topics have in a column, NaN where they differ. `classical` is then exactly this value and has no
    variance. `parts` are those of `weighted_means`.
    """

    estimate: np.ndarray
    variance: np.ndarray
    lam: np.ndarray
    classical: np.ndarray
    classical_variance: np.ndarray
    spread: np.ndarray
    n: float
    df: float
    alike: np.ndarray
    parts: np.ndarray | None = None

    @property
    def alone(self) -> np.ndarray:
        """Whether the classical variance gives an interval, bool [columns]; not for `alike` columns."""
        return np.isnan(self.alike) & (self.classical_variance > _ROUNDING**2)

    @property
    def corrected(self) -> np.ndarray:
        """Whether judged topics differ and the estimate is a share with its own interval, bool [columns]."""
        return self.alone & self.kept

    @property
    def kept(self) -> np.ndarray:
        """Whether the estimate is a share inside (0, 1) with a variance, bool [columns]."""
        return inside(self.estimate) & (self.variance > _ROUNDING**2)


def inside(share: np.ndarray) -> np.ndarray:
    """Whether shares lie inside (0, 1) by more than the rounding error of weight sums, bool [columns]."""
    return np.asarray((share > _ROUNDING) & (share < 1 - _ROUNDING))


def _alike(values: np.ndarray) -> np.ndarray:
    """The common value of all rows, float64 [columns]; NaN where they differ.

    It compares rows, since a weighted sum of ones may be 0.9999999999999999.
    """
    same = np.ptp(values, axis=0) <= _ROUNDING
    ends = np.round(values[0])
    return np.where(same, np.where(np.abs(values[0] - ends) <= _ROUNDING, ends, values[0]), np.nan)


def _exact(
    alike: np.ndarray, classical: np.ndarray, variance: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The classical estimate, its variance and spread, exact where all judged topics agree."""
    same = ~np.isnan(alike)
    return np.where(same, alike, classical), np.where(same, 0.0, variance), np.where(same, 0.0, spread)


@dataclass(frozen=True)
class _Stratum:
    """One stratum: its weight, the judged topics' values and predictions, and the others' predictions."""

    weight: float
    y: np.ndarray
    f: np.ndarray
    others: np.ndarray

    def gain_and_cost(self) -> tuple[np.ndarray, np.ndarray]:
        """Gain and cost of lambda in this stratum over all judged topics, [columns] each; lambda = gain / cost."""
        gain, cost = self._of(_products(self.y, self.f), _products(self.f, self.f), len(self.y))
        return gain, cost

    def gain_and_cost_without_each(self) -> tuple[np.ndarray, np.ndarray]:
        """The same with each judged topic left out in turn, [judged, columns]."""
        n = len(self.y)
        y, f = self.y - self.y.mean(axis=0), self.f - self.f.mean(axis=0)
        scale = n / max(n - 1, 1)
        return self._of((y * f).sum(axis=0) - scale * y * f, (f * f).sum(axis=0) - scale * f * f, n - 1)

    def _of(self, yf: np.ndarray, ff: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        if n < 2 or not len(self.others):
            return np.zeros_like(yf), np.zeros_like(ff)
        scale = self.weight**2 / (n - 1)
        return scale * yf / n, scale * ff * (1 / n + 1 / len(self.others))

    def mean(self, lam: np.ndarray, fixed: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The stratum's mean and its variance, with a lambda for every judged topic [judged, columns].

        `fixed`: the variance about the mean of these topics, which drawing the judged ones among them leaves
        (Cochran 1977, section 7.3, with the slope lambda N / (N - n)).
        """
        n, rest = len(self.y), len(self.others)
        if not rest:  # every topic is judged: nothing to predict
            return self.y.mean(axis=0), _variance(self.y) / n * (not fixed)
        values = self.values(lam)
        if fixed:
            share = rest / (n + rest)
            left = self.y - lam / share * (self.f - (self.f.sum(axis=0) + self.others.sum(axis=0)) / (n + rest))
            return values.mean(axis=0), share * _variance(left) / n
        predicted = lam.mean(axis=0) ** 2 * _variance(self.others) / rest
        return values.mean(axis=0), _variance(values) / n + predicted

    def values(self, lam: np.ndarray) -> np.ndarray:
        """Each judged topic's contribution to the stratum's mean: [judged, columns]."""
        return self.y + lam * (self.others.mean(axis=0) - self.f) if len(self.others) else self.y


def _products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(((a - a.mean(axis=0)) * (b - b.mean(axis=0))).sum(axis=0))


def _variance(values: np.ndarray) -> np.ndarray:
    return values.var(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])


def powered_means(
    values: np.ndarray,
    predicted: np.ndarray,
    judged: np.ndarray,
    stratum: np.ndarray,
    together: int = 0,
    clusters: np.ndarray | None = None,
    fixed: bool = False,
) -> Powered:
    """Means over all topics of `values`, known where `judged`, using `predicted`, known everywhere.

    `values` and `predicted` are float [topics, columns], `judged` bool [topics], `stratum` [topics] any
    numbers; values of topics that are not judged are not looked at. Lambda in [0, 1] is that of the smallest
    variance: of each column, or with `together` > 0 one for all columns, with the smallest sum of the variances of the
    first `together` columns. The variance is that of an estimate for the population that all topics are a sample of.
    With `clusters` [topics] the variance is over clusters, of the contributions of their topics to the estimate. `n` is
    then divided by the root of the mean number of judged topics of a cluster, and `df` is the effective number of
    clusters with judged topics, less one (`student_of`). With `fixed` the variance is about the mean of these very
    topics. Clusters do not matter then, since the judged topics were drawn one by one. Raises DataError where a stratum
    has fewer than two judged topics (a stratum of one topic: fewer than one).
    """
    n_topics = len(judged)
    parts = []
    for s in np.unique(stratum):
        here = stratum == s
        drawn = here & judged
        if drawn.sum() < min(2, here.sum()):
            raise DataError(f"stratum {s:g}: {drawn.sum()} of {here.sum()} topics are judged; it takes at least 2")
        others = predicted[here & ~judged]
        parts.append(_Stratum(here.sum() / n_topics, values[drawn], predicted[drawn], others))
    lams = _lambdas(parts, together)
    estimate, variance = _over_strata(parts, lams, n_topics, fixed)
    classical, classical_variance = _over_strata(parts, [np.zeros_like(lam) for lam in lams], n_topics, fixed)
    n = float(1 / sum(part.weight**2 / len(part.y) for part in parts))
    df: float = max(sum(len(part.y) - 1 for part in parts), 1)
    if clusters is not None and not fixed:
        n, df = _of_clusters(n, df, clusters[judged])
        variance, classical_variance = (
            cluster_variance(_added(parts, of, judged, stratum, mean), clusters)
            for of, mean in ((lams, estimate), ([np.zeros_like(lam) for lam in lams], classical))
        )
    within = sum(part.weight * _variance(part.y) for part in parts)
    spread = within + sum(part.weight * (part.y.mean(axis=0) - classical) ** 2 for part in parts)
    alike = _alike(values[judged])
    exact = _exact(alike, classical, classical_variance, np.asarray(spread))
    return Powered(estimate, variance, np.concatenate(lams).mean(axis=0), *exact, n, df, alike)


def _of_clusters(n: float, df: float, clusters: np.ndarray) -> tuple[float, float]:
    """`n` and `df` of `Powered` for judged topics in these clusters."""
    sizes = np.unique(clusters, return_counts=True)[1].astype(float)
    return n / np.sqrt(sizes.mean()), min(df, max(sizes.sum() ** 2 / (sizes**2).sum() - 1, 1.0))


def weighted_means(
    values: np.ndarray, predicted: np.ndarray, judged: np.ndarray, probability: np.ndarray, together: int = 0,
    clusters: np.ndarray | None = None,
) -> Powered:  # fmt: skip
    """`powered_means` for the population, of a sample of fixed size drawn with unequal `probability` [topics].

    The estimate is the mean of `_weighted_parts`, the classical one that of the judged values by 1 / probability.
    Where all judged values agree, the errors have the classical weights, which add up to 1. Their sum by
    1 / probability would be off as far as these add up to another number than that of the topics.
    """
    n_topics, n = len(judged), int(judged.sum())
    parts, lam = _weighted_parts(values, predicted, judged, probability, together)
    y, weight = values[judged], 1 / probability[judged][:, None]
    weight = weight / weight.sum()
    alike = _alike(y)
    shifted = alike + lam * (predicted.mean(axis=0) - (weight * predicted[judged]).sum(axis=0))
    parts = parts + np.where(np.isnan(alike), 0.0, shifted - parts.mean(axis=0))
    classical, alone = (weight * y).sum(axis=0), np.zeros_like(parts)
    alone[judged] = weight * (y - classical)
    variance, classical_variance = (
        cluster_variance(added, clusters) * n / (n - 1) for added in ((parts - parts.mean(axis=0)) / n_topics, alone)
    )
    spread, df = (weight * (y - classical) ** 2).sum(axis=0), float(n - 1)
    stands_for = float(np.sqrt(n / (weight**2).sum()))  # 1 / its square is a judged topic's mean squared weight
    if clusters is not None:
        stands_for, df = _of_clusters(stands_for, df, clusters[judged])
    exact = _exact(alike, classical, classical_variance, spread)
    return Powered(parts.mean(axis=0), variance, lam, *exact, stands_for, df, alike, parts)


def _weighted_parts(
    values: np.ndarray, predicted: np.ndarray, judged: np.ndarray, probability: np.ndarray, together: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Values, float64 [topics, columns], whose mean is the estimate of `weighted_means`, and lambda [columns].

    Active inference (Zrnic & Candes 2024, arXiv:2403.03208): m + (y - m) / pi, the second part where judged; m is the
    prediction, shrunk by 1 - lambda to its mean, so that shares add up to 1. As the sample has a fixed size, its error
    is that of (y - m) / pi less the mean of these weighted by 1 - pi (Hajek 1964). Lambda, for a judged topic from the
    others, has the least sum of its squares weighted by 1 - pi. DataError for fewer than two judged topics.
    """
    n_topics, n, pi = len(judged), int(judged.sum()), probability[judged][:, None]
    if n < 2:
        raise DataError(f"{n} of {n_topics} topics are judged; it takes at least 2")
    spare = 1 - pi

    def level(x: np.ndarray) -> np.ndarray:
        return np.asarray((spare * x / pi).sum(axis=0) / max(spare.sum(), 1e-12))

    middle = predicted.mean(axis=0)
    apart, y = predicted - middle, values[judged] - middle
    of_y, of_f = y / pi - level(y), apart[judged] / pi - level(apart[judged])
    up, down = (x.sum(axis=0) - x for x in (spare * of_y * of_f, spare * of_f**2))
    if together:
        up, down = (np.broadcast_to(x[:, :together].sum(axis=1, keepdims=True), x.shape) for x in (up, down))
    lam = np.clip(np.divide(up, down, out=np.zeros_like(y), where=down > 1e-15), 0, 1)
    parts, error = middle + lam.mean(axis=0) * apart, y - lam * apart[judged]
    parts[judged] = middle + lam * apart[judged] + error / pi - level(error)
    return parts + level(error) * n / n_topics, lam.mean(axis=0)


def _added(
    parts: list[_Stratum], lams: list[np.ndarray], judged: np.ndarray, stratum: np.ndarray, estimate: np.ndarray
) -> np.ndarray:
    """Each topic's contribution to the estimate, float64 [topics, columns], summing to 0."""
    found = np.empty((len(judged), len(estimate)))
    for part, lam, s in zip(parts, lams, np.unique(stratum), strict=True):
        here, values = stratum == s, part.values(lam)
        between = (values.mean(axis=0) - estimate) / len(judged)
        found[here & judged] = between + part.weight * (values - values.mean(axis=0)) / len(values)
        if len(part.others):
            of_others = lam.mean(axis=0) * (part.others - part.others.mean(axis=0)) / len(part.others)
            found[here & ~judged] = between + part.weight * of_others
    return found


def _lambdas(parts: list[_Stratum], together: int) -> list[np.ndarray]:
    """Lambda of every judged topic by stratum, tuned on the others, float64 [judged, columns]."""
    all_of = [part.gain_and_cost() for part in parts]
    gain, cost = (np.sum([of[side] for of in all_of], axis=0) for side in (0, 1))
    lams = []
    for part, (own_gain, own_cost) in zip(parts, all_of, strict=True):
        gain_left, cost_left = part.gain_and_cost_without_each()
        up, down = gain - own_gain + gain_left, cost - own_cost + cost_left
        if together:
            up, down = (np.broadcast_to(x[:, :together].sum(axis=1, keepdims=True), x.shape) for x in (up, down))
        # Predictions that are all alike leave rounding errors for a variance.
        lams.append(np.clip(np.divide(up, down, out=np.zeros_like(part.y), where=down > 1e-15), 0, 1))
    return lams


def _over_strata(
    parts: list[_Stratum], lams: list[np.ndarray], n_topics: int, fixed: bool
) -> tuple[np.ndarray, np.ndarray]:
    weights = np.array([part.weight for part in parts])[:, None]
    found = [part.mean(lam, fixed) for part, lam in zip(parts, lams, strict=True)]
    means, variances = np.array([mean for mean, _ in found]), np.array([of for _, of in found])
    estimate = (weights * means).sum(axis=0)
    between = (weights * (means - estimate) ** 2).sum(axis=0) / n_topics * (not fixed)
    return estimate, (weights**2 * variances).sum(axis=0) + between


def difference_test(found: Powered, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Limits and two-sided p, [columns] each, of mean paired differences of yes-or-no values.

    A t interval and its t test, with half a topic added to each of the four cells of the paired table (Agresti & Min
    2005). Otherwise few differing topics could pass as proof that none can differ.
    """
    from scipy.stats import t

    middle, error = difference_statistics(found)
    reach = t.isf((1 - level) / 2, found.df) * error
    lo, hi = np.clip(middle - reach, -1, 1), np.clip(middle + reach, -1, 1)
    return lo, hi, np.asarray(2 * t.sf(np.abs(middle) / error, found.df))


def difference_statistics(found: Powered) -> tuple[np.ndarray, np.ndarray]:
    """Centres and standard errors, [columns] each, of the intervals and tests of `difference_test`."""
    total = found.n + _ADDED
    middle = found.estimate * found.n / total
    return middle, np.sqrt(found.n**2 * found.variance + 1 + _ADDED * middle**2) / total
