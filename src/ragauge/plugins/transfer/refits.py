"""Predictions from fits without the group and the topic, and the fits' derivatives by topic.

A percentile bootstrap that fits again would take thousands of fits. The fits are maxima of a likelihood. So a topic
that counts once more moves their coefficients by the inverse of the information times its score, to first order (the
infinitesimal jackknife: Jaeckel 1972; Giordano et al. 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.estimate.outcomes import CLASSES, class_indicators, cluster_columns, labels_of, topic_folds
from ragauge.estimate.portable import PortablePredictor, portable
from ragauge.estimate.predictor import fit_predictor, row_weights

FOLDS = 5
_MANY_ROWS = 50_000
_BINS = 1000  # of the IR score in the fits of many rows; a bin has the mean score of its rows
_RIDGE = 1e-6  # per intercept: a constant added to all of them changes no probability


def judged_rows(frame: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """The rows with a label, their classes (float [rows, 5], one 1 per row) and their weights (float [rows])."""
    labels = labels_of(frame)
    known = labels > 0
    weights = row_weights(frame)
    weights = np.ones(int(known.sum())) if weights is None else weights[known]
    return frame.loc[known].reset_index(drop=True), class_indicators(labels[known]), weights


@dataclass(frozen=True)
class Options:
    """The settings of the fit: the arguments of `fit_predictor`."""

    features: Sequence[str]
    spline: bool
    calibrate: bool
    penalty: float
    seed: int


@dataclass(frozen=True)
class LeftOut:
    """`predicted` and `base` [rows, 5]: class probabilities by the predictor and by the shares of its rows.

    `moved` and `moved_base` [topics, cells, 5]: the change, through the fits, of a cell's predicted share if a topic
    counts once more; they sum to 0 over the topics.
    """

    predicted: np.ndarray
    base: np.ndarray
    moved: np.ndarray
    moved_base: np.ndarray


def predict_left_out(
    rows: pd.DataFrame,
    truth: np.ndarray,
    weights: np.ndarray,
    topics: np.ndarray,
    groups: np.ndarray,
    cells: np.ndarray,
    options: Options,
) -> LeftOut:
    """Predicts every row by a model of the other groups' rows of other topics (five folds of topics).

    `truth` [rows, 5] are class indicators; topics, groups and cells [rows] are numbered from 0, and a cell
    holds rows of one group only. Where the other groups have no other topic, theirs of the fold stay in.
    """
    n_topics, n_cells, k = topics.max() + 1, cells.max() + 1, len(CLASSES)
    fold = folds_of(topics, options.seed)
    samples = Samples(rows, weights, fold, options)
    cell_size = np.bincount(cells, weights, minlength=n_cells)
    predicted, base = np.empty_like(truth), np.empty_like(truth)
    moved, moved_base = np.zeros((n_topics, n_cells, k)), np.zeros((n_topics, n_cells, k))
    for group in range(groups.max() + 1):
        for number in range(fold.max() + 1):
            out = (groups == group) & (fold == number)
            if not out.any():
                continue
            train = (groups != group) & (fold != number)
            train = train if train.any() else groups != group
            sample = samples.of(train)
            fitted = fit_predictor(
                sample, options.features, options.spline, options.calibrate, options.penalty, options.seed
            )
            predicted[out] = fitted.predict_proba(rows.loc[out])
            base[out] = np.average(truth[train], axis=0, weights=weights[train])
            here = np.unique(cells[out])
            in_cell = (cells[out][:, None] == here[None, :]) * (weights[out][:, None] / cell_size[here])
            fit = _Fit(portable(fitted.model, {}), sample, options.penalty)
            step = fit.steps(rows.loc[out], in_cell)
            scores = fit.scores(rows.loc[train], truth[train], weights[train], topics[train], n_topics)
            moved[:, here] += np.einsum("tp,pcq->tcq", scores, step)
            gap = (truth[train] - base[out][0]) * weights[train][:, None] / weights[train].sum()
            by_topic = np.column_stack([np.bincount(topics[train], g, minlength=n_topics) for g in gap.T])
            moved_base[:, here] += by_topic[:, None, :] * in_cell.sum(axis=0)[None, :, None]
    # The penalty keeps the scores from summing to 0.
    return LeftOut(predicted, base, moved - moved.mean(axis=0), moved_base - moved_base.mean(axis=0))


def folds_of(topics: np.ndarray, seed: int) -> np.ndarray:
    """int64 [rows]: the fold of every row, from 0, by its topic [rows]."""
    return topic_folds(topics, int(topics.max()) + 1, FOLDS, seed)


class Samples:
    """The rows of a fit. For many rows with the IR score alone: the counts of its bins, by fold and class."""

    def __init__(self, rows: pd.DataFrame, weights: np.ndarray, fold: np.ndarray, options: Options) -> None:
        self.rows = rows[list(dict.fromkeys(["qid", "label", *options.features, *cluster_columns(rows)]))]
        if "weight" in rows:
            self.rows = self.rows.assign(weight=weights)
        self.binned = len(rows) > _MANY_ROWS and tuple(options.features) == ("ir_score",)
        if self.binned:
            score = rows["ir_score"].to_numpy(dtype=float)
            at = np.minimum((score * _BINS).astype(np.int64), _BINS - 1)
            n = np.bincount(at, weights, minlength=_BINS)
            sums = np.bincount(at, weights * score, minlength=_BINS)
            self.score = np.divide(sums, n, out=np.zeros(_BINS), where=n > 0)
            label = rows["label"].to_numpy(dtype=np.int64)
            # Folds of topics stand for the topics: calibration is nested by them.
            folds = fold if options.calibrate else np.zeros_like(fold)
            self.cell = (folds * _BINS + at) * len(CLASSES) + label - 1
            self.weights = weights

    def of(self, train: np.ndarray) -> pd.DataFrame:
        """Builds it from [qid, ir_score, label, weight] and further features, of the rows where `train` is true."""
        if not self.binned:
            return self.rows.loc[train]
        weight = np.bincount(self.cell[train], self.weights[train])
        there = np.flatnonzero(weight)
        bins, label = np.divmod(there, len(CLASSES))
        fold, at = np.divmod(bins, _BINS)
        return pd.DataFrame({"qid": fold, "ir_score": self.score[at], "label": label + 1, "weight": weight[there]})


class _Fit:
    """Scores and information of one fit. They ignore an isotonic map of P(5), if any, which is assumed to add as much
    noise to a mean share as the regression would.
    """

    def __init__(self, model: PortablePredictor, sample: pd.DataFrame, penalty: float) -> None:
        self.model = model
        self.at = np.asarray(model.classes) - 1
        x, p = self._columns(sample)
        weight = sample["weight"].to_numpy(dtype=float) if "weight" in sample else np.ones(len(sample))
        n_classes, m = p.shape[1], x.shape[1]
        information = np.empty((n_classes, m, n_classes, m))
        for a in range(n_classes):
            for b in range(n_classes):
                spread = weight * p[:, a] * ((a == b) - p[:, b])
                information[a, :, b, :] = (x * spread[:, None]).T @ x
        # Two classes have one row of coefficients, w = ±w / 2 of the two rows here.
        ridge = np.full((n_classes, m), penalty * (2.0 if n_classes == 2 else 1.0))
        ridge[:, 0] = _RIDGE
        self.information = information.reshape(n_classes * m, n_classes * m) + np.diag(ridge.ravel())

    def _columns(self, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Columns with a constant before them [rows, m], and class probabilities [rows, classes]."""
        columns = self.model.columns(frame)
        return np.column_stack([np.ones(len(frame)), columns]), self.model.probabilities(columns)

    def steps(self, rows: pd.DataFrame, in_cell: np.ndarray) -> np.ndarray:
        """float64 [coefficients, cells, 5]: change per unit of score of Σ in_cell · P(class) over the rows.

        `in_cell` is [rows, cells].
        """
        x, p = self._columns(rows)
        n_classes, m = p.shape[1], x.shape[1]
        slopes = np.zeros((n_classes * m, in_cell.shape[1], len(CLASSES)))
        for cell in range(in_cell.shape[1]):
            weighted = x * in_cell[:, cell][:, None]
            for c in range(n_classes):
                of_class = p[:, [c]] * ((np.arange(n_classes) == c) - p)
                slopes[:, cell, self.at[c]] = (of_class.T @ weighted).ravel()
        shape = slopes.shape
        return np.linalg.solve(self.information, slopes.reshape(n_classes * m, -1)).reshape(shape)

    def scores(
        self,
        rows: pd.DataFrame,
        truth: np.ndarray,
        weights: np.ndarray,
        topics: np.ndarray,
        n_topics: int,
    ) -> np.ndarray:
        """float64 [topics, coefficients]: the derivative of each topic's log-likelihood."""
        x, p = self._columns(rows)
        gap = (truth[:, self.at] - p) * weights[:, None]
        found = [
            np.bincount(topics, gap[:, c] * x[:, j], minlength=n_topics)
            for c in range(p.shape[1])
            for j in range(x.shape[1])
        ]
        return np.column_stack(found)
