"""Retrievers compared topic by topic, the leaderboard, and a judge compared with human labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.frames import HALLUCINATIONS
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.estimate.intervals import (
    LEVEL,
    Estimate,
    bootstrap_mean,
    bootstrap_means,
    bounded_mean,
    paired_share_interval,
    percentile_interval,
    topic_weights,
)
from ragauge.estimate.outcomes import (
    CLASSES,
    GROUP_COLUMNS,
    RIGHT,
    asked,
    check_outcomes,
    labels_of,
    share_columns,
    topic_codes,
)
from ragauge.estimate.ppi import ppi_shares

_OF_CLASSES = ("correct", "hallucination")
_RANKED = {"ir_score": "ir_score", "correct": "correct_share", "hallucination": "hallucination_share"}
_SIGN_FLIPS = 9999
_BLOCK = 2_000_000  # elements of one block of sign flips


def compare_pairs(
    frame: pd.DataFrame,
    group: str = "retriever",
    n_boot: int = 1000,
    seed: int = 0,
    level: float = LEVEL,
    answers: Sequence[AnswerMeasureInfo] = (),
) -> pd.DataFrame:
    """Every pair of groups compared on the topics that both have: IR score, right answers, hallucinations.

    `frame` has one row per topic and group. Returns [a, b, measure, difference, lo, hi, p, p_holm, n]:
    difference of a less b with its interval over topics; p of a sign-flip permutation test of the
    mean difference (`ir_score`: all flips where there are at most 9,999, else that many at random) or of
    McNemar's exact test (`correct`: class 5; `hallucination`: classes 2 and 4; a missing verdict is neither);
    p_holm after Holm's correction over all pairs of the measure. The interval is a bootstrap over topics
    (`ir_score`) or that of `paired_share_interval`. `correct` and `hallucination` are left out where no row
    has a label. Columns of the answer measures `answers` are compared as the IR score is, on the topics where
    both have a value. p is NaN for a pair without a common topic.
    """
    tables = _by_topic(frame, group, answers)
    parts = []
    for measure, table in tables.items():
        couples = list(combinations(table.columns, 2))
        differences = pd.DataFrame({(a, b): table[a] - table[b] for a, b in couples}, index=table.index)
        values = differences.to_numpy(dtype=float).reshape(len(table), len(couples))
        if measure in _OF_CLASSES:
            p = mcnemar_p(values)
            estimates = [paired_share_interval(d[~np.isnan(d)], level=level) for d in values.T]
        else:
            p = sign_flip_p(values, seed)
            estimates = list(bootstrap_means(differences, n_boot, seed, level).values())
        part = pd.DataFrame(couples, columns=["a", "b"]).assign(
            measure=measure,
            difference=[e.value for e in estimates],
            lo=[e.lo for e in estimates],
            hi=[e.hi for e in estimates],
            p=p,
            p_holm=_holm(p),
            n=[e.n for e in estimates],
        )
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


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


def _holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down correction of the p that are known; NaN stays."""
    corrected = np.full(len(p), np.nan)
    known = ~np.isnan(p)
    if known.any():
        from statsmodels.stats.multitest import multipletests

        corrected[known] = multipletests(p[known], method="holm")[1]
    return corrected


