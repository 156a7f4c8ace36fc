"""`retriever=sim` over an approximate index: exact where it looks at all, its recall, and its identity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.component import Embedder, Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.contract.option import values_of
from ragauge.retrieval.retrievers import Hybrid, Sim

N = 1500


class Vectors(Embedder):
    """Texts are numbers of given unit vectors: 60 clusters."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        found = rng.normal(size=(60, 16))[rng.integers(60, size=N + 50)] + 0.5 * rng.normal(size=(N + 50, 16))
        self.vectors = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)

    def embed(self, texts: Any, role: str = "passage", scratch: Any = None) -> np.ndarray:
        return self.vectors[[int(text) for text in texts]]


CHUNKS = pd.DataFrame({"docno": [f"d{i}" for i in range(N)], "text": [str(i) for i in range(N)]}, dtype="str")
TOPICS = pd.DataFrame({"qid": [f"q{i}" for i in range(50)], "query": [str(N + i) for i in range(50)]}, dtype="str")


@pytest.fixture
def vectors() -> Tools:
    return Tools(store=None, embedder=Vectors(), tokenizer=None)  # type: ignore[arg-type]


def run_of(sim: Sim, folder: Path, tools: Tools) -> pd.DataFrame:
    folder.mkdir()
    sim.build_index(CHUNKS, folder, tools)
    return sim.transformer(CHUNKS, folder, tools)(TOPICS)


@pytest.mark.parametrize(
    "sim",
    [Sim(index="hnsw", ef_search=N, ef_construction=200), Sim(index="ivf", nlist=20, nprobe=20)],
    ids=["hnsw", "ivf"],
)
def test_a_search_that_looks_at_all_is_exact(sim: Sim, vectors: Tools, tmp_path: Path) -> None:
    exact = run_of(Sim(), tmp_path / "exact", vectors)
    pd.testing.assert_frame_equal(run_of(sim, tmp_path / "near", vectors), exact)
    assert sim.recall(TOPICS, CHUNKS, tmp_path / "near", vectors) == 1


def test_recall_is_the_share_of_the_exact_best_ten(vectors: Tools, tmp_path: Path) -> None:
    sim = Sim(index="ivf", nlist=30, nprobe=1, top_k=10)
    near = run_of(sim, tmp_path / "near", vectors)
    exact = run_of(Sim(top_k=10), tmp_path / "exact", vectors)
    found = near.groupby("qid")["docno"].agg(set)
    shares = {qid: len(found[qid] & set(docnos)) / 10 for qid, docnos in exact.groupby("qid")["docno"]}
    recall = sim.recall(TOPICS, CHUNKS, tmp_path / "near", vectors)
    assert recall == pytest.approx(np.mean(list(shares.values())), abs=1e-12)
    assert 0.3 < recall < 1
    one = next(qid for qid, share in shares.items() if 0 < share < 1)
    assert sim.recall(TOPICS[TOPICS["qid"] == one], CHUNKS, tmp_path / "near", vectors) == shares[one]
    assert sim.recall(TOPICS.assign(query="?"), CHUNKS, tmp_path / "near", vectors) == 1  # none can be asked


def test_an_index_is_built_the_same_each_time(vectors: Tools, tmp_path: Path) -> None:
    for sim in (Sim(index="hnsw"), Sim(index="ivf")):
        for name in ("one", "two"):
            run_of(sim, tmp_path / f"{sim.index}-{name}", vectors)
        one, two = (tmp_path / f"{sim.index}-{name}" / "ann.faiss" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_few_chunks_and_none(vectors: Tools, tmp_path: Path) -> None:
    for kind in ("hnsw", "ivf"):
        for n in (0, 1, 3):
            folder, sim = tmp_path / f"{kind}{n}", Sim(index=kind)  # type: ignore[arg-type]
            folder.mkdir()
            sim.build_index(CHUNKS.iloc[:n], folder, vectors)
            run = sim.transformer(CHUNKS.iloc[:n], folder, vectors)(TOPICS)
            assert len(run) == n * len(TOPICS)
            assert sim.recall(TOPICS, CHUNKS.iloc[:n], folder, vectors) == 1


def test_the_exact_search_is_known_as_before() -> None:
    before = {"component": "sim", "version": 1, "top_k": values_of("hydra/shared/hits")["top_k"]}
    assert identity(Sim()) == before
    assert identity(Sim(index="hnsw")) == {**before, "index": "hnsw"}
    assert Sim().index_identity() == {"index": "dense", "version": 1}
    assert Sim(index="hnsw", ef_search=7).index_identity() == Sim(index="hnsw").index_identity()
    assert Sim(index="hnsw", m=8).index_identity() != Sim(index="hnsw").index_identity()
    assert Sim(index="ivf", nprobe=3).index_identity() == Sim(index="ivf").index_identity()


def test_a_hybrid_says_the_lowest_recall_of_its_arms(vectors: Tools, tmp_path: Path) -> None:
    arms = {
        "sim": Sim(),
        "a": Sim(index="ivf", nlist=30, nprobe=1),
        "b": Sim(index="ivf", nlist=30, nprobe=30),
    }
    hybrid = Hybrid(arms=["a", "b"], options=arms)
    hybrid.build_index(CHUNKS, tmp_path, vectors)
    assert hybrid.approximate
    lowest = hybrid.retrievers["a"].recall(TOPICS, CHUNKS, tmp_path / "a", vectors)  # type: ignore[attr-defined]
    assert hybrid.recall(TOPICS, CHUNKS, tmp_path, vectors) == lowest < 1
    assert not Hybrid(arms=["sim", "x"], options={"sim": Sim(), "x": Sim(top_k=5)}).approximate


def test_an_exact_index_is_no_approximate_one(vectors: Tools, tmp_path: Path) -> None:
    Sim().build_index(CHUNKS, tmp_path, vectors)
    with pytest.raises(DataError, match="no approximate index"):
        Sim(index="hnsw").transformer(CHUNKS, tmp_path, vectors)(TOPICS)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"index": "flat"}, "retriever.index='flat': allowed are exact, hnsw, ivf"),
        ({"m": 1}, "retriever.m=1: allowed are integers from 2 to 512"),
        ({"ef_search": 0}, "retriever.ef_search=0: allowed are integers from 1"),
        ({"nlist": 0}, "retriever.nlist=0: allowed are integers from 1, and null"),
    ],
    ids=str,
)
def test_a_bad_value_is_told_in_one_line(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as told:
        Sim(**given)
    assert str(told.value).startswith(says)
