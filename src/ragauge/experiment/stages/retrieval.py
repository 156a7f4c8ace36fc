"""The stages from files to contexts: what each reads, what it makes, and the component that does it.

A stage's version is raised when its code, or that of what it calls in ragauge, gives another output:
tests/experiment/test_versions.py fails where it was forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.batches import Batches
from ragauge.contract.context_parts import (
    Approximates,
    BringsTexts,
    Compressor,
    ContextOrder,
    Expander,
    OverRetrievers,
    ReadsFiles,
    Rewriter,
    SeesEvidence,
    TopicsFailed,
)
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import code_of, identity
from ragauge.contract.progress import progress
from ragauge.contract.protocols import Chunker, Reranker, Retriever, Source, Tokenizer, Tools
from ragauge.experiment.stages.stage import Budget, Components, Frames, Incomplete, Made, Reads, Stage
from ragauge.retrieval.brought import with_brought
from ragauge.retrieval.chunkers import chunked
from ragauge.retrieval.contexts import build_contexts, contexts_at
from ragauge.retrieval.order import LongContextOrder
from ragauge.retrieval.passages import in_rank_order, passages_of
from ragauge.retrieval.ranking import check_reranked
from ragauge.retrieval.searching import check_queries, search
from ragauge.store import file_sha256, link_files


class ReadDataset(Stage):
    """Files to docs, topics, evidence; and skipped: the rows that were dropped, with the reason."""

    name = "dataset"
    makes = ("docs", "topics", "evidence", "skipped")
    doing = "reading the dataset"
    uses = frozenset()

    @property
    def component(self) -> Source:
        return self.components.dataset

    def inputs(self) -> dict[str, str]:
        return digests_of_files(self.component)

    def make(self, reads: Reads, tools: Tools) -> Made:
        data = self.component.load()
        if data.topics.empty:
            raise ConfigError(f"dataset {self.component.name}: no topic is left to evaluate")
        skipped = pd.DataFrame({"skipped": list(data.skipped)}, dtype="str")
        return {"docs": data.docs, "topics": data.topics, "evidence": data.evidence, "skipped": skipped}


class Chunk(Stage):
    """Documents to chunks."""

    name = "chunks"
    reads = ("docs",)
    makes = ("chunks",)
    doing = "chunking {docs:,} documents"

    @property
    def component(self) -> Chunker:
        return self.components.chunker

    def make(self, reads: Reads, tools: Tools) -> Made:
        docs = reads.rows("docs")
        if isinstance(docs, Batches):
            return {"chunks": Batches(lambda: self._chunks_of(docs, tools))}
        return {"chunks": chunked(self.component, docs, tools)}

    def _chunks_of(self, docs: Batches, tools: Tools) -> Iterator[pd.DataFrame]:
        with progress(docs.n_rows, "chunking", "document") as bar:
            for some in docs:
                yield chunked(self.component, some, tools)
                bar.update(len(some))


class Index(Stage):
    """The retriever's index folder; of one over others a folder with the index of each, stored by itself.

    arm: which of the retriever's own retrievers it is the index of; the key is the same as where that one is
    the job's retriever.
    """

    name = "index"
    doing = "indexing {chunks:,} chunks"

    def __init__(self, components: Components, budget: Budget, arm: str | None = None) -> None:
        super().__init__(components, budget)
        self._arm = arm

    @property
    def label(self) -> str:
        return self.name if self._arm is None else f"{self.name}:{self._arm}"

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("chunks", *(f"{self.name}:{arm}/" for arm in retrievers_within(self.component)))

    @property
    def component(self) -> Retriever:
        retriever = self.components.retriever
        return retriever if self._arm is None else retrievers_within(retriever)[self._arm]

    @property
    def uses(self) -> frozenset[str]:
        found: frozenset[str] = getattr(self.component, "index_uses", self.component.uses)
        return found

    def params(self) -> dict[str, Any]:
        return {"index": {**self.component.index_identity(), **code_of(self.component)}}

    def fill(self, folder: Path, reads: Reads, tools: Tools) -> None:
        arms = retrievers_within(self.component)
        for arm in arms:
            link_files(reads.folder(f"{self.name}:{arm}"), folder / arm)
        if not arms:
            batches = getattr(self.component, "indexes_batches", False)
            chunks: Any = reads.rows("chunks") if batches else reads["chunks"]
            self.component.build_index(chunks, folder, tools)


class Retrieve(Stage):
    """The ranked chunks of every topic, for its question as it is."""

    name = "run"
    makes = ("run",)
    doing = "retrieving for {topics:,} topics"
    group = "retriever"

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        seen = ("evidence",) if isinstance(self.component, SeesEvidence) else ()
        return ("chunks", "index/", "topics[qid,query]", *seen)

    @property
    def component(self) -> Retriever:
        return self.components.retriever

    def inputs(self) -> dict[str, str]:
        return digests_of_files(self.component)

    def make(self, reads: Reads, tools: Tools) -> Frames:
        if isinstance(self.component, SeesEvidence):
            topics, evidence = reads["topics"][["qid", "query"]], reads["evidence"]
            folder = reads.folder("index")
            found = self.component.rank_with_evidence(topics, evidence, reads["chunks"], folder, tools)
            return {"run": frames.check("run", found, type(self.component).__name__)}
        chunks = chunks_to_search(self.component, reads)
        transformer = self.component.transformer(chunks, reads.folder("index"), tools)
        run = transformer(reads["topics"][["qid", "query"]])
        # Topics whose queries an LLM failed to write were searched by the question alone.
        if "queries" in run and {"llm", "question"} <= set(run["queries"]):
            raise Incomplete({"run": run})
        return {"run": run}


class Bring(Stage):
    """The ranked texts of every topic by a retriever that brings them along; they join the chunks."""

    name = "run"
    makes = ("run", "chunks")
    doing = "retrieving for {topics:,} topics"
    group = "retriever"
    reads = ("chunks", "topics[qid,query]")

    @property
    def component(self) -> BringsTexts:
        retriever = self.components.retriever
        assert isinstance(retriever, BringsTexts)
        return retriever

    @property
    def _per_budget(self) -> bool:
        return bool(getattr(self.component, "per_budget", False))

    def params(self) -> dict[str, Any]:
        return {**super().params(), **({"n_tokens": self.budget.n_tokens} if self._per_budget else {})}

    def inputs(self) -> dict[str, str]:
        return digests_of_files(self.component)

    def make(self, reads: Reads, tools: Tools) -> Frames:
        who = type(self.component).__name__
        topics = reads["topics"][["qid", "query"]]
        if self._per_budget:
            topics = topics.assign(n_tokens=self.budget.n_tokens)
        failed: list[str] = []
        try:
            run, texts = self.component.bring(topics, reads["chunks"], tools)
        except TopicsFailed as some:
            run, texts, failed = some.run, some.texts, some.qids
        found = {
            "run": frames.check("run", run, who),
            "chunks": with_brought(reads["chunks"], texts, who),
        }
        if failed or ("failed" in run and run["failed"].any()):
            raise Incomplete(found, len(failed), len(topics))
        return found


class FoundByQuestion(Stage):
    """found_by_question: [qid, docno] of the question's own run, under a name that no later run takes."""

    name = "found_by_question"
    reads = ("run",)
    makes = ("found_by_question",)
    stored = False

    def make(self, reads: Reads, tools: Tools) -> Frames:
        return {"found_by_question": reads["run"][["qid", "docno"]]}


