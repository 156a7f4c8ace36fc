"""Scores predicted probabilities against outcomes, for any topic weights: log loss, AUC, calibration."""

from __future__ import annotations

import numpy as np
import pandas as pd

CLIP = 1e-6  # a probability under it counts as it in the log loss, so that one row costs at most 13.8
ECE_BINS = 10
_NEWTON_STEPS = 50


def log_loss(probabilities: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Negative natural log of each row's class probability, clipped to [1e-6, 1], float64 [rows]."""
    return -np.log(np.clip(probabilities[np.arange(len(y)), y - 1], CLIP, 1))


class Auc:
    """The area under the ROC curve for any weights of the topics, from one sort.

    The share of (positive, negative) pairs of one fold in which the positive one scores higher, ties counting
    half (Mann-Whitney), a pair by the product of its rows' weights. Pairs of two folds are left out, since their scores
    come from two models. The model that saw more positive rows scores higher, and the fold left out then has fewer of
    them.
    """

    def __init__(
        self,
        scores: np.ndarray,
        positive: np.ndarray,
        topics: np.ndarray,
        folds: np.ndarray | None = None,
        row_weight: np.ndarray | None = None,
    ) -> None:
        folds = np.zeros(len(scores), dtype=int) if folds is None else folds
        order = np.lexsort((scores, folds))
        ranked, fold = scores[order], folds[order]
        new_fold = fold[1:] != fold[:-1]
        self.last = np.flatnonzero(np.append((ranked[1:] != ranked[:-1]) | new_fold, True))
        self.ends = np.flatnonzero(np.isin(self.last, np.flatnonzero(np.append(new_fold, True))))
        self.topic = topics[order]
        self.positive = positive[order].astype(np.int32)
        self.row_weight = None if row_weight is None else row_weight[order]

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        """float64 [replicates]; NaN where no fold of a resample has both positive and negative rows."""
        drawn = weights[:, self.topic]
        if self.row_weight is not None:
            drawn = drawn * self.row_weight
        positive = np.cumsum(drawn * self.positive, axis=1)[:, self.last].astype(float)
        negative = np.cumsum(drawn, axis=1)[:, self.last] - positive
        # Rows of the folds before do not count: their totals are taken off.
        starts, sizes = np.append(0, self.ends[:-1] + 1), np.diff(np.append(-1, self.ends))
        before = np.zeros((2, len(drawn), len(starts)))
        before[:, :, 1:] = np.stack([positive, negative])[:, :, self.ends[:-1]]
        of_fold = np.stack([positive, negative])[:, :, self.ends] - before
        below = np.concatenate([np.zeros((len(drawn), 1)), negative[:, :-1]], axis=1)
        less = np.repeat(before[1], sizes, axis=1)
        won = (np.diff(positive, axis=1, prepend=0.0) * ((below + negative) / 2 - less)).sum(axis=1)
        pairs = (of_fold[0] * of_fold[1]).sum(axis=1)
        return np.divide(won, pairs, out=np.full(len(won), np.nan), where=pairs > 0)


class CalibrationError:
    """Calibration error: distance of predicted probabilities from outcomes, corrected for noise.

    In ten bins of equal width, Σ_b N_b / N · (observed_b - predicted_b)² is too high by the noise of the
    observed shares. Only the products of two different topics in its square are kept, which estimates the same of the
    population without bias (Ferro & Fricker 2012 and Kumar, Liang & Ma 2019, here over topics in place of rows). The
    measure is the root, a typical distance in probability, with the sign of the number under the root. So it lies
    around 0, not above it, under noise alone.
    """

    def __init__(
        self,
        predicted: np.ndarray,
        happened: np.ndarray,
        topics: np.ndarray,
        n_topics: int,
        row_weight: np.ndarray,
    ) -> None:
        where = topics * ECE_BINS + bins(predicted)
        size = n_topics * ECE_BINS
        self.n = np.bincount(where, row_weight, minlength=size).reshape(n_topics, ECE_BINS)
        gap = np.bincount(where, row_weight * (happened - predicted), minlength=size)
        self.gap = gap.reshape(n_topics, ECE_BINS)
        topics_in = (self.n > 0).sum(axis=0)
        self.scale = np.where(topics_in > 1, topics_in / np.maximum(topics_in - 1, 1), 0.0)

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        """float64 [replicates], in [-1, 1]."""
        n = weights @ self.n
        pairs = (weights @ self.gap) ** 2 - weights.astype(float) ** 2 @ self.gap**2
        of_bin = np.divide(pairs * self.scale, n, out=np.zeros_like(pairs), where=n > 0)
        squared = of_bin.sum(axis=1) / n.sum(axis=1)
        return np.asarray(np.sign(squared) * np.sqrt(np.abs(squared)))


class CalibrationLine:
    """Slope and intercept of calibration: logistic regressions of outcomes on the logit of P (Cox 1958).

    slope: 1 where probabilities are as far apart as they should be, under 1 where they are too far apart
    (overfitting). Every fold has an intercept of its own, since pairs of two folds compare two models; NaN
    where no fold has both outcomes, or the slope has no finite value. intercept: 0 where the mean is right,
    above 0 where the event is likelier than predicted, in logits, with the slope held at 1.
    Probabilities are clipped to [1e-6, 1 - 1e-6].
    """

    def __init__(
        self,
        predicted: np.ndarray,
        happened: np.ndarray,
        topics: np.ndarray,
        n_topics: int,
        row_weight: np.ndarray,
        folds: np.ndarray,
    ) -> None:
        p = np.clip(predicted, CLIP, 1 - CLIP)
        logit = np.log(p) - np.log1p(-p)
        fold_of = folds[:, None] == np.unique(folds)[None, :]
        both = (fold_of & happened[:, None]).any(axis=0) & (fold_of & ~happened[:, None]).any(axis=0)
        used = fold_of[:, both].any(axis=1)
        within = np.column_stack([fold_of[:, both], logit])[used].astype(float)
        nothing = np.zeros(len(p))
        self.slope = _Logistic(within, nothing[used], happened[used], topics[used], n_topics, row_weight[used])
        ones = np.ones((len(p), 1))
        self.intercept = _Logistic(ones, logit, happened, topics, n_topics, row_weight)

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        """float64 [replicates, 2]: slope and intercept; of a resample one Newton step from the estimate."""
        return np.column_stack([self.slope(weights)[:, -1], self.intercept(weights)[:, -1]])


class _Logistic:
    """Coefficients of a logistic regression on `columns` [rows, m] without penalty, for weights of topics.

    NaN where they have no finite value.
    """

    def __init__(
        self,
        columns: np.ndarray,
        offset: np.ndarray,
        happened: np.ndarray,
        topics: np.ndarray,
        n_topics: int,
        row_weight: np.ndarray,
    ) -> None:
        m = columns.shape[1]
        self.value = np.full(m, np.nan)
        self.score, self.information = np.zeros((n_topics, m)), np.zeros((n_topics, m * m))
        found = _newton(columns, offset, happened, row_weight)
        if found is None:
            return
        self.value = found
        p = _expit(columns @ found + offset)
        for i in range(m):
            rows = row_weight * (happened - p) * columns[:, i]
            self.score[:, i] = np.bincount(topics, rows, minlength=n_topics)
            for j in range(m):
                rows = row_weight * p * (1 - p) * columns[:, i] * columns[:, j]
                self.information[:, i * m + j] = np.bincount(topics, rows, minlength=n_topics)

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        """float64 [replicates, m]: one Newton step from the coefficients of all topics."""
        m = len(self.value)
        if np.isnan(self.value).any():
            return np.full((len(weights), m), np.nan)
        information = (weights @ self.information).reshape(-1, m, m)
        step = np.linalg.pinv(information) @ (weights @ self.score)[:, :, None]
        return np.asarray(self.value + step[:, :, 0])


def _newton(columns: np.ndarray, offset: np.ndarray, happened: np.ndarray, weight: np.ndarray) -> np.ndarray | None:
    """The maximum-likelihood coefficients; None if they are infinite or undetermined."""
    found = np.zeros(columns.shape[1])
    for _ in range(_NEWTON_STEPS):
        p = _expit(columns @ found + offset)
        information = (columns * (weight * p * (1 - p))[:, None]).T @ columns
        if not np.linalg.cond(information) < 1e12:
            return None
        step = np.linalg.solve(information, columns.T @ (weight * (happened - p)))
        found += np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            return found
    return None


def _expit(x: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    return np.asarray(expit(x))


def bins(probabilities: np.ndarray) -> np.ndarray:
    """Index of the equal-width bin, 0..9, int64 [rows]; a probability of 1 is in the last."""
    return np.minimum((probabilities * ECE_BINS).astype(np.int64), ECE_BINS - 1)


def reliability_curve(predicted: np.ndarray, happened: np.ndarray, weights: np.ndarray | None = None) -> pd.DataFrame:
    """Predicted probability against observed frequency in ten bins of equal width.

    Returns [lo, hi, predicted, observed, n], a row per bin, in order. predicted and observed are means over the bin's n
    rows, by their weights where there are any, NaN where it has none.
    """
    at = bins(np.asarray(predicted, dtype=float))
    n = np.bincount(at, minlength=ECE_BINS)
    weight = np.ones(len(at)) if weights is None else weights
    total = np.bincount(at, weight, minlength=ECE_BINS)
    edges = np.linspace(0, 1, ECE_BINS + 1)

    def means(values: np.ndarray) -> np.ndarray:
        sums = np.bincount(at, np.asarray(values, dtype=float) * weight, minlength=ECE_BINS)
        return np.divide(sums, total, out=np.full(ECE_BINS, np.nan), where=n > 0)

    return pd.DataFrame(
        {
            "lo": edges[:-1],
            "hi": edges[1:],
            "predicted": means(predicted),
            "observed": means(happened),
            "n": n,
        }
    )
