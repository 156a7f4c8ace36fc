"""The vector of hypothetical passages against LangChain's HypotheticalDocumentEmbedder: the same ranking."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.component import ChatModel
from ragauge.contract.replies import Reply
from ragauge.plugins.rewriting.hyde import HyDE
from ragauge.retrieval.retrievers import Sim
from ragauge.retrieval.searching import search

hyde = pytest.importorskip("langchain_classic.chains.hyde.base")


def test_the_same_ranking(tools, tmp_path):
    rng = np.random.default_rng(9)
    words = [f"word{i}" for i in range(60)]
    passages = [" ".join(rng.choice(words, 12)) for _ in range(4)]
    texts = [" ".join(rng.choice(words, 8)) for _ in range(120)]
    vectors = tools.embedder.embed(texts).astype(float)
    combine = hyde.HypotheticalDocumentEmbedder.combine_embeddings
    theirs = np.array(combine(None, tools.embedder.embed(passages).astype(float).tolist()))
    cosine = vectors @ theirs / np.linalg.norm(theirs)

    class Chat(ChatModel):
        def ask(self, prompts, store, what, **how):
            return [Reply("\n---\n".join(passages))]

    chunks = pd.DataFrame({"docno": [f"d{i:03}" for i in range(120)], "text": texts}, dtype="str")
    topics = pd.DataFrame({"qid": ["1"], "query": ["which word?"]}, dtype="str")
    asked, sim, rewriter = (
        replace(tools, chat=Chat()),
        Sim(top_k=120),
        HyDE(n_passages=4, with_question=False),
    )
    sim.build_index(chunks, tmp_path, asked)
    queries = rewriter.rewrite(topics, None, None, asked)
    run = search(sim, topics, queries, rewriter, chunks, tmp_path, asked)
    assert run.set_index("docno")["score"].reindex(chunks["docno"]).to_numpy() == pytest.approx(cosine, abs=1e-6)
