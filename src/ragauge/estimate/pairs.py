"""Paired comparison of systems over topics: differences, intervals and tests of every pair."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.frames import HALLUCINATIONS, JUDGE_CLASSES
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.outcomes import PROBABILITY_COLUMNS
from ragauge.estimate.intervals import LEVEL, Estimate, paired_means, paired_share_interval
from ragauge.estimate.outcomes import (
    RIGHT,
    by_cluster,
    check_outcomes,
    clusters_by_topic,
    compared_by_class,
    labels_of,
    of_these_topics,
    with_classes,
)
from ragauge.estimate.powered import difference_test, powered_means
from ragauge.estimate.prompts import drawn, other_labels, over_prompts, p_of_sample, widened
from ragauge.estimate.sampled_means import sampled_difference
from ragauge.estimate.signs import flipped_sums

OF_CLASSES = ("correct", "hallucination")
_MEMBERS = {
    "correct": (RIGHT,),
    "hallucination": tuple(HALLUCINATIONS),
    **{f"judge_share_{c}": (c,) for c in JUDGE_CLASSES},
}
SIGN_FLIPS = 9999
_COLUMNS = ["a", "b", "measure", "difference", "lo", "hi", "p", "p_holm", "n"]


def compare_pairs(
    frame: pd.DataFrame,
    group: str = "retriever",
    seed: int = 0,
    level: float = LEVEL,
    answers: Sequence[AnswerMeasureInfo] = (),
    family: str = "measure",
) -> pd.DataFrame:
    """Every pair of groups compared on common topics: IR score, right answers, hallucinations.

    `frame` has one row per topic and group. Returns [a, b, measure, difference, lo, hi, p, p_holm, n]: the difference
    of a less b with its interval over topics, p of a test, and p_holm as in `corrected`. For `ir_score` it is the
    sign-flip permutation test of the mean difference: all flips where there are at most 9,999, else that many at
    random. For `correct` (class 5) and `hallucination` (classes 2 and 4) it is McNemar's exact test. A missing verdict
    is not right; for hallucinations its topic is left out of the pair. Where the frame has clusters, the test of every
    measure is that of the sums over clusters, whose signs flip (`sign_flip_p`). The interval is that of `paired_mean`
    (`ir_score`) or of `paired_share_interval`. Where a sample of either group's topics was judged (columns judged,
    stratum, p1..p5), `powered_difference` compares `correct` and `hallucination` over all topics that both have. n
    counts the judged ones, and numbers are NaN where they are too few. With several of the judge's prompts the values
    are means over them, tested by signs. Prompts that are a sample widen intervals and raise p
    (ragauge.estimate.prompts). `correct` and `hallucination` are left out where no row has a label. They are NaN for a
    pair if one of its groups lacks most of its verdicts (`compared_by_class`). Columns of the answer measures `answers`
    are compared as the IR score is, on the topics where both have a value; where `llm.sample` left topics out, by
    `sampled_difference`. p is NaN for a pair without a common topic.
    """
    tables = topic_tables(frame, group, answers)
    compared = compared_by_class(frame, group)
    for measure in (m for m in OF_CLASSES if m in tables):
        table = tables[measure]
        tables[measure] = table.where(np.broadcast_to(table.columns.isin([*compared]), table.shape))
    sampled = Sampled.of(frame, group)
    names = {info.name for info in answers} if "answer_status" in frame else set()
    by_group = dict(list(frame.groupby(group))) if names else {}
    parts = []
    differences = {measure: _differences(table) for measure, table in tables.items()}
    clusters = clusters_by_topic(frame, next(iter(tables.values())).index) if tables else None
    # Means over prompts are no yes or no.
    by_signs = clusters is not None or bool(other_labels(frame))
    flipped = [m for m in differences if m not in OF_CLASSES or by_signs]
    tested = _tested_by_signs({m: _summed(differences[m], clusters) for m in flipped}, seed)
    alone = [one.assign(ir_score=np.nan) for one in drawn(frame)]
    by_prompt = [compare_pairs(one, group, seed, level).groupby("measure")["difference"].agg(list) for one in alone]
    for measure, table in tables.items():
        couples, values = list(combinations(table.columns, 2)), differences[measure]
        if measure in OF_CLASSES:
            p = tested[measure] if by_signs else mcnemar_p(values)
            estimates = paired_shares(values, level, clusters)
            for number, (a, b) in enumerate(couples):
                known = sampled is not None and {a, b} <= compared
                found = sampled.compared(a, b, measure, table, level) if sampled is not None and known else None
                if found is not None:
                    estimates[number], p[number] = found
            if by_prompt:
                for number, of_prompts in enumerate(zip(*(of[measure] for of in by_prompt), strict=True)):
                    seen = estimates[number]
                    estimates[number] = widened(seen, of_prompts, low=-1.0)
                    p[number] = p_of_sample(p[number], seen, of_prompts)
        else:
            reach = reach_of(table, measure, answers)
            p, estimates = tested[measure], paired_means(values, level, reach, clusters)
            for number, (a, b) in enumerate(couples if measure in names else ()):
                sample = sampled_difference(by_group[a], by_group[b], measure, reach, level)
                if sample is not None:
                    estimates[number], p[number] = sample
        part = pd.DataFrame(couples, columns=["a", "b"]).assign(
            measure=measure,
            difference=[e.value for e in estimates],
            lo=[e.lo for e in estimates],
            hi=[e.hi for e in estimates],
            p=p,
            n=[e.n for e in estimates],
        )
        parts.append(part)
    if not parts:
        return pd.DataFrame(columns=_COLUMNS)
    return corrected(pd.concat(parts, ignore_index=True), family)[_COLUMNS]


def _differences(table: pd.DataFrame) -> np.ndarray:
    """Differences of every pair of columns, float64 [topics, pairs]."""
    couples = list(combinations(range(table.shape[1]), 2))
    x = table.to_numpy(dtype=float)
    return x[:, [a for a, _ in couples]] - x[:, [b for _, b in couples]]


def _summed(differences: np.ndarray, clusters: np.ndarray | None) -> np.ndarray:
    """Sums of differences [topics, pairs] by cluster, [clusters, pairs]; NaN for a cluster without any."""
    if clusters is None:
        return differences
    known = ~np.isnan(differences)
    there = by_cluster(known.astype(float), clusters) > 0
    return np.where(there, by_cluster(np.where(known, differences, 0.0), clusters), np.nan)


def paired_shares(differences: np.ndarray, level: float = LEVEL, clusters: np.ndarray | None = None) -> list[Estimate]:
    """`paired_share_interval` of every column of [topics, pairs], NaN for topics that a pair lacks."""
    found = []
    for d in differences.T:
        known = ~np.isnan(d)
        of = None if clusters is None else clusters[known]
        found.append(paired_share_interval(d[known], level=level, clusters=of))
    return found


def _tested_by_signs(differences: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """The p of all pairs by measure, [topics, pairs] each, with the same signs for all.

    Drawing the signs takes longer than using them, so all measures share one drawing. Each measure has the p
    that it would have alone.
    """
    if not differences:
        return {}
    p = sign_flip_p(np.hstack(list(differences.values())), seed)
    return dict(zip(differences, np.split(p, len(differences)), strict=True))


def reach_of(table: pd.DataFrame, measure: str, answers: Sequence[AnswerMeasureInfo] = ()) -> float:
    """The largest possible difference of two values of a topic: 1 for shares and scores, else the observed range."""
    if any(info.name == measure and info.unit != "share" for info in answers):
        return float(np.nanmax(table.to_numpy(dtype=float)) - np.nanmin(table.to_numpy(dtype=float)))
    return 1.0


@dataclass(frozen=True)
class Sampled:
    """Tables [qid x group] of frames with a sample of judged topics; `clusters` are those of the qids.

    `fixed` is that of `powered_means`.
    """

    judged: pd.DataFrame
    stratum: pd.DataFrame
    predicted: dict[str, pd.DataFrame]
    clusters: np.ndarray | None = None
    fixed: bool = False

    @classmethod
    def of(cls, frame: pd.DataFrame, group: str, classes: Sequence[str] = OF_CLASSES) -> Sampled | None:
        """The tables, or None if every topic was judged.

        A missing prediction is the topic's own verdict in a group that judged all topics, else 0.
        """
        if "judged" not in frame or frame["judged"].astype(bool).all():
            return None
        p = frame.reindex(columns=list(PROBABILITY_COLUMNS)).astype(float)
        own = _means_of_class(frame, classes)
        predicted = {name: p[[f"p{c}" for c in _MEMBERS[name]]].sum(axis=1, skipna=False) for name in classes}
        judged = frame["judged"].astype(bool)
        # A verdict that stands in for a prediction on judged topics alone would say which topics were judged.
        all_judged = judged.groupby(frame[group]).transform("all")
        flat = frame[["qid", group]].assign(
            judged=judged,
            stratum=frame["stratum"].astype(float) if "stratum" in frame else 0.0,
            # Of a job that judged all topics the verdicts are known, which no prediction betters.
            **{m: f.where(f.notna(), np.where(all_judged, own[m], 0.0)) for m, f in predicted.items()},
        )
        of = {c: flat.pivot(index="qid", columns=group, values=c) for c in flat.columns.drop(["qid", group])}
        clusters = clusters_by_topic(frame, of["judged"].index)
        tables = of["judged"].eq(True), of["stratum"], {m: of[m] for m in predicted}
        return cls(*tables, clusters, of_these_topics(frame))

    def compared(
        self, a: Hashable, b: Hashable, measure: str, values: pd.DataFrame, level: float
    ) -> tuple[Estimate, float] | None:
        """The difference a minus b over common topics, and its p; None if all were judged."""
        return self.averaged([(a, b)], measure, values, level)

    def averaged(
        self,
        couples: Sequence[tuple[Hashable, Hashable]],
        measure: str,
        values: pd.DataFrame,
        level: float,
    ) -> tuple[Estimate, float] | None:
        """The mean over couples (a, b) of the differences a minus b, on the topics common to all."""
        found = self.differences(couples, measure, values)
        return None if found is None else powered_difference(*found, level, self.fixed)

    def differences(
        self, couples: Sequence[tuple[Hashable, Hashable]], measure: str, values: pd.DataFrame
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None] | None:
        """The arguments of `powered_difference` for these couples, a row per topic; None if all were judged."""
        groups = list(dict.fromkeys(group for couple in couples for group in couple))
        first, second = ([couple[i] for couple in couples] for i in (0, 1))

        def difference(table: pd.DataFrame) -> np.ndarray:
            found = table[first].to_numpy(dtype=float) - table[second].to_numpy(dtype=float)
            averaged: np.ndarray = found.mean(axis=1)
            return averaged

        f, seen = difference(self.predicted[measure]), difference(values)
        judged = self.judged[groups].all(axis=1).to_numpy()
        common = ~np.isnan(f) & ~(judged & np.isnan(seen))
        all_judged = judged[common]
        if all_judged.all():
            return None
        # Samples of one seed nest: the topics that all judged are the smallest sample, drawn by its strata.
        smallest = min(groups, key=lambda group: self.judged[group].sum())
        stratum = self.stratum[smallest].to_numpy(dtype=float)[common]
        clusters = None if self.clusters is None else self.clusters[common]
        return seen[common], f[common], all_judged, stratum, clusters


def powered_difference(
    differences: np.ndarray,
    predicted: np.ndarray,
    judged: np.ndarray,
    stratum: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    level: float = LEVEL,
    fixed: bool = False,
) -> tuple[Estimate, float]:
    """The mean over all topics of partly known paired differences in [-1, 1], and p of it being 0.

    `differences` [topics] are known where `judged`, `predicted` [topics] everywhere; `stratum` are the strata that the
    judged topics were drawn by, `clusters` those that topics are in, `fixed` as in `powered_means`. The
    prediction-powered estimate (`powered_means`) with its t interval and t test (`difference_test`); n counts the
    judged topics. NaN where a stratum has fewer than two judged topics.
    """
    stratum = np.zeros(len(judged)) if stratum is None else stratum
    n = int(judged.sum())
    try:
        found = powered_means(differences[:, None], predicted[:, None], judged, stratum, 0, clusters, fixed)
    except DataError:
        return Estimate(float("nan"), float("nan"), float("nan"), n, level), float("nan")
    lo, hi, p = difference_test(found, level)
    value = float(np.clip(found.estimate[0], -1, 1))
    return Estimate(value, min(float(lo[0]), value), max(float(hi[0]), value), n, level), float(p[0])


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down correction of known p; NaN stays.

    The smallest of m p-values counts m times, the next m - 1 times, and none less than one before it.
    """
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]  # NaN comes last
    corrected = np.array(p, dtype=float)
    times = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(corrected[order] * times), 1)
    return corrected


