"""Causes of failed topics, one each, of a job and by system, with advice."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragauge.contract.finding import (
    Block,
    Cell,
    Code,
    Col,
    Finding,
    Fold,
    Found,
    Founds,
    Grid,
    Heading,
    Heads,
    JobFinding,
    Num,
    Picture,
    Section,
    Shown,
    Text,
)
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.metrics import Metric
from ragauge.contract.outcomes import CAUSE, DECIDED_BY
from ragauge.contract.record import JobRecord
from ragauge.contract.stages import Stages
from ragauge.diagnose.causes import CAUSES, OF_RETRIEVAL, Cause, causes, in_question
from ragauge.diagnose.failures import (
    EVERY_CAUSE,
    NOT_KNOWN,
    ORIGIN_OF,
    RULE_CAUSES,
    cause_shares,
    causes_by_slice,
    failure_metrics,
    failure_origins,
    failures_by_rules,
    right_by_place,
)
from ragauge.diagnose.funnel import ALL, evidence_in_context
from ragauge.diagnose.places import PLACES, evidence_places, from_context
from ragauge.estimate.outcomes import labels_of
from ragauge.findings.funnel import evidence_parts
from ragauge.findings.tables import number, of_each, table
from ragauge.show.drawing import CLASS_COLOURS, NAME_CHARS, legend, legend_rows, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RULES = "rules"  # value of the config's `failures`
_WRONG = (2, 4)
_LEAST_TOPICS = 4  # of a row of the right answers by place
_COLUMNS = {  # of the outcomes to those of the table of failed topics
    "query": "query", CAUSE: "cause", DECIDED_BY: "decided_by", "evidence_place": "evidence_place",
    "evidence_in_context": "evidence_in_context", "label": "label",
    "answer_in_context": "answer_in_context", "answer": "answer",
    "answer_reference": "answer_reference", "ir_score": "ir_score", "qid": "qid",
}  # fmt: skip


class FailuresFound(JobFinding):
    """The causes of failure."""

    name = "failures"
    metrics = (Metric("failure_*_share{,_lo,_hi}", group="funnel"),)

    def compute(self, job: Job, found: Founds) -> Found | None:
        """The shares of the causes, or None without any. Tables: the failed topics, shares, slices."""
        outcomes, failures = job.outcomes, job.settings.failures
        if CAUSE not in outcomes:
            return None
        if not _judged(job.pipeline) and failures != RULES:  # where no evidence is known, nothing can be lost
            outcomes = outcomes[outcomes["evidence_in_context"].notna()]
            if outcomes.empty:
                return None
        failed = outcomes[outcomes[CAUSE].notna()]
        there = {name: shown for name, shown in _COLUMNS.items() if name in failed}
        possible = CAUSES if _judged(job.pipeline) else OF_RETRIEVAL
        names = list(RULE_CAUSES if failures == RULES else possible)
        shares = cause_shares(outcomes, names)
        known = [fitting(EVERY_CAUSE[name], [job.record]) for name in shares["cause"]]
        shares = shares.assign(
            what_to_try=["" if cause is None else cause.advice for cause in known],
            overrides=["" if cause is None else cause.overrides for cause in known],
        )
        by_slice = causes_by_slice(outcomes)
        return Found(
            shares,
            metrics=failure_metrics(shares),
            logged={
                "failures": failed[list(there)].rename(columns=there),
                "failure_causes": shares,
                **({"failure_slices": by_slice} if len(by_slice) else {}),
            },
        )


def with_failures(outcomes: pd.DataFrame, pipeline: Stages, failures: str) -> pd.DataFrame:
    """The outcomes with evidence_in_context (all, some, none), evidence_place, and the cause of failure.

    failure_cause and failure_decided_by are missing for a topic that did not fail. Without a funnel the
    outcomes are left as they are, unless `failures` asks for rules.
    """
    parts = evidence_parts(pipeline)
    if parts is not None:
        outcomes = _with_evidence(outcomes, parts, pipeline)
    if failures == RULES:
        found = failures_by_rules(outcomes)
    elif parts is None:
        return outcomes
    else:
        found = causes(_with_words(outcomes, pipeline), parts, _judged(pipeline))
    found = found.rename(columns={"cause": CAUSE, "decided_by": DECIDED_BY})
    return outcomes.merge(found, on="qid", how="left", validate="one_to_one")


def _judged(pipeline: Stages) -> bool:
    return pipeline.components.judge.kind != "none" and pipeline.components.llm.kind != "none"


def _with_evidence(outcomes: pd.DataFrame, parts: pd.DataFrame, pipeline: Stages) -> pd.DataFrame:
    there = outcomes["qid"].map(evidence_in_context(parts))
    contexts = dict(zip(pipeline.contexts["qid"], pipeline.contexts["text"], strict=True))
    whole = outcomes.loc[there == ALL, "qid"]
    places = evidence_places(pipeline.frame("scored_evidence"), contexts, whole)
    return outcomes.assign(
        evidence_in_context=there, evidence_place=outcomes["qid"].map(pd.Series(places, dtype="str"))
    )


def _with_words(outcomes: pd.DataFrame, pipeline: Stages) -> pd.DataFrame:
    """The outcomes with answer_from_context for wrong answers."""
    wrong = outcomes[np.isin(labels_of(outcomes), _WRONG) & outcomes["answer"].notna().to_numpy()]
    contexts = dict(zip(pipeline.contexts["qid"], pipeline.contexts["text"], strict=True))
    rows = zip(wrong["qid"], wrong["answer"], wrong["query"], strict=True)
    told = {qid: from_context(answer, query, contexts[qid]) for qid, answer, query in rows}
    return outcomes.assign(answer_from_context=outcomes["qid"].map(pd.Series(told, dtype=object)))


def fitting(cause: Cause, records: Sequence[JobRecord]) -> Cause | None:
    """The cause with advice that these jobs can follow; None if they cannot.

    No override changes a part of another system, which a file or a server brings. Where the retriever itself takes the
    evidence away (`condition`), nothing of the retrieval is at fault.
    """
    origin = ORIGIN_OF[cause.name]
    group = {"the LLM": "llm", "the judge": "judge", NOT_KNOWN: "dataset"}.get(origin, "retriever")
    if group == "retriever" and any(record.condition is not None for record in records):
        return None
    return replace(cause, overrides="") if any(group in record.outside for record in records) else cause


def _unanswerable(rows: pd.DataFrame) -> int:
    return int((rows["unanswerable"].eq(True) & rows[CAUSE].notna()).sum()) if "unanswerable" in rows else 0


_IN_ANY_TEXT = ("yes", "no", "true", "false")  # references whose occurrence in a context says nothing


def _without_evidence(rows: pd.DataFrame) -> dict[str, int]:
    """The numbers of `Causes` on failures without known evidence."""
    rows = in_question(rows)
    rows = rows[rows[CAUSE].map(ORIGIN_OF).eq(NOT_KNOWN)]
    found = {"unknown": rows["qid"].nunique()}
    if "answer_in_context" in rows and "answer_reference" in rows:
        says = ~rows["answer_reference"].astype("str").str.strip(" .").str.casefold().isin(_IN_ANY_TEXT)
        there = rows.loc[says, "answer_in_context"].value_counts()
        found |= {"in_context": int(there.get(1, 0)), "not_in_context": int(there.get(0, 0))}
    return found


_READ = 20  # failed answers that the report shows
_MAX_SLICES = 8  # of one slicing in the table of causes
_COLOURS = (
    "#000000", "#D55E00", "#E69F00", "#F0E442", "#CC79A7", "#8C6D31",
    "#999999", "#56B4E9", "#0072B2", "#DDDDDD", "#EEEEEE",
)  # fmt: skip


@dataclass(frozen=True)
class Causes:
    """shares: of `cause_shares`; slices: of `causes_by_slice`; places: of `right_by_place`; all by system.

    origins: that of `failure_origins`, for all systems together. unanswerable: how many of their failures are answers
    to unanswerable questions. unknown: how many questions with a failure lack evidence. in_context, not_in_context:
    the failures on these questions with, and without, the reference answer in their context. References such as yes
    and no count in neither.
    """

    shares: pd.DataFrame
    slices: pd.DataFrame
    places: pd.DataFrame
    origins: pd.DataFrame
    unanswerable: int = 0
    unknown: int = 0
    in_context: int = 0
    not_in_context: int = 0


class Failures(Finding):
    """The cause of every topic that failed."""

    name = "failures"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`Causes`; None without failed topics or known causes."""
        if CAUSE not in jobs.at_n or jobs.at_n[CAUSE].isna().all():
            return None
        value = Causes(
            of_each(jobs, cause_shares),
            of_each(jobs, causes_by_slice),
            of_each(jobs, lambda rows: right_by_place(rows, PLACES)),
            failure_origins(jobs.at_n),
            _unanswerable(jobs.at_n),
            **_without_evidence(jobs.at_n),
        )
        names = ("failure_causes", "failure_slices", "right_by_evidence_place", "failure_origins")
        known = dict(zip(names, (value.shares, value.slices, value.places, value.origins), strict=True))
        tables = {name: table for name, table in known.items() if len(table)}
        return Found(value, tables=tables) if len(value.shares) else None

    def show(self, jobs: Jobs, value: Causes, found: Founds) -> Shown:
        """Shares of causes, advice, and right answers by the place of the evidence."""
        systems = found["leaderboard"].systems
        blocks: list[Block] = [
            Text(
                "Every failed topic has one cause. Rules are tried in a fixed order, and the first that holds "
                "decides. The order: no verdict; the step that lost most of the evidence; where all evidence stands "
                "in the context, its place or the LLM. A topic may fail at a second step, too, which only a change of "
                "the first shows."
            ),
            _origins(value.origins),
            Heading("What to try"),
            _advice(value.shares, jobs.records),
            Picture(
                "failures",
                "Stacked bars of the causes of failure, one bar per system; the numbers are in the table below",
                "Why topics fail, by system, as shares of all topics.",
            ),
            Fold("The causes by system, with intervals", [_shares(value.shares, systems)]),
        ]
        places = value.places[value.places["n"] >= _LEAST_TOPICS] if len(value.places) else value.places
        if len(places):
            blocks += [
                Heading("Right answers by the place of the evidence"),
                Text(
                    "These topics have all of their evidence in the context; a row says in which third of it. “Lost in "
                    "the middle” is a suspicion about single topics. It is well founded only where the middle has "
                    "fewer right answers than both ends, beyond the intervals. Rows of fewer than four topics are "
                    "left out."
                ),
                _places(places, systems),
            ]
        blocks += _to_read(jobs.at_n)
        blocks += _slices(value.slices, systems)
        blocks.append(
            Text(
                "failures.json of each job's MLflow run lists every topic with its cause; `ragauge compare` sets the "
                "causes of runs side by side.",
                "small",
            )
        )
        figure = causes_figure(value.shares, systems)
        drawn = {} if figure is None else {"failures": figure}
        return Shown([Section("Why topics fail", blocks)], figures=drawn)


