"""Stages that measure contexts and rankings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.answer_measures import NO_CONTEXT, NO_EVIDENCE
from ragauge.contract.component import Tools
from ragauge.contract.identity import identity
from ragauge.contract.measures import AnswerMeasureInfo, Measure, MeasuresPieces
from ragauge.contract.retrieval import BringsTexts
from ragauge.contract.stages import QUESTIONS, Components, Frames, Incomplete, Read, Reads, Stage
from ragauge.contract.topics import scorable
from ragauge.experiment.stages.retrieval import retrieved_chunks
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
from ragauge.measures.evidence_trail import in_corpus, joined
from ragauge.measures.floor import is_corrected, raw
from ragauge.measures.questions import (
    EVIDENCE_DOCUMENTS,
    LANGUAGE,
    LEXICAL_OVERLAP,
    RARITY,
    evidence_documents,
    languages,
    lexical_overlap,
    rarity,
)
from ragauge.measures.rankings import full_name, of_chunks, part_qrels, ranking_infos
from ragauge.retrieval.contexts import build_contexts
from ragauge.retrieval.searching import query_checks, searched_by


class Scorable(Stage):
    """scored_evidence: the evidence parts that contexts are scored by (`scorable`)."""

    name = "scored_evidence"
    reads = (Read("topics"), Read("evidence"))
    makes = ("scored_evidence",)
    stored = False

    def make(self, reads: Reads, tools: Tools) -> Frames:
        return {"scored_evidence": scorable(reads["evidence"], reads["topics"])}


class ScorableHere(Stage):
    """scored_evidence without topics of unknown contexts, whose IR score is missing."""

    name = "scorable_here"
    reads = (Read("scored_evidence"), Read("unranked"))
    makes = ("scored_evidence",)
    stored = False

    def make(self, reads: Reads, tools: Tools) -> Frames:
        unranked, evidence = reads["unranked"], reads["scored_evidence"]
        without = unranked.loc[unranked["why"] == NO_CONTEXT, "qid"]
        return {"scored_evidence": evidence[~evidence["qid"].isin(without)].reset_index(drop=True)}


class Score(Stage):
    """Scores of the whole grid, and part_scores, a row per evidence part; none of topics without evidence."""

    name = "scores"
    reads = (Read("layouts"), Read("prefixes"), Read("scored_evidence"))
    makes = ("scores", "part_scores")
    doing = "scoring the contexts of {layouts:,} topics"
    group = "measure"
    evaluates = True

    @property
    def component(self) -> Measure:
        found: Measure = raw(self.components.measure)
        return found

    @property
    def uses(self) -> frozenset[str]:
        return self.component.uses

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
    """floors: the measure's value of every evidence part in unrelated text; floor_means: their mean over topics.

    Neither the retriever nor this job's n_tokens is in its key: the jobs of a sweep share one.
    """

    name = "floor"
    reads = (Read("chunks"), Read("scored_evidence"))
    makes = ("floors", "floor_means")
    doing = "scoring {scored_evidence:,} pieces of evidence in unrelated text"
    group = "measure"
    evaluates = True

    @property
    def component(self) -> Measure:
        found: Measure = raw(self.components.measure)
        return found

    @property
    def uses(self) -> frozenset[str]:
        return frozenset({"tokenizer"}) | (self.component.uses if self._asked else set())

    @property
    def _asked(self) -> bool:
        """Whether to compute a floor; if that needs an LLM, only for corrected scores."""
        asks = "chat" in self.component.uses
        return not asks or is_corrected(self.components.measure)

    def params(self) -> dict[str, Any]:
        return {"component": identity(self.component), "n_grid": list(self.budget.grid)}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        evidence = reads["scored_evidence"] if self._asked else reads["scored_evidence"].iloc[:0]
        found = floors(self.component, evidence, reads.rows("chunks"), tools.tokenizer, self.budget.grid, tools=tools)
        return {"floors": found, "floor_means": floor_means(found)}


class CorrectScores(Stage):
    """Scores and part_scores, each part's less its floor: `measure.correct=floor`."""

    name = "corrected"
    reads = (Read("part_scores"), Read("floors"))
    makes = ("scores", "part_scores")

    def params(self) -> dict[str, Any]:
        return {"correct": "floor"}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        parts = corrected_parts(reads["part_scores"], reads["floors"])
        return {"scores": mean_over_parts(parts, self.components.measure.name), "part_scores": parts}


