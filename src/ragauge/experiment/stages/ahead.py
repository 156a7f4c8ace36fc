"""A job that asks for the other budgets of its sweep, too: question by question.

The contexts of a question begin alike at all budgets. A server that keeps the beginning of a prompt computes little
more than the longest prompt. The ledger serves the jobs that come later.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from ragauge.contract.answering import AsksForAnswers
from ragauge.contract.retrieval import BringsTexts

log = logging.getLogger(__name__)

_MOST_CHARACTERS = 250_000_000  # of the contexts that are held at once
_CHARACTERS_PER_TOKEN = 5


@dataclass
class Ahead:
    """The other budgets of a job's sweep.

    job: its pipeline. paid: the answers and verdicts of other budgets that this job paid for, by frame.
    """

    job: Any
    paid: dict[str, list[pd.DataFrame]] = field(default_factory=dict)

    def contexts(self, own: pd.DataFrame) -> pd.DataFrame:
        """The contexts to answer from: a topic's own, then those of other budgets, ascending, with `ahead` True."""
        llm, topics, store = self.job.components.llm, self.job.frame("topics"), self.job.store
        if not (isinstance(llm, AsksForAnswers) and llm.ahead):
            return own
        if llm.known_answers(topics, own, store)["answer"].notna().all():
            return own
        others = [job.shown_contexts[own.columns] for job in self._others.values()]
        return _in_a_row(own, others, "text")

    def answers(self, own: pd.DataFrame) -> pd.DataFrame:
        """The answers to judge: a topic's own, then those of the ledger at other budgets, with `ahead` True."""
        llm, judge, topics, store = (
            self.job.components.llm, self.job.components.judge, self.job.frame("topics"), self.job.store
        )  # fmt: skip
        if not (isinstance(llm, AsksForAnswers) and llm.ahead and judge.ahead):
            return own
        needs = judge.needs(topics, self.job.frame("evidence"), own.assign(candidate=""), self.job.tools)
        if needs is None or needs["known"].all():
            return own
        known = [llm.known_answers(topics, job.shown_contexts, store) for job in self._others.values()]
        judged = [self.job.to_judge(rows).dropna(subset="answer")[own.columns] for rows in known]
        return _in_a_row(own, judged, "answer")

    def own(self, name: str, found: pd.DataFrame) -> pd.DataFrame:
        """The job's own rows of a frame; keeps what was paid for the others."""
        is_own = found["n_tokens"] == self.job.n_tokens
        if is_own.all():
            return found
        others = found[~is_own & ~found["cached"] & found["calls"].gt(0)]
        self.paid.setdefault(name, []).extend([others] if len(others) else [])
        return found[is_own].reset_index(drop=True)

    @cached_property
    def _others(self) -> Mapping[int, Any]:
        """The jobs at the other budgets, ascending; none if all contexts together are too long to be held."""
        job = self.job
        if len(job.frame("topics")) * sum(job.budgets) * _CHARACTERS_PER_TOKEN > _MOST_CHARACTERS:
            log.info("the contexts of all budgets are too long to be asked in a row, so each job asks its own")
            return {}
        return {n: _at(job, n) for n in sorted(set(job.budgets) - {job.n_tokens})}


def ahead_of(job: Any) -> Ahead | None:
    """The other budgets of the job's sweep; None without any, and for a retriever that retrieves for each budget."""
    retriever = job.components.retriever
    per_budget = isinstance(retriever, BringsTexts) and retriever.per_budget
    return Ahead(job) if {*job.budgets} - {job.n_tokens} and not per_budget else None


def _at(job: Any, n_tokens: int) -> Any:
    """The job at another budget. It shares models, the choice of topics, and what comes before the contexts."""
    found = replace(job, n_tokens=n_tokens, budgets=())
    vars(found).update({name: getattr(job, name) for name in ("shared_chat", "evaluator_chat", "tools", "unjudged")})
    found._answered = job.chosen_to_answer
    for step, theirs in zip(job.plan.steps, found.plan.steps, strict=True):
        if step.stage.name == "context" and job.grid != found.grid:
            break
        theirs.output = step.output
        if step.stage.name == "context":
            break
    return found


def _in_a_row(own: pd.DataFrame, others: Sequence[pd.DataFrame], text: str) -> pd.DataFrame:
    """The rows topic by topic, `own` first; without others' rows of equal text, or of topics that `own` lacks."""
    place: Mapping[Any, int] = {qid: i for i, qid in enumerate(own["qid"])}
    parts = [own.assign(ahead=False), *(rows.assign(ahead=True) for rows in others if len(rows))]
    rows: pd.DataFrame = pd.concat(parts, ignore_index=True)
    rows = rows[rows["qid"].isin(place)]
    rows = rows[~(rows["ahead"] & rows.duplicated(["qid", text]))]
    return rows.sort_values("qid", key=lambda qids: qids.map(place), kind="stable").reset_index(drop=True)