def _origins(origins: pd.DataFrame) -> Grid:
    return table(
        "Where failures come from",
        "Failures come from | Failures | Of all failures | <Most frequent cause",
        origins[origins["failures"] > 0],
        lambda row: [
            str(row["origin"]),
            Num(row["failures"], "whole"),
            number(row, "share", "share"),
            str(row["cause"]),
        ],
    )


def _shares(shares: pd.DataFrame, systems: Sequence[str]) -> Grid:
    return table(
        "Causes of failure",
        "System | <Cause | Topics | Of all topics | Of the failures",
        shares,
        lambda row: [
            str(row["cause"]),
            Num(row["topics"], "whole"),
            number(row, "share", "share"),
            Num(row["of_failures"], "share"),
        ],
        systems,
    )


def _advice(table: pd.DataFrame, records: Sequence[JobRecord]) -> Grid:
    """Advice for each occurring cause, the most frequent over all systems first."""
    counts = table.groupby("cause")["topics"].sum().sort_values(ascending=False, kind="stable")
    causes = [c for name, topics in counts.items() if topics and (c := fitting(EVERY_CAUSE[str(name)], records))]
    columns: Heads = ["Cause", *(Col(title, left=True, wrap=True) for title in ("What to try", "For example"))]
    return Grid("What to try for each cause", columns, [[c.name, c.advice, Code(c.overrides)] for c in causes])


