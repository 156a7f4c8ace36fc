"""`reranker=cross_encoder` beside sentence-transformers' own CrossEncoder.rank."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.component import Tools
from ragauge.datasets import SampleDataset
from ragauge.plugins.reranking.cross_encoder import CrossEncoderReranker
from ragauge.retrieval import onnx as onnx_backend
from tiny_cross_encoder import write_cross_encoder

BACKENDS = ["torch", *(["onnx"] if onnx_backend.installed() else [])]


@pytest.mark.parametrize("max_length", [None, 24])
@pytest.mark.parametrize("backend", BACKENDS)
def test_order_and_scores_are_those_of_rank(tmp_path: Path, tools: Tools, backend: str, max_length: int | None) -> None:
    from sentence_transformers import CrossEncoder

    folder = write_cross_encoder(tmp_path / "tiny", positions=512)
    data = SampleDataset().load()
    topics = data.topics[["qid", "query"]].head(3)
    chunks = data.docs[["docno", "text"]].head(12)
    run = pd.concat(
        [chunks[["docno"]].assign(qid=qid, score=-np.arange(12.0), rank=np.arange(12)) for qid in topics["qid"]]
    )
    part = CrossEncoderReranker(str(folder), depth=12, top_k=9, backend=backend, max_length=max_length)
    made = part.rerank(run, topics, chunks, tools)
    theirs = CrossEncoder(str(folder), device="cpu", max_length=max_length)
    for qid, query in topics.itertuples(index=False):
        expected = theirs.rank(query, chunks["text"].tolist(), top_k=9)
        own = made[made["qid"] == qid]
        assert own["docno"].tolist() == [chunks["docno"].iloc[int(hit["corpus_id"])] for hit in expected]
        np.testing.assert_allclose(own["score"], [hit["score"] for hit in expected], atol=1e-5)