class ChunkTruth(Stage):
    """chunk_qrels: the chunks that are relevant to the topics. Neither retriever nor budget is in its key."""

    name = "chunk_qrels"
    reads = (Read("chunks"), Read("scored_evidence"))
    makes = ("chunk_qrels",)
    doing = "looking for {scored_evidence:,} pieces of evidence in {chunks:,} chunks"

    def make(self, reads: Reads, tools: Tools) -> Frames:
        evidence = reads["scored_evidence"]
        if evidence["docno"].isna().any():  # of such a part all chunks are looked at
            return {"chunk_qrels": chunk_qrels(evidence, reads["chunks"])}
        chunks = reads.where("chunks", "parent", evidence["docno"].unique())
        return {"chunk_qrels": chunk_qrels(evidence, chunks)}


def _unranked(components: Components) -> tuple[Read, ...]:
    """The read of the topics without a document ranking; () if all texts are chunks of the corpus."""
    return (Read("unranked"),) if isinstance(components.retriever, BringsTexts) else ()


class ScoreRanking(Stage):
    """ranking_values: the values of ranking measures (ir-measures) of the run, topic by topic ([qid, measure, value]).

    The run is that of documents, or of chunks where a measure says so. A topic has no value where its contexts, or the
    documents of its contexts, are not known. Chunks that are looked for in all documents are known by their texts.
    """

    name = "classics"
    version = 2
    makes = ("ranking_values",)
    doing = "measuring the ranking of {run:,} hits"

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        names = ("run", "evidence", *(("chunk_qrels",) if any(map(of_chunks, self.budget.measures)) else ()))
        return (*map(Read, names), *_unranked(self.components))

    def params(self) -> dict[str, Any]:
        return {"measures": list(map(full_name, self.budget.measures))}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        by_chunk = [name for name in self.budget.measures if of_chunks(name)]
        by_document = [name for name in self.budget.measures if not of_chunks(name)]
        evidence, chunk_truth = reads["evidence"], reads["chunk_qrels"] if by_chunk else None
        if _unranked(self.components):
            unranked = reads["unranked"]
            named = evidence.loc[evidence["docno"].notna(), "qid"]
            evidence = evidence[~evidence["qid"].isin(unranked["qid"])]
            if chunk_truth is not None:
                unknown = unranked.loc[(unranked["why"] == NO_CONTEXT) | unranked["qid"].isin(named), "qid"]
                chunk_truth = chunk_truth[~chunk_truth["qid"].isin(unknown)]
        found = ranking_values(document_run(reads["run"]), qrels_of(evidence), by_document, part_qrels(evidence))
        if chunk_truth is not None:
            found = pd.concat([found, ranking_values(reads["run"], chunk_truth, by_chunk)], ignore_index=True)
        return {"ranking_values": found}