class Recall(Stage):
    """ann: the share of the exact ten best hits that an approximate search finds ([metric, value])."""

    name = "ann"
    reads = ("chunks", "index/", "topics[qid,query]")
    makes = ("ann",)
    doing = "searching for {topics:,} topics exactly, too"

    @property
    def component(self) -> Retriever:
        return self.components.retriever

    def make(self, reads: Reads, tools: Tools) -> Frames:
        assert isinstance(self.component, Approximates)
        topics, folder = reads["topics"][["qid", "query"]], reads.folder("index")
        recall = self.component.recall(topics, chunks_to_search(self.component, reads), folder, tools)
        return {"ann": pd.DataFrame({"metric": ["ann_recall_at_10"], "value": [recall]})}


class Rewrite(Stage):
    """The queries that are searched for, by a rewriter."""

    name = "queries"
    makes = ("queries",)
    doing = "rewriting {topics:,} questions"
    group = "rewriter"

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("topics[qid,query]", *(("run", "chunks") if self.component.feedback else ()))

    @property
    def component(self) -> Rewriter:
        return self.components.rewriter

    def inputs(self) -> dict[str, str]:
        return digests_of_files(self.component)

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics = reads["topics"][["qid", "query"]]
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
    reads = ("chunks", "index/", "topics[qid,query]", "queries")
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
        topics, folder = reads["topics"][["qid", "query"]], reads.folder("index")
        rewriter = self.components.rewriter
        chunks = chunks_to_search(self.component, reads)
        run = search(self.component, topics, reads["queries"], rewriter, chunks, folder, tools)
        return {"run": run}


class Rerank(Stage):
    """A run to another run of its chunks."""

    name = "reranked"
    reads = ("run", "chunks", "topics[qid,query]")
    makes = ("run",)
    doing = "reranking {run:,} hits of {topics:,} topics"
    group = "reranker"

    @property
    def component(self) -> Reranker:
        return self.components.reranker

    def make(self, reads: Reads, tools: Tools) -> Frames:
        run, chunks = reads["run"], retrieved_chunks(reads)
        made = self.component.rerank(run, reads["topics"][["qid", "query"]], chunks, tools)
        reranked = check_reranked(run, made, type(self.component).__name__)
        if "reranker_failed" in reranked and reranked["reranker_failed"].any():
            raise Incomplete({"run": reranked})  # an LLM failed for some topics
        return {"run": reranked}