def _places(places: pd.DataFrame, systems: Sequence[str]) -> Grid:
    return table(
        "Right answers by the place of the evidence",
        "System | <Evidence in the | Topics | Right",
        places,
        lambda row: [
            str(row["place"]) if row["place"] != "spread" else "several thirds",
            Num(row["n"], "whole"),
            number(row, "share", "share"),
        ],
        systems,
    )


def _to_read(rows: pd.DataFrame) -> list[Block]:
    """The first failed answers without known evidence, those with the reference in their context first."""
    columns = ["system", "query", "answer_reference", "answer", "answer_in_context"]
    if not {*columns} <= {*rows.columns}:
        return []
    failed = rows[rows[CAUSE].map(ORIGIN_OF).eq(NOT_KNOWN)]
    failed = failed.sort_values("answer_in_context", ascending=False, kind="stable")[columns]
    if failed.empty:
        return []
    told = {1.0: "yes", 0.0: "no"}
    cells: list[list[Cell]] = [
        [*("" if pd.isna(text) else str(text) for text in texts), told.get(there, "")]
        for *texts, there in failed.head(_READ).itertuples(index=False)
    ]
    wide = (Col(title, left=True, wrap=True) for title in ("Question", "Reference", "Answer"))
    grid = Grid("Failed answers without evidence", ["System", *wide, "Reference in the context"], cells)
    return [Heading(f"Failed answers without evidence, {len(cells)} of {len(failed):,}"), grid]


