"""Stages that rank: for a question, for rewritten queries, and by a reranker."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.answer_measures import NO_CONTEXT, NO_DOCUMENT
from ragauge.contract.component import Tools
from ragauge.contract.retrieval import (
    BringsTexts,
    Reranker,
    Retriever,
    Rewriter,
    SeesEvidence,
    TopicsFailed,
)
from ragauge.contract.stages import QUESTIONS, TURNS, Components, Frames, Incomplete, Read, Reads, Stage
from ragauge.experiment.stages.documents import chunks_to_search
from ragauge.retrieval.passages import document_of, with_brought
from ragauge.retrieval.ranking import check_reranked, ranks_within
from ragauge.retrieval.recognised import of_no_document, recognised, spellings
from ragauge.retrieval.searching import check_queries, search
from ragauge.texts.folding import fold_space

_SEARCHED = (Read("chunks"), Read("index", folder=True))


class Retrieve(Stage):
    """The ranked chunks of every topic for its unchanged question."""

    name = "run"
    makes = ("run",)
    doing = "retrieving for {topics:,} topics"
    group = "retriever"
    of_files = True

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        seen = (Read("evidence"),) if isinstance(self.component, SeesEvidence) else ()
        return (*_SEARCHED, QUESTIONS, *seen)

    @property
    def component(self) -> Retriever:
        return self.components.retriever

    def make(self, reads: Reads, tools: Tools) -> Frames:
        if isinstance(self.component, SeesEvidence):
            of_topics, folder = (reads["topics"], reads["evidence"]), reads.folder("index")
            found = self.component.rank_with_evidence(*of_topics, reads["chunks"], folder, tools)
            return {"run": frames.check("run", found, type(self.component).__name__)}
        chunks = chunks_to_search(self.component, reads)
        transformer = self.component.transformer(chunks, reads.folder("index"), tools)
        run = transformer(reads["topics"])
        # Topics whose queries an LLM failed to write were searched by the question alone.
        if "queries" in run and {"llm", "question"} <= set(run["queries"]):
            raise Incomplete({"run": run})
        return {"run": run}


class Bring(Stage):
    """The ranked texts of every topic by a retriever with its own texts, which join the chunks.

    Texts that are documents or chunks of the corpus get their docnos (`recognised`). unranked: [qid, why], the topics
    without a ranking of documents. NO_CONTEXT: their contexts are not known. NO_DOCUMENT: it is not known which
    documents the contexts are.
    """

    name = "run"
    version = 2
    makes = ("run", "chunks", "unranked")
    doing = "retrieving for {topics:,} topics"
    group = "retriever"
    reads: tuple[Read, ...] = (Read("docs"), Read("chunks"), TURNS)
    of_files = True

    @property
    def component(self) -> BringsTexts:
        retriever = self.components.retriever
        assert isinstance(retriever, BringsTexts)
        return retriever

    @property
    def _per_budget(self) -> bool:
        return self.component.per_budget

    def params(self) -> dict[str, Any]:
        return {**super().params(), **({"n_tokens": self.budget.n_tokens} if self._per_budget else {})}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        who = type(self.component).__name__
        topics, chunks = reads["topics"], reads["chunks"]
        if self._per_budget:
            topics = topics.assign(n_tokens=self.budget.n_tokens)
        without: list[str] = []
        again = False
        try:
            run, texts = self.component.bring(topics, chunks, tools)
        except TopicsFailed as some:
            run, texts, without, again = some.run, some.texts, some.qids, some.again
        if "failed" in run and run["failed"].any():
            without, again = [*without, *run.loc[run["failed"], "qid"].unique()], True
        run, texts, unnamed = self._recognised(run, texts, reads)
        unnamed = [qid for qid in unnamed if qid not in without]
        why = [*((qid, NO_CONTEXT) for qid in without), *((qid, NO_DOCUMENT) for qid in unnamed)]
        found = {
            "run": frames.check("run", run, who),
            "chunks": with_brought(chunks, texts, who),
            "unranked": pd.DataFrame(why, columns=["qid", "why"], dtype="str"),
        }
        if again:
            raise Incomplete(found, len(without), len(topics))
        return found

    def _recognised(
        self, run: pd.DataFrame, texts: pd.DataFrame, reads: Reads
    ) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
        """The run and texts with the corpus's docnos, and the topics with unknown documents."""
        run, texts = recognised(run, texts, reads["chunks"], reads.rows("docs"))
        return run, texts, of_no_document(run, reads["chunks"], texts)


class BringAlone(Bring):
    """The system's own part of `Bring`: its raw texts."""

    reads: tuple[Read, ...] = (Read("chunks"), TURNS)

    def _recognised(
        self, run: pd.DataFrame, texts: pd.DataFrame, reads: Reads
    ) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
        return run, texts, []


