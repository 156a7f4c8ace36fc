"""The number of human labels, or judged topics, for an interval of a wanted width on the share of right answers.

Classical and prediction-powered, as `ppi_shares` estimates them. Sources and assumptions: docs/method.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_count, require_fraction
from ragauge.contract.errors import DataError
from ragauge.estimate.human import has_probabilities
from ragauge.estimate.intervals import LEVEL, cluster_variance, wilson_interval
from ragauge.estimate.outcomes import RIGHT, asked, clusters_by_topic, labels_of, with_classes
from ragauge.estimate.ppi import cross_fit
from ragauge.plugins.planning.topics import CONFIDENCE


def ppi_variance(share: float, correlation: float, ratio: float, n: int, n_topics: int) -> float:
    """Variance of a prediction-powered share from n labels of n_topics topics, at the best lambda in [0, 1].

    `correlation` of label and prediction, `ratio` of their standard deviations (label over prediction). With lambda =
    correlation ratio (1 - n / n_topics) this is share (1 - share) / n times 1 - correlation^2 (1 - n / n_topics). With
    a correlation of 0 or less it is the classical one.
    """
    rest = 1 - n / n_topics
    of_label = share * (1 - share) / n
    if rest <= 0 or not math.isfinite(ratio):
        return of_label
    lam = min(max(correlation * ratio * rest, 0.0), 1.0)
    # In units of var Y: cov(Y, f) is correlation / ratio, var f is 1 / ratio^2.
    return of_label * (1 - 2 * lam * correlation / ratio + (lam / ratio) ** 2 / rest)


def labels_for_width(
    share: float,
    width: float,
    level: float = LEVEL,
    correlation: float = 0.0,
    ratio: float = math.inf,
    n_topics: float = math.inf,
    design: float = 1.0,
) -> float:
    """Labels for an interval of a share at most `width` wide; inf if n_topics are too few.

    The interval is that of `ppi_shares`, on the logit scale. Without a correlation it is the classical one,
    for which any number of labels may be had. `design` is the design effect of clusters (`design_effect`), by which
    the variance is larger than that of independent topics.
    """
    wanted = variance_for_width(share, width, level) / design
    classical = math.ceil(share * (1 - share) / wanted)
    if not (correlation > 0 and math.isfinite(n_topics)):
        return float(classical)
    total = int(n_topics)
    if ppi_variance(share, correlation, ratio, total, total) > wanted:
        return math.inf
    low, high = 1, total
    while high - low > 1:
        middle = (low + high) // 2
        if ppi_variance(share, correlation, ratio, middle, total) > wanted:
            low = middle
        else:
            high = middle
    return float(max(high, 2))


def variance_for_width(share: float, width: float, level: float = LEVEL) -> float:
    """The variance of a share whose logit interval, expit(logit(share) +- z se / (share (1 - share))), has
    this width.
    """
    from scipy.optimize import brentq
    from scipy.special import expit, logit
    from scipy.stats import norm

    at = float(logit(share))
    reach = brentq(lambda r: expit(at + r) - expit(at - r) - width, 0.0, 100.0, xtol=1e-12)
    return float((reach * share * (1 - share) / norm.isf((1 - level) / 2)) ** 2)


SIZES = (50, 100, 200, 400, 800, 1600)  # of samples


def planned_widths(
    share: float, correlation: float, ratio: float, n_topics: int, level: float = LEVEL, design: float = 1.0
) -> list[tuple[int, float, float]]:
    """Interval widths of a share from samples of n_topics topics: (n, population, these topics).

    n are those of SIZES below n_topics. The arguments are those of `labels_for_width`. The last width holds with
    `sample_target=topics`: its variance is (1 - n / N) / n times the variance of label less slope times prediction.
    """
    from scipy.special import expit, logit
    from scipy.stats import norm

    found, at = [], float(logit(share))
    for n in (n for n in SIZES if n < n_topics):
        rest = 1 - n / n_topics
        slope = min(max(correlation, 0.0), 1 / (ratio * rest)) if math.isfinite(ratio) else 0.0
        variances = (
            design * ppi_variance(share, correlation, ratio, n, n_topics),
            share * (1 - share) / n * rest * (1 - 2 * slope * correlation + slope**2),
        )
        reaches = [norm.isf((1 - level) / 2) * math.sqrt(v) / (share * (1 - share)) for v in variances]
        of_population, of_topics = (float(expit(at + reach) - expit(at - reach)) for reach in reaches)
        found.append((n, of_population, of_topics))
    return found


def plan_labels(
    frame: pd.DataFrame,
    width: float,
    group: str = "system",
    n_topics: int | None = None,
    confidence: float = CONFIDENCE,
    level: float = LEVEL,
    seed: int = 0,
    estimate: dict[str, Any] | None = None,
) -> pd.DataFrame:
    """Labels and judged topics that give `correct_share` of each system an interval of this width.

    `frame` has a pilot's outcomes, one row per topic and group. Returns [group, share, n, kind, correlation, labels,
    labels_upper]. kind `alone` is the classical interval, of human labels or verdicts. `judge` has human labels of
    some, verdicts of all `n_topics`, where the pilot has human labels. `predictor` has verdicts of some, predictions of
    all, by a predictor of the pilot that did not see the topic; `estimate` are the arguments of `cross_fit`. n_topics
    are by default those of the pilot that count in shares of classes. labels_upper is enough with this confidence each
    for the share and for the correlation. It comes from the limit of the share on the side of one half (Wilson) and the
    lower limit of the correlation (`correlation_lower`). inf where all n_topics are too few. Where the pilot has
    clusters, variances are larger by their design effect. Kind `predictor` has `widths` of samples (`planned_widths`).
    No rows where the pilot has no verdict. Raises ConfigError for values out of range, DataError for a system with
    fewer than two judged topics.
    """
    require_fraction("width", width)
    require_fraction("confidence", confidence)
    if n_topics is not None:
        require_count("topics", n_topics, 2)
    rows: list[tuple[object, ...]] = []
    for name, part in with_classes(frame).groupby(group, sort=True):
        seen = asked(part)
        if not (labels_of(seen) > 0).any():
            continue
        if len(seen) < 2:
            raise DataError(f"pilot: {len(seen)} judged topic(s) of {name}; planning takes at least 2")
        total = n_topics or len(part)
        right = (labels_of(seen) == RIGHT).astype(float)
        cases: list[tuple[str, np.ndarray, np.ndarray | None]] = [("alone", right, None)]
        if "human_label" in seen and seen["human_label"].notna().sum() > 1 and not has_probabilities(seen):
            people = seen["human_label"].notna().to_numpy()
            cases.append(("judge", (seen.loc[people, "human_label"] == RIGHT).to_numpy(dtype=float), right[people]))
        predicted = _predicted(part, estimate or {}, seed)
        if predicted is not None:
            cases.append(("predictor", right, predicted))
        design = design_effect(right, clusters_by_topic(seen, seen["qid"].to_numpy()))
        rows += [(name, *_needed(kind, y, f, width, total, confidence, level, design)) for kind, y, f in cases]
    columns = [group, "kind", "share", "n", "correlation", "labels", "labels_upper", "widths"]
    return pd.DataFrame(rows, columns=columns)


def design_effect(values: np.ndarray, clusters: np.ndarray | None) -> float:
    """The variance of the mean of [topics] over clusters, relative to independent topics (Kish 1965); at least 1."""
    spread = float(values.var(ddof=1)) / len(values)
    if clusters is None or spread <= 0 or len(np.unique(clusters)) < 2:
        return 1.0
    added = (values - values.mean())[:, None] / len(values)
    return max(float(cluster_variance(added, clusters)[0]) / spread, 1.0)


def correlation_lower(y: np.ndarray, f: np.ndarray, confidence: float = CONFIDENCE) -> float:
    """A lower confidence limit, at least 0, of the correlation of y and f.

    On the scale of Fisher's z, its variance is the larger of 1 / (n - 3) and the variance that the rows' influence on
    the correlation has. For yes-or-no values the former is too small.
    """
    from scipy.stats import norm

    rho = float(np.corrcoef(y, f)[0, 1])
    u, v = (y - y.mean()) / y.std(), (f - f.mean()) / f.std()
    influence = u * v - rho * (u**2 + v**2) / 2
    variance = max(float(influence.var()) / (1 - rho**2) ** 2 / len(y), 1 / (len(y) - 3))
    return max(math.tanh(math.atanh(rho) - float(norm.ppf(confidence)) * math.sqrt(variance)), 0.0)


def _needed(
    kind: str,
    y: np.ndarray,
    f: np.ndarray | None,
    width: float,
    total: int,
    confidence: float,
    level: float,
    design: float,
) -> tuple[str, float, int, float, float, float, list[tuple[int, float, float]]]:
    n, share = len(y), float(y.mean())
    lo, hi = wilson_interval(share, n / design, 2 * confidence - 1) if confidence > 0.5 else (share, share)
    # A share of 0 or 1 has no variance to plan with: half a topic is taken to differ.
    inside = min(max(share, 0.5 / n), 1 - 0.5 / n)
    careful = min(max(0.5, lo), hi)
    careful = min(max(careful, 0.5 / n), 1 - 0.5 / n)
    if f is None:
        alone = tuple(labels_for_width(p, width, level, design=design) for p in (inside, careful))
        return (kind, share, n, math.nan, alone[0], alone[1], [])
    spread_y, spread_f = float(y.std()), float(f.std())
    rho = float(np.corrcoef(y, f)[0, 1]) if spread_y > 0 and spread_f > 0 else 0.0
    ratio = spread_y / spread_f if spread_f > 0 else math.inf
    least = correlation_lower(y, f, confidence) if 0 < rho < 1 and n > 3 else 0.0
    # At least 1e-9, so that n_topics is the bound though the prediction says nothing.
    seen = labels_for_width(inside, width, level, max(rho, 1e-9), ratio, total, design)
    sure = labels_for_width(careful, width, level, max(least, 1e-9), ratio, total, design)
    widths = planned_widths(inside, rho, ratio, total, level, design) if kind == "predictor" else []
    return (kind, share, n, rho, seen, sure, widths)


def _predicted(part: pd.DataFrame, estimate: dict[str, Any], seed: int) -> np.ndarray | None:
    """P(5) of the judged rows from predictors fitted on other topics; None with too few verdicts."""
    if "p5" in part and part["p5"].notna().all():
        return asked(part)["p5"].to_numpy(dtype=float)
    if "judged" not in part:
        part = part.assign(judged=True)
    if part.loc[part["label"].notna(), "qid"].nunique() < 2:
        return None
    found = cross_fit(part, **estimate, seed=seed)
    return found.loc[found["judged"].astype(bool), "p5"].to_numpy(dtype=float)
