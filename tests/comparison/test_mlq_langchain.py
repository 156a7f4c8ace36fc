"""The first-seen union against LangChain's MultiQueryRetriever over its FAISS store, same queries."""

import numpy as np
import pandas as pd
import pytest

from ragauge.contract import component
from ragauge.contract.component import ChatModel, Tools
from ragauge.contract.replies import Reply
from ragauge.retrieval.retrievers import MLQ


def test_the_same_union(tmp_path):
    multi_query = pytest.importorskip("langchain_classic.retrievers.multi_query")
    community = pytest.importorskip("langchain_community.vectorstores")
    from langchain_core.embeddings import Embeddings
    from langchain_core.runnables import RunnableLambda

    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(200, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    class Embedder(component.Embedder):
        def embed(self, texts, store=None):
            return vectors[[int(text.split()[-1]) for text in texts]]

    class Adapter(Embeddings):
        def embed_documents(self, texts):
            return Embedder().embed(texts).tolist()

        def embed_query(self, text):
            return Embedder().embed([text])[0].tolist()

    class Chat(ChatModel):
        def ask(self, prompts, store, what, **how):
            return [Reply("\n".join(f"query {i}" for i in (161, 171, 181)))] * len(prompts)

    chunks = pd.DataFrame({"docno": [f"d{i}" for i in range(150)], "text": [f"c {i}" for i in range(150)]})
    faiss = community.FAISS.from_texts(
        chunks["text"].tolist(), Adapter(), metadatas=[{"docno": docno} for docno in chunks["docno"]]
    )
    theirs = multi_query.MultiQueryRetriever(
        retriever=faiss.as_retriever(search_kwargs={"k": 5}),
        llm_chain=RunnableLambda(lambda inputs: ["query 161", "query 171", "query 181"]),
    ).invoke("question 190")

    tools = Tools(store=None, embedder=Embedder(), tokenizer=None, chat=Chat())
    mlq = MLQ(top_k=5, union="first_seen", with_question=False)
    mlq.build_index(chunks, tmp_path, tools)
    run = mlq.transformer(chunks, tmp_path, tools)(pd.DataFrame({"qid": ["1"], "query": ["question 190"]}))
    assert run["docno"].tolist() == [found.metadata["docno"] for found in theirs]
