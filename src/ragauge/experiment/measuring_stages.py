"""The stages that measure contexts and rankings, and those that answer and judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.answer_measures import infos_of
from ragauge.contract.errors import DataError
from ragauge.contract.identity import identity
from ragauge.contract.protocols import (
    AnswerMeasure,
    AnswerMeasureInfo,
    Generator,
    Judge,
    Measure,
    MeasuresPassages,
    Tools,
)
from ragauge.contract.topics import scorable
from ragauge.experiment.retrieval_stages import digests_of_files
from ragauge.experiment.stage import Budget, Components, Frames, Reads, Stage
from ragauge.measures import (
    classics,
    corrected_parts,
    floor_means,
    floors,
    mean_over_parts,
    part_scores,
    qrels_of,
)
from ragauge.measures.floor import raw
from ragauge.measures.questions import LEXICAL_OVERLAP, RARITY, lexical_overlap, rarity
from ragauge.measures.rankings import metric_of
from ragauge.retrieval.contexts import used_passages
from ragauge.retrieval.passages import passages_of
from ragauge.retrieval.query_checks import query_checks
from ragauge.retrieval.searching import searched_by, space_of


def texts_of_ranking(components: Components) -> tuple[str, ...]:
    """The frames that hold the texts which are laid out: those of chunks, unless a part has changed them."""
    parts = (components.expander, components.compressor)
    return ("passages",) if any(part.kind != "none" for part in parts) else ("run", "chunks")


class Scorable(Stage):
    """scored_evidence: the parts of the evidence that contexts are scored by (`scorable`)."""

    name = "scored_evidence"
    reads = ("topics", "evidence")
    makes = ("scored_evidence",)
    stored = False

    def make(self, reads: Reads, tools: Tools) -> Frames:
        return {"scored_evidence": scorable(reads["evidence"], reads["topics"])}


class Score(Stage):
    """Scores of the whole grid, and part_scores, a row per evidence part; none of topics without evidence."""

    name = "scores"
    reads = ("layouts", "prefixes", "scored_evidence")
    makes = ("scores", "part_scores")
    uses = frozenset()

    @property
    def component(self) -> Measure:
        found: Measure = raw(self.components.measure)
        return found

    def make(self, reads: Reads, tools: Tools) -> Frames:
        evidence, prefixes = reads["scored_evidence"], reads["prefixes"]
        prefixes = prefixes[prefixes["qid"].isin(evidence["qid"])].reset_index(drop=True)
        parts = part_scores(self.component, evidence, reads["layouts"], prefixes)
        return {"scores": mean_over_parts(parts, self.component.name), "part_scores": parts}


class Floor(Stage):
    """floors: what the measure gives every evidence part in unrelated text; floor_means: that over topics.

    Neither the retriever nor this job's n_tokens is in its key: the jobs of a sweep share one.
    """

    name = "floor"
    reads = ("chunks", "scored_evidence")
    makes = ("floors", "floor_means")
    uses = frozenset({"tokenizer"})

    @property
    def component(self) -> Measure:
        found: Measure = raw(self.components.measure)
        return found

    def params(self) -> dict[str, Any]:
        return {"component": identity(self.component), "n_grid": list(self.budget.grid)}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        evidence = reads["scored_evidence"]
        found = floors(self.component, evidence, reads["chunks"], tools.tokenizer, self.budget.grid)
        return {"floors": found, "floor_means": floor_means(found)}


class CorrectScores(Stage):
    """Scores and part_scores, each part's less its floor: `measure.correct=floor`."""

    name = "corrected"
    reads = ("part_scores", "floors")
    makes = ("scores", "part_scores")

    def params(self) -> dict[str, Any]:
        return {"correct": "floor"}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        parts = corrected_parts(reads["part_scores"], reads["floors"])
        return {"scores": mean_over_parts(parts, self.components.measure.name), "part_scores": parts}


class ScoreRanking(Stage):
    """classics: measures of the run over whole documents, as IR knows them ([metric, value])."""

    name = "classics"
    reads = ("run", "evidence")
    makes = ("classics",)

    def params(self) -> dict[str, Any]:
        return {"measures": list(self.budget.rankings)}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        qrels = qrels_of(reads["evidence"])
        values = classics(reads["run"], qrels, self.budget.rankings) if len(qrels) else {}
        rows = [(metric_of(name), value) for name, value in values.items()]
        return {"classics": pd.DataFrame(rows, columns=["metric", "value"])}


