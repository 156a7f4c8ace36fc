"""`retriever=pyterrier`, `retriever=langchain`: any other retriever, built from YAML and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_count
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.extras import require_extra
from ragauge.contract.loading import build
from ragauge.contract.option import CONF, option
from ragauge.contract.progress import progress
from ragauge.contract.retrieval import Retriever
from ragauge.plugins.adapters.foreign import (
    WithTexts,
    as_documents,
    check_hits,
    docno_of,
    pyterrier_transformer,
    transformed,
)
from ragauge.retrieval.retrievers.ranking import (
    NO_ROWS,
    Hits,
    as_transformer,
    check_chunks,
    docno_order,
    rows_with_words,
    run_frame,
    sort_hits,
)


@option("retriever/pyterrier")
class PyTerrierPipeline(Retriever):
    """Any PyTerrier pipeline: a mapping with the `_target_` of a transformer or of a function that makes one.

    The `_target_` gets `chunks` (frame [docno, text, ...]) and `folder` (of the index) where its signature has them;
    where a stage of a composed pipeline needs the column text, it gets the chunks'.
    index: a `_target_` that is called with chunks and folder, once, to write the index; optional.
    revision: to be raised when what the code only calls changes (a service, a file), since stored runs know
        the configuration and the code, nothing behind them.
    The result must have qid, docno and score; it is ordered by score, then docno, and cut at top_k.
    """

    component = "pyterrier"

    pipeline: Mapping[str, Any]
    index: Mapping[str, Any] | None = CONF
    top_k: int = CONF
    revision: int = CONF

    def __post_init__(self) -> None:
        require_extra("retriever=pyterrier", "pyterrier")
        require_count("retriever.top_k", self.top_k)

    def index_identity(self) -> Mapping[str, Any]:
        """The index's own configuration, and its revision, if any."""
        made = None if self.index is None else {"index": self.index, "revision": self.revision}
        return {"index": "pyterrier", "version": 1, "made": made}

    def build_index(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> None:
        """Calls `index`, if there is one; passes the chunks to a PyTerrier indexer that it returns."""
        check_chunks(chunks)
        if self.index is not None:
            made = build("retriever.index", self.index, {"chunks": chunks, "folder": folder})
            if hasattr(made, "index"):
                made.index(chunks[["docno", "text"]].to_dict("records"))

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """ConfigError if the target makes no transformer; DataError for an invalid run."""
        given = {"chunks": chunks, "folder": folder}
        pipeline = WithTexts(pyterrier_transformer("retriever.pipeline", self.pipeline, given), chunks)
        name = self.pipeline["_target_"]
        order, chunk_rows = docno_order(chunks), _rows(chunks["docno"])

        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            rows = rows_with_words(topics)
            if len(rows) == 0:
                return run_frame(topics, chunks, NO_ROWS, NO_ROWS)
            found = transformed(name, pipeline, topics.iloc[rows].reset_index(drop=True))
            topic = _look_up(_rows(topics["qid"]), found["qid"], f"{name}: its run holds a qid unknown here")
            chunk = _look_up(chunk_rows, found["docno"], f"{name}: its run holds a docno of no chunk")
            score = pd.to_numeric(found["score"], errors="coerce").to_numpy(np.float64)
            check_hits(name, found["qid"], found["docno"], score)
            hits, place = sort_hits(Hits(topic, chunk, score), order)
            hits = Hits(*(values[place < self.top_k] for values in hits))
            return run_frame(topics, chunks, hits.topic, hits.chunk, score=hits.score)

        return as_transformer(name, rank)


@option("retriever/langchain")
class LangChainRetriever(Retriever):
    """Any LangChain BaseRetriever, given as a mapping with `_target_`.

    The target gets `documents` (the chunks, with the docno in their metadata) where its signature has them
    or its class has `from_documents`. Every Document that it returns must carry the docno. The order is the
    result: `score` is 1 / (rank + 1); cut at top_k, but how many a retriever returns is mostly a parameter
    of its own (often `k`).
    revision: to be raised when what the code only calls changes (a service, a file), since stored runs know
        the configuration and the code, nothing behind them.
    """

    component = "langchain"

    retriever: Mapping[str, Any]
    top_k: int = CONF
    revision: int = CONF

    def __post_init__(self) -> None:
        require_extra("retriever=langchain", "langchain_core")
        require_count("retriever.top_k", self.top_k)

    def index_identity(self) -> Mapping[str, Any]:
        """The same for all: a LangChain retriever keeps its index in memory."""
        return {"index": "langchain", "version": 1}

    def build_index(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> None:
        """Writes nothing."""
        check_chunks(chunks)

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """ConfigError if the target makes no retriever; DataError for an invalid result."""
        from langchain_core.retrievers import BaseRetriever

        name = self.retriever.get("_target_")
        given = {"documents": as_documents(chunks)}
        retriever = build("retriever.retriever", self.retriever, given)
        if not isinstance(retriever, BaseRetriever):
            made = type(retriever).__name__
            raise ConfigError(f"retriever.retriever: {name} made a {made}, which is no LangChain BaseRetriever")
        chunk_rows = _rows(chunks["docno"])

        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            rows = rows_with_words(topics)
            found: list[list[Any]] = []
            with progress(len(rows), f"retrieving by {name}", "topic") as bar:
                for query in topics["query"].iloc[rows]:
                    found.append(retriever.invoke(query)[: self.top_k])
                    bar.update()
            topic = np.repeat(rows, [len(hits) for hits in found])
            qids = topics["qid"].iloc[topic].reset_index(drop=True)
            docnos = pd.Series([docno_of(name, d) for hits in found for d in hits], dtype="str")
            chunk = _look_up(chunk_rows, docnos, f"{name}: returned a docno of no chunk")
            check_hits(str(name), qids, docnos, np.zeros(len(docnos)))
            return run_frame(topics, chunks, topic, chunk)

        return as_transformer(str(name), rank)


def _rows(keys: pd.Series) -> pd.Series:
    return pd.Series(np.arange(len(keys)), index=keys.astype("str").array)


def _look_up(rows: pd.Series, keys: pd.Series, problem: str) -> np.ndarray:
    """The row of each key; DataError names the first without one."""
    found = rows.index.get_indexer(pd.Index(keys.astype("str")))
    if (found < 0).any():
        raise DataError(f"{problem}: {keys.iloc[int(np.argmax(found < 0))]!r}")
    return np.asarray(rows.to_numpy()[found])
