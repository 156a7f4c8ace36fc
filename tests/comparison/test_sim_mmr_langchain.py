"""`sim` and `mmr` against LangChain's FAISS store asked query by query, on the same vectors."""

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.component import Embedder, Tools
from ragauge.retrieval.retrievers import MMR, Sim

N_CHUNKS, N_TOPICS, DIMENSIONS = 600, 80, 48


class Vectors(Embedder):
    """Stands in for a model: texts are keys of given vectors, clustered so that diversity matters."""

    def __init__(self):
        rng = np.random.default_rng(7)
        centres = rng.normal(size=(20, DIMENSIONS))
        vectors = centres[rng.integers(20, size=N_CHUNKS + N_TOPICS)]
        vectors = vectors + 0.5 * rng.normal(size=vectors.shape)
        self.vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def embed(self, texts, store=None):
        return self.vectors[[int(text.split()[1]) for text in texts]]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    community = pytest.importorskip("langchain_community.vectorstores")
    from langchain_core.embeddings import Embeddings

    embedder = Vectors()

    class Adapter(Embeddings):
        def embed_documents(self, texts):
            return embedder.embed(texts).tolist()

        def embed_query(self, text):
            return embedder.embed([text])[0].tolist()

    chunks = pd.DataFrame({"docno": [f"d{i:04}" for i in range(N_CHUNKS)], "text": [f"c {i}" for i in range(N_CHUNKS)]})
    topics = pd.DataFrame(
        {
            "qid": [f"q{i}" for i in range(N_TOPICS)],
            "query": [f"q {N_CHUNKS + i}" for i in range(N_TOPICS)],
        }
    )
    store = community.FAISS.from_texts(
        chunks["text"].tolist(), Adapter(), metadatas=[{"docno": docno} for docno in chunks["docno"]]
    )
    tools = Tools(store=None, embedder=embedder, tokenizer=None)
    folder = tmp_path_factory.mktemp("dense")
    Sim().build_index(chunks, folder, tools)

    def ours(retriever):
        run = retriever.transformer(chunks, folder, tools)(topics)
        return run.groupby("qid", sort=False)["docno"].agg(list).tolist()

    def theirs(search):
        return [[found.metadata["docno"] for found in search(store, query)] for query in topics["query"]]

    return ours, theirs


@pytest.mark.parametrize("top_k", [1, 10, 30])
def test_sim(both, top_k):
    ours, theirs = both
    assert ours(Sim(top_k)) == theirs(lambda store, query: store.similarity_search(query, k=top_k))


@pytest.mark.parametrize("lambda_mult", [0.0, 0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize(("top_k", "fetch_k"), [(10, 20), (30, 60)])
def test_mmr(both, top_k, fetch_k, lambda_mult):
    ours, theirs = both
    assert ours(MMR(top_k, fetch_k, lambda_mult)) == theirs(
        lambda store, query: store.max_marginal_relevance_search(
            query, k=top_k, fetch_k=fetch_k, lambda_mult=lambda_mult
        )
    )