class Expand(Stage):
    """Hits to larger passages around them."""

    name = "expanded"
    reads = ("run", "chunks", "docs")
    makes = ("passages",)
    doing = "expanding {run:,} hits"
    group = "expander"

    @property
    def component(self) -> Expander:
        return self.components.expander

    def make(self, reads: Reads, tools: Tools) -> Frames:
        # The documents of the hits, and all of their chunks.
        parents = retrieved_chunks(reads)["parent"].unique()
        chunks = reads.where("chunks", "parent", parents)
        docs = reads.where("docs", "docno", parents)
        made = self.component.expand(reads["run"], chunks, docs, tools)
        return {"passages": frames.check("passages", made, type(self.component).__name__)}


class Compress(Stage):
    """Passages to what of them matters for the question; and their characters before and after."""

    name = "compressed"
    makes = ("passages", "compression")
    doing = "compressing what was found for {topics:,} topics"
    group = "compressor"

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        expanded = self.components.expander.kind != "none"
        return (*(("passages",) if expanded else ("run", "chunks")), "topics[qid,query]")

    @property
    def component(self) -> Compressor:
        return self.components.compressor

    def make(self, reads: Reads, tools: Tools) -> Frames:
        expanded = self.components.expander.kind != "none"
        passages = reads["passages"] if expanded else passages_of(reads["run"], retrieved_chunks(reads))
        passages = in_rank_order(passages)
        depth = getattr(self.component, "depth", None)
        if depth is not None:
            passages = passages[passages["rank"] < depth].reset_index(drop=True)
        made = self.component.compress(passages, reads["topics"][["qid", "query"]], tools)
        frames.check("passages", made, type(self.component).__name__)
        sizes = (int(found["text"].str.len().sum()) for found in (passages, made))
        compression = pd.DataFrame([tuple(sizes)], columns=["characters_in", "characters_out"])
        found = {"passages": made, "compression": compression}
        if "failed" in made and made["failed"].any():
            raise Incomplete(found)  # an LLM failed for some
        return found


def texts_of_ranking(components: Components) -> tuple[str, ...]:
    """The frames that hold the texts which are laid out: those of chunks, unless a part has changed them."""
    parts = (components.expander, components.compressor)
    return ("passages",) if any(part.kind != "none" for part in parts) else ("run", "chunks")


class LayOut(Stage):
    """C, and the ends of every C_N of the grid."""

    name = "context"
    makes = ("layouts", "prefixes")
    doing = "laying out the contexts of {topics:,} topics"

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*texts_of_ranking(self.components), "topics[qid]")

    @property
    def component(self) -> Tokenizer:
        return self.components.tokenizer

    @property
    def uses(self) -> frozenset[str]:
        return frozenset({"tokenizer"})

    @property
    def _order(self) -> ContextOrder:
        """That of the config, or the one that the retriever brings along."""
        if self.components.retriever.reorder_after_cut:
            return LongContextOrder("first")
        return self.components.order

    def params(self) -> dict[str, Any]:
        after = bool(self.components.retriever.reorder_after_cut)
        own = {} if after or self._order.by_rank else {"order": identity(self._order)}
        return {"n_grid": list(self.budget.grid), "reorder_after_cut": after, **own}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        hits = reads[texts_of_ranking(self.components)[0]]
        chunks = retrieved_chunks(reads) if "chunks" in self.reads else None
        qids = reads["topics"]["qid"].tolist()
        layouts, prefixes = build_contexts(hits, chunks, tools.tokenizer, self.budget.grid, qids, self._order)
        return {"layouts": layouts, "prefixes": prefixes}


class Cut(Stage):
    """C_N of every topic at this job's n_tokens."""

    name = "contexts"
    reads = ("layouts", "prefixes")
    makes = ("contexts",)
    stored = False

    def make(self, reads: Reads, tools: Tools) -> Frames:
        return {"contexts": contexts_at(reads["layouts"], reads["prefixes"], self.budget.n_tokens)}


def retrieved_chunks(reads: Reads, run: str = "run") -> pd.DataFrame:
    """The chunks that a run names, in the order of the corpus."""
    return reads.where("chunks", "docno", reads[run]["docno"].unique())


def chunks_to_search(retriever: Retriever, reads: Reads) -> pd.DataFrame:
    """The chunks as a retriever's search needs them: the columns `search_columns`, or all that there are.

    One over others needs what any of them does.
    """
    searching = list(retrievers_within(retriever).values()) or [retriever]
    if not all(hasattr(one, "search_columns") for one in searching):
        return reads["chunks"]
    names = [name for one in searching for name in one.search_columns]  # type: ignore[attr-defined]
    return reads.columns("chunks", list(dict.fromkeys(["docno", *names])))


def retrievers_within(retriever: Retriever) -> Mapping[str, Retriever]:
    """Those that a retriever searches with, by name; none of one that searches by itself."""
    return retriever.retrievers if isinstance(retriever, OverRetrievers) else {}


def digests_of_files(component: Any) -> dict[str, str]:
    """The digest of every file that a component reads, by its role."""
    if not isinstance(component, ReadsFiles):
        return {}
    return {role: file_digest(path) for role, path in component.files().items()}


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes; read once per process while the file stays as it is."""
    stat = path.stat()
    return _file_digest(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=64)
def _file_digest(path: Path, size: int, mtime_ns: int) -> str:
    return file_sha256(path)