def corrected(rows: pd.DataFrame, family: str = "measure") -> pd.DataFrame:
    """The rows [measure, p, ...] with p_holm: Holm's correction over the rows of a measure, or over all.

    family: "measure" bounds how often a measure has a difference where there is none; "all" how often any has.
    """
    if family == "all":
        return rows.assign(p_holm=holm(rows["p"].to_numpy(dtype=float)))
    by_measure = rows["p"].astype(float).groupby(rows["measure"], sort=False)
    return rows.assign(p_holm=by_measure.transform(lambda p: holm(p.to_numpy())))


def topic_tables(
    frame: pd.DataFrame,
    group: str,
    answers: Sequence[AnswerMeasureInfo] = (),
    classes: Sequence[str] = OF_CLASSES,
) -> dict[str, pd.DataFrame]:
    """Tables [qid x group] of all measures with a value: `ir_score`, answer measures and, with labels, `classes`.

    Values of `classes` are 0 or 1; by default they are `correct` and `hallucination`.

    Those of classes are NaN for a topic that a sample left out, so that pairs are compared on the judged
    topics, and for rows that are not `with_classes`. A missing verdict is 0 for `correct` and judge_share_5. It is NaN
    for the others: it may be a hallucination.
    """
    check_outcomes(frame, keys=("qid", group), may_lack=("ir_score",))
    twice = frame.duplicated(["qid", group])
    if twice.any():
        row = frame.loc[twice].iloc[0]
        raise DataError(
            f"outcomes: qid={row['qid']!r}, {group}={row[group]!r} occurs twice; a comparison takes one row "
            f"per topic and {group} (choose one n_tokens)"
        )
    labels = labels_of(frame)
    known = _means_of_class(frame, classes)
    apart = ~frame.index.isin(with_classes(frame).index)
    if "judged" in frame:
        apart |= ~frame["judged"].to_numpy(dtype=bool)
    for values in known.values():
        values[apart] = np.nan
    flat = frame[["qid", group, "ir_score"]].assign(**known)
    measures = ["ir_score"] if frame["ir_score"].notna().any() else []
    measures += known if (labels[~apart] > 0).any() else []
    for info in answers:
        flat[info.name] = frame[info.name].astype(float)
        if flat[info.name].notna().any():
            measures.append(info.name)
    return {measure: flat.pivot(index="qid", columns=group, values=measure) for measure in measures}