class LeaveOutOwn(Stage):
    """The run without documents identical to their topic: same id, same text, with or without the title in front.

    own_documents: [qid] of the topics whose ranking held it. BEIR's evaluator leaves it out, too (ArguAna).
    """

    name = "without_own"
    makes = ("run", "own_documents")
    reads = (Read("run"), QUESTIONS, Read("docs"))
    doing = "leaving the topics' own documents out of {run:,} hits"

    def make(self, reads: Reads, tools: Tools) -> Frames:
        run, topics = reads["run"], reads["topics"]
        query_of = dict(zip(topics["qid"], map(fold_space, topics["query"]), strict=True))
        there = reads.where("docs", "docno", topics["qid"].tolist())
        texts = there[["docno", "title", "text"]].itertuples(index=False)
        own = {docno for docno, title, text in texts if query_of[docno] in spellings(title, text)}
        hit = run["qid"].isin(own) & (run["docno"].map(document_of) == run["qid"])
        kept = run[~hit].reset_index(drop=True)
        kept = kept.assign(rank=ranks_within(pd.factorize(kept["qid"])[0]))
        found = pd.DataFrame({"qid": run.loc[hit, "qid"].unique()}, dtype="str")
        return {"run": kept if hit.any() else run, "own_documents": found}


class FoundByQuestion(Stage):
    """found_by_question: [qid, docno] of the question's own run, under a unique name."""

    name = "found_by_question"
    reads = (Read("run"),)
    makes = ("found_by_question",)
    stored = False

    def make(self, reads: Reads, tools: Tools) -> Frames:
        return {"found_by_question": reads["run"][["qid", "docno"]]}


class Recall(Stage):
    """ann: recall of the exact ten best hits by an approximate search ([metric, value])."""

    name = "ann"
    reads = (*_SEARCHED, QUESTIONS)
    makes = ("ann",)
    doing = "searching for {topics:,} topics exactly, too"

    @property
    def component(self) -> Retriever:
        return self.components.retriever

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics, folder = reads["topics"], reads.folder("index")
        recall = self.component.recall(topics, chunks_to_search(self.component, reads), folder, tools)
        return {"ann": pd.DataFrame({"metric": ["ann_recall_at_10"], "value": [recall]})}


class Rewrite(Stage):
    """The queries of a rewriter."""

    name = "queries"
    makes = ("queries",)
    doing = "rewriting {topics:,} questions"
    group = "rewriter"
    of_files = True

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        return (TURNS, *((Read("run"), Read("chunks")) if self.component.feedback else ()))

    @property
    def component(self) -> Rewriter:
        return self.components.rewriter

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics = reads["topics"]
        feedback = self.component.feedback
        run, chunks = (reads["run"], retrieved_chunks(reads)) if feedback else (None, None)
        made = self.component.rewrite(topics, run, chunks, tools)
        queries = check_queries(made, topics, type(self.component).__name__)
        if "chat" in self.uses and queries["origin"].eq("failed").any():
            raise Incomplete({"queries": queries})  # an LLM failed for some topics
        return {"queries": queries}


class RetrieveRewritten(Stage):
    """The ranked chunks of every topic, for the queries of the rewriter."""

    name = "rewritten"
    reads = (*_SEARCHED, QUESTIONS, Read("queries"))
    makes = ("run",)
    doing = "retrieving for {queries:,} queries"
    group = "retriever"

    @property
    def component(self) -> Retriever:
        return self.components.retriever

    def params(self) -> dict[str, Any]:
        rewriter = self.components.rewriter
        constant = {"rrf_constant": rewriter.rrf_constant} if rewriter.union == "rrf" else {}
        return {**super().params(), "union": rewriter.union, **constant}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics, folder = reads["topics"], reads.folder("index")
        rewriter = self.components.rewriter
        chunks = chunks_to_search(self.component, reads)
        run = search(self.component, topics, reads["queries"], rewriter, chunks, folder, tools)
        return {"run": run}


def is_rewritten(components: Components) -> bool:
    """Whether retrieval searches for queries instead of the questions.

    A retriever that finds nothing, or that is given the evidence, ignores queries, so none are made.
    """
    retriever = components.retriever
    searches = retriever.top_k != 0 and not isinstance(retriever, SeesEvidence)
    return components.rewriter.kind != "none" and searches


def standalone_reads(components: Components) -> tuple[Read, ...]:
    """The reads of the questions for stages after the retriever, including a rewriter's standalone ones."""
    alone = is_rewritten(components) and components.rewriter.stands_alone
    return (QUESTIONS, Read("queries", columns=("qid", "query"))) if alone else (QUESTIONS,)


def standalone(reads: Reads, components: Components) -> pd.DataFrame:
    """The topics [qid, query] with standalone questions: the last query of each."""
    topics = reads["topics"]
    if len(standalone_reads(components)) == 1:
        return topics
    written = reads["queries"].drop_duplicates("qid", keep="last").set_index("qid")["query"]
    return topics.assign(query=topics["qid"].map(written))


class Rerank(Stage):
    """A run with its chunks in another order."""

    name = "reranked"
    makes = ("run",)
    doing = "reranking {run:,} hits of {topics:,} topics"
    group = "reranker"

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        return (Read("run"), Read("chunks"), *standalone_reads(self.components))

    @property
    def component(self) -> Reranker:
        return self.components.reranker

    def make(self, reads: Reads, tools: Tools) -> Frames:
        run, chunks = reads["run"], retrieved_chunks(reads)
        made = self.component.rerank(run, standalone(reads, self.components), chunks, tools)
        reranked = check_reranked(run, made, type(self.component).__name__)
        if "reranker_failed" in reranked and reranked["reranker_failed"].any():
            raise Incomplete({"run": reranked})  # an LLM failed for some topics
        return {"run": reranked}


def retrieved_chunks(reads: Reads, run: str | Read = "run") -> pd.DataFrame:
    """The chunks in a run, in the order of the corpus."""
    return reads.where("chunks", "docno", reads[run]["docno"].unique())
