"""The frame of outcomes that every estimate reads, one per row: its check and class shares.

Columns: `qid`, `ir_score` in [0, 1] (missing where a topic has no evidence), and `label` (judge class 1..5 or missing).
Pooled outcomes add the columns that distinguish rows of a topic (`retriever`, `n_tokens`, `dataset`, `chunker`, `llm`).
A missing label is left out of fits and counted; shares are over all rows. Where only a sample of topics was judged,
`judged` (bool), `stratum` and `p1`..`p5` hold which and the prediction (see `ragauge.estimate.ppi`), `sample_target`
what the estimates are about. `earlier_label`, where there is one, is the class that the answer of an earlier run got.
`unanswerable` marks topics whose right answer is that information is lacking. `topic_cluster` names the cluster of a
topic where topics are no independent observations, such as the document that several questions are about. Whole
clusters are then resampled, flipped and put into folds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import NO_REFERENCE, NOT_SAMPLED
from ragauge.contract.errors import DataError
from ragauge.contract.frames import HALLUCINATIONS, JUDGE_CLASSES
from ragauge.contract.metrics import LEAST_JUDGED
from ragauge.contract.outcomes import CLUSTER, TARGET

CLASSES = np.array(list(JUDGE_CLASSES))
LACK, RIGHT = 1, 5
HEADLINE_SHARES = ("correct_share", "hallucination_share")
# What shares and differences of a sample are about: the population that the topics come from, or these topics.
TARGETS = POPULATION, TOPICS = ("population", "topics")
GROUP_COLUMNS = ("system", "retriever", "n_tokens", "dataset", "chunker", "llm")


def check_outcomes(
    frame: pd.DataFrame,
    numbers: Sequence[str] = ("ir_score",),
    keys: Sequence[str] = ("qid",),
    labels: bool = True,
    may_lack: Sequence[str] = (),
) -> pd.DataFrame:
    """The frame itself, if its keys have values, its numbers are finite and its labels are 1..5 or missing.

    Numbers in `may_lack` may be missing. `ir_score` among the numbers must lie in [0, 1]. Raises DataError
    naming the column and the first bad row.
    """
    columns = [*keys, *numbers, *(["label"] if labels else [])]
    absent = [column for column in columns if column not in frame.columns]
    if absent:
        raise DataError(
            f"outcomes: column(s) {', '.join(absent)} missing; there are {', '.join(map(str, frame.columns))}"
        )
    for column in columns:
        values = frame[column]
        if column in keys:
            bad, expected = values.isna().to_numpy(), "a value"
        elif column == "label":
            bad = values.notna().to_numpy() & ~values.isin(list(JUDGE_CLASSES)).to_numpy()
            expected = "a judge class 1..5 or nothing"
        elif not pd.api.types.is_numeric_dtype(values.dtype):
            raise DataError(f"outcomes: column {column} has dtype {values.dtype}; expected numbers")
        else:
            x = values.to_numpy(dtype=float, na_value=np.nan)
            bad, expected = ~np.isfinite(x), "a finite number"
            if column == "ir_score":
                bad, expected = bad | (x < 0) | (x > 1), "a number in [0, 1]"
            if column in may_lack:
                bad &= ~np.isnan(x)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            who = ", ".join(f"{key}={frame[key].iloc[row]!r}" for key in keys)
            raise DataError(f"outcomes: column {column}, row {row} ({who}): {values.iloc[row]} is not {expected}")
    return frame


def with_classes(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of class shares: answerable topics with a reference to judge by."""
    kept = pd.Series(True, index=frame.index)
    if "unanswerable" in frame:
        kept &= ~frame["unanswerable"].eq(True)
    if "judge_status" in frame:
        kept &= frame["judge_status"].ne(NO_REFERENCE).fillna(True)
    return frame if kept.all() else frame[kept]