class Derive(Stage):
    """derived: what is known of the questions beside attributes, by which topics are sliced; row by row as
    topics.
    """

    name = "derived"
    makes = ("derived",)

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        further = {LEXICAL_OVERLAP: "evidence[qid,text]", RARITY: "docs"}
        return ("topics[qid,query]", *(further[name] for name in self.budget.derived))

    def params(self) -> dict[str, Any]:
        return {"attributes": list(self.budget.derived)}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics = reads["topics"]
        found = topics[["qid"]].copy()
        if LEXICAL_OVERLAP in self.budget.derived:
            found[LEXICAL_OVERLAP] = lexical_overlap(topics, reads["evidence"])
        if RARITY in self.budget.derived:
            found[RARITY] = rarity(topics, reads["docs"])
        return {"derived": found}


class CheckQueries(Stage):
    """query_checks: how far a rewriter's queries are from the question, a row a topic."""

    name = "query_checks"
    reads = ("topics[qid,query]", "queries", "run", "found_by_question[qid,docno]")
    makes = ("query_checks",)
    uses = frozenset({"embedder"})

    def params(self) -> dict[str, Any]:
        return {"space": space_of(self.components.retriever)}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics, found = reads["topics"][["qid", "query"]], reads["found_by_question"]
        queries = searched_by(self.components.retriever, reads["queries"])
        return {"query_checks": query_checks(topics, queries, reads["run"], found, tools.embedder)}


class Answer(Stage):
    """The answers at this job's n_tokens."""

    name = "answers"
    reads = ("topics[qid,query]", "contexts[qid,n_tokens,text]")
    makes = ("answers",)
    asks = "answer"

    @property
    def component(self) -> Generator:
        return self.components.llm

    def inputs(self) -> dict[str, str]:
        return digests_of_files(self.component)

    def make(self, reads: Reads, tools: Tools) -> Frames:
        return {"answers": self.component.answer(reads["topics"], reads["contexts"], tools)}


class UsedPassages(Stage):
    """used_passages: what stands in every context, passage by passage."""

    name = "used_passages"
    makes = ("used_passages",)
    stored = False

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("layouts", "prefixes", *texts_of_ranking(self.components))

    def make(self, reads: Reads, tools: Tools) -> Frames:
        if "passages" in self.reads:
            passages = reads["passages"]
        else:
            passages = passages_of(reads["run"], reads["chunks"])
        return {
            "used_passages": used_passages(
                reads["layouts"], reads["prefixes"], passages, self.budget.n_tokens
            )
        }


class MeasureAnswers(Stage):
    """What one answer measure gives every answer."""

    name = "answer_values"
    makes = ("answer_values",)
    asks = "value"
    group = "answers"
    evaluates = True

    def __init__(self, components: Components, budget: Budget, measure: AnswerMeasure) -> None:
        super().__init__(components, budget)
        self._measure = measure
        self.infos = infos_of(measure)

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        by_passage = isinstance(self._measure, MeasuresPassages)
        context = "used_passages" if by_passage else "contexts[qid,n_tokens,text]"
        return ("topics", "evidence", context, "answers[qid,n_tokens,answer,status]")

    @property
    def component(self) -> AnswerMeasure:
        return self._measure

    def make(self, reads: Reads, tools: Tools) -> Frames:
        measure = self.component
        topics, evidence, answers = reads["topics"], reads["evidence"], reads["answers"]
        if isinstance(measure, MeasuresPassages):
            found = measure.measure_passages(topics, evidence, reads["used_passages"], answers, tools)
        else:
            found = measure.measure(topics, evidence, reads["contexts"], answers, tools)
        return {"answer_values": checked_values(found, type(measure).__name__, self.infos)}


def checked_values(found: pd.DataFrame, who: str, infos: Sequence[AnswerMeasureInfo]) -> pd.DataFrame:
    """The frame `answer_values` itself; DataError where it is none, or holds a measure without an info."""
    names = {info.name for info in infos}
    frames.check("answer_values", found, who)
    others = sorted(set(found["measure"]) - names)
    if others:
        told = ", ".join(repr(name) for name in sorted(names))
        raise DataError(f"answer_values frame from {who}: measure {others[0]!r}, its name is {told}")
    return found


class Judging(Stage):
    """The verdicts on the answers that are to be judged (frame `asked_answers`)."""

    name = "verdicts"
    reads = ("topics", "evidence", "asked_answers[qid,n_tokens,answer,status]")
    makes = ("verdicts",)
    asks = "label"

    @property
    def component(self) -> Judge:
        return self.components.judge

    def inputs(self) -> dict[str, str]:
        return digests_of_files(self.component)

    def make(self, reads: Reads, tools: Tools) -> Frames:
        found = self.component.judge(reads["topics"], reads["evidence"], reads["asked_answers"], tools)
        return {"verdicts": found}
