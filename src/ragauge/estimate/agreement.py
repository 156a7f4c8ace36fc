"""A judge compared with human labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.estimate.intervals import LEVEL, Estimate, bounded_mean, percentile_interval, topic_weights
from ragauge.estimate.outcomes import CLASSES, GROUP_COLUMNS, check_outcomes, topic_codes


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
    n_boot: int = 1000,
    seed: int = 0,
    level: float = LEVEL,
) -> Agreement:
    """How far a judge's `label` agrees with the `label` that people gave, joined by keys.

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
            raise DataError(
                f"{name}: {dict(frame.loc[twice, by].iloc[0])} occurs twice; keys are {', '.join(by)}"
            )
    if human["label"].isna().any():
        raise DataError(f"human labels: no label for {dict(human.loc[human['label'].isna(), by].iloc[0])}")
    both = human[[*by, "label"]].merge(
        verdicts[[*by, "label"]], on=by, how="left", suffixes=("_human", "_judge"), indicator="found"
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
    topics, n_topics = topic_codes(both.loc[known, "qid"])
    cells = np.zeros((n_topics, len(CLASSES) ** 2))
    np.add.at(cells, (topics, (people[known] - 1) * len(CLASSES) + judge[known] - 1), 1)
    value = _kappa(cells.sum(axis=0, keepdims=True))[0]
    lo = hi = float("nan")
    if n_topics > 1 and n_boot:
        blocks = [_kappa(w @ cells) for w in topic_weights(n_topics, n_boot, seed)]
        lo, hi = percentile_interval(np.concatenate(blocks), level)
    equal = bounded_mean(people[known] == judge[known], both.loc[known, "qid"], level)
    kappa = Estimate(float(value), lo, hi, n_topics, level)
    return Agreement(kappa, equal, confusion, int(known.sum()), int((~known).sum()))


def _kappa(cells: np.ndarray) -> np.ndarray:
    """Cohen's kappa of each row of flattened confusion counts; NaN where chance alone agrees always."""
    counts = cells.reshape(len(cells), len(CLASSES), len(CLASSES))
    n = counts.sum(axis=(1, 2))
    observed = np.trace(counts, axis1=1, axis2=2) * n
    chance = (counts.sum(axis=1) * counts.sum(axis=2)).sum(axis=1)
    room = n**2 - chance
    return np.divide(observed - chance, room, out=np.full(len(n), np.nan), where=room > 0)
