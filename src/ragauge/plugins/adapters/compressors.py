"""`compressor=langchain`: any LangChain document compressor, built from YAML and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ragauge.contract.checks import require_count
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.option import CONF, option
from ragauge.contract.progress import progress
from ragauge.contract.retrieval import Compressor
from ragauge.plugins.adapters.foreign import as_documents, document_compressor
from ragauge.retrieval.passages import with_texts
from ragauge.retrieval.ranking import rank_scores


@option("compressor/langchain")
class LangChainCompressor(Compressor):
    """Any LangChain BaseDocumentCompressor, given as a mapping with `_target_`.

    It is given a topic's passages as Documents, in rank order, with the docno in their metadata, and the
    question. The Documents that it returns are the passages, in its order. Documents may be changed, left out, or split
    into several, but each must carry a docno that was given. `score` is 1 / (rank + 1).
    depth: passages of a topic that are given, best first; all others are left out. None is all.
    revision: to be raised when what the code only calls changes (a service, a file), since stored passages
        know the configuration and the code, nothing behind them.
    """

    component = "langchain"
    kind = "langchain"

    compressor: Mapping[str, Any]
    depth: int | None = CONF
    revision: int = CONF

    def __post_init__(self) -> None:
        require_count("compressor.depth", self.depth, null="all passages")

    def compress(self, passages: pd.DataFrame, topics: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `passages`; ConfigError if the target makes no compressor.

        DataError where a Document that it returns has no docno, or one that was not given.
        """
        name = str(self.compressor.get("_target_"))
        compressor = document_compressor("compressor.compressor", self.compressor)
        question = topics.set_index("qid")["query"]
        passages = passages.reset_index(drop=True)
        rows: list[int] = []
        texts: list[str] = []
        by_topic = passages.groupby("qid", sort=False)
        with progress(by_topic.ngroups, f"compressing by {name}", "topic") as bar:
            for qid, own in by_topic:
                row_of = dict(zip(own["docno"], own.index, strict=True))
                for document in compressor.compress_documents(as_documents(own), str(question[qid])):
                    docno = document.metadata.get("docno")
                    if docno not in row_of:
                        raise DataError(
                            f"{name}: qid={qid!r}: a returned Document has metadata['docno']={docno!r}, "
                            "which none of those given has"
                        )
                    rows.append(row_of[docno])
                    texts.append(str(document.page_content))
                bar.update()
        made_of = with_texts(passages.iloc[rows].reset_index(drop=True), texts)
        return made_of.assign(score=rank_scores(made_of["rank"].to_numpy()))