class RankingColumns(Stage):
    """The measures of the ranking as columns of the outcomes: missing for a topic without a relevant one."""

    name = "ranking_columns"
    makes = ("answer_values",)
    stored = False

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        read = (Read("evidence"), Read("ranking_values"), Read("topics", columns=("qid",)))
        return (*read, *_unranked(self.components))

    @property
    def infos(self) -> tuple[AnswerMeasureInfo, ...]:  # type: ignore[override]
        return ranking_infos(self.budget.measures)

    def shown(self, frame: Callable[[str], pd.DataFrame]) -> list[AnswerMeasureInfo]:
        """Document measures if the evidence names documents, chunk measures if it has texts."""
        evidence = frame("evidence")
        there = {False: bool(evidence["docno"].notna().any()), True: bool(evidence["text"].notna().any())}
        return [info for info, name in zip(self.infos, self.budget.measures, strict=True) if there[of_chunks(name)]]

    def make(self, reads: Reads, tools: Tools) -> Frames:
        values = reads["ranking_values"]
        known = dict(zip(zip(values["qid"], values["measure"], strict=True), values["value"], strict=True))
        unranked: dict[str, str] = {}
        if _unranked(self.components):
            unranked = dict(zip(reads["unranked"]["qid"], reads["unranked"]["why"], strict=True))
        names = [info.name for info in self.shown(reads.__getitem__)]
        pairs = [(qid, name) for name in names for qid in reads["topics"]["qid"].tolist()]
        rows = {
            "qid": [qid for qid, _ in pairs],
            "n_tokens": self.budget.n_tokens,
            "measure": [name for _, name in pairs],
            "value": list(map(known.get, pairs)),
            "status": ["ok" if pair in known else unranked.get(pair[0], NO_EVIDENCE) for pair in pairs],
        }
        return {"answer_values": pd.DataFrame(rows).astype(frames.empty("answer_values").dtypes)}


class Derive(Stage):
    """derived: columns computed from the questions, by which topics are sliced; row by row as topics."""

    name = "derived"
    version = 2
    makes = ("derived",)
    doing = "describing {topics:,} questions"

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        derived = set(self.budget.derived)
        found = [QUESTIONS]
        if EVIDENCE_DOCUMENTS in derived:
            found.append(Read("evidence", columns=("qid", "docno", "text")))
        elif LEXICAL_OVERLAP in derived:
            found.append(Read("evidence", columns=("qid", "text")))
        return (*found, *([Read("docs")] if RARITY in derived else []))

    def params(self) -> dict[str, Any]:
        return {"attributes": list(self.budget.derived)}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics = reads["topics"]
        found = topics[["qid"]].copy()
        if LEXICAL_OVERLAP in self.budget.derived:
            found[LEXICAL_OVERLAP] = lexical_overlap(topics, reads["evidence"])
        if RARITY in self.budget.derived:
            found[RARITY] = rarity(topics, reads.rows("docs"))
        if EVIDENCE_DOCUMENTS in self.budget.derived:
            found[EVIDENCE_DOCUMENTS] = evidence_documents(topics, reads["evidence"])
        if LANGUAGE in self.budget.derived:
            found[LANGUAGE] = languages(topics)
        return {"derived": found}


class CheckQueries(Stage):
    """query_checks: how far a rewriter's queries are from the question, a row a topic."""

    name = "query_checks"
    reads = (QUESTIONS, Read("queries"), Read("run"), Read("found_by_question", columns=("qid", "docno")))
    makes = ("query_checks",)
    doing = "holding {queries:,} queries against their questions"
    uses = frozenset({"embedder"})

    def params(self) -> dict[str, Any]:
        return {"space": self.components.retriever.space}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics, found = reads["topics"], reads["found_by_question"]
        queries = searched_by(self.components.retriever, reads["queries"])
        return {"query_checks": query_checks(topics, queries, reads["run"], found, tools.embedder)}


_UNRERANKED = Read("run", before="reranked")


def has_funnel(components: Components) -> bool:
    """Whether the job's measure applies to any text; one with a model would have to ask it at every step."""
    measure = components.measure
    return not isinstance(measure, MeasuresPieces) and "chat" not in measure.uses


class _FollowsEvidence(Stage):
    uses = frozenset()

    @property
    def component(self) -> Measure:
        found: Measure = raw(self.components.measure)
        return found


