"""The leaderboard: groups with their scores, shares and intervals, and who shares first place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.estimate.intervals import LEVEL, Estimate, bootstrap_mean, bounded_mean
from ragauge.estimate.outcomes import asked, check_outcomes, labels_of, share_columns
from ragauge.estimate.pairs import compare_pairs
from ragauge.estimate.ppi import ppi_shares

_RANKED = {"ir_score": "ir_score", "correct": "correct_share", "hallucination": "hallucination_share"}


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
    alpha: float = 0.05,
    level: float = LEVEL,
    pairs: pd.DataFrame | None = None,
    answers: Sequence[AnswerMeasureInfo] = (),
) -> pd.DataFrame:
    """A row per group, the best IR score first: scores and shares with intervals, and who shares first place.

    `frame` has one row per topic and group (one n_tokens). Columns: the group, `n_topics`, `n_judged`,
    `ir_score`, `judge_share_1`..`_5`, `judge_share_missing`, `hallucination_share`, `correct_share`, each of
    these with `_lo` and `_hi` (see `bounded_mean`), and
    `ir_score_same_as_best`, `correct_same_as_best`, `hallucination_same_as_best`: true for the best (of
    hallucinations the fewest) and for those whose difference from it is not significant at alpha after
    Holm's correction over all pairs (see `compare_pairs`). Shares of a group without any label are NaN, and
    what is the same as the best is then missing (pd.NA). Where a sample of the
    topics was judged, the shares are those of `ppi_shares`. `pairs` is what `compare_pairs` makes of the same
    arguments, where that is known; n_boot and seed are its. Each of `answers` adds its mean over the topics
    with a value (its name), `_lo`, `_hi`, `_missing` (share of topics without) and `_same_as_best`.
    """
    check_outcomes(frame, keys=("qid", group))
    if frame.empty:
        raise DataError("outcomes: no rows, so there is nothing to rank")
    if pairs is None:
        pairs = compare_pairs(frame, group, n_boot, seed, level, answers)
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
    for measure, column in _RANKED.items():
        fewest = measure == "hallucination"
        board[f"{measure}_same_as_best"] = _same_as_best(board, pairs, group, measure, column, alpha, fewest)
    for info in answers:
        lowest = info.direction == "lower"
        board[f"{info.name}_same_as_best"] = _same_as_best(
            board, pairs, group, info.name, info.name, alpha, lowest
        )
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


def _same_as_best(
    board: pd.DataFrame,
    pairs: pd.DataFrame,
    group: str,
    measure: str,
    column: str,
    alpha: float,
    lowest: bool = False,
) -> pd.Series:
    """Nullable bool per row of the board: not distinguishable from the row with the best `column`.

    The best is the largest, or the lowest where that is asked for.
    """
    same = pd.Series(pd.NA, index=board.index, dtype="boolean")
    if board[column].isna().all():
        return same
    place = np.nanargmin if lowest else np.nanargmax
    best = board[group].iloc[int(place(board[column].to_numpy()))]
    chosen = pairs[(pairs["measure"] == measure) & ((pairs["a"] == best) | (pairs["b"] == best))]
    against: dict[object, float] = dict(
        zip(chosen["a"].where(chosen["a"] != best, chosen["b"]), chosen["p_holm"], strict=True)
    )
    known = board[column].notna()
    names = board[group][known]
    same[known] = [name == best or not against[name] < alpha for name in names]
    return same
