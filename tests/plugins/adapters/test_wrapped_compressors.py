"""`compressor=langchain`: what it gets, and what is made of what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest
from langchain_core.documents import BaseDocumentCompressor, Document

from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.plugins.adapters.compressors import LangChainCompressor
from ragauge.retrieval.retrievers import Sim
from small_pipeline import SmallPipelines

TOPICS = pd.DataFrame({"qid": ["q", "r"], "query": ["What?", "Why?"]}).astype("str")


def compress(compressor: Any, texts: dict[str, list[str]], tools: Tools) -> pd.DataFrame:
    rows = [
        (qid, rank, f"{qid}-{rank}", text, 1.0 / (rank + 1))
        for qid, of_topic in texts.items()
        for rank, text in enumerate(of_topic)
    ]
    passages = pd.DataFrame(rows, columns=["qid", "rank", "docno", "text", "score"])
    passages = passages.astype({"qid": "str", "docno": "str", "text": "str"})
    return frames.check("passages", compressor.compress(passages, TOPICS, tools))


class Shorten(BaseDocumentCompressor):
    """Best last, each passage cut to `n` characters, those with `without` in them left out."""

    n: int = 3
    without: str = "~"
    renamed: bool = False

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> Sequence[Document]:
        kept = [d for d in documents if self.without not in d.page_content]
        metadata: Any = (lambda d: {}) if self.renamed else (lambda d: d.metadata)
        return [Document(page_content=query[0] + d.page_content[: self.n], metadata=metadata(d)) for d in kept[::-1]]


HERE = {"_target_": f"{__name__}.Shorten"}


def test_a_langchain_compressor_changes_leaves_out_and_reorders(tools: Tools) -> None:
    compressor = LangChainCompressor({**HERE, "n": 2, "without": "wo"})
    found = compress(compressor, {"q": ["one", "two", "three"], "r": ["four"]}, tools)
    assert found[["qid", "rank", "docno", "text", "score"]].values.tolist() == [
        ["q", 0, "q-2", "Wth", 1.0],
        ["q", 1, "q-0", "Won", 0.5],
        ["r", 0, "r-0", "Wfo", 1.0],
    ]


def test_a_langchain_pipeline_that_splits_gives_several_passages(tools: Tools) -> None:
    pytest.importorskip("langchain_text_splitters")
    splits = {
        "_target_": "langchain_classic.retrievers.document_compressors.DocumentCompressorPipeline",
        "transformers": [
            {
                "_target_": "langchain_text_splitters.CharacterTextSplitter",
                "chunk_size": 3, "chunk_overlap": 0, "separator": " ",
            }
        ],
    }  # fmt: skip
    found = compress(LangChainCompressor(splits), {"q": ["one two", "six"]}, tools)
    assert found[["rank", "docno", "text"]].values.tolist() == [
        [0, "q-0", "one"],
        [1, "q-0", "two"],
        [2, "q-1", "six"],
    ]


def test_what_is_no_compressor_or_loses_the_docno_is_one_line(tools: Tools) -> None:
    with pytest.raises(ConfigError, match="made a OrderedDict, which is no LangChain BaseDocumentCompressor"):
        compress(LangChainCompressor({"_target_": "collections.OrderedDict"}), {"q": ["one"]}, tools)
    with pytest.raises(DataError, match=r"qid='q': a returned Document has metadata\['docno'\]=None"):
        compress(LangChainCompressor({**HERE, "renamed": True}), {"q": ["one"]}, tools)


def test_no_passages_stay_none(tools: Tools) -> None:
    made = LangChainCompressor(HERE).compress(frames.empty("passages"), TOPICS, tools)
    assert len(frames.check("passages", made)) == 0


def same() -> Any:
    """A LangChain compressor that returns what it is given."""

    class Same(BaseDocumentCompressor):
        def compress_documents(
            self, documents: Sequence[Document], query: str, callbacks: Any = None
        ) -> Sequence[Document]:
            return documents

    return Same()


def test_depth_is_how_many_passages_are_given_and_left(small: SmallPipelines) -> None:
    spec = {"_target_": "builtins.dict"}
    known = {"component": "langchain", "version": 1, "compressor": spec, "depth": None, "revision": 1}
    assert identity(LangChainCompressor(spec)) == known
    with pytest.raises(ConfigError, match=r"compressor\.depth=0"):
        LangChainCompressor(spec, depth=0)
    cut = small(compressor=LangChainCompressor({"_target_": f"{__name__}.same"}, depth=2), retriever=Sim(top_k=4))
    assert cut.frame("passages").groupby("qid").size()["q1"] == 2
    sizes = cut.frame("compression").iloc[0]
    assert sizes["characters_in"] == sizes["characters_out"]
