"""The breaks of SemanticChunker beside LlamaIndex's, on the same sentences and the same embeddings."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from ragauge.contract.component import Embedder, Tools
from ragauge.datasets import SampleDataset
from ragauge.retrieval.chunkers import SemanticChunker
from ragauge.retrieval.chunkers._semantic import merge_sentences
from ragauge.texts.sentences import sentence_spans

DATA = Path(__file__).resolve().parents[2] / "../shared/data"


def llama_index_chunks(
    texts: list[str], embedder: Embedder, min_chars: int, window: int, percentile: int
) -> list[list[str]]:
    """The texts of LlamaIndex's nodes for every document."""
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.node_parser import SemanticSplitterNodeParser
    from llama_index.core.schema import Document

    class Shared(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            # It joins sentences with nothing between them, so they carry the white space behind them.
            return embedder.embed([text.strip()])[0].tolist()

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    def split(text: str) -> list[str]:
        starts = [start for start, _ in merge_sentences(sentence_spans(text), min_chars)]
        return [text[start:end] for start, end in pairwise([*starts, len(text)])]

    parser = SemanticSplitterNodeParser(
        embed_model=Shared(),
        sentence_splitter=split,
        buffer_size=window,
        breakpoint_percentile_threshold=percentile,
    )
    return [
        [node.get_content().strip() for node in parser.get_nodes_from_documents([Document(text=text)])]
        for text in texts
    ]


@pytest.mark.parametrize(
    ("min_chars", "window", "percentile"), [(40, 1, 80), (200, 3, 80), (0, 0, 50), (0, 2, 95), (60, 1, 0)]
)
def test_same_breaks_as_llama_index(tools: Tools, min_chars: int, window: int, percentile: int) -> None:
    paragraphs = SampleDataset().load().docs["text"].tolist()[:60]
    if DATA.is_dir():
        questions = json.loads((DATA / "hotpot_train_100.json").read_text(encoding="utf-8"))
        distinct = {(title, "".join(said)): None for question in questions for title, said in question["context"]}
        paragraphs = [text for _, text in distinct][:150]
    paragraphs = [text for text in paragraphs if text.strip()]
    articles = [" ".join(paragraphs[i : i + 5]) for i in range(0, len(paragraphs), 5)]
    texts = paragraphs + articles
    docnos = [f"d{i}" for i in range(len(texts))]
    frame = pd.DataFrame({"docno": docnos, "title": "", "text": texts}).astype("str")

    chunks = SemanticChunker(min_chars, window, percentile, max_tokens=None).chunk(frame, tools)
    ours = chunks.groupby("parent", sort=False)["text"].agg(list).tolist()
    theirs = llama_index_chunks(texts, tools.embedder, min_chars, window, percentile)
    assert ours == theirs
    assert len(chunks) > len(texts)
