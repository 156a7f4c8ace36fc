"""The share of right answers by labels of another period: Rogan and Gladen's estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.datasets.labels import read_human_labels, require_cells
from ragauge.estimate.intervals import LEVEL, Estimate, cluster_variance
from ragauge.estimate.outcomes import RIGHT, clusters_by_topic, labels_of, topic_codes, with_classes


@dataclass(frozen=True)
class Rate:
    """A share, and its number of independent answers."""

    value: float
    n: float


@dataclass(frozen=True)
class Judge:
    """Sensitivity: the judge's share of right among answers that people call right; specificity: its share of not
    right among the others."""

    sensitivity: Rate
    specificity: Rate
    labels: int


def judge_by(path: Path) -> Judge:
    """The judge on the labelled answers of a sheet, weighted by 1 / probability; answers of one topic are a cluster.

    DataError where the sheet has no verdicts or no label of either kind, and where sensitivity and specificity add up
    to 1 or less: the verdicts then say nothing of the labels.
    """
    rows = read_human_labels(path)
    if not {"label", "judge_class"} <= set(rows):
        raise DataError(f"human_labels_from={path}: columns label and judge_class are needed")
    classes = {*map(str, JUDGE_CLASSES), ""}
    require_cells(path, rows, "judge_class", rows["judge_class"].isin(classes), "a judge class 1..5 or empty")
    rows = rows[rows["label"].notna()]
    weight = 1 / rows["probability"].to_numpy(dtype=float) if "probability" in rows else np.ones(len(rows))
    right, said = rows["label"].eq(RIGHT).to_numpy(dtype=bool), rows["judge_class"].eq(str(RIGHT)).to_numpy()
    if right.all() or not right.any():
        raise DataError(f"human_labels_from={path}: people called {'all' if len(rows) else 'no'} answers alike")
    rates = [
        _rate(known.astype(float)[kind], weight[kind], rows["qid"][kind])
        for kind, known in ((right, said), (~right, ~said))
    ]
    if not sum(rate.value for rate in rates) > 1:
        raise DataError(
            f"human_labels_from={path}: the judge's sensitivity {rates[0].value:.2f} and specificity "
            f"{rates[1].value:.2f} add up to at most 1, so its verdicts say nothing of the labels"
        )
    return Judge(rates[0], rates[1], len(rows))


def _rate(values: np.ndarray, weight: np.ndarray, qids: pd.Series) -> Rate:
    """The weighted mean of yes or no, with the number of answers that matches its variance over topics."""
    share = weight / weight.sum()
    kish = float(1 / (share**2).sum())
    if (values == values[0]).all():  # a weighted sum of ones may be 0.9999999999999999
        return Rate(float(values[0]), kish)
    value = float(share @ values)
    variance = float(cluster_variance((share * (values - value))[:, None], topic_codes(qids)[0])[0])
    return Rate(value, min(value * (1 - value) / variance, kish) if variance > 0 else kish)


def rogan_gladen(judged_right: Rate, judge: Judge, level: float = LEVEL) -> Estimate:
    """The share of right answers from the judged one, p: (p + specificity - 1) / (sensitivity + specificity - 1).

    Rogan & Gladen (1978). The labels tell sensitivity q1 and specificity q0, apart from the answers that are estimated:
    the judge must err alike on both, while the share of right answers may differ. The interval is that of Lee et al.
    (arXiv:2511.21140): with z the normal quantile, p' = (n p + z^2 / 2) / (n + z^2) of n' = n + z^2 answers, and
    q' = (m q + 1) / (m + 2) of m' = m + 2 labels, theta from p', q0', q1', it is theta + d +- z s, where
    s^2 = [p' (1 - p') / n' + (1 - theta)^2 q0' (1 - q0') / m0' + theta^2 q1' (1 - q1') / m1'] / (q0' + q1' - 1)^2 and
    d = 2 z^2 (theta q1' (1 - q1') / m1' - (1 - theta) q0' (1 - q0') / m0'). n, m0, m1 are effective numbers, which
    weights and clusters lower. The whole of [0, 1] where q0' + q1' is at most 1.
    """
    from scipy.special import ndtri

    z, (p, n) = float(ndtri((1 + level) / 2)), (judged_right.value, judged_right.n)
    sides = (judge.specificity, judge.sensitivity)
    slope = sides[0].value + sides[1].value - 1
    value = min(max((p + sides[0].value - 1) / slope, 0.0), 1.0)
    (q0, m0), (q1, m1) = (((side.n * side.value + 1) / (side.n + 2), side.n + 2) for side in sides)
    p, n = (n * p + z**2 / 2) / (n + z**2), n + z**2
    if q0 + q1 <= 1:
        return Estimate(value, 0.0, 1.0, judge.labels, level)
    theta, (v0, v1) = (p + q0 - 1) / (q0 + q1 - 1), (q0 * (1 - q0) / m0, q1 * (1 - q1) / m1)
    shift = 2 * z**2 * (theta * v1 - (1 - theta) * v0)
    reach = z * math.sqrt(p * (1 - p) / n + (1 - theta) ** 2 * v0 + theta**2 * v1) / (q0 + q1 - 1)
    lo, hi = (min(max(theta + shift + side * reach, 0.0), 1.0) for side in (-1, 1))
    return Estimate(value, min(lo, value), max(hi, value), judge.labels, level)


def judged_right(outcomes: pd.DataFrame) -> Rate | None:
    """The share of answers that the judge calls right, over topics or clusters; None without a verdict."""
    rows = with_classes(outcomes)
    if "judged" in rows:
        rows = rows[rows["judged"].astype(bool)]
    if rows.empty or rows["label"].isna().all():
        return None
    said = (labels_of(rows) == RIGHT).astype(float)
    value, n = float(said.mean()), float(len(said))
    clusters = clusters_by_topic(rows, rows["qid"].to_numpy())
    variance = float(cluster_variance(((said - value) / n)[:, None], clusters)[0])
    return Rate(value, min(value * (1 - value) / variance, n) if variance > 0 else n)
