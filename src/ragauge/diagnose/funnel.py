"""The evidence that each step keeps on its way into the context, and the answers given from it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.estimate.intervals import LEVEL, Estimate, bounded_mean, paired_share_interval
from ragauge.estimate.outcomes import asked, clusters_of, labels_of, weights_of, with_classes

# The steps in order; a job has those of its parts.
STEPS: Mapping[str, str] = {
    "corpus": "in the corpus",
    "best_chunk": "in the best chunk",
    "candidates": "among all candidates",
    "reranked": "after reranking",
    "expanded": "after expansion",
    "compressed": "after compression",
    "context": "within N tokens",
}
STANDS = 0.9  # of the measure: from here on an evidence part counts as there
ALL, SOME, NONE = "all", "some", "none"
CLASSES: Mapping[str, tuple[int, ...]] = {
    "right": (5,),
    "hallucination": (2, 4),
    "incomplete": (3,),
    "lack": (1,),
    "no verdict": (0,),
}


def steps_of(parts: pd.DataFrame) -> list[str]:
    """The steps with a value in the parts' columns, in their order."""
    return [step for step in STEPS if step in parts and len(parts) and parts[step].notna().any()]


def by_topic(parts: pd.DataFrame) -> pd.DataFrame:
    """The mean over the evidence parts of every topic: qid, and a column per step, in [0, 1].

    `parts` has a row per qid and part, and a column per step. DataError for a value outside [0, 1], or one
    that is missing while others of its step are there.
    """
    steps = steps_of(parts)
    for step in steps:
        values = parts[step].to_numpy(dtype=float)
        bad = ~((values >= -1e-9) & (values <= 1 + 1e-9))
        if bad.any():
            row = parts.iloc[int(np.flatnonzero(bad)[0])]
            raise DataError(
                f"evidence trail: qid={row['qid']!r}, part={row['part']}: {step} is {row[step]}; a step of "
                "the funnel takes numbers in [0, 1], for every part or for none"
            )
    if not steps:
        return pd.DataFrame({"qid": pd.Series(dtype="str")})
    return parts.groupby("qid", sort=False)[steps].mean().clip(0, 1).reset_index()


def funnel(parts: pd.DataFrame, level: float = LEVEL, clusters: pd.Series | None = None) -> pd.DataFrame:
    """The funnel: step, label, value, lo, hi, change, change_lo, change_hi, n; a row per step of `parts`.

    value is the mean over topics of the mean over a topic's evidence parts, with its interval over topics
    (`bounded_mean`). change is the value less that of the step before, topic by topic, with the interval of a paired
    difference (`paired_share_interval`); it is missing for the first step. A step may gain. `parts` as in `by_topic`;
    `clusters` by qid, where topics are not independent.
    """
    topics = by_topic(parts)
    of = None if clusters is None else clusters.reindex(topics["qid"]).to_numpy()
    rows = []
    before: np.ndarray | None = None
    for step in topics.columns.drop("qid"):
        values = topics[step].to_numpy(dtype=float)
        mean = bounded_mean(values, level=level, clusters=of)
        nothing = Estimate(float("nan"), float("nan"), float("nan"), len(values))
        change = nothing if before is None else paired_share_interval(values - before, level=level, clusters=of)
        rows.append((step, STEPS[step], mean.value, mean.lo, mean.hi, change.value, change.lo, change.hi, len(values)))
        before = values
    columns = ["step", "label", "value", "lo", "hi", "change", "change_lo", "change_hi", "n"]
    return pd.DataFrame(rows, columns=columns)


def funnel_metrics(table: pd.DataFrame) -> dict[str, float]:
    """`funnel_<step>` and `funnel_<step>_change`, each with `_lo` and `_hi`, of the table of `funnel`."""
    found: dict[str, float] = {}
    for row in table.to_dict("records"):
        name = f"funnel_{row['step']}"
        found |= {name: row["value"], f"{name}_lo": row["lo"], f"{name}_hi": row["hi"]}
        if row["change"] == row["change"]:
            change = {end: row[f"change{end}"] for end in ("", "_lo", "_hi")}
            found |= {f"{name}_change{end}": value for end, value in change.items()}
    return found


def funnel_of_metrics(metrics: Mapping[str, float]) -> pd.DataFrame:
    """The table of `funnel` from the metrics of a job, without n; empty if they hold none."""
    rows = []
    for step, label in STEPS.items():
        name = f"funnel_{step}"
        if name in metrics:
            ends = [f"{name}{end}" for end in ("", "_lo", "_hi", "_change", "_change_lo", "_change_hi")]
            rows.append((step, label, *(metrics.get(end, float("nan")) for end in ends)))
    return pd.DataFrame(rows, columns=["step", "label", "value", "lo", "hi", "change", "change_lo", "change_hi"])


def evidence_in_context(parts: pd.DataFrame) -> pd.Series:
    """By qid, whether "all", "some" or "none" of the evidence parts stand in the context.

    A part stands there where its value of the step `context` is at least 0.9.
    """
    share = parts["context"].ge(STANDS).groupby(parts["qid"], sort=False).mean()
    found = np.select([share.to_numpy() >= 1, share.to_numpy() <= 0], [ALL, NONE], SOME)
    return pd.Series(found, index=share.index, dtype="str")


def answers_by_evidence(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Answers by the evidence in their context: evidence, answer, topics, n, share, lo, hi.

    `outcomes` has a row per topic with label and evidence_in_context. Shares are over the n judged topics of
    a row, with intervals over topics; answer is one of right, hallucination, incomplete, lack, no verdict.
    Empty where no topic has a label.
    """
    rows, column = asked(with_classes(outcomes)), "evidence_in_context"
    if column in rows:
        rows = rows[rows[column].notna()]
    if column not in rows or rows.empty or rows["label"].isna().all():
        return pd.DataFrame(columns=["evidence", "answer", "topics", "n", "share", "lo", "hi"])
    found = []
    for value in (ALL, SOME, NONE):
        part = rows[rows[column] == value]
        if part.empty:
            continue
        labels = labels_of(part)
        for answer, classes in CLASSES.items():
            share = share_of(np.isin(labels, classes), part)
            topics = int(np.isin(labels, classes).sum())
            found.append((value, answer, topics, len(part), share.value, share.lo, share.hi))
    return pd.DataFrame(found, columns=["evidence", "answer", "topics", "n", "share", "lo", "hi"])


def share_of(counts: np.ndarray, rows: pd.DataFrame, level: float = LEVEL) -> Estimate:
    """Share of rows where `counts` (bool [rows]) is True, with its interval over topics.

    Weighted where the rows of a sample stand for different numbers of topics.
    """
    weights = weights_of(rows) if "weight" in rows else None
    return bounded_mean(counts.astype(float), rows["qid"], level, clusters_of(rows), weights)