def _by_topic(
    frame: pd.DataFrame, group: str, answers: Sequence[AnswerMeasureInfo] = ()
) -> dict[str, pd.DataFrame]:
    """Tables [qid x group] of the measures: `ir_score`, and where any row has a label `correct` and
    `hallucination` (0, 1); and the answer measures of which any row has a value.

    These are NaN for a topic that a sample left out, so that pairs are compared on the judged topics.
    """
    check_outcomes(frame, keys=("qid", group))
    twice = frame.duplicated(["qid", group])
    if twice.any():
        row = frame.loc[twice].iloc[0]
        raise DataError(
            f"outcomes: qid={row['qid']!r}, {group}={row[group]!r} occurs twice; a comparison takes one row "
            f"per topic and {group} (choose one n_tokens)"
        )
    labels = labels_of(frame)
    of_class = {
        "correct": (labels == RIGHT).astype(float),
        "hallucination": np.isin(labels, HALLUCINATIONS).astype(float),
    }
    if "judged" in frame:
        for values in of_class.values():
            values[~frame["judged"].to_numpy(dtype=bool)] = np.nan
    flat = frame[["qid", group, "ir_score"]].assign(**of_class)
    measures = ["ir_score", *of_class] if (labels > 0).any() else ["ir_score"]
    for info in answers:
        flat[info.name] = frame[info.name].astype(float)
        if flat[info.name].notna().any():
            measures.append(info.name)
    return {measure: flat.pivot(index="qid", columns=group, values=measure) for measure in measures}


def sign_flip_p(differences: np.ndarray, seed: int = 0) -> np.ndarray:
    """float64 [pairs]: two-sided p of exchangeable groups, under random signs of the topics' differences.

    The null hypothesis is that a topic's two values may be swapped: its difference is as likely as the
    opposite one, so that the differences are symmetric about 0. It is not that their mean is 0: differences
    of mean 0 that are skewed are rejected too often on few topics (docs/method.md).
    `differences` is [topics, pairs], NaN where a pair lacks the topic. Exact over all 2^m sign patterns of a
    pair's m differences that are not 0 where these are at most 9,999; else from 9,999 random ones, the
    observed one counted among them (Phipson & Smyth 2010). NaN for a pair without topics, 1 where all
    differences are 0. The same test as scipy.stats.permutation_test(permutation_type="samples"), with one set
    of signs for all pairs.
    """
    values = np.nan_to_num(differences)
    observed = np.abs(values.sum(axis=0))
    # Sums of the same numbers in another order differ in the last bits; those count as equal.
    least = observed - 1e-9 * np.abs(values).sum(axis=0)
    p = np.where(np.isnan(differences).all(axis=0), np.nan, 1.0)
    moved = (values != 0).sum(axis=0)
    exact = (moved > 0) & (moved <= int(np.log2(_SIGN_FLIPS)))
    for pair in np.flatnonzero(exact):
        own = values[values[:, pair] != 0, pair]
        patterns = np.arange(2 ** len(own))[:, None] >> np.arange(len(own)) & 1
        p[pair] = (np.abs((1 - 2 * patterns) @ own) >= least[pair]).mean()
    drawn = (moved > 0) & ~exact
    if drawn.any():
        some = values[:, drawn]
        rng = np.random.default_rng(seed)
        height = max(1, _BLOCK // len(some))
        extreme = np.zeros(some.shape[1], dtype=int)
        for start in range(0, _SIGN_FLIPS, height):
            rows = min(height, _SIGN_FLIPS - start)
            bits = np.unpackbits(np.frombuffer(rng.bytes(-(-rows * len(some) // 8)), dtype=np.uint8))
            flipped = bits[: rows * len(some)].reshape(rows, len(some)).astype(float) @ some
            extreme += (np.abs(some.sum(axis=0) - 2 * flipped) >= least[drawn]).sum(axis=0)
        p[drawn] = (extreme + 1) / (_SIGN_FLIPS + 1)
    return p


def mcnemar_p(differences: np.ndarray) -> np.ndarray:
    """float64 [pairs]: McNemar's exact two-sided p, differences of +1 and -1 being equally likely.

    `differences` is [topics, pairs] of 1, 0, -1, NaN where a pair lacks the topic; NaN for a pair without
    topics.
    """
    from scipy.stats import binomtest

    won, lost = (differences > 0).sum(axis=0), (differences < 0).sum(axis=0)
    p = np.where(np.isnan(differences).all(axis=0), np.nan, 1.0)
    for pair in np.flatnonzero(won + lost):
        p[pair] = binomtest(int(won[pair]), int(won[pair] + lost[pair])).pvalue
    return p


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