def _slices(table: pd.DataFrame, systems: Sequence[str]) -> list[Block]:
    """The causes by slice of the first system of the leaderboard, a table for each slicing."""
    if table.empty:
        return []
    first = next(name for name in systems if (table["system"] == name).any())
    found: list[Block] = []
    for by, part in table[table["system"] == first].groupby("slicing", sort=False):
        labels = list(dict.fromkeys(part["slice"]))
        sizes = part.groupby("slice")["n"].first()
        cells = {(row["slice"], row["cause"]): row for row in part.to_dict("records")}
        causes = part.groupby("cause")["topics"].sum().sort_values(ascending=False, kind="stable").index
        rows: list[list[Cell]] = []
        for label in labels[:_MAX_SLICES]:
            of = [cells.get((label, cause)) for cause in causes]
            shares = [Num(0.0, "share") if e is None else number(e, "share", "share") for e in of]
            rows.append([str(label), Num(sizes[label], "whole"), *shares])
        grid = Grid(f"Causes by {by}", [Col(str(by)), "Topics", *(Col(str(c)) for c in causes)], rows)
        more = len(labels) - _MAX_SLICES
        rest = [Text(f"{more} further slices are in tables/failure_slices.csv.", "small")] if more > 0 else []
        found.append(Fold(f"Causes by {by}, {first}", [grid, *rest]))
    return found


def causes_figure(causes: pd.DataFrame, systems: Sequence[str]) -> Figure | None:
    """Stacked bars of the causes of failure, a bar per system; None without failed topics."""
    names = [name for name in EVERY_CAUSE if causes.loc[causes["cause"] == name, "topics"].sum() > 0]
    shown = [name for name in systems if (causes["system"] == name).any()]
    if not names or not shown:
        return None
    labels = ["\n".join(textwrap.wrap(plain(name), NAME_CHARS)) for name in shown]
    lines = sum(max(1.0, 0.62 * (label.count("\n") + 1)) for label in labels)
    figure, axes = new_figure(0.8 + 0.4 * lines, legend_rows(len(names), 2))
    share = causes.pivot_table(index="system", columns="cause", values="share", aggfunc="first")
    share = share.reindex(index=shown, columns=names).fillna(0)
    at, left = np.arange(len(shown)), np.zeros(len(shown))
    colours = dict(zip(EVERY_CAUSE, (*_COLOURS, *CLASS_COLOURS.values()), strict=False))
    for name in names:
        values = share[name].to_numpy(dtype=float)
        axes.barh(at, values, left=left, color=colours[name], label=name, height=0.74)
        left += values
    axes.set_yticks(at, labels)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(0, min(1.0, 1.05 * float(left.max())))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("share of topics that fail")
    legend(figure, axes, 2)
    return figure
