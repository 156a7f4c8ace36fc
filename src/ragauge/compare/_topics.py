"""Topics that differ most from the baseline, and changed causes of failure."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.contract.finding import Cell, Col, ComparisonFinding, Found, Founds, Grid, Num, Section, Shown
from ragauge.contract.frames import HALLUCINATIONS
from ragauge.contract.jobs import Compared
from ragauge.contract.metrics import IR_SCORE, METRICS
from ragauge.contract.outcomes import CAUSE
from ragauge.diagnose.failures import transitions
from ragauge.estimate.outcomes import LACK, RIGHT

_MAX_ROWS = 12  # changed causes shown of one run
_KINDS = {"ir_score": IR_SCORE.label, "class": "judge class"}
_LONG = [
    Col("qid"), Col("question", left=True, wrap=True), Col("run", left=True), Col(IR_SCORE.label),
    Col("class", left=True), Col("answer", left=True, wrap=True),
]  # fmt: skip


class ChangedCauses(ComparisonFinding):
    """Number of topics by change of their cause of failure."""

    name = "causes"

    def compute(self, runs: Compared, found: Founds) -> Found | None:
        """`transitions` from the baseline to every other run, with run_id; None without causes."""
        if CAUSE not in runs.outcomes:
            return None
        of_run = dict(tuple(runs.outcomes.groupby("run_id", sort=False)))
        base = of_run[runs.baseline]
        changes = [transitions(base, rows).assign(run_id=i) for i, rows in of_run.items() if i != runs.baseline]
        every = pd.concat(changes, ignore_index=True)
        return Found(every[["run_id", "cause", "becomes", "topics"]])

    def show(self, runs: Compared, value: pd.DataFrame, found: Founds) -> Shown:
        """The twelve most frequent changes of each run; nothing without changes."""
        changed = value[value["cause"] != value["becomes"]]
        shown = changed.groupby("run_id", sort=False).head(_MAX_ROWS)
        rows: list[list[Cell]] = [
            [runs.names[row["run_id"]], row["cause"], row["becomes"], Num(row["topics"], "whole")]
            for row in shown.to_dict("records")
        ]
        if not rows:
            return Shown()
        n, of = int(changed["topics"].sum()), int(value["topics"].sum())
        heading = f"Causes of failure that changed from {runs.names[runs.baseline]}: {n:,} of {of:,}"
        return Shown([Section(heading, [Grid(heading, "run | <cause | <becomes | topics", rows)])])


class DifferentTopics(ComparisonFinding):
    """The topics on which the baseline and another run differ most."""

    name = "topics"

    def compute(self, runs: Compared, found: Founds) -> Found | None:
        """All differing topics by kind of difference, as `most_different` returns them."""
        kinds = [kind for kind in _KINDS if kind != "class" or runs.outcomes["label"].notna().any()]
        return Found({kind: most_different(runs, kind, len(runs.outcomes))[0] for kind in kinds})

    def show(self, runs: Compared, value: dict[str, pd.DataFrame], found: Founds) -> Shown:
        """The first topics of each kind, with the answers of both runs."""
        return Shown([_most(runs, kind, rows) for kind, rows in value.items()] if runs.topics else [])


def _most(runs: Compared, kind: str, every: pd.DataFrame) -> Section:
    if every.empty:
        return Section(f"No topic differs in {_KINDS[kind]}", [])
    shown = every.head(runs.topics)
    heading = f"Topics that differ most in {_KINDS[kind]}: {len(shown)} of {len(every)}"
    rows: list[list[Cell]] = []
    for row in shown.to_dict("records"):
        for run_id, end in ((runs.baseline, "_base"), (row["run_id"], "")):
            first = [str(row["qid"]), str(row["query"])] if end else ["", ""]
            label, answer = row[f"label{end}"], row[f"answer{end}"]
            judged = METRICS[f"judge_share_{'missing' if pd.isna(label) else int(label)}"].label
            said = "no answer" if pd.isna(answer) else str(answer)
            rows.append([*first, runs.names[run_id], Num(row[f"ir_score{end}"]), judged, said])
    return Section(heading, [Grid(heading, _LONG, rows)])


def most_different(runs: Compared, by: str, n: int) -> tuple[pd.DataFrame, int]:
    """The n topics on which the baseline and another run differ most, and the number of all that differ.

    A topic comes once, with the run that is furthest off: [qid, query, run_id, ir_score, label, answer], and
    the baseline's ir_score_base, label_base, answer_base. `by` is `ir_score` (the largest difference first) or `class`.
    The order of `class`: right against a hallucination, right against lack of information or an incomplete answer, a
    hallucination against these, then the others that differ, each by the difference in IR score. A topic without both
    verdicts is left out. Class 1 is right for an unanswerable topic, and any other class counts as a hallucination.
    """
    of_base = runs.outcomes["run_id"] == runs.baseline
    columns = ["qid", "query", "run_id", "ir_score", "label", "answer"]
    base = runs.outcomes.loc[of_base, ["qid", "ir_score", "label", "answer"]]
    rows = runs.outcomes.loc[~of_base, columns].merge(base, on="qid", suffixes=("", "_base"))
    rows["_off"] = (rows["ir_score"] - rows["ir_score_base"]).abs()
    if by == "class":
        both = rows["label"].notna() & rows["label_base"].notna()
        rows = rows[both & rows["label"].ne(rows["label_base"]).fillna(False)].copy()
        unanswerable = rows["qid"].isin(_unanswerable(runs.outcomes))
        place, place_base = (
            np.array([_place(label, apart) for label, apart in zip(rows[column], unanswerable, strict=True)], dtype=int)
            for column in ("label", "label_base")
        )
        rows["_kind"] = np.abs(place - place_base)
    else:
        rows = rows[rows["_off"] > 0].assign(_kind=0)
    rows = rows.sort_values(["_kind", "_off"], ascending=False, kind="stable").drop_duplicates("qid")
    rows = rows.sort_values(["_kind", "_off", "qid"], ascending=[False, False, True], kind="stable")
    return rows.drop(columns=["_kind", "_off"]).head(n).reset_index(drop=True), len(rows)


def _unanswerable(outcomes: pd.DataFrame) -> pd.Series:
    """The qids of unanswerable topics."""
    marked = outcomes["unanswerable"].eq(True) if "unanswerable" in outcomes else pd.Series(False, outcomes.index)
    return outcomes.loc[marked, "qid"]


def _place(label: int, unanswerable: bool) -> int:
    """Position of a class on a scale with right answers and hallucinations at its ends."""
    if unanswerable:
        return 3 if label == LACK else 0
    return 3 if label == RIGHT else 0 if label in HALLUCINATIONS else 1
