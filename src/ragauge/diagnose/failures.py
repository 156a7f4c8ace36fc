"""How often each cause of failure is met: shares of all topics and by slice, and what changed its cause."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pandas as pd

from ragauge.contract.answer_measures import NO_REFERENCE
from ragauge.diagnose.causes import CAUSES, Cause
from ragauge.diagnose.funnel import share_of
from ragauge.diagnose.rules import RULE_CAUSES
from ragauge.estimate.outcomes import asked
from ragauge.estimate.slicing import PREFIX, in_order, slicings

EVERY_CAUSE: Mapping[str, Cause] = {**CAUSES, **RULE_CAUSES}
NOT_FAILED = "not failed"
CAUSE, DECIDED_BY = "failure_cause", "failure_decided_by"  # columns of outcomes


def _in_question(outcomes: pd.DataFrame) -> pd.DataFrame:
    """The rows of topics that can fail: of a sample those that were judged."""
    rows = asked(outcomes)
    return rows[rows["judge_status"].ne(NO_REFERENCE).fillna(True)] if "judge_status" in rows else rows


def cause_shares(
    outcomes: pd.DataFrame, n_boot: int = 1000, seed: int = 0, names: Collection[str] = ()
) -> pd.DataFrame:
    """How many topics fail for each cause: cause, topics, share, lo, hi, of_failures, n.

    `outcomes` has a row per topic with a column failure_cause, missing where the topic did not fail. Shares
    are over the n topics that can fail, with intervals over topics; of_failures is over those that did. The
    most frequent cause comes first. Causes without a topic are left out, but for those of `names`.
    """
    rows = _in_question(outcomes)
    columns = ["cause", "topics", "share", "lo", "hi", "of_failures", "n"]
    if rows.empty or CAUSE not in rows:
        return pd.DataFrame(columns=columns)
    counts, order = rows[CAUSE].value_counts(), list(EVERY_CAUSE)
    shown = [name for name in order if name in names or counts.get(name, 0)]
    failed = int(rows[CAUSE].notna().sum())
    found = []
    for name in sorted(shown, key=lambda name: (-int(counts.get(name, 0)), order.index(name))):
        here = rows[CAUSE].eq(name).fillna(False).to_numpy(dtype=bool)
        share = share_of(here, rows, n_boot, seed)
        of_failures = here.sum() / failed if failed else float("nan")
        found.append((name, int(here.sum()), share.value, share.lo, share.hi, of_failures, len(rows)))
    return pd.DataFrame(found, columns=columns)


def failure_metrics(shares: pd.DataFrame) -> dict[str, float]:
    """`failure_<cause>_share` with `_lo` and `_hi`, of `cause_shares`."""
    found: dict[str, float] = {}
    for row in shares.to_dict("records"):
        name = f"failure_{EVERY_CAUSE[row['cause']].slug}_share"
        found |= {name: row["share"], f"{name}_lo": row["lo"], f"{name}_hi": row["hi"]}
    return found


def causes_by_slice(outcomes: pd.DataFrame, n_boot: int = 1000, seed: int = 0) -> pd.DataFrame:
    """`cause_shares` of every slice: slicing, slice, and its columns."""
    parts = []
    for by in slicings(outcomes):
        for label in in_order(outcomes[PREFIX + by]):
            shares = cause_shares(outcomes[outcomes[PREFIX + by] == label], n_boot, seed)
            shares.insert(0, "slicing", by)
            shares.insert(1, "slice", label)
            parts.append(shares)
    parts = [part for part in parts if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def right_by_place(outcomes: pd.DataFrame, places: tuple[str, ...], n_boot: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Right answers by where all of the evidence stands in the context: place, right, n, share, lo, hi."""
    rows = _in_question(outcomes)
    found = []
    for place in places:
        part = rows[rows["evidence_place"] == place] if "evidence_place" in rows else rows.iloc[:0]
        if part.empty or rows["label"].isna().all():
            continue
        right = part["label"].eq(5).fillna(False).to_numpy(dtype=bool)
        share = share_of(right, part, n_boot, seed)
        found.append((place, int(right.sum()), len(part), share.value, share.lo, share.hi))
    return pd.DataFrame(found, columns=["place", "right", "n", "share", "lo", "hi"])


def transitions(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """What became of the causes from one system to another: cause, becomes, topics; the most frequent first.

    Both have qid and failure_cause, missing where the topic did not fail. Topics of both count, also those
    whose cause stays.
    """
    before, after = (_in_question(rows)[["qid", CAUSE]] for rows in (before, after))
    both = before.merge(after, on="qid", suffixes=("", "_after"))
    both = both.rename(columns={CAUSE: "cause", f"{CAUSE}_after": "becomes"})
    both = both.fillna({"cause": NOT_FAILED, "becomes": NOT_FAILED})
    counts = both.groupby(["cause", "becomes"]).size().rename("topics").reset_index()
    return counts.sort_values(["topics", "cause", "becomes"], ascending=[False, True, True], ignore_index=True)