def of_class(labels: np.ndarray, classes: Sequence[str] = OF_CLASSES) -> dict[str, np.ndarray]:
    """Indicators (0 or 1) of each of `classes` for labels (0 without a verdict), float64.

    These are `correct`, `hallucination` and judge_share_1 to judge_share_5.
    """
    return {name: np.isin(labels, _MEMBERS[name]).astype(float) for name in classes}


def _means_of_class(frame: pd.DataFrame, classes: Sequence[str]) -> dict[str, np.ndarray]:
    """`of_class` of the rows' labels, as `topic_tables` has them: the mean over the judge's prompts."""
    unknown = np.array([RIGHT not in _MEMBERS[name] for name in classes], dtype=bool)

    def of_prompt(one: pd.DataFrame) -> np.ndarray:
        labels = labels_of(one)
        found = np.array(list(of_class(labels, classes).values())).reshape(len(classes), len(labels))
        found[np.ix_(unknown, labels == 0)] = np.nan
        return found

    return dict(zip(classes, over_prompts(frame, of_prompt), strict=True))


def sign_flip_p(differences: np.ndarray, seed: int = 0) -> np.ndarray:
    """Two-sided sign-flip p of exchangeable groups, float64 [pairs].

    The null hypothesis is that a topic's two values may be swapped: its difference is as likely as the
    opposite one, so that the differences are symmetric about 0. It is not that their mean is 0: differences
    of mean 0 that are skewed are rejected too often on few topics (docs/method.md).
    `differences` is [topics, pairs], NaN where a pair lacks the topic. Exact over all 2^m sign patterns of a pair's m
    differences that are not 0 where these are at most 9,999. Else from 9,999 random ones, the observed one counted
    among them (Phipson & Smyth 2010). NaN for a pair without topics, 1 where all differences are 0. The same test as
    scipy.stats.permutation_test(permutation_type="samples"), with one set of signs for all pairs.
    """
    values = np.nan_to_num(differences)
    observed = np.abs(values.sum(axis=0))
    # Sums of the same numbers in another order differ in the last bits; those count as equal.
    least = observed - 1e-9 * np.abs(values).sum(axis=0)
    p = np.where(np.isnan(differences).all(axis=0), np.nan, 1.0)
    moved = (values != 0).sum(axis=0)
    exact = (moved > 0) & (moved <= int(np.log2(SIGN_FLIPS)))
    for pair in np.flatnonzero(exact):
        own = values[values[:, pair] != 0, pair]
        patterns = np.arange(2 ** len(own))[:, None] >> np.arange(len(own)) & 1
        p[pair] = (np.abs((1 - 2 * patterns) @ own) >= least[pair]).mean()
    drawn = (moved > 0) & ~exact
    if drawn.any():
        some = values[:, drawn]
        extreme = np.zeros(some.shape[1], dtype=int)
        for flipped in flipped_sums(some, SIGN_FLIPS, seed):
            extreme += (np.abs(flipped) >= least[drawn]).sum(axis=0)
        p[drawn] = (extreme + 1) / (SIGN_FLIPS + 1)
    return p


def mcnemar_p(differences: np.ndarray) -> np.ndarray:
    """McNemar's exact two-sided p, float64 [pairs], with +1 and -1 equally likely.

    `differences` is [topics, pairs] of 1, 0, -1, NaN where a pair lacks the topic; NaN for a pair without
    topics.
    """
    from scipy.stats import binomtest

    won, lost = (differences > 0).sum(axis=0), (differences < 0).sum(axis=0)
    p = np.where(np.isnan(differences).all(axis=0), np.nan, 1.0)
    for pair in np.flatnonzero(won + lost):
        p[pair] = binomtest(int(won[pair]), int(won[pair] + lost[pair])).pvalue
    return p