def scored(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with an IR score."""
    kept = frame["ir_score"].notna()
    return frame if kept.all() else frame[kept]


def asked(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows submitted to a judge: all except topics outside the sample.

    Where rows stand for different numbers of rows, these have a column `weight` (see `weights_of`): the number of rows
    of the row's stratum in its job, over the number of them that were judged, divided by the mean of these ratios. The
    columns of GROUP_COLUMNS identify a job: pooled jobs may have judged all topics, or different samples.
    """
    if "judged" not in frame:
        return frame
    judged = frame["judged"].to_numpy(dtype=bool)
    rows = frame[judged]
    cell = numbered(frame, (*GROUP_COLUMNS, "stratum"))
    if rows.empty or judged.all() or cell is None:
        return rows
    stands_for = np.bincount(cell) / np.maximum(np.bincount(cell, judged), 1)
    weight = stands_for[cell[judged]]
    return rows if np.ptp(weight) < 1e-12 else rows.assign(weight=weight / weight.mean())


def numbered(frame: pd.DataFrame, columns: Sequence[str]) -> np.ndarray | None:
    """Group number of each row by the existing ones of the columns, int64 [rows] from 0; None without any."""
    by = [column for column in columns if column in frame]
    return frame.groupby(by, dropna=False, observed=True, sort=False).ngroup().to_numpy() if by else None


def missing_share(frame: pd.DataFrame, column: str) -> float:
    """The share of rows without a value among those with a value or an answer (see `llm.sample`)."""
    values = frame[column]
    left_out = frame["answer_status"].eq(NOT_SAMPLED) & values.isna() if "answer_status" in frame else False
    return float(values.isna()[~pd.Series(left_out, index=frame.index)].mean())


def of_these_topics(frame: pd.DataFrame) -> bool:
    """Whether estimates from a sample target the frame's topics and not their population."""
    return TARGET in frame and bool(frame[TARGET].eq(TOPICS).all())


def fit_rows(frame: pd.DataFrame, numbers: Sequence[str] = ("ir_score",)) -> pd.DataFrame:
    """The rows for fitting thresholds, zones and predictors: asked about, with all of these numbers."""
    classed = with_classes(frame)
    known = classed[[name for name in numbers if name in classed]].notna().all(axis=1)
    return asked(classed if known.all() else classed[known])


def weights_of(frame: pd.DataFrame) -> np.ndarray:
    """Sampling weight of each row relative to the others, float64 [rows]; 1 without a column `weight`."""
    return frame["weight"].to_numpy(dtype=float) if "weight" in frame else np.ones(len(frame))


def compared_by_class(frame: pd.DataFrame, group: str) -> set[Hashable]:
    """The groups comparable by right answers and hallucinations: with verdicts on at least half of their answers."""
    rows = asked(with_classes(frame))
    known = rows["label"].notna().groupby(rows[group]).mean()
    return set(known.index[known >= LEAST_JUDGED])


def labels_of(frame: pd.DataFrame) -> np.ndarray:
    """Judge class of every row, int64 [rows]; 0 for a missing verdict."""
    return frame["label"].astype("Int64").fillna(0).to_numpy(dtype=np.int64)


def right_of(frame: pd.DataFrame) -> np.ndarray:
    """Whether each answer is right, bool [rows]: class 5, or class 1 for an unanswerable topic."""
    labels = labels_of(frame)
    unanswerable = frame["unanswerable"].eq(True).to_numpy(dtype=bool) if "unanswerable" in frame else False
    return np.asarray(labels == np.where(unanswerable, LACK, RIGHT))


def topic_codes(qids: pd.Series | np.ndarray) -> tuple[np.ndarray, int]:
    """Topic number of each row by sorted qid, int64 [rows] from 0, and the number of topics."""
    codes, names = pd.factorize(np.asarray(qids), sort=True)
    return codes.astype(np.int64), len(names)


def topic_folds(codes: np.ndarray, n_topics: int, folds: int, seed: int) -> np.ndarray:
    """Cross-validation fold of every row, drawn by topic (`topic_codes`) with the seed, int64 [rows].

    There are as many folds as topics where these are fewer than `folds`.
    """
    found: np.ndarray = np.random.default_rng(seed).permutation(n_topics)[codes] % folds
    return found


def clusters_of(frame: pd.DataFrame) -> pd.Series | None:
    """The cluster of every row; None for independent topics."""
    return frame.get(CLUSTER)


def cluster_columns(frame: pd.DataFrame) -> list[str]:
    """The frame's column of clusters, if any, to be kept for an estimate."""
    return [CLUSTER] if CLUSTER in frame else []


def units_of(frame: pd.DataFrame) -> pd.Series:
    """The unit of resampling, sign flips and folds by row: the cluster, else the topic."""
    return frame[CLUSTER] if CLUSTER in frame else frame["qid"]


def clusters_by_topic(frame: pd.DataFrame, qids: pd.Index | np.ndarray) -> np.ndarray | None:
    """Cluster number of these qids, int64 [topics] from 0; None for independent topics."""
    if CLUSTER not in frame:
        return None
    of = frame.drop_duplicates("qid").set_index("qid")[CLUSTER]
    return topic_codes(of.reindex(qids))[0]


def by_cluster(values: np.ndarray, clusters: np.ndarray | None) -> np.ndarray:
    """Sums of values [topics, columns] by cluster, float64 [clusters, columns]; the values themselves for None."""
    if clusters is None:
        return values
    there, codes = np.unique(clusters, return_inverse=True)
    sums = np.zeros((len(there), *values.shape[1:]))
    np.add.at(sums, codes, values)
    return sums


def class_indicators(labels: np.ndarray) -> np.ndarray:
    """One-hot judge classes, float64 [rows, 5]; all 0 for a missing verdict."""
    return (labels[:, None] == CLASSES[None, :]).astype(float)


def share_columns(labels: np.ndarray) -> dict[str, np.ndarray]:
    """The rows that count in each share of `class_shares`, bool [rows] by name; `labels` as in `labels_of`."""
    return {
        **{f"judge_share_{c}": labels == c for c in JUDGE_CLASSES},
        "judge_share_missing": labels == 0,
        "hallucination_share": np.isin(labels, HALLUCINATIONS),
        "correct_share": labels == RIGHT,
    }


def class_shares(frame: pd.DataFrame) -> dict[str, float]:
    """Shares of all rows in [0, 1]: `judge_share_1`..`_5`, `_missing`, `hallucination_share` and `correct_share`.

    Hallucinations are classes 2 and 4, correct answers class 5.

    A missing verdict stays in the denominator. NaN throughout without rows.
    """
    check_outcomes(frame, ())
    n = len(frame)
    columns = share_columns(labels_of(frame))
    return {name: float(counts.sum() / n) if n else float("nan") for name, counts in columns.items()}
