"""Failures by thresholds on answer measures, and the frequency of each cause: overall, by slice, by place."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.errors import ConfigError
from ragauge.contract.outcomes import CAUSE, PREFIX
from ragauge.diagnose.causes import CAUSES, Cause, in_question
from ragauge.diagnose.funnel import share_of
from ragauge.estimate.slicing import in_order, slicings


@dataclass(frozen=True)
class Rule:
    """A topic fails where the measure is below the threshold."""

    measure: str
    below: float
    cause: Cause


RULES: Sequence[Rule] = (
    Rule("context_recall", 0.3, Cause(
        "low_recall", "context recall below 0.3",
        "Ask for more hits, or search otherwise: what the answer needs was not retrieved.",
        "retriever=hybrid retriever.top_k=100")),
    Rule("context_precision", 0.3, Cause(
        "low_precision", "context precision below 0.3",
        "Rerank: the needed passages rank below others.",
        "reranker=cross_encoder")),
    Rule("faithfulness", 0.5, Cause(
        "unfaithful", "faithfulness below 0.5",
        "Ask the LLM to keep to the documents, or try another: the answer says what the context does not say.",
        "llm.prompt_with_documents=<file>")),
    Rule("answer_correctness", 0.5, Cause(
        "incorrect", "answer correctness below 0.5",
        "Try another prompt or model: the answer comes from the context, and is not what was asked for.",
        "llm=<another>")),
)  # fmt: skip
RULE_CAUSES: Mapping[str, Cause] = {rule.cause.name: rule.cause for rule in RULES}


def check_rules(measures: Sequence[str]) -> None:
    """ConfigError if a job lacks a measure that a rule uses."""
    lacking = [rule.measure for rule in RULES if rule.measure not in measures]
    if lacking:
        needed = ",".join(rule.measure for rule in RULES)
        raise ConfigError(
            f"failures=rules looks at {', '.join(lacking)}, which this job does not measure: add "
            f"answers=[{needed}], or choose failures=causes"
        )


def failures_by_rules(outcomes: pd.DataFrame) -> pd.DataFrame:
    """The cause of every topic below a rule's threshold: qid, cause, decided_by. Missing values break no rule.

    `outcomes` has a row per topic with a column for the measure of every rule; ConfigError without.
    """
    check_rules(list(outcomes.columns))
    values = {rule: outcomes[rule.measure].astype(float).to_numpy() for rule in RULES}
    broken = [values[rule] < rule.below for rule in RULES]
    found = np.select(broken, [rule.cause.name for rule in RULES], "")
    told = [np.array([f"{rule.measure} {value:.2f}" for value in values[rule]], dtype=object) for rule in RULES]
    why = np.select(broken, told, "")
    rows = pd.DataFrame({"qid": outcomes["qid"].to_numpy(), "cause": found, "decided_by": why})
    return rows[rows["cause"] != ""].astype({"cause": "str", "decided_by": "str"}).reset_index(drop=True)


EVERY_CAUSE: Mapping[str, Cause] = {**CAUSES, **RULE_CAUSES}
NOT_KNOWN = "not known"  # the origin of failures on topics without evidence
_ORIGINS: Mapping[str, Sequence[str]] = {  # of causes, by their slugs
    "the corpus": ("not_in_corpus",),
    "retrieval": ("chunker", "not_retrieved", "reranker", "compressed", "low_recall", "low_precision"),
    "the budget": ("budget",),
    "the LLM": ("middle", "generation", "unsupported", "unfaithful", "incorrect"),
    "the judge": ("judge_missing",),
    NOT_KNOWN: ("unknown",),
}
ORIGIN_OF: Mapping[str, str] = {
    cause.name: origin for origin, slugs in _ORIGINS.items() for cause in EVERY_CAUSE.values() if cause.slug in slugs
}
NOT_FAILED = "not failed"


def cause_shares(outcomes: pd.DataFrame, names: Collection[str] = ()) -> pd.DataFrame:
    """Number and share of failed topics by cause: cause, topics, share, lo, hi, of_failures, n.

    `outcomes` has a row per topic with a column failure_cause, missing where the topic did not fail. Shares
    are over the n topics that can fail, with intervals over topics; of_failures is over those that did. The
    most frequent cause comes first. Causes without a topic are left out, but for those of `names`.
    """
    rows = in_question(outcomes)
    columns = ["cause", "topics", "share", "lo", "hi", "of_failures", "n"]
    if rows.empty or CAUSE not in rows:
        return pd.DataFrame(columns=columns)
    counts, order = rows[CAUSE].value_counts(), list(EVERY_CAUSE)
    shown = [name for name in order if name in names or counts.get(name, 0)]
    failed = int(rows[CAUSE].notna().sum())
    found = []
    for name in sorted(shown, key=lambda name: (-int(counts.get(name, 0)), order.index(name))):
        here = rows[CAUSE].eq(name).fillna(False).to_numpy(dtype=bool)
        share = share_of(here, rows)
        of_failures = here.sum() / failed if failed else float("nan")
        found.append((name, int(here.sum()), share.value, share.lo, share.hi, of_failures, len(rows)))
    return pd.DataFrame(found, columns=columns)


def failure_origins(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Failures by origin, the most frequent first and NOT_KNOWN last: origin, cause, failures, share, lo, hi, n.

    `outcomes` has a row per system and topic with a column failure_cause, missing where the topic did not fail.
    The shares are of all n failures, with intervals over topics, and 0 where no failure comes from an origin. `cause`
    is the most frequent cause of the origin, "" without one. Every failure has one origin, so the shares sum to 1.
    """
    rows = in_question(outcomes)
    failed = rows[rows[CAUSE].notna()]
    origins = failed[CAUSE].map(ORIGIN_OF)
    found = []
    for origin in _ORIGINS:
        here = origins.eq(origin).to_numpy(dtype=bool)
        share = share_of(here, failed)
        cause = next(iter(failed.loc[here, CAUSE].value_counts().index), "")
        found.append((origin, cause, int(here.sum()), share.value, share.lo, share.hi, len(failed)))
    columns = ["origin", "cause", "failures", "share", "lo", "hi", "n"]
    frame = pd.DataFrame(found, columns=columns).sort_values("failures", ascending=False, kind="stable")
    return frame.sort_values("origin", key=lambda names: names == NOT_KNOWN, kind="stable")


