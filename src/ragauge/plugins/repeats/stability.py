"""Stability of a job's answers: variance components, agreement, right at least once and always."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ragauge.estimate.intervals import Estimate, bounded_mean
from ragauge.estimate.outcomes import RIGHT, cluster_columns, clusters_by_topic, clusters_of, share_columns
from ragauge.plugins.repeats.components import PARTS, Components, components, rank_correlation


@dataclass(frozen=True)
class Stability:
    """The results for one job: n topics, r answers to each, k verdicts on each answer.

    of: the components by share or answer measure. agreement: the share of pairs of answers to a topic whose first
    verdicts are the same class; judge_agreement: of pairs of verdicts on an answer. right_once, right_always: topics of
    whose r answers one at least, and all, are right. same_answers: topics whose answers are all equal. foresight: the
    rank correlation of a topic's IR score and the variance of its answers being right. None where there is none.
    """

    n: int
    r: int
    k: int
    of: dict[str, Components] = field(default_factory=dict)
    agreement: Estimate | None = None
    judge_agreement: Estimate | None = None
    right_once: Estimate | None = None
    right_always: Estimate | None = None
    same_answers: Estimate | None = None
    foresight: Estimate | None = None

    def metrics(self) -> dict[str, float]:
        """The metrics of a job; omits unknown ones."""
        found: dict[str, float] = {"repeat_topics": self.n, "repeat_answers": self.r, "repeat_verdicts": self.k}
        right = self.of["correct_share"]
        named: dict[str, Estimate | None] = {f"repeat_variance_{part}": getattr(right, part) for part in PARTS}
        for name in ("agreement", "judge_agreement", "right_once", "right_always", "same_answers", "foresight"):
            named[f"repeat_{name}"] = getattr(self, name)
        for name, one in named.items():
            if one is not None:
                found |= {name: one.value, f"{name}_lo": one.lo, f"{name}_hi": one.hi}
        found |= {f"repeat_error_{part}": share for part, share in zip(PARTS, right.of_error, strict=True)}
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def table(self) -> pd.DataFrame:
        """A row per share and measure: [of, mean, topics, error, topic, topic_lo, topic_hi, of_error_topic, ...]."""
        rows = []
        for name, one in self.of.items():
            row = {"of": name, "mean": one.mean, "topics": one.n, "error": math.sqrt(one.error)}
            for part, share in zip(PARTS, one.of_error, strict=True):
                found: Estimate = getattr(one, part)
                row |= {part: found.value, f"{part}_lo": found.lo, f"{part}_hi": found.hi, f"of_error_{part}": share}
            rows.append(row)
        return pd.DataFrame(rows)


def stability(
    repeated: pd.DataFrame, outcomes: pd.DataFrame, measures: Sequence[str] = (), n_boot: int = 1000, seed: int = 0
) -> Stability | None:
    """`Stability` of repeated [qid, sample, repeat, answer, label, judge_status, measure, ...]; None without verdicts.

    outcomes [qid, ir_score] are the topics that count in class shares, with their clusters. A verdict that is missing
    counts as no class, as in shares; measures are over the topics with a value of every answer.
    """
    frame = repeated[repeated["qid"].isin(outcomes["qid"]) & repeated["judge_status"].notna()]
    if frame.empty or frame["label"].isna().all():
        return None
    qids = np.sort(frame["qid"].unique().astype(object))
    of_topics = outcomes.set_index("qid").loc[qids]
    known = outcomes[["qid", *cluster_columns(outcomes)]]
    clusters = clusters_by_topic(known, qids)
    r, k = int(frame["sample"].max()) + 1, int(frame["repeat"].max()) + 1
    cube = frame.set_index(["qid", "sample", "repeat"]).reindex(pd.MultiIndex.from_product([qids, range(r), range(k)]))
    shape = (len(qids), r, k)
    labels = cube["label"].astype("Int64").fillna(0).to_numpy(dtype=np.int64).reshape(shape)
    # As the judge sees them: on one line.
    plain = cube["answer"].astype(object).map(lambda text: " ".join(text.split()) if isinstance(text, str) else "")
    texts = pd.factorize(plain)[0].reshape(shape)[:, :, 0]
    found: dict[str, Components] = {}
    for name, counts in share_columns(labels).items():
        found[name] = components(counts.astype(float), texts, n_boot, seed, clusters)
    for name in measures:
        values = cube[name].to_numpy(dtype=float).reshape(shape)[:, :, :1]
        whole = ~np.isnan(values).any(axis=(1, 2))
        if whole.sum() > 1:
            of = None if clusters is None else clusters[whole]
            found[name] = components(values[whole], texts[whole], n_boot, seed, of)

    def share(values: np.ndarray) -> Estimate:
        return bounded_mean(values, pd.Series(qids), clusters=clusters_of(of_topics))

    several: dict[str, Estimate] = {}
    if r > 1:
        right = (labels[:, :, 0] == RIGHT).astype(float)
        scores = of_topics["ir_score"].to_numpy(dtype=float, na_value=np.nan)
        there = ~np.isnan(scores)
        several = {
            "agreement": share(_agreeing(labels[:, :, 0])),
            "right_once": share(right.max(axis=1)),
            "right_always": share(right.min(axis=1)),
            "same_answers": share((texts == texts[:, :1]).all(axis=1).astype(float)),
        }
        if there.sum() > 2:
            of = None if clusters is None else clusters[there]
            several["foresight"] = rank_correlation(scores[there], right.var(axis=1)[there], n_boot, seed, of)
    if k > 1:
        several["judge_agreement"] = share(np.mean([_agreeing(labels[:, s]) for s in range(r)], axis=0))
    return Stability(len(qids), r, k, found, **several)


def _agreeing(labels: np.ndarray) -> np.ndarray:
    """float64 [topics]: the share of column pairs of [topics, m] with the same class."""
    m = labels.shape[1]
    equal = (labels[:, :, None] == labels[:, None, :]).sum(axis=(1, 2)) - m
    agreeing: np.ndarray = equal / (m * (m - 1))
    return agreeing
