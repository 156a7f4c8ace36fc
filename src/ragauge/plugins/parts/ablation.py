"""The effect of each part of a system: differences with all else equal, averaged over the rest of a grid.

In a sweep's grid every two systems are matched that differ in one factor alone (a reranker and none, say). The
differences of an option's matches are averaged per topic, so that an option has one estimate. Its interval is over
topics: the matches of one topic are no independent observations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate.intervals import LEVEL, Estimate, paired_mean, paired_share_interval
from ragauge.estimate.outcomes import RIGHT, clusters_by_topic
from ragauge.estimate.pairs import OF_CLASSES, Sampled, reach_of, topic_tables

NONE = "none"
_MEASURES = ("ir_score", *OF_CLASSES)
# Class 5 is `correct`.
_GAINS = (*OF_CLASSES, *(f"judge_share_{c}" for c in range(1, RIGHT)))
_COLUMNS = ["measure", "difference", "lo", "hi", "n"]

Couples = list[tuple[str, str]]
Contrasts = dict[tuple[str, ...], Couples]


def ablation(
    frame: pd.DataFrame,
    settings: Mapping[str, Mapping[str, str]],
    without_effect: Mapping[str, Collection[str]] | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """The difference of each option of each factor from a base option, all else equal.

    `frame` has a row per topic and `system` (one n_tokens); `settings` gives every system its option of each
    factor: {system: {factor: option}}. The base is `none` where a factor has it, else the first option.
    `without_effect` names the factors that change nothing of a system, such as a chunker where nothing is
    retrieved: pairs of it are not matched for these.
    Returns [factor, option, base, measure, difference, lo, hi, n, settings]; no row where none match. difference: mean
    over topics of the option's value less the base's, averaged over the `settings` matching settings of the other
    factors. `ir_score`: `paired_mean`; `correct` and `hallucination`, in [-1, 1], where any row has a label:
    `paired_share_interval` with the topic as the unit, or where a sample of topics was judged `powered_difference`. n
    counts the topics that all matched systems have. Every interval holds by itself. Raises DataError for a system
    without settings.
    """
    systems = set(frame["system"].unique()) if "system" in frame else set()
    unknown = sorted(systems - set(settings))
    if unknown:
        raise DataError(f"ablation: no settings are given of system {unknown[0]!r}")
    there = {system: own for system, own in settings.items() if system in systems}
    contrasts: Contrasts = dict(_contrasts(there, without_effect or {}))
    tables = topic_tables(frame, "system")
    tables = {measure: tables[measure] for measure in _MEASURES if measure in tables}
    found = _estimates(contrasts, tables, frame, level)
    rows = [(*contrast, measure, e.value, e.lo, e.hi, e.n, len(contrasts[contrast])) for contrast, measure, e in found]
    return pd.DataFrame(rows, columns=["factor", "option", "base", *_COLUMNS, "settings"])


def gains(
    frame: pd.DataFrame,
    bases: Mapping[str, str],
    level: float = LEVEL,
    answers: Sequence[AnswerMeasureInfo] = (),
) -> pd.DataFrame:
    """The gain of systems over their base, topic by topic: [system, base, measure, difference, lo, hi, n].

    `frame` has a row per topic and `system`, `bases` a base for each compared system: for LLM only the one
    that retrieves nothing. Measures: `correct`, `hallucination`, judge_share_1 to judge_share_4, and the
    answer measures `answers`. Intervals as in `ablation`. No rows without labels and
    answer measures.
    """
    tables = topic_tables(frame, "system", answers, _GAINS)
    tables.pop("ir_score", None)
    there = set(frame["system"].unique())
    contrasts: Contrasts = {(s, base): [(s, base)] for s, base in bases.items() if {s, base} <= there}
    found = _estimates(contrasts, tables, frame, level, answers)
    rows = [(*contrast, measure, e.value, e.lo, e.hi, e.n) for contrast, measure, e in found]
    return pd.DataFrame(rows, columns=["system", "base", *_COLUMNS])


def _contrasts(
    settings: Mapping[str, Mapping[str, str]], without_effect: Mapping[str, Collection[str]]
) -> Iterator[tuple[tuple[str, ...], Couples]]:
    """The matched systems of every (factor, option, base); none without a match."""
    factors = dict.fromkeys(factor for own in settings.values() for factor in own)
    for factor in factors:
        of_factor = {s: own for s, own in settings.items() if factor in own}
        rest = {s: _rest(own, factor) for s, own in of_factor.items()}
        options = list(dict.fromkeys(own[factor] for own in of_factor.values()))
        base = NONE if NONE in options else options[0]
        usable = [s for s in of_factor if factor not in without_effect.get(s, ())]
        partner = {rest[s]: s for s in usable if of_factor[s][factor] == base}
        for option in options:
            couples = [
                (s, partner[rest[s]])
                for s in usable
                if option != base and of_factor[s][factor] == option and rest[s] in partner
            ]
            if couples:
                yield (factor, option, base), couples


def _rest(own: Mapping[str, str], factor: str) -> frozenset[tuple[str, str]]:
    return frozenset((name, option) for name, option in own.items() if name != factor)


def _estimates(
    contrasts: Contrasts,
    tables: Mapping[str, pd.DataFrame],
    frame: pd.DataFrame,
    level: float,
    answers: Sequence[AnswerMeasureInfo] = (),
) -> Iterator[tuple[tuple[str, ...], str, Estimate]]:
    """The mean difference of every contrast by measure; omits one without a common topic."""
    classes = [measure for measure in tables if measure in _GAINS]
    sampled = Sampled.of(frame, "system", classes) if classes else None
    clusters = clusters_by_topic(frame, next(iter(tables.values())).index) if tables else None
    found: dict[tuple[tuple[str, ...], str], Estimate] = {}
    for measure, table in tables.items():
        reach = reach_of(table, measure, answers)
        for contrast, couples in contrasts.items():
            differences = _differences(table, couples)
            whole = ~np.isnan(differences).any(axis=1)
            of = None if clusters is None else clusters[whole]
            powered = None
            if measure in classes and sampled is not None:
                powered = sampled.averaged(couples, measure, table, level)
            if powered is not None:
                found[contrast, measure] = powered[0]
            elif not whole.any():
                continue
            elif measure in classes:
                rows, many = differences[whole], len(couples)
                topics, of_rows = np.repeat(np.arange(whole.sum()), many), None if of is None else np.repeat(of, many)
                found[contrast, measure] = paired_share_interval(rows.ravel(), topics, level, clusters=of_rows)
            else:
                found[contrast, measure] = paired_mean(differences[whole].mean(axis=1), level, reach, of)
    for contrast in contrasts:
        for measure in tables:
            if (contrast, measure) in found:
                yield contrast, measure, found[contrast, measure]


def _differences(table: pd.DataFrame, couples: Couples) -> np.ndarray:
    """float64 [topics, couples]: the first of each couple less the second; NaN if one lacks the topic."""
    first, second = ([couple[i] for couple in couples] for i in (0, 1))
    found: np.ndarray = table[first].to_numpy(dtype=float) - table[second].to_numpy(dtype=float)
    return found
