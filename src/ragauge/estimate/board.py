"""The leaderboard: groups with their scores, shares and intervals, and who may be the best."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.estimate.best import BestSystems, best_sets
from ragauge.estimate.intervals import LEVEL, Estimate, bootstrap_mean, bounded_mean
from ragauge.estimate.outcomes import asked, check_outcomes, labels_of, share_columns
from ragauge.estimate.ppi import ppi_shares

_RANKED = ("ir_score", "correct", "hallucination")


def share_estimates(frame: pd.DataFrame, level: float = LEVEL) -> dict[str, Estimate]:
    """The shares of `class_shares`, each with its interval over topics (`bounded_mean`), by name.

    Without any label lo and hi are NaN: nothing was judged.
    """
    check_outcomes(frame, ())
    labels = labels_of(frame)
    shares = {
        name: bounded_mean(counts, frame["qid"], level) for name, counts in share_columns(labels).items()
    }
    if not (labels > 0).any():
        nan = float("nan")
        return {name: Estimate(share.value, nan, nan, share.n, level) for name, share in shares.items()}
    return shares


def leaderboard(
    frame: pd.DataFrame,
    group: str = "retriever",
    n_boot: int = 1000,
    seed: int = 0,
    level: float = LEVEL,
    best: BestSystems | None = None,
    answers: Sequence[AnswerMeasureInfo] = (),
) -> pd.DataFrame:
    """A row per group, the best IR score first: scores and shares with intervals, and who may be the best.

    `frame` has one row per topic and group (one n_tokens). Columns: the group, `n_topics`, `n_judged`,
    `ir_score`, `judge_share_1`..`_5`, `judge_share_missing`, `hallucination_share`, `correct_share`, each of
    these with `_lo` and `_hi` (see `bounded_mean`), and
    `ir_score_in_best_set`, `correct_in_best_set`, `hallucination_in_best_set` (fewest): whether a group is in
    the 95 % confidence set of the best one (see `best_sets`). Shares of a group without any label are NaN,
    and whether it may be the best is then missing (pd.NA). Where a sample of the topics was judged, the
    shares are those of `ppi_shares`. `best` is what `best_sets` makes of the same arguments, where that is
    known. Each of `answers` adds its mean over the topics with a value (its name), `_lo`, `_hi` (n_boot and
    seed are those of its bootstrap), `_missing` (share of topics without) and `_in_best_set`.
    """
    check_outcomes(frame, keys=("qid", group))
    if frame.empty:
        raise DataError("outcomes: no rows, so there is nothing to rank")
    if best is None:
        best = best_sets(frame, group, seed, answers=answers)
    rows = []
    for name, part in frame.groupby(group, sort=True):
        score = bounded_mean(part["ir_score"], part["qid"], level)
        row = {group: name, "n_topics": score.n, "n_judged": len(asked(part))}
        row |= {"ir_score": score.value, "ir_score_lo": score.lo, "ir_score_hi": score.hi}
        unjudged = part["label"].isna().all()
        if len(asked(part)) < len(part) and not unjudged:
            for found in ppi_shares(part, level).to_dict("records"):
                ends = {"": found["estimate"], "_lo": found["lo"], "_hi": found["hi"]}
                row |= {f"{found['share']}{end}": float(value) for end, value in ends.items()}
        else:
            for column, share in share_estimates(part, level).items():
                value = float("nan") if unjudged and column != "judge_share_missing" else share.value
                row |= {column: value, f"{column}_lo": share.lo, f"{column}_hi": share.hi}
        for info in answers:
            mean = mean_of(part[info.name], part["qid"], info, n_boot, seed, level)
            row |= {info.name: mean.value, f"{info.name}_lo": mean.lo, f"{info.name}_hi": mean.hi}
            row[f"{info.name}_missing"] = float(part[info.name].isna().mean())
        rows.append(row)
    board = pd.DataFrame(rows).sort_values(["ir_score", group], ascending=[False, True], ignore_index=True)
    for measure in (*_RANKED, *(info.name for info in answers)):
        board[f"{measure}_in_best_set"] = _marks(board[group], best.marks(measure))
    return board


def mean_of(
    values: pd.Series,
    topics: pd.Series,
    info: AnswerMeasureInfo,
    n_boot: int,
    seed: int,
    level: float = LEVEL,
) -> Estimate:
    """The mean of an answer measure over the topics that have a value, with its interval.

    Shares have that of `bounded_mean`, scores of any size a bootstrap over topics.
    """
    known = values.astype(float).notna()
    at, of = values.astype(float)[known], topics[known]
    if info.unit == "share":
        return bounded_mean(at, of, level)
    return bootstrap_mean(at, of, n_boot, seed, level)


def _marks(names: pd.Series, marks: dict[str, bool]) -> pd.Series:
    """Nullable bool per row of the board: whether its group may be the best; missing where unknown."""
    return pd.Series([marks.get(name, pd.NA) for name in names], index=names.index, dtype="boolean")
