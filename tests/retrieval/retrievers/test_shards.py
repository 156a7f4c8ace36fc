"""Dense search over shards finds what one index finds, ties at the cut included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from blocks_engine import BlocksEngine
from ragauge.contract.component import Embedder, Tools
from ragauge.contract.engine import Engine, LocalEngine
from ragauge.contract.errors import ConfigError, DataError
from ragauge.retrieval.retrievers import MLQ, MMR, Hybrid, Reo, Sim, _shards

N = 200


class Vectors(Embedder):
    """Texts are numbers of given unit vectors, of which many are the same."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        found = rng.normal(size=(25, 8))
        self.vectors = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)

    def embed(self, texts: Any, role: str = "passage", scratch: Any = None) -> np.ndarray:
        return self.vectors[[int(text.split()[0]) % 25 for text in texts]]


CHUNKS = pd.DataFrame(
    {"docno": [f"d{i * 7919 % 1000}" for i in range(N)], "text": [str(i) for i in range(N)]}, dtype="str"
).assign(parent=lambda chunks: chunks["docno"])
TOPICS = pd.DataFrame({"qid": [f"q{i}" for i in range(30)], "query": [str(i) for i in range(30)]}, dtype="str")


def tools(engine: Engine) -> Tools:
    return Tools(store=None, embedder=Vectors(), tokenizer=None, engine=engine)  # type: ignore[arg-type]


def run_of(retriever: Any, folder: Path, engine: Engine, chunks: pd.DataFrame = CHUNKS) -> pd.DataFrame:
    if not folder.exists():
        folder.mkdir()
        retriever.build_index(chunks, folder, tools(engine))
    found: pd.DataFrame = retriever.transformer(chunks, folder, tools(engine))(TOPICS)
    return found


@pytest.mark.parametrize(
    "retriever",
    [
        Sim(top_k=5),
        Sim(top_k=12),
        MMR(top_k=5, fetch_k=9),
        Reo(top_k=6),
        MLQ(top_k=5, queries="rules"),
        Hybrid(arms=["a", "b"], options={"a": Sim(), "b": MMR()}, depth=9, top_k=5),
    ],
    ids=lambda retriever: type(retriever).__name__,
)
@pytest.mark.parametrize("shards", [1, 3, 7, 1000])
def test_shards_find_what_one_index_finds(retriever: Any, shards: int, tmp_path: Path) -> None:
    one = run_of(retriever, tmp_path / "index", LocalEngine())
    for engine in (LocalEngine(shards), BlocksEngine(shards=shards)):
        pd.testing.assert_frame_equal(run_of(retriever, tmp_path / "index", engine), one)


def test_ties_across_shards_fall_to_the_docno(tmp_path: Path) -> None:
    """Eight chunks of every vector lie in other shards; the best five are the five lowest docnos of these."""
    run = run_of(Sim(top_k=5), tmp_path / "index", LocalEngine(7))
    for topic in range(25):
        tied = sorted(CHUNKS["docno"].iloc[topic::25])
        assert run.loc[run["qid"] == f"q{topic}", "docno"].tolist() == tied[:5]


def test_no_topics_and_no_chunks(tmp_path: Path) -> None:
    assert run_of(Sim(), tmp_path / "none", LocalEngine(3), CHUNKS.iloc[:0]).empty
    assert len(run_of(Sim(), tmp_path / "one", LocalEngine(3), CHUNKS.iloc[:1])) == len(TOPICS)


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_approximate_shards_that_look_at_all_are_exact(kind: Any, tmp_path: Path) -> None:
    exact = run_of(Sim(top_k=5), tmp_path / "exact", LocalEngine())
    wide = Sim(top_k=5, index=kind, shards=3, ef_search=N, ef_construction=N, nlist=2, nprobe=2)
    for engine in (LocalEngine(), BlocksEngine()):
        folder = tmp_path / type(engine).__name__
        pd.testing.assert_frame_equal(run_of(wide, folder, engine), exact)
        assert len(list(folder.glob("ann-*.faiss"))) == 3
        assert wide.recall(TOPICS, CHUNKS, folder, tools(engine)) == 1


def test_shards_of_an_approximate_index_are_part_of_what_it_is_known_by() -> None:
    assert Sim(index="hnsw", shards=2).index_identity() != Sim(index="hnsw").index_identity()
    with pytest.raises(ConfigError, match=r"retriever.shards=2: allowed are 1 with index=exact"):
        Sim(shards=2)
    with pytest.raises(ConfigError, match=r"retriever.shards=0: allowed are integers from 1"):
        Sim(index="hnsw", shards=0)


def test_a_worker_without_the_store_says_so(tmp_path: Path) -> None:
    shard = _shards.ExactShard(tmp_path / "vectors.npy", 0, 3)
    with pytest.raises(DataError, match="need the store at the same path"):
        shard((np.zeros((1, 8), dtype=np.float32), 2))