def failure_metrics(shares: pd.DataFrame) -> dict[str, float]:
    """`failure_<cause>_share` with `_lo` and `_hi`, of `cause_shares`."""
    found: dict[str, float] = {}
    for row in shares.to_dict("records"):
        name = f"failure_{EVERY_CAUSE[row['cause']].slug}_share"
        found |= {name: row["share"], f"{name}_lo": row["lo"], f"{name}_hi": row["hi"]}
    return found


def causes_by_slice(outcomes: pd.DataFrame) -> pd.DataFrame:
    """`cause_shares` of every slice: slicing, slice, and its columns."""
    parts = []
    for by in slicings(outcomes):
        for label in in_order(outcomes[PREFIX + by]):
            shares = cause_shares(outcomes[outcomes[PREFIX + by] == label])
            shares.insert(0, "slicing", by)
            shares.insert(1, "slice", label)
            parts.append(shares)
    parts = [part for part in parts if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def right_by_place(outcomes: pd.DataFrame, places: tuple[str, ...]) -> pd.DataFrame:
    """Share of right answers by the place of all evidence in the context: place, right, n, share, lo, hi."""
    rows = in_question(outcomes)
    found = []
    for place in places:
        part = rows[rows["evidence_place"] == place] if "evidence_place" in rows else rows.iloc[:0]
        if part.empty or rows["label"].isna().all():
            continue
        right = part["label"].eq(5).fillna(False).to_numpy(dtype=bool)
        share = share_of(right, part)
        found.append((place, int(right.sum()), len(part), share.value, share.lo, share.hi))
    return pd.DataFrame(found, columns=["place", "right", "n", "share", "lo", "hi"])


def transitions(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Changes of cause from one system to another, the most frequent first: cause, becomes, topics.

    Both have qid and failure_cause, missing where the topic did not fail. Topics of both count, also those
    whose cause stays.
    """
    before, after = (in_question(rows)[["qid", CAUSE]] for rows in (before, after))
    both = before.merge(after, on="qid", suffixes=("", "_after"))
    both = both.rename(columns={CAUSE: "cause", f"{CAUSE}_after": "becomes"})
    both = both.fillna({"cause": NOT_FAILED, "becomes": NOT_FAILED})
    counts = both.groupby(["cause", "becomes"]).size().rename("topics").reset_index()
    return counts.sort_values(["topics", "cause", "becomes"], ascending=[False, True, True], ignore_index=True)
