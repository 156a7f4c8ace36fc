"""Human labels: compared with the judge's, and extended to all topics."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.outcomes import DRAWN_WITH, LABEL_OF, PROBABILITY_COLUMNS
from ragauge.estimate import Agreement, asked, judge_agreement, ppi_shares
from ragauge.estimate.intervals import LEVEL, Estimate, cluster_variance
from ragauge.estimate.outcomes import (
    check_outcomes,
    class_indicators,
    cluster_columns,
    clusters_by_topic,
    labels_of,
    with_classes,
)
from ragauge.estimate.pairs import holm, of_class, powered_difference
from ragauge.estimate.powered import Powered, difference_test, powered_means, weighted_means
from ragauge.estimate.ppi import share_limits

FEW_LABELS = 150  # of yes or no, below which ARES found its intervals of little use
_NOT_RANDOM = 0.001  # level at which labelled topics are no random draw
_DRAWS = 9999
_UNSEEN = 0.5  # labels that differ from the verdict, added to the variance: few labels may show none


def human_agreement(outcomes: pd.DataFrame, keys: Sequence[str] = ("qid",)) -> Agreement:
    """Agreement of `label` with `human_label` over answers with both; `keys` identify rows.

    An answer that was left out of a sample to judge has no verdict to compare.
    """
    rows = asked(outcomes)
    people = rows.loc[rows["human_label"].notna(), [*keys, "human_label"]]
    return judge_agreement(rows, people.rename(columns={"human_label": "label"}), keys)


def human_shares(outcomes: pd.DataFrame) -> pd.DataFrame | None:
    """Class shares of all topics by human judgement (see `ppi_shares`), from a labelled sample.

    The judge's verdict on every topic is the prediction (of a topic without one: the shares of the others).
    Labelled topics stand for the others by the strata of `strata_of_labels`, or by the probabilities that they were
    drawn with (DRAWN_WITH). None with fewer than two of them, and where the judge saw a sample only. Raises DataError
    where the labelled topics are no sample that all topics can be estimated from.
    """
    outcomes = with_classes(outcomes)
    labelled = outcomes["human_label"].notna()
    if len(asked(outcomes)) < len(outcomes) or outcomes.loc[labelled, "qid"].nunique() < 2:
        return None
    verdict = labels_of(outcomes)
    said = class_indicators(verdict)
    if (verdict > 0).any():
        said[verdict == 0] = said[verdict > 0].mean(axis=0)
    verdicts = dict(zip(PROBABILITY_COLUMNS, said.T, strict=True))
    frame = outcomes[["qid", *cluster_columns(outcomes)]].assign(label=outcomes["human_label"], judged=labelled)
    if has_probabilities(outcomes):
        frame["probability"] = outcomes[DRAWN_WITH]
    else:
        scores = outcomes["ir_score"].to_numpy(dtype=float, na_value=np.nan)
        frame["stratum"] = strata_of_labels(labelled.to_numpy(), verdict, np.nan_to_num(scores, nan=-1.0))
    return ppi_shares(frame.assign(**verdicts), unseen=_UNSEEN)


def has_probabilities(outcomes: pd.DataFrame) -> bool:
    """Whether the labelled answers were drawn with known probabilities."""
    return DRAWN_WITH in outcomes and bool(outcomes[DRAWN_WITH].notna().any())


def strata_of_labels(labelled: np.ndarray, verdict: np.ndarray, scores: np.ndarray, seed: int = 0) -> np.ndarray:
    """The strata of a labelled sample, int [topics]; a single one if it passes as a random draw.

    `labelled` bool, `verdict` what the judge said (any small whole numbers >= 0), `scores` the IR score. The
    labelled topics are tested against the others in both, each at 0.1 % (`_p_random`, scores by fifths).
    Where the verdicts differ, the verdicts are the strata. Each takes two labelled topics, and the scores are tested
    within them. Raises DataError where neither serves, saying what does.
    """
    if labelled.all():
        return np.zeros(len(labelled), dtype=int)
    fifth = np.searchsorted(np.quantile(scores, [0.2, 0.4, 0.6, 0.8]), scores)
    one = np.zeros(len(labelled), dtype=int)
    by_verdict = _p_random(labelled, verdict, one, seed) < _NOT_RANDOM
    strata = verdict if by_verdict else one
    if by_verdict:
        given, there = np.bincount(verdict, labelled), np.bincount(verdict)
        bare = np.flatnonzero(given < np.minimum(there, 2))
        if len(bare):
            raise DataError(
                "human_labels: the labelled answers are no random draw (the judge's verdicts on them differ "
                f"from those on the others, p < {_NOT_RANDOM}), and of the {int(there[bare[0]])} answers "
                f"with verdict {_said(bare[0])} {int(given[bare[0]])} have a label: label answers drawn at "
                "random, or at least 2 of every verdict of the judge"
            )
    if _p_random(labelled, fifth, strata, seed) < _NOT_RANDOM:
        here, others = scores[labelled].mean(), scores[~labelled].mean()
        raise DataError(
            "human_labels: the labelled answers are no random draw (their IR scores, on average "
            f"{here:.3f}, differ from those of the others, {others:.3f}, p < {_NOT_RANDOM}): label answers "
            "drawn at random, or at random among those of one verdict of the judge"
        )
    return strata


def _said(verdict: int) -> str:
    return str(verdict) if verdict else "missing"


def _p_random(labelled: np.ndarray, category: np.ndarray, stratum: np.ndarray, seed: int) -> float:
    """p of the hypothesis that labelled rows are a random draw within strata, by their categories.

    A permutation test of the sum over strata and categories of (labelled - expected)^2 / expected: the table
    of a random draw is multivariate hypergeometric, and 9,999 of them are drawn.
    """
    rng = np.random.default_rng(seed)
    seen, drawn = 0.0, np.zeros(_DRAWS)
    for s in np.unique(stratum):
        here = stratum == s
        there = np.bincount(category[here])
        given = np.bincount(category[here & labelled], minlength=len(there))
        there, given = there[there > 0], given[there > 0]
        expected = there * given.sum() / there.sum()
        if not 0 < given.sum() < there.sum() or len(there) < 2:
            continue
        tables = rng.multivariate_hypergeometric(there, int(given.sum()), size=_DRAWS, method="marginals")
        seen += float(((given - expected) ** 2 / expected).sum())
        drawn += ((tables - expected) ** 2 / expected).sum(axis=1)
    return float((1 + (drawn >= seen - 1e-9).sum()) / (1 + _DRAWS))


def human_pairs(frame: pd.DataFrame, group: str = "system", level: float = LEVEL) -> pd.DataFrame | None:
    """Every pair of groups compared by human judgement, from topics with labels for both.

    `frame` is that of `compare_pairs` with `human_label`; of a topic the answers of both groups of a pair are
    labelled. Returns [a, b, measure, judge_difference, difference, lo, hi, p, p_holm, n], `measure` being `correct` and
    `hallucination`. judge_difference: that of the verdicts of a less b over the topics of both. difference: the same
    corrected by the labels of people (`powered_difference` with the verdicts' difference for a prediction), with its t
    interval and t test. p_holm: Holm's correction over all pairs of the measure. n: the topics labelled for both. NaN
    where fewer than two are, or where `strata_of_labels` refuses them. With DRAWN_WITH it is the difference of the two
    groups' own estimates (`weighted_means`), and n their smaller number of labels. None where no pair has two, and
    where the judge saw a sample only. Raises DataError where the file of labels does not tell the answers of two
    systems apart.
    """
    check_outcomes(frame, ("ir_score",), ("qid", group), may_lack=("ir_score",))
    frame = with_classes(frame)
    if "human_label" not in frame or len(asked(frame)) < len(frame):
        return None
    people = frame["human_label"].astype("Int64").fillna(0).to_numpy(dtype=np.int64)
    flat = frame[["qid", group]].assign(ir_score=frame["ir_score"].fillna(-1.0), given=(people > 0).astype(float))
    weighted = has_probabilities(frame)
    if weighted:
        flat = flat.assign(given=flat["given"] * frame[DRAWN_WITH].notna(), probability=frame[DRAWN_WITH])
    names = ("correct", "hallucination")
    for side, labels in (("people", people), ("judge", labels_of(frame))):
        flat = flat.assign(**{f"{side}_{name}": values for name, values in of_class(labels).items()})
    table = {c: flat.pivot(index="qid", columns=group, values=c) for c in flat.columns.drop(["qid", group])}
    couples = list(combinations(table["given"].columns, 2))
    x = table["given"].fillna(0)
    if not any((min(x[a].sum(), x[b].sum()) if weighted else (x[a] * x[b]).sum()) >= 2 for a, b in couples):
        return None
    _refuse_labels_of_topics(frame, group)
    parts, clusters = [], clusters_by_topic(frame, table["given"].index)
    for name in names:
        rows = [_human_pair(table, name, a, b, clusters, level) for a, b in couples]
        part = pd.DataFrame(rows)
        parts.append(part.assign(p_holm=holm(part["p"].to_numpy(dtype=float))))
    columns = ["a", "b", "measure", "judge_difference", "difference", "lo", "hi", "p", "p_holm", "n"]
    return pd.concat(parts, ignore_index=True)[columns]


def _human_pair(
    table: Mapping[str, pd.DataFrame],
    name: str,
    a: Hashable,
    b: Hashable,
    clusters: np.ndarray | None,
    level: float,
) -> dict[str, object]:
    """A row of `human_pairs`."""
    common = (table["given"][a].notna() & table["given"][b].notna()).to_numpy()
    of = {c: (x[a].to_numpy()[common], x[b].to_numpy()[common]) for c, x in table.items()}
    given = [side > 0 for side in of["given"]]
    both, within = given[0] & given[1], None if clusters is None else clusters[common]
    people, judge = (of[f"{side}_{name}"][0] - of[f"{side}_{name}"][1] for side in ("people", "judge"))
    weighted = "probability" in of
    n = min(side.sum() for side in given) if weighted else both.sum()
    row: dict[str, object] = {"a": a, "b": b, "measure": name, "n": int(n)}
    row["judge_difference"] = float(judge.mean()) if len(judge) else float("nan")
    nothing = dict.fromkeys(("difference", "lo", "hi", "p"), float("nan"))
    if n < 2:
        return row | nothing
    if weighted:
        columns = (of[f"people_{name}"], of[f"judge_{name}"], given, of["probability"])
        sides = [
            weighted_means(y[:, None], f[:, None], drawn, probability, 0, within)
            for y, f, drawn, probability in zip(*columns, strict=True)
        ]
        return row | _difference_of(sides, int(n), within, level)
    pattern = (2 * of[f"judge_{name}"][0] + of[f"judge_{name}"][1]).astype(int)
    try:
        strata = strata_of_labels(both, pattern, (of["ir_score"][0] + of["ir_score"][1]) / 2)
    except DataError:
        return row | nothing
    found, p = powered_difference(people, judge, both, strata, within, level)
    return row | {"difference": found.value, "lo": found.lo, "hi": found.hi, "p": p}


def _difference_of(sides: Sequence[Powered], n: int, clusters: np.ndarray | None, level: float) -> dict[str, float]:
    """Difference, limits and p of two `weighted_means` over the same topics."""
    first, second = (np.asarray(side.parts) for side in sides)
    apart = first - second
    estimate = apart.mean(axis=0)
    variance = cluster_variance((apart - estimate) / len(apart), clusters) * n / (n - 1)
    kish, df = (min(getattr(side, name) for side in sides) for name in ("n", "df"))
    lo, hi, p = difference_test(replace(sides[0], estimate=estimate, variance=variance, n=kish, df=df), level)
    value = float(np.clip(estimate[0], -1, 1))
    return {"difference": value, "lo": min(float(lo[0]), value), "hi": max(float(hi[0]), value), "p": float(p[0])}


def _refuse_labels_of_topics(frame: pd.DataFrame, group: str) -> None:
    """DataError if groups with different answers share labels (`human_label_of`).

    Such labels come from a file that names topics but not the labelled answers.
    """
    if not {"answer", LABEL_OF} <= set(frame):
        return
    of_topic = frame[frame["human_label"].notna()].groupby("qid")
    several = of_topic["answer"].nunique(dropna=False).gt(of_topic[LABEL_OF].nunique(dropna=False))
    if several.any():
        raise DataError(
            f"human_labels: on {int(several.sum())} topics answers of several {group}s that differ have one label "
            "in common: a file for several systems needs a column that tells their answers apart (retriever, "
            "reranker, llm, n_tokens, ...)"
        )


@dataclass(frozen=True)
class PoweredShare:
    """The share of yes over all topics by human labels, and the estimate from labels alone.

    effective_n: how many labels alone give that standard error. lam: the weight of the predictions, 0 where
    they are of no use. n_labels of n_topics have a label.
    """

    powered: Estimate
    labels_only: Estimate
    effective_n: float
    lam: float
    n_labels: int
    n_topics: int


def powered_share(
    labels: np.ndarray, predicted: np.ndarray, level: float = LEVEL, clusters: np.ndarray | None = None
) -> PoweredShare:
    """The share of topics with a human yes to a question, with intervals at `level`.

    PPI++ as ARES does it (Saad-Falcon et al. 2023, arXiv:2311.09476, section 3.3), but with labels of this system's
    answers. Labels of another system's would assume that the judge errs alike on both.

    labels: float [topics], 1, 0, or NaN without a label; predicted: float [topics] in [0, 1]. The labelled topics pass
    for a random draw, or stand for the others by strata of the judge's yes and no (`strata_of_labels`). Where all
    labels are alike, or the corrected share is not inside (0, 1), it is that of the labels alone, whose interval is
    then exact (Clopper-Pearson). Raises DataError for fewer than two labels, for values that are neither, and where the
    labelled topics are no sample that all topics can be estimated from.
    """
    labels, predicted = np.asarray(labels, dtype=float), np.asarray(predicted, dtype=float)
    if labels.shape != predicted.shape or labels.ndim != 1:
        raise DataError(f"labels of shape {labels.shape} and predictions of {predicted.shape}: one of each a topic")
    known = ~np.isnan(labels)
    if not np.isin(labels[known], (0.0, 1.0)).all():
        raise DataError("labels: allowed are 1, 0, and nothing")
    if not ((predicted >= 0) & (predicted <= 1)).all():
        raise DataError("predictions: allowed are numbers from 0 to 1")
    if known.sum() < 2:
        raise DataError(f"{int(known.sum())} labels; a share takes at least 2")
    stratum = strata_of_labels(known, (predicted > 0.5).astype(int), predicted)
    values = np.nan_to_num(labels)[:, None]
    found = powered_means(values, predicted[:, None], known, stratum, clusters=clusters)
    corrected = bool(found.corrected[0])
    estimate = found.estimate if corrected else found.classical
    widened = found.variance + _UNSEEN / found.n**2
    variance = widened if corrected else found.classical_variance
    limits = (
        share_limits(estimate, variance, found, level),
        share_limits(found.classical, found.classical_variance, found, level),
    )
    n, total = int(known.sum()), len(labels)
    powered, alone = (
        Estimate(float(value[0]), float(lo[0]), float(hi[0]), n)
        for value, (lo, hi) in zip((estimate, found.classical), limits, strict=True)
    )
    effective = float(found.spread[0] / variance[0]) if variance[0] > 0 else found.n
    return PoweredShare(powered, alone, effective, float(found.lam[0]) if corrected else 0.0, n, total)
