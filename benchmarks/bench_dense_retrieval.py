"""`sim` and `mmr`, batched over all topics, against LangChain's FAISS store asked query by query.

20,000 chunks of 384 dimensions and 2,000 topics, clustered random vectors. Prints a Markdown row
each; times per topic are medians of interleaved runs in one process.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from timing import against

from ragauge.contract.component import Embedder, Tools
from ragauge.retrieval.retrievers import MMR, Sim

N_CHUNKS, N_TOPICS, DIMENSIONS = 20_000, 2_000, 384
ASKED = 200  # topics that LangChain is asked for in each run
RUNS = 5
GOAL = 20  # times LangChain
TOP_K, FETCH_K = 10, 20


class Vectors(Embedder):
    """Texts are keys of given unit vectors, so that no model takes part."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        centres = rng.normal(size=(200, DIMENSIONS))
        vectors = centres[rng.integers(200, size=N_CHUNKS + N_TOPICS)]
        vectors = vectors + 0.8 * rng.normal(size=vectors.shape)
        self.vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def embed(self, texts: Sequence[str], store: Any = None) -> np.ndarray:
        return self.vectors[[int(text) for text in texts]]


def main() -> None:
    """Prints the table."""
    from langchain_community.vectorstores import FAISS
    from langchain_community.vectorstores.utils import DistanceStrategy

    embedder: Any = Vectors()
    docnos = [f"d{i:05}" for i in range(N_CHUNKS)]
    chunks = pd.DataFrame({"docno": docnos, "text": [str(i) for i in range(N_CHUNKS)]})
    topics = pd.DataFrame(
        {"qid": [f"q{i}" for i in range(N_TOPICS)], "query": [str(N_CHUNKS + i) for i in range(N_TOPICS)]}
    )
    queries = embedder.vectors[N_CHUNKS:].tolist()
    store = FAISS.from_embeddings(
        zip(docnos, embedder.vectors[:N_CHUNKS].tolist(), strict=True),
        embedding=lambda text: embedder.embed([text])[0].tolist(),
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
    )
    tools: Any = Tools(store=None, embedder=embedder, tokenizer=None)  # type: ignore[arg-type]
    theirs = {
        "sim": lambda q: store.similarity_search_by_vector(q, TOP_K),
        "mmr": lambda q: store.max_marginal_relevance_search_by_vector(q, TOP_K, FETCH_K),
    }
    print("| what | ours | theirs | ratio | agreement |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        Sim().build_index(chunks, folder, tools)
        parts: dict[str, Any] = {"sim": Sim(top_k=TOP_K), "mmr": MMR(top_k=TOP_K, fetch_k=FETCH_K)}
        for name, part in parts.items():
            transformer = part.transformer(chunks, folder, tools)
            ours_s, theirs_s = [], []
            for _ in range(RUNS):
                start = time.perf_counter()
                run = transformer(topics)
                ours_s.append((time.perf_counter() - start) / N_TOPICS)
                start = time.perf_counter()
                found = [[hit.page_content for hit in theirs[name](q)] for q in queries[:ASKED]]
                theirs_s.append((time.perf_counter() - start) / ASKED)
            ranked = run.groupby("qid", sort=False)["docno"].agg(list)
            same = sum(ranked[f"q{i}"] == hits for i, hits in enumerate(found))
            ours, other = median(ours_s), median(theirs_s)
            print(
                f"| {name}, top {TOP_K} of {N_CHUNKS:,} chunks, {N_TOPICS:,} topics, against LangChain's "
                f"FAISS store query by query | {1000 * ours:.2f} ms a topic | {1000 * other:.2f} ms | "
                f"{other / ours:.1f}x{against(GOAL, other / ours)} | same ranking for {same} of {ASKED} |"
            )


if __name__ == "__main__":
    main()
