"""The leaderboard: groups with scores, shares, intervals, and membership in the best set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.metrics import HEADLINES
from ragauge.estimate.best import BestSystems, best_sets
from ragauge.estimate.intervals import LEVEL, Estimate, bootstrap_mean, bounded_mean
from ragauge.estimate.outcomes import (
    LACK,
    asked,
    check_outcomes,
    clusters_of,
    labels_of,
    missing_share,
    scored,
    share_columns,
    with_classes,
)
from ragauge.estimate.ppi import ppi_shares
from ragauge.estimate.prompts import by_prompt, drawn, widened
from ragauge.estimate.sampled_means import sampled_mean

REJECTION = "rejection_share"


def share_estimates(frame: pd.DataFrame, level: float = LEVEL) -> dict[str, Estimate]:
    """The shares of `class_shares`, each with its interval over topics (`bounded_mean`), by name.

    They are of the rows `with_classes`, means over the judge's prompts where there are several
    (ragauge.estimate.prompts). Without any label lo and hi are NaN: nothing was judged.
    """
    frame = with_classes(check_outcomes(frame, ()))
    counts = [share_columns(labels_of(one)) for one in by_prompt(frame)]
    of = (frame["qid"], level, clusters_of(frame))
    shares = {name: bounded_mean(np.mean([c[name] for c in counts], axis=0), *of) for name in counts[0]}
    if not frame["label"].notna().any():
        nan = float("nan")
        return {name: Estimate(share.value, nan, nan, share.n, level) for name, share in shares.items()}
    if drawn(frame):
        return {name: widened(share, [c[name].mean() for c in counts]) for name, share in shares.items()}
    return shares


def rejection(frame: pd.DataFrame, level: float = LEVEL) -> dict[str, Estimate]:
    """`rejection_share` with its interval over topics: share of class 1 among judged answers to unanswerable topics.

    Class 1 is the right one there. {} without unanswerable topics.
    """
    if "unanswerable" not in frame or not frame["unanswerable"].eq(True).any():
        return {}
    rows = asked(frame[frame["unanswerable"].eq(True)])
    rows = rows[rows["label"].notna()]
    return {REJECTION: bounded_mean(labels_of(rows) == LACK, rows["qid"], level, clusters_of(rows))}


def leaderboard(
    frame: pd.DataFrame,
    group: str = "retriever",
    n_boot: int = 1000,
    seed: int = 0,
    level: float = LEVEL,
    best: BestSystems | None = None,
    answers: Sequence[AnswerMeasureInfo] = (),
) -> pd.DataFrame:
    """A row per group, the best IR score first: scores and shares with intervals, and membership in best sets.

    Where no topic has an IR score, the largest share of right answers comes first, and without verdicts the best value
    of the first answer measure. The IR score is of the topics that have one, shares are of the rows `with_classes`.
    `frame` has one row per topic and group (one n_tokens). Columns: the group, `n_topics`, `n_scored` of them,
    `n_judged` of the `n_classed` that can be; then `ir_score`, `judge_share_1`..`_5`, `judge_share_missing`,
    `hallucination_share`, `correct_share`, each with `_lo` and `_hi` (see `bounded_mean`); `rejection_share` where
    topics are unanswerable. `ir_score_in_best_set`, `correct_in_best_set`, `hallucination_in_best_set` (fewest) say
    whether a group is in the 95 % confidence set of the best one (see `best_sets`). Shares of a group without any label
    are NaN, and whether it may be the best is then missing (pd.NA). Where a sample of the topics was judged, the shares
    are those of `ppi_shares`. `best` is what `best_sets` makes of the same arguments, where that is known. Each of
    `answers` adds its mean (its name, `measured_mean`), `_missing` (`missing_share`) and `_in_best_set`. It also adds
    `_lo` and `_hi`, from a bootstrap with n_boot and seed.
    """
    check_outcomes(frame, keys=("qid", group), may_lack=("ir_score",))
    if frame.empty:
        raise DataError("outcomes: no rows, so there is nothing to rank")
    if best is None:
        best = best_sets(frame, group, seed, answers=answers)
    rows = []
    for name, part in frame.groupby(group, sort=True):
        of_scores, classed = scored(part), with_classes(part)
        score = bounded_mean(of_scores["ir_score"], of_scores["qid"], level, clusters_of(of_scores))
        row = {group: name, "n_topics": part["qid"].nunique(), "n_judged": len(asked(classed))}
        row |= {"n_classed": len(classed), "n_scored": of_scores["qid"].nunique()}
        row |= {"ir_score": score.value, "ir_score_lo": score.lo, "ir_score_hi": score.hi}
        unjudged = classed["label"].isna().all()
        if len(asked(classed)) < len(classed) and not unjudged:
            for found in ppi_shares(classed, level).to_dict("records"):
                ends = {"": found["estimate"], "_lo": found["lo"], "_hi": found["hi"]}
                row |= {f"{found['share']}{end}": float(value) for end, value in ends.items()}
        else:
            for column, share in share_estimates(part, level).items():
                value = float("nan") if unjudged and column != "judge_share_missing" else share.value
                row |= {column: value, f"{column}_lo": share.lo, f"{column}_hi": share.hi}
        for name_of, share in rejection(part, level).items():
            row |= {name_of: share.value, f"{name_of}_lo": share.lo, f"{name_of}_hi": share.hi}
        for info in answers:
            mean = measured_mean(part, info, n_boot, seed, level)
            row |= {info.name: mean.value, f"{info.name}_lo": mean.lo, f"{info.name}_hi": mean.hi}
            row[f"{info.name}_missing"] = missing_share(part, info.name)
        rows.append(row)
    by, ascending = _ranked_by(pd.DataFrame(rows), answers)
    board = pd.DataFrame(rows).sort_values([by, group], ascending=[ascending, True], ignore_index=True)
    for measure in (*HEADLINES, *(info.name for info in answers)):
        board[f"{measure}_in_best_set"] = _marks(board[group], best.marks(measure))
    return board


def _ranked_by(rows: pd.DataFrame, answers: Sequence[AnswerMeasureInfo]) -> tuple[str, bool]:
    """The column of the ranking, and whether its lowest value is the best."""
    for column in ("ir_score", "correct_share"):
        if rows[column].notna().any():
            return column, False
    known = [info for info in answers if rows[info.name].notna().any()]
    return (known[0].name, known[0].direction == "lower") if known else ("ir_score", False)


def measured_mean(
    frame: pd.DataFrame, info: AnswerMeasureInfo, n_boot: int, seed: int, level: float = LEVEL
) -> Estimate:
    """`mean_of` the measure's column; `sampled_mean` if topics were left out."""
    found = sampled_mean(frame, info, level)
    of = (info, n_boot, seed, level, clusters_of(frame))
    return mean_of(frame[info.name], frame["qid"], *of) if found is None else found


def mean_of(
    values: pd.Series,
    topics: pd.Series,
    info: AnswerMeasureInfo,
    n_boot: int,
    seed: int,
    level: float = LEVEL,
    clusters: pd.Series | None = None,
) -> Estimate:
    """The mean of an answer measure over topics with a value, with its interval.

    Values in [0, 1], and signed ones as shares of their range, have that of `bounded_mean`, scores of any
    size a bootstrap over topics.
    """
    known = values.astype(float).notna()
    at, of, clusters = values.astype(float)[known], topics[known], None if clusters is None else clusters[known]
    if info.bounded:
        return bounded_mean(at, of, level, clusters)
    if info.unit == "signed":
        found = bounded_mean((at + 1) / 2, of, level, clusters)
        value, lo, hi = (2 * limit - 1 for limit in (found.value, found.lo, found.hi))
        return replace(found, value=value, lo=lo, hi=hi)
    return bootstrap_mean(at, of, n_boot, seed, level, None, clusters)


def _marks(names: pd.Series, marks: dict[str, bool]) -> pd.Series:
    """Whether each row's group may be the best, as nullable bool; missing if unknown."""
    return pd.Series([marks.get(name, pd.NA) for name in names], index=names.index, dtype="boolean")