class FindInCorpus(_FollowsEvidence):
    """evidence_in_corpus: every part of the evidence in whole documents and in single chunks (`in_corpus`).

    Neither retriever nor budget is in its key: the jobs of a sweep share one.
    """

    name = "funnel_corpus"
    makes = ("evidence_in_corpus",)
    doing = "looking for {scored_evidence:,} pieces of evidence in {docs:,} documents"

    @property
    def _chunked(self) -> bool:
        return not isinstance(self.components.retriever, BringsTexts)

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        return tuple(map(Read, ("scored_evidence", "docs", *(("chunks",) if self._chunked else ()))))

    def make(self, reads: Reads, tools: Tools) -> Frames:
        evidence = reads["scored_evidence"]
        if evidence.empty:
            columns = ["qid", "part", "text", "corpus", "best_chunk", "holders"]
            return {"evidence_in_corpus": pd.DataFrame(columns=columns)}
        chunks = reads.rows("chunks") if self._chunked else None
        return {"evidence_in_corpus": in_corpus(self.component, evidence, reads.rows("docs"), chunks)}


class FollowEvidence(_FollowsEvidence):
    """evidence_trail: qid, part, and the measure of every part after each step that the job has.

    Columns: corpus, best_chunk, candidates (all hits before reranking), reranked, expanded, compressed (all
    of each joined, whatever the budget). The budget is none of them: jobs of all budgets share one.
    """

    name = "funnel"
    makes = ("evidence_trail",)
    doing = "following {evidence_in_corpus:,} pieces of evidence"

    @property
    def _runs(self) -> dict[str, Read]:
        """The runs by step: {step: read}."""
        if self.components.reranker.kind == "none":
            return {"candidates": Read("run")}
        return {"candidates": _UNRERANKED, "reranked": Read("run")}

    @property
    def _passages(self) -> dict[str, Read]:
        """The passages by step."""
        expands, compresses = (part.kind != "none" for part in (self.components.expander, self.components.compressor))
        return {
            **({"expanded": Read("passages", before="compressed" if compresses else "")} if expands else {}),
            **({"compressed": Read("passages")} if compresses else {}),
        }

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        texts = (*self._runs.values(), *self._passages.values())
        return (Read("evidence_in_corpus"), Read("chunks"), *texts)

    def params(self) -> dict[str, Any]:
        return {**super().params(), "steps": [*self._runs, *self._passages]}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        evidence = reads["evidence_in_corpus"]
        trail = evidence.drop(columns=["text", "holders"])
        if evidence.empty:
            return {"evidence_trail": trail.assign(**dict.fromkeys((*self._runs, *self._passages), 0.0))}
        for step, run in self._runs.items():
            held = evidence["holders"]
            trail[step] = joined(self.component, evidence, reads[run], reads.rows("chunks"), held)
        for step, passages in self._passages.items():
            trail[step] = joined(self.component, evidence, reads[passages])
        return {"evidence_trail": trail}


class ScoreUnreranked(_FollowsEvidence):
    """unreranked_scores: scores of contexts in the order before reranking, at every budget, a row per part.

    These contexts are neither expanded nor compressed, which happens after reranking.
    """

    name = "funnel_unreranked"
    reads = (_UNRERANKED, Read("chunks"), Read("scored_evidence"))
    makes = ("unreranked_scores",)
    doing = "scoring {scored_evidence:,} pieces of evidence before reranking"
    uses = frozenset({"tokenizer"})

    def params(self) -> dict[str, Any]:
        return {**super().params(), "n_grid": list(self.budget.grid)}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        evidence = reads["scored_evidence"]
        qids = evidence["qid"].drop_duplicates().tolist()
        run, chunks = reads[_UNRERANKED], retrieved_chunks(reads, _UNRERANKED)
        laid_out = build_contexts(run, chunks, tools.tokenizer, self.budget.grid, qids)
        return {"unreranked_scores": part_scores(self.component, evidence, *laid_out)}
