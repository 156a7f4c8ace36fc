"""`reranker=langchain`, `reranker=pyterrier`: any other reranker, built from YAML and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.option import CONF, option
from ragauge.contract.progress import progress
from ragauge.contract.retrieval import Reranker
from ragauge.plugins.adapters.foreign import (
    as_documents,
    check_hits,
    docno_of,
    document_compressor,
    pyterrier_transformer,
    transformed,
)
from ragauge.retrieval.ranking import rank_scores, ranked, ranks_within
from ragauge.retrieval.rerankers import candidates, check_depth


@option("reranker/langchain")
class LangChainReranker(Reranker):
    """Any LangChain BaseDocumentCompressor, given as a mapping with `_target_`, asked topic by topic.

    It gets the best `depth` hits of a topic as Documents with the docno in their metadata, and the question.
    The order of what it returns is the result, cut at `top_k` (None is depth): `score` is 1 / (rank + 1). It
    may return fewer, which many do by a parameter of their own (often `top_n`); texts that it changes stay
    as they were.
    revision: to be raised when what the code only calls changes (a service, a file), since stored runs know
        the configuration and the code, nothing behind them.
    """

    component = "langchain"
    kind = "langchain"

    compressor: Mapping[str, Any]
    depth: int = CONF
    top_k: int | None = CONF
    revision: int = CONF

    def __post_init__(self) -> None:
        check_depth(self.depth, self.top_k)

    def rerank(self, run: pd.DataFrame, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """ConfigError if the target makes no compressor; DataError for an invalid result."""
        name = str(self.compressor.get("_target_"))
        compressor = document_compressor("reranker.compressor", self.compressor)
        found = candidates(run, topics, chunks, self.depth)
        qids: list[str] = []
        docnos: list[str] = []
        with progress(found["qid"].nunique(), f"reranking by {name}", "topic") as bar:
            for qid, hits in found.groupby("qid", sort=False):
                kept = compressor.compress_documents(as_documents(hits), query=hits["query"].iloc[0])
                docnos += [docno_of(name, document) for document in kept]
                qids += [str(qid)] * len(kept)
                bar.update()
        order = pd.DataFrame({"qid": pd.Series(qids, dtype="str"), "docno": pd.Series(docnos, dtype="str")})
        check_hits(name, order["qid"], order["docno"], np.zeros(len(order)))
        rank = ranks_within(order["qid"].to_numpy())
        reranked = order.assign(score=rank_scores(rank), rank=rank)
        return reranked[rank < (self.top_k or self.depth)].reset_index(drop=True)


@option("reranker/pyterrier")
class PyTerrierReranker(Reranker):
    """Any PyTerrier transformer of runs: a mapping with the `_target_` of one, or of a function making one.

    It gets the best `depth` hits of all topics as a frame [qid, query, docno, text, score, rank]. It must return qid,
    docno and score of some or all of them. The result is ordered by score, then docno, and cut at `top_k` (None is
    depth).
    revision: to be raised when what the code only calls changes (a service, a file), since stored runs know
        the configuration and the code, nothing behind them.
    """

    component = "pyterrier"
    kind = "pyterrier"

    transformer: Mapping[str, Any]
    depth: int = CONF
    top_k: int | None = CONF
    revision: int = CONF

    def __post_init__(self) -> None:
        check_depth(self.depth, self.top_k)

    def rerank(self, run: pd.DataFrame, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """ConfigError if the target makes no transformer; DataError for an invalid run."""
        name = str(self.transformer.get("_target_"))
        transformer = pyterrier_transformer("reranker.transformer", self.transformer, {})
        near = candidates(run, topics, chunks, self.depth)
        near = near[["qid", "query", "docno", "text", "score", "rank"]]
        if near.empty:
            return near[["qid", "docno", "score", "rank"]]
        found = transformed(name, transformer, near)
        score = pd.to_numeric(found["score"], errors="coerce").to_numpy(np.float64)
        check_hits(name, found["qid"], found["docno"], score)
        scored = found[["qid", "docno"]].astype("str").assign(score=score)
        # Topics in the order of the run, whatever the transformer made of it.
        place = {qid: i for i, qid in enumerate(near["qid"].unique())}
        by = np.argsort(scored["qid"].map(place).fillna(len(place)).to_numpy(), kind="stable")
        return ranked(scored.iloc[by].reset_index(drop=True), self.top_k or self.depth)
