"""Chunks with a vector for each window, as of `embedder.long=max`, against loops over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from blocks_engine import BlocksEngine
from ragauge.contract.component import Embedder, Tools
from ragauge.contract.engine import Engine, LocalEngine
from ragauge.retrieval.embedders import CachedEmbedder
from ragauge.retrieval.retrievers import MMR, Reo, Sim

N = 120


@dataclass(frozen=True)
class Windowed(Embedder):
    """Texts are numbers of 25 unit vectors, "3 17 4": each number is a window, a text of several has their mean."""

    component = "windowed"
    version = 1

    def windows(self, texts: Any) -> list[list[str]]:
        return [text.split() for text in texts]

    def embed(self, texts: Any, role: str = "passage", scratch: Any = None) -> np.ndarray:
        return np.array([unit(text) for text in texts], dtype=np.float32).reshape(-1, 6)


def unit(text: str) -> np.ndarray:
    total = np.sum([VECTORS[int(number)] for number in text.split()], axis=0)
    return total / np.linalg.norm(total)


_rng = np.random.default_rng(5)
VECTORS = _rng.normal(size=(25, 6)).astype(np.float32).astype(np.float64)
VECTORS = (VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)).astype(np.float32).astype(np.float64)
SIZES = [40, *_rng.integers(1, 9, N - 1)]  # windows of the chunks; one fills the first ranks alone
TEXTS = {f"d{i * 7919 % 1000}": " ".join(map(str, _rng.integers(25, size=size))) for i, size in enumerate(SIZES)}
CHUNKS = pd.DataFrame({"docno": list(TEXTS), "text": list(TEXTS.values())}, dtype="str")
TOPICS = pd.DataFrame({"qid": [f"q{i}" for i in range(25)], "query": [str(i) for i in range(25)]}, dtype="str")


def run_of(retriever: Any, folder: Path, engine: Engine) -> dict[str, list[tuple[str, float]]]:
    embedder = CachedEmbedder(Windowed(), folder / "store")
    tools = Tools(store=None, embedder=embedder, tokenizer=None, engine=engine)  # type: ignore[arg-type]
    (folder / "index").mkdir()
    retriever.build_index(CHUNKS, folder / "index", tools)
    run = retriever.transformer(CHUNKS, folder / "index", tools)(TOPICS)
    if getattr(retriever, "approximate", False):
        assert retriever.recall(TOPICS, CHUNKS, folder / "index", tools) == 1
    cosine = "similarity" if isinstance(retriever, MMR) else "score"
    return {qid: list(zip(of["docno"], of[cosine], strict=True)) for qid, of in run.groupby("qid")}


def best_windows(query: str) -> dict[str, float]:
    asked = VECTORS[int(query)]
    return {d: max(round(float(asked @ VECTORS[int(w)]), 9) for w in text.split()) for d, text in TEXTS.items()}


@pytest.mark.parametrize("engine", [LocalEngine(), BlocksEngine(shards=3)], ids=["local", "shards"])
@pytest.mark.parametrize(
    "retriever",
    [
        Sim(top_k=1), Sim(top_k=7), Sim(top_k=500), Reo(top_k=20), Sim(top_k=9, index="hnsw", ef_search=700),
        Sim(top_k=9, index="ivf", nlist=4, nprobe=4, shards=2),
    ],
    ids=repr,
)  # fmt: skip
def test_a_chunk_has_the_cosine_of_its_best_window(retriever: Any, engine: Engine, tmp_path: Path) -> None:
    found = run_of(retriever, tmp_path, engine)
    for qid, query in zip(TOPICS["qid"], TOPICS["query"], strict=True):
        best = best_windows(query)
        expected = sorted(best, key=lambda docno: (-best[docno], docno))[: retriever.top_k]
        assert [docno for docno, _ in found[qid]] == expected
        assert [cosine for _, cosine in found[qid]] == pytest.approx([best[docno] for docno in expected], abs=1e-6)


def test_mmr_takes_best_windows_to_the_query_and_means_between_chunks(tmp_path: Path) -> None:
    found = run_of(MMR(top_k=8, fetch_k=15, lambda_mult=0.6), tmp_path, LocalEngine())
    for qid, query in zip(TOPICS["qid"], TOPICS["query"], strict=True):
        best = best_windows(query)
        candidates = sorted(best, key=lambda docno: (-best[docno], docno))[:15]
        taken = candidates[:1]
        while len(taken) < 8:
            left = [docno for docno in candidates if docno not in taken]
            worth = {d: 0.6 * best[d] - 0.4 * max(float(unit(TEXTS[d]) @ unit(TEXTS[t])) for t in taken) for d in left}
            taken.append(max(left, key=lambda d: round(worth[d], 6)))
        assert [docno for docno, _ in found[qid]] == taken
        assert [cosine for _, cosine in found[qid]] == pytest.approx([best[docno] for docno in taken], abs=1e-6)
