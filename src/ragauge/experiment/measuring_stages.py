"""The stages that measure contexts and rankings, and those that answer and judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.answer_measures import NO_EVIDENCE, infos_of
from ragauge.contract.errors import DataError
from ragauge.contract.identity import identity
from ragauge.contract.protocols import (
    AnswerMeasure,
    AnswerMeasureInfo,
    Generator,
    Judge,
    Measure,
    MeasuresLayouts,
    MeasuresPassages,
    MeasuresPieces,
    Tools,
)
from ragauge.contract.topics import scorable
from ragauge.experiment.retrieval_stages import digests_of_files
from ragauge.experiment.stage import Budget, Components, Frames, Incomplete, Reads, Stage
from ragauge.measures import (
    chunk_qrels,
    corrected_parts,
    document_run,
    floor_means,
    floors,
    mean_over_parts,
    measured_parts,
    part_scores,
    qrels_of,
    ranking_values,
)
from ragauge.measures.floor import is_corrected, raw
from ragauge.measures.questions import (
    EVIDENCE_DOCUMENTS,
    LEXICAL_OVERLAP,
    RARITY,
    evidence_documents,
    lexical_overlap,
    rarity,
)
from ragauge.measures.rankings import full_name, of_chunks, ranking_infos
from ragauge.retrieval.contexts import numbered_contexts, used_passages
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
    group = "measure"
    evaluates = True

    @property
    def component(self) -> Measure | MeasuresPieces:
        found: Measure | MeasuresPieces = raw(self.components.measure)
        return found

    @property
    def uses(self) -> frozenset[str]:
        return getattr(self.component, "uses", frozenset())

    def make(self, reads: Reads, tools: Tools) -> Frames:
        evidence, prefixes = reads["scored_evidence"], reads["prefixes"]
        prefixes = prefixes[prefixes["qid"].isin(evidence["qid"])].reset_index(drop=True)
        every = part_scores(self.component, evidence, reads["layouts"], prefixes, tools)
        parts = measured_parts(every)
        found = {"scores": mean_over_parts(parts, self.component.name), "part_scores": parts}
        if len(parts) < len(every):
            failed = every.loc[every["value"].isna(), "qid"].nunique()
            tools.count("measure_failed", failed)
            raise Incomplete(found, failed, evidence["qid"].nunique(), "IR scores")
        return found


class Floor(Stage):
    """floors: what the measure gives every evidence part in unrelated text; floor_means: that over topics.

    Neither the retriever nor this job's n_tokens is in its key: the jobs of a sweep share one.
    """

    name = "floor"
    reads = ("chunks", "scored_evidence")
    makes = ("floors", "floor_means")
    group = "measure"
    evaluates = True

    @property
    def component(self) -> Measure | MeasuresPieces:
        found: Measure | MeasuresPieces = raw(self.components.measure)
        return found

    @property
    def uses(self) -> frozenset[str]:
        return frozenset({"tokenizer"}) | (
            getattr(self.component, "uses", frozenset()) if self._asked else set()
        )

    @property
    def _asked(self) -> bool:
        """Whether there is to be a floor: one that an LLM is asked for, only where scores are corrected."""
        asks = "chat" in getattr(self.component, "uses", ())
        return not asks or is_corrected(self.components.measure)

    def params(self) -> dict[str, Any]:
        return {"component": identity(self.component), "n_grid": list(self.budget.grid)}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        evidence = reads["scored_evidence"] if self._asked else reads["scored_evidence"].iloc[:0]
        found = floors(
            self.component, evidence, reads["chunks"], tools.tokenizer, self.budget.grid, tools=tools
        )
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


class ChunkTruth(Stage):
    """chunk_qrels: the chunks that are relevant to the topics. Neither retriever nor budget is in its key."""

    name = "chunk_qrels"
    reads = ("chunks", "scored_evidence")
    makes = ("chunk_qrels",)

    def make(self, reads: Reads, tools: Tools) -> Frames:
        return {"chunk_qrels": chunk_qrels(reads["scored_evidence"], reads["chunks"])}


class ScoreRanking(Stage):
    """ranking_values: what the measures that IR knows give the run, topic by topic ([qid, measure, value]).

    The run is that of documents, or of chunks where a measure says so.
    """

    name = "classics"
    version = 2
    makes = ("ranking_values",)

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("run", "evidence", *(("chunk_qrels",) if any(map(of_chunks, self.budget.measures)) else ()))

    def params(self) -> dict[str, Any]:
        return {"measures": list(map(full_name, self.budget.measures))}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        by_chunk = [name for name in self.budget.measures if of_chunks(name)]
        by_document = [name for name in self.budget.measures if not of_chunks(name)]
        found = ranking_values(document_run(reads["run"]), qrels_of(reads["evidence"]), by_document)
        if by_chunk:
            of_run = ranking_values(reads["run"], reads["chunk_qrels"], by_chunk)
            found = pd.concat([found, of_run], ignore_index=True)
        return {"ranking_values": found}


class RankingColumns(Stage):
    """The measures of the ranking as columns of the outcomes: missing for a topic without a relevant one."""

    name = "ranking_columns"
    reads = ("evidence", "scored_evidence", "ranking_values", "topics[qid]")
    makes = ("answer_values",)
    stored = False

    @property
    def infos(self) -> tuple[AnswerMeasureInfo, ...]:  # type: ignore[override]
        return ranking_infos(self.budget.measures)

    def shown(self, frame: Callable[[str], pd.DataFrame]) -> list[AnswerMeasureInfo]:
        """Those of documents where the evidence names any, those of chunks where it has a text."""
        named = bool(frame("evidence")["docno"].notna().any())
        there = {False: named, True: len(frame("scored_evidence")) > 0}
        return [
            info
            for info, name in zip(self.infos, self.budget.measures, strict=True)
            if there[of_chunks(name)]
        ]

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics, values = reads["topics"][["qid"]], reads["ranking_values"]
        found = [frames.empty("answer_values")]
        for info in self.shown(reads.__getitem__):
            of_measure = values.loc[values["measure"] == info.name, ["qid", "value"]]
            rows = topics.merge(of_measure, on="qid", how="left", validate="one_to_one")
            known = rows["qid"].isin(of_measure["qid"])
            rows = rows.assign(
                n_tokens=self.budget.n_tokens,
                measure=info.name,
                status=known.map({True: "ok", False: NO_EVIDENCE}),
            )
            found.append(rows)
        columns = list(frames.SCHEMAS["answer_values"].columns)
        return {"answer_values": pd.concat([rows[columns] for rows in found], ignore_index=True)}


class Derive(Stage):
    """derived: what is known of the questions beside attributes, by which topics are sliced; row by row as
    topics.
    """

    name = "derived"
    makes = ("derived",)

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        derived = set(self.budget.derived)
        found = ["topics[qid,query]"]
        if EVIDENCE_DOCUMENTS in derived:
            found.append("evidence[qid,docno,text]")
        elif LEXICAL_OVERLAP in derived:
            found.append("evidence[qid,text]")
        return (*found, *(["docs"] if RARITY in derived else []))

    def params(self) -> dict[str, Any]:
        return {"attributes": list(self.budget.derived)}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics = reads["topics"]
        found = topics[["qid"]].copy()
        if LEXICAL_OVERLAP in self.budget.derived:
            found[LEXICAL_OVERLAP] = lexical_overlap(topics, reads["evidence"])
        if RARITY in self.budget.derived:
            found[RARITY] = rarity(topics, reads["docs"])
        if EVIDENCE_DOCUMENTS in self.budget.derived:
            found[EVIDENCE_DOCUMENTS] = evidence_documents(topics, reads["evidence"])
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
    makes = ("answers",)
    asks = "answer"

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        context = "numbered_contexts" if cites(self.components) else "contexts"
        return ("topics[qid,query]", f"{context}[qid,n_tokens,text]")

    @property
    def component(self) -> Generator:
        return self.components.llm

    def inputs(self) -> dict[str, str]:
        return digests_of_files(self.component)

    def make(self, reads: Reads, tools: Tools) -> Frames:
        contexts = reads[self.reads[-1].partition("[")[0]]
        return {"answers": self.component.answer(reads["topics"], contexts, tools)}


class NumberPassages(Stage):
    """numbered_contexts: the contexts as an LLM sees them that is to cite their passages by number."""

    name = "numbered_contexts"
    reads = ("contexts", "used_passages")
    makes = ("numbered_contexts",)
    stored = False

    def make(self, reads: Reads, tools: Tools) -> Frames:
        return {"numbered_contexts": numbered_contexts(reads["contexts"], reads["used_passages"])}


def cites(components: Components) -> bool:
    """Whether the LLM is to cite the passages of its context by number."""
    return bool(getattr(components.llm, "cite", False))


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

    def __init__(self, components: Components, budget: Budget, measure: AnswerMeasure, name: str) -> None:
        super().__init__(components, budget)
        self._measure = measure
        self._name = name
        self.infos = infos_of(measure)

    @property
    def asks_as(self) -> str:
        return f"{self.group}.{self._name}"

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        if isinstance(self._measure, MeasuresLayouts):
            return ("layouts", "prefixes", "scored_evidence", "answers[qid,n_tokens,answer,status]")
        by_passage = isinstance(self._measure, MeasuresPassages)
        context = "used_passages" if by_passage else "contexts[qid,n_tokens,text]"
        return ("topics", "evidence", context, f"answers[{','.join(self._of_answers)}]")

    @property
    def _of_answers(self) -> list[str]:
        """The columns of the answers that it is given: those that are in its key."""
        asks_for_marks = "citations" in getattr(self._measure, "needs", ())
        marks = ["cited_answer"] if asks_for_marks and cites(self.components) else []
        return ["qid", "n_tokens", "answer", "status", *marks]

    def inputs(self) -> dict[str, str]:
        return digests_of_files(self.component)

    @property
    def component(self) -> AnswerMeasure:
        return self._measure

    def make(self, reads: Reads, tools: Tools) -> Frames:
        measure = self.component
        answers = reads["answers"]
        answers = answers[[name for name in self._of_answers if name in answers]]
        if isinstance(measure, MeasuresLayouts):
            prefixes = reads["prefixes"]
            here = prefixes[prefixes["n_tokens"] == self.budget.n_tokens]
            found = measure.measure_layouts(reads["scored_evidence"], reads["layouts"], here, answers, tools)
        elif isinstance(measure, MeasuresPassages):
            of_topics = reads["topics"], reads["evidence"], reads["used_passages"]
            found = measure.measure_passages(*of_topics, answers, tools)
        else:
            found = measure.measure(reads["topics"], reads["evidence"], reads["contexts"], answers, tools)
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
