"""Four abilities of an LLM (to bear noise, decline without evidence, join documents, see through errors), and
whether orders in contexts and answers change verdicts.

Source of the abilities: Chen et al., Benchmarking Large Language Models in Retrieval-Augmented Generation
(RGB), AAAI 2024. docs/robustness.md lists the differences from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.outcomes import PREFIX
from ragauge.estimate.intervals import LEVEL, Estimate, bounded_mean
from ragauge.estimate.outcomes import (
    LACK,
    RIGHT,
    asked,
    by_cluster,
    cluster_columns,
    clusters_by_topic,
    clusters_of,
    labels_of,
    with_classes,
)
from ragauge.estimate.pairs import holm, mcnemar_p, of_class, paired_shares, sign_flip_p
from ragauge.estimate.slicing import NOT_KNOWN, in_order

NOISE, REJECTION, INTEGRATION, COUNTERFACTUAL, INJECTION = ABILITIES = (
    "noise robustness", "negative rejection", "information integration", "counterfactual robustness",
    "prompt injection",
)  # fmt: skip
CHANGED, CONTRADICTED = "changed", "contradicted"
FACTS = ("detected", "corrected", "fooled")
ORDERS = ("order_in_answer", "order_in_context")
DOCUMENTS = f"{PREFIX}evidence_documents"
MANY = "5"  # of the labels: five and more
DROP_AT = 0.8  # the noise rate whose loss against none is the headline
_ESTIMATES = ["system", "ability", "condition", "documents", "measure", "value", "lo", "hi", "n", "missing"]
_CHANGES = ["system", "ability", "measure", "of", "against", "difference", "lo", "hi", "p", "p_holm", "n"]
_NO_VERDICTS = "no answer has a verdict: choose an LLM and a judge"


@dataclass(frozen=True)
class Abilities:
    """The result of `abilities`: `estimates`, `changes`, and reasons for missing abilities, by name."""

    estimates: pd.DataFrame
    changes: pd.DataFrame
    lacking: Mapping[str, str]

    @property
    def systems(self) -> list[str]:
        """The systems, in order."""
        return list(dict.fromkeys(self.estimates["system"]))

    def curve(self, system: str, ability: str, measure: str) -> pd.DataFrame:
        """The rows of `estimates` for one curve."""
        of = self.estimates
        return of[(of["system"] == system) & (of["ability"] == ability) & (of["measure"] == measure)]

    def metrics(self, system: str) -> dict[str, float]:
        """The headlines of a system under their MLflow names, each with _lo and _hi."""
        found: dict[str, tuple[float, float, float]] = {}

        def take(name: str, rows: pd.DataFrame, value: str = "value", sign: int = 1) -> None:
            for row in rows.to_dict("records"):
                low, high = sorted((sign * row["lo"], sign * row["hi"]))
                found[name] = sign * row[value] + 0.0, low + 0.0, high + 0.0  # no -0.0

        changes = self.changes[self.changes["system"] == system]
        drop = changes[(changes["ability"] == NOISE) & (changes["of"] == condition_name(DROP_AT))]
        take("robustness_noise_drop", drop, "difference", -1)
        alone = self.curve(system, REJECTION, "lack")
        take("robustness_rejection", alone[alone["condition"] == condition_name(1.0)])
        several = self.curve(system, INTEGRATION, "right")
        take("robustness_integration", several[several["documents"] == "several"])
        for measure in FACTS:
            rows = self.curve(system, COUNTERFACTUAL, measure)
            take(f"robustness_{measure}", rows[rows["condition"] == CHANGED])
            take(f"robustness_contradicted_{measure}", rows[rows["condition"] == CONTRADICTED])
        for measure in ORDERS:
            take(f"robustness_{measure}", self.curve(system, INJECTION, measure))
        return {
            f"{name}{end}": float(value)
            for name, values in found.items()
            for end, value in zip(("", "_lo", "_hi"), values, strict=True)
        }


def condition_name(condition: float | str) -> str:
    """A noise rate as text, or the name of a condition."""
    return condition if isinstance(condition, str) else f"{condition:g}"


def abilities(frame: pd.DataFrame, level: float = LEVEL) -> Abilities:
    """The four abilities of every system, with intervals over topics.

    frame: a row per topic, `system` and `condition` (a noise rate in [0, 1], "changed" or "contradicted") at one
    n_tokens. It has outcomes, with `slice:evidence_documents` and detected, corrected, fooled where they are known.
    Only topics with evidence count (an IR score, or a known number of evidence documents). For shares of classes only
    those `with_classes` that a judge was asked about count; a missing verdict is not right.

    estimates [system, ability, condition, documents, measure, value, lo, hi, n, missing] (`bounded_mean`, each holds by
        itself; missing counts topics without verdict or value, in n for classes alone). noise robustness: `right` by
        noise rate. Beside it stand `ir_score`, the share of the evidence that is left, and `answer_in_context`.
        negative rejection: `lack` (class 1), and `hallucination`, by noise rate; at 1 is the ability. information
        integration: `right` without noise by the number of evidence documents, and of `several`. counterfactual
        robustness: detected, corrected, fooled over the topics that have a changed fact, and `corrected_of_detected`,
        RGB's correction rate. Its conditions: without noise ("0": false alarms), where facts are changed, and where
        they are contradicted. prompt injection: the share of topics whose verdict an order in the answer changes, and
        one in the
            context.
    changes [system, ability, measure, of, against, difference, lo, hi, p, p_holm, n]. Against the rate 0 they are
    paired by topic (`paired_share_interval`, McNemar's exact p, Holm over conditions of a measure). Between numbers of
    evidence documents, which are different topics, they have Newcombe's interval and no p.

    DataError where a topic stands twice in a condition.
    """
    twice = frame.duplicated(["system", "condition", "qid"])
    if twice.any():
        row = frame[twice].iloc[0]
        raise DataError(
            f"robustness: qid={row['qid']!r} stands twice in the condition {row['condition']} of "
            f"{row['system']!r}; it takes one row per topic and condition (choose one n_tokens)"
        )
    known = _with_evidence(frame)
    estimates: list[tuple[object, ...]] = []
    changes: list[tuple[object, ...]] = []
    for system, rows in known.groupby("system", sort=False):
        for ability, of in _of_system(rows, level):
            estimates += [(system, ability, *row) for row in of.estimates]
            changes += [(system, ability, *row) for row in of.changes]
    found = pd.DataFrame(estimates, columns=_ESTIMATES)
    return Abilities(found, pd.DataFrame(changes, columns=_CHANGES), _lacking(known, found))


def _with_evidence(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of topics that have evidence."""
    kept = frame["ir_score"].notna()
    if DOCUMENTS in frame:
        kept |= frame[DOCUMENTS].notna() & frame[DOCUMENTS].ne(NOT_KNOWN)
    return frame[kept]


@dataclass(frozen=True)
class _Found:
    """Rows of `estimates` and `changes`, without system and ability."""

    estimates: list[tuple[object, ...]]
    changes: list[tuple[object, ...]]


def _of_system(rows: pd.DataFrame, level: float) -> Iterator[tuple[str, _Found]]:
    classed = asked(with_classes(rows))
    rates = sorted(c for c in rows["condition"].unique() if not isinstance(c, str))
    if classed["label"].notna().any() and "weight" not in classed:
        yield NOISE, _by_rate(classed, rows, rates, "right", (RIGHT,), level)
        yield REJECTION, _by_rate(classed, None, rates, "lack", (LACK,), level)
        yield INTEGRATION, _integration(classed, level)
    yield COUNTERFACTUAL, _counterfactual(rows, level)
    yield INJECTION, _injection(rows, level)


def _by_rate(
    classed: pd.DataFrame,
    rows: pd.DataFrame | None,
    rates: Sequence[float],
    measure: str,
    labels: tuple[int, ...],
    level: float,
) -> _Found:
    """The share of the labels by noise rate and its change; with `rows` also the contexts' properties."""
    found = _Found([], [])
    for rate in rates:
        part = classed[classed["condition"] == rate]
        given, name = labels_of(part), condition_name(rate)
        shares = {measure: np.isin(given, labels)}
        if measure == "lack":
            shares["hallucination"] = of_class(given, ("hallucination",))["hallucination"]
        for of, values in shares.items():
            found.estimates.append((name, "", of, *_row(_mean(values, part, level)), int((given == 0).sum())))
        if rows is None:
            continue
        for of in ("ir_score", "answer_in_context"):
            there = rows[rows["condition"] == rate]
            if of in there and there[of].notna().any():
                e = _mean(there[of], there, level)
                found.estimates.append((name, "", of, *_row(e), int(there[of].isna().sum())))
    table = classed.assign(value=np.isin(labels_of(classed), labels).astype(float))
    found.changes.extend(_changes(table, measure, rates, level))
    return found


def _changes(
    rows: pd.DataFrame, measure: str, conditions: Sequence[float | str], level: float
) -> list[tuple[object, ...]]:
    """Paired differences of the column `value` between every condition and rate 0, if measured.

    McNemar's exact p; of clusters the signs of their sums flip (`sign_flip_p`).
    """
    named = rows[["qid", "value", *cluster_columns(rows)]].assign(condition=rows["condition"].map(condition_name))
    table = named.pivot(index="qid", columns="condition", values="value")
    none, names = condition_name(0.0), [condition_name(c) for c in conditions]
    others = [name for name in names if name != none and name in table]
    if none not in table or not others:
        return []
    values = np.column_stack([(table[name] - table[none]).to_numpy(dtype=float) for name in others])
    clusters = clusters_by_topic(named, table.index)
    p = mcnemar_p(values) if clusters is None else sign_flip_p(by_cluster(np.nan_to_num(values), clusters))
    estimates = paired_shares(values, level, clusters)
    return [
        (measure, c, none, e.value, e.lo, e.hi, own, corrected, e.n)
        for c, e, own, corrected in zip(others, estimates, p, holm(p), strict=True)
    ]


def _integration(classed: pd.DataFrame, level: float) -> _Found:
    """Shares of right answers without noise, by the number of evidence documents."""
    found = _Found([], [])
    rows = classed[classed["condition"] == 0]
    if DOCUMENTS not in rows or rows.empty:
        return found
    rows = rows[rows[DOCUMENTS].notna() & rows[DOCUMENTS].ne(NOT_KNOWN)]
    groups = {label: rows[rows[DOCUMENTS] == label] for label in in_order(rows[DOCUMENTS])}
    one = next(iter(groups), None)
    several = rows[rows[DOCUMENTS] != one] if one == "1" else rows.iloc[:0]
    estimates: dict[str, Estimate] = {}
    for label, part in {**groups, **({"several": several} if len(several) else {})}.items():
        given = labels_of(part)
        estimates[label] = _mean(given == RIGHT, part, level)
        missing = int((given == 0).sum())
        found.estimates.append((condition_name(0.0), label, "right", *_row(estimates[label]), missing))
    for label, e in estimates.items():
        if one is not None and label != one:
            difference = unpaired_difference(e, estimates[one])
            values = (difference.value, difference.lo, difference.hi, float("nan"), float("nan"))
            found.changes.append(("right", label, one, *values, e.n + estimates[one].n))
    return found


def unpaired_difference(a: Estimate, b: Estimate) -> Estimate:
    """a less b, two shares of different topics, with the interval combined from their own.

    Each limit lies as far from the difference as the two limits that are on its side, squared and added. NaN
    limits where one of the two has none. Source: Newcombe, Interval estimation for the difference between
    independent proportions, Statistics in Medicine 17, 1998, method 10.
    """
    value = a.value - b.value
    lo = value - math.hypot(a.value - a.lo, b.hi - b.value)
    hi = value + math.hypot(a.hi - a.value, b.value - b.lo)
    return Estimate(value, max(lo, -1.0), min(hi, 1.0), a.n + b.n, a.level)


def _counterfactual(rows: pd.DataFrame, level: float) -> _Found:
    """Answers to a changed fact, over the topics with one."""
    found = _Found([], [])
    if not set(FACTS) <= set(rows.columns):
        return found
    having = rows[rows["qid"].isin(rows.loc[rows[FACTS[0]].notna(), "qid"])]
    conditions: list[float | str] = [c for c in (0.0, CHANGED, CONTRADICTED) if c in set(having["condition"])]
    for condition in conditions:
        part = having[having["condition"] == condition]
        for measure in FACTS:
            values = part[measure].astype(float)
            e = _mean(values, part, level)
            found.estimates.append((condition_name(condition), "", measure, *_row(e), int(values.isna().sum())))
        detected = part[part["detected"] == 1]
        if len(detected) and condition != 0:
            e = _mean(detected["corrected"], detected, level)
            found.estimates.append((condition_name(condition), "", "corrected_of_detected", *_row(e), 0))
    for measure in FACTS:
        table = having[having["condition"].isin(conditions)].assign(value=having[measure].astype(float))
        found.changes.extend(_changes(table, measure, conditions, level))
    return found


def _injection(rows: pd.DataFrame, level: float) -> _Found:
    """How often an order changes the verdict; the two verdicts of each topic are paired."""
    found = _Found([], [])
    plain = rows[rows["condition"] == 0]
    for measure in ORDERS:
        values = plain[measure].astype(float) if measure in plain else pd.Series(dtype=float)
        if values.notna().any():
            e = _mean(values, plain, level)
            found.estimates.append((condition_name(0.0), "", measure, *_row(e), int(values.isna().sum())))
    return found


def _mean(values: np.ndarray | pd.Series, rows: pd.DataFrame, level: float) -> Estimate:
    """The mean of the rows' known values, over topics or clusters."""
    x = np.asarray(values, dtype=float)
    known, clusters = ~np.isnan(x), clusters_of(rows)
    return bounded_mean(x[known], level=level, clusters=None if clusters is None else clusters[known])


def _row(e: Estimate) -> tuple[float, float, float, int]:
    return e.value, e.lo, e.hi, e.n


def _lacking(rows: pd.DataFrame, estimates: pd.DataFrame) -> dict[str, str]:
    """Why an ability was not measured in full, by ability."""
    conditions = set(rows["condition"])
    classed = asked(with_classes(rows))
    told: dict[str, str] = {}
    if rows.empty:
        return dict.fromkeys(ABILITIES, "no topic has evidence")
    unjudged = None
    if not classed["label"].notna().any():
        unjudged = _NO_VERDICTS
    elif "weight" in classed:
        unjudged = "topics were judged by strata, whose shares this does not estimate: judge all, or a plain sample"
    if unjudged:
        told |= dict.fromkeys((NOISE, REJECTION, INTEGRATION), unjudged)
    else:
        rates = {c for c in conditions if not isinstance(c, str)}
        if 0 not in rates or not any(0 < c < 1 for c in rates):
            told[NOISE] = "it takes retriever.condition=0 and noise rates above it, such as 0.8"
        if 1 not in rates:
            told[REJECTION] = "it takes retriever.condition=1, contexts of distractors alone"
        numbers = estimates.loc[estimates["ability"] == INTEGRATION, "documents"]
        if 0 not in rates or DOCUMENTS not in rows:
            told[INTEGRATION] = "it takes retriever.condition=0 and slices=[evidence_documents]"
        elif numbers.nunique() < 2:
            count = next(iter(numbers), "?")
            told[INTEGRATION] = f"every topic has its evidence in the same number of documents, {count}"
    if estimates[estimates["ability"] == INJECTION].empty:
        told[INJECTION] = "it takes answers=[injection], retriever.condition=0, an LLM that answers and a judge"
    if not set(FACTS) <= set(rows.columns):
        told[COUNTERFACTUAL] = (
            "it takes documents with a changed fact (of dataset=fictional, of RGB's file en_fact.json), "
            "retriever.condition=changed and answers=[counterfactual]"
        )
    elif not {CHANGED, CONTRADICTED} & conditions:
        told[COUNTERFACTUAL] = "it takes retriever.condition=changed, contradicted"
    elif estimates[estimates["ability"] == COUNTERFACTUAL].empty:
        told[COUNTERFACTUAL] = "no topic has a document with a changed fact"
    return told
