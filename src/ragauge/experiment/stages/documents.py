"""Stages from files to an index: dataset, chunks, index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.datasets import Source
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import Batches
from ragauge.contract.identity import code_of
from ragauge.contract.progress import progress
from ragauge.contract.retrieval import BringsTexts, Chunker, Retriever
from ragauge.contract.stages import Budget, Components, Made, Read, Reads, Stage
from ragauge.measures.located import locate
from ragauge.retrieval.chunkers import chunked
from ragauge.store import link_files


class ReadDataset(Stage):
    """Files to docs, topics, evidence; and skipped: the rows that were dropped, with the reason."""

    name = "dataset"
    makes = ("docs", "topics", "evidence", "skipped")
    doing = "reading the dataset"
    uses = frozenset()
    of_files = True

    @property
    def component(self) -> Source:
        return self.components.dataset

    def make(self, reads: Reads, tools: Tools) -> Made:
        data = self.component.load()
        if data.topics.empty:
            raise ConfigError(f"dataset {self.component.name}: no topic is left to evaluate")
        skipped = pd.DataFrame({"skipped": list(data.skipped)}, dtype="str")
        return {"docs": data.docs, "topics": data.topics, "evidence": data.evidence, "skipped": skipped}


class Locate(Stage):
    """evidence with missing docnos filled in, and lost_evidence, the parts found nowhere (`locate`).

    Spellings are folded as in the score, so that `measure.fold` is in the key.
    """

    name = "located"
    version = 2
    reads = (Read("docs"), Read("evidence"))
    makes = ("evidence", "lost_evidence")
    doing = "locating {evidence:,} pieces of evidence in {docs:,} documents"
    uses = frozenset()

    def params(self) -> dict[str, Any]:
        return {"fold": list(self._fold)}

    @property
    def _fold(self) -> tuple[str, ...]:
        return tuple(self.components.measure.fold)

    def make(self, reads: Reads, tools: Tools) -> Made:
        evidence, lost = locate(reads["evidence"], reads.rows("docs"), self._fold)
        return {"evidence": evidence, "lost_evidence": lost}


class Chunk(Stage):
    """Documents to chunks."""

    name = "chunks"
    reads = (Read("docs"),)
    makes = ("chunks",)
    doing = "chunking {docs:,} documents"

    @property
    def component(self) -> Chunker:
        return self.components.chunker

    def make(self, reads: Reads, tools: Tools) -> Made:
        docs = reads.rows("docs")
        if isinstance(docs, Batches):
            return {"chunks": Batches(lambda: self._chunks_of(docs, tools))}
        chunks = chunked(self.component, docs, tools)
        self._require_any(len(chunks), len(docs))
        return {"chunks": chunks}

    def _chunks_of(self, docs: Batches, tools: Tools) -> Iterator[pd.DataFrame]:
        n_chunks = 0
        with progress(docs.n_rows, "chunking", "document") as bar:
            for some in docs:
                chunks = chunked(self.component, some, tools)
                n_chunks += len(chunks)
                yield chunks
                bar.update(len(some))
        self._require_any(n_chunks, docs.n_rows)

    def _require_any(self, n_chunks: int, n_docs: int) -> None:
        """DataError if a searching retriever gets documents without any chunk, since every score would be 0."""
        if n_docs and not n_chunks and not isinstance(self.components.retriever, BringsTexts):
            made = f"{type(self.component).__name__} makes no chunk of its {n_docs:,} documents"
            raise DataError(f"dataset {self.components.dataset.name}: {made}: at least one needs a text")


class Index(Stage):
    """The retriever's index folder; for a retriever over others, a folder with each separately stored index.

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
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        arms = self.component.retrievers
        return (Read("chunks"), *(Read(f"{self.name}:{arm}", folder=True) for arm in arms))

    @property
    def component(self) -> Retriever:
        retriever = self.components.retriever
        return retriever if self._arm is None else retriever.retrievers[self._arm]

    @property
    def uses(self) -> frozenset[str]:
        return self.component.index_uses

    def params(self) -> dict[str, Any]:
        return {"index": {**self.component.index_identity(), **code_of(self.component)}}

    def fill(self, folder: Path, reads: Reads, tools: Tools) -> None:
        arms = self.component.retrievers
        for arm in arms:
            link_files(reads.folder(f"{self.name}:{arm}"), folder / arm)
        if not arms:
            batches = self.component.indexes_batches
            chunks: Any = reads.rows("chunks") if batches else reads["chunks"]
            self.component.build_index(chunks, folder, tools)


def chunks_to_search(retriever: Retriever, reads: Reads) -> pd.DataFrame:
    """The chunks for a retriever's search, with the columns `search_columns`, or all.

    A retriever over others needs the columns of all of them.
    """
    searching = list(retriever.retrievers.values()) or [retriever]
    names = ["docno"]
    for one in searching:
        own = one.search_columns
        if own is None:
            return reads["chunks"]
        names += own
    return reads.columns("chunks", list(dict.fromkeys(names)))
