"""Agreement of a judge with human labels, and with itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.estimate.intervals import (
    LEVEL,
    Estimate,
    bounded_mean,
    effective_topics,
    paired_share_interval,
    units_among,
    wilson_interval,
)
from ragauge.estimate.outcomes import CLASSES, GROUP_COLUMNS, check_outcomes, cluster_columns, clusters_of


@dataclass(frozen=True)
class Agreement:
    """A judge against people: Cohen's kappa and the share of equal labels, with intervals over topics.

    Both are over the rows that have both labels; `n_missing` human labels met no verdict. kappa is NaN where
    chance alone would agree always. `confusion` counts rows: human class down, judge class across, `missing`
    last.
    """

    kappa: Estimate
    agreement: Estimate
    confusion: pd.DataFrame
    n: int
    n_missing: int


def judge_agreement(
    verdicts: pd.DataFrame,
    human: pd.DataFrame,
    keys: Sequence[str] | None = None,
    level: float = LEVEL,
) -> Agreement:
    """Agreement of a judge's `label` with the human `label`, joined by keys.

    `keys` are by default `qid` and those of retriever, n_tokens, dataset, chunker, llm that `human` has;
    `verdicts` must have them and one row for each row of `human`. Raises DataError for a human label that is
    missing, repeated or without a row of `verdicts`.
    """
    by = list(keys) if keys is not None else [c for c in ("qid", *GROUP_COLUMNS) if c in human.columns]
    for frame in (human, verdicts):
        check_outcomes(frame, (), by)
    sides = {"human labels": human, "verdicts": verdicts}
    for name, frame in sides.items():
        twice = frame.duplicated(by)
        if twice.any():
            raise DataError(f"{name}: {dict(frame.loc[twice, by].iloc[0])} occurs twice; keys are {', '.join(by)}")
    if human["label"].isna().any():
        raise DataError(f"human labels: no label for {dict(human.loc[human['label'].isna(), by].iloc[0])}")
    both = human[[*by, "label"]].merge(
        verdicts[[*by, "label", *cluster_columns(verdicts)]],
        on=by,
        how="left",
        suffixes=("_human", "_judge"),
        indicator="found",
    )
    lost = both["found"] != "both"
    if lost.any():
        raise DataError(f"human labels: no row of the verdicts for {dict(both.loc[lost, by].iloc[0])}")
    people = both["label_human"].to_numpy(dtype=np.int64)
    judge = both["label_judge"].astype("Int64").fillna(0).to_numpy(dtype=np.int64)
    known = judge > 0

    table = np.zeros((len(CLASSES), len(CLASSES) + 1), dtype=int)
    np.add.at(table, (people - 1, np.where(known, judge - 1, len(CLASSES))), 1)
    confusion = pd.DataFrame(
        table,
        index=pd.Index(CLASSES, name="human"),
        columns=pd.Index([*map(str, CLASSES), "missing"], name="judge"),
    )
    qids, clusters = both.loc[known, "qid"], clusters_of(both[known])
    kappa = kappa_estimate(people[known], judge[known], qids, level, clusters)
    equal = bounded_mean(people[known] == judge[known], qids, level, clusters)
    return Agreement(kappa, equal, confusion, int(known.sum()), int((~known).sum()))


@dataclass(frozen=True)
class Stability:
    """Agreement of a judge with itself when asked again, with intervals over topics.

    agreement, kappa: share of equal labels and Cohen's kappa of the first verdict and of the same request
    once more: what they lack to 1 is noise. Where the candidates were also judged in another order, agreement_other and
    kappa_other compare the first verdict with that one: noise and position together. position_effect is agreement less
    agreement_other: the share of labels that the order changes beyond noise. They are None where there is no other
    order. `n_pairs` answers of `n_topics` topics have all of the labels. A kappa is NaN where chance alone would agree
    always.
    """

    agreement: Estimate
    kappa: Estimate
    agreement_other: Estimate | None
    kappa_other: Estimate | None
    position_effect: Estimate | None
    n_pairs: int
    n_topics: int


def judge_stability(labels: pd.DataFrame, level: float = LEVEL) -> Stability | None:
    """The stability of a judge's labels; None without an answer that has all of them.

    `labels` has a row per answer that was judged again: `qid`, `first`, `same` (the first request once more),
    and where candidates were moved `other`; classes 1..5 or missing. Answers that miss one of the labels are
    left out, so that the position effect is the difference of the two agreements. The intervals: shares as in
    `bounded_mean`, their difference as in `paired_share_interval`, kappa as in `judge_agreement`. Raises
    DataError for a label that is no class.
    """
    names = ["first", "same", *(["other"] if "other" in labels else [])]
    for name in names:
        check_outcomes(labels[["qid", name]].rename(columns={name: "label"}), ())
    known = labels.dropna(subset=names)
    if known.empty:
        return None
    qids, clusters = known["qid"], clusters_of(known)
    first, *again = (known[name].to_numpy(dtype=np.int64) for name in names)
    equal = [first == second for second in again]
    shares = [bounded_mean(e, qids, level, clusters) for e in equal]
    kappas = [kappa_estimate(first, second, qids, level, clusters) for second in again]
    moved = len(again) > 1
    effect = None
    if moved:
        effect = paired_share_interval(equal[0].astype(float) - equal[1], qids, level, clusters=clusters)
    return Stability(
        shares[0],
        kappas[0],
        shares[1] if moved else None,
        kappas[1] if moved else None,
        effect,
        len(known),
        qids.nunique(),
    )


def kappa_estimate(
    first: np.ndarray, second: np.ndarray, qids: pd.Series, level: float, clusters: pd.Series | None = None
) -> Estimate:
    """Cohen's kappa of two labellings (classes 1..5) of the same rows, with an interval over topics.

    Kappa is 1 - q / Q, q being the share of rows with different labels and Q what chance would make of it. The
    interval is Wilson's of q over Q, at the effective topics of what a row adds to q - (1 - kappa) Q. Where most rows
    have one class, Q is not well known. The interval then reaches as far as that of one topic more, on which both give
    the second most frequent class. `clusters` as in `bounded_mean`.
    """
    units, n, n_topics = units_among(len(first), qids, clusters)
    cells = np.zeros((n, len(CLASSES) ** 2))
    np.add.at(cells, (units, (first - 1) * len(CLASSES) + second - 1), 1)
    value, *limits = _kappa_limits(cells, n_topics, level)
    if n < 2 or np.isnan(value):
        return Estimate(value, float("nan"), float("nan"), n_topics, level)
    given = np.bincount(first, minlength=6) + np.bincount(second, minlength=6)
    another = np.zeros(cells.shape[1])
    another[(np.argsort(-given, kind="stable")[1] - 1) * (len(CLASSES) + 1)] = cells.sum() / n_topics
    limits += _kappa_limits(np.vstack([cells, another]), n_topics + 1, level)[1:]
    return Estimate(value, max(min(*limits, value), -1.0), max(*limits, value), n_topics, level)


def _kappa_limits(cells: np.ndarray, n_topics: int, level: float) -> tuple[float, float, float]:
    """Cohen's kappa of [topics, 25] counts (or of clusters of `n_topics`) with limits; NaN if chance agrees always."""
    shares = (cells.sum(axis=0) / max(cells.sum(), 1)).reshape(len(CLASSES), len(CLASSES))
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    chance = float(rows @ columns)
    if not 1 - chance > 1e-12:
        return (float("nan"),) * 3
    differ = 1 - np.eye(len(CLASSES))
    ratio = float((shares * differ).sum()) / (1 - chance)
    moves = differ + ratio * (columns[:, None] + rows[None, :] - 2 * chance)
    of_topic = cells.sum(axis=1)
    n = effective_topics(cells @ differ.ravel(), of_topic, cells @ moves.ravel(), n_topics, level)
    lo, hi = wilson_interval(ratio * (1 - chance), n, level)
    return 1 - ratio, 1 - hi / (1 - chance), 1 - lo / (1 - chance)
