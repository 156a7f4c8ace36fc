"""What an encoder is held against while it learns: which topics and chunks, and the measures by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.plugins.training.contract import TrainingData
from ragauge.plugins.training.trainers._encoder_validation import Validation

TOPICS = 4


def data() -> TrainingData:
    """Topic q<i> has evidence in chunk r<i>; q9 has none. Hits of each: two others, then its own."""
    texts = [f"r{i}" for i in range(TOPICS)] + [f"o{i}" for i in range(6)]
    chunks = pd.DataFrame({"docno": texts, "text": [f"text {name}" for name in texts], "parent": texts})
    chunks["start"], chunks["end"] = 0, chunks["text"].str.len()
    qids = [f"q{i}" for i in range(TOPICS)]
    topics = pd.DataFrame({"qid": [*qids, "q9"], "query": [f"ask {qid}" for qid in (*qids, "q9")]})
    evidence = pd.DataFrame({"qid": qids, "part": 0, "docno": texts[:TOPICS]})
    evidence["text"] = "text " + evidence["docno"]
    hits = [(f"q{i}", docno, rank) for i in range(TOPICS) for rank, docno in enumerate([f"o{i}", f"o{i + 1}", f"r{i}"])]
    run = pd.DataFrame(hits, columns=["qid", "docno", "rank"]).sample(frac=1, random_state=0)
    run["score"] = -run["rank"].astype(float)
    return TrainingData(topics, evidence, chunks, run)


def test_some_topics_with_evidence_and_their_chunks_alone() -> None:
    found = Validation.of(data(), "R@5", n_topics=2, n_chunks=100, seed=3)
    qids = found.topics["qid"].tolist()
    assert len(qids) == 2
    assert "q9" not in qids
    numbers = [int(qid[1:]) for qid in qids]
    assert set(found.relevant["docno"]) == {f"r{i}" for i in numbers}
    hits = {name for i in numbers for name in (f"o{i}", f"o{i + 1}")}
    assert set(found.chunks["docno"]) == {f"r{i}" for i in numbers} | hits
    assert found.name == "validation_r_at_5"
    assert found.measures[:3] == ("P@1", "R@5", "nDCG@10")
    drawn = {tuple(Validation.of(data(), "R@5", 2, 100, seed).topics["qid"]) for seed in range(12)}
    assert len(drawn) > 1


def test_chunks_are_the_relevant_ones_and_then_the_best_hits() -> None:
    few = Validation.of(data(), "R@5", n_topics=10, n_chunks=1, seed=0)
    assert set(few.chunks["docno"]) == {"r0", "r1", "r2", "r3"}
    more = Validation.of(data(), "R@5", n_topics=10, n_chunks=7, seed=0)
    assert len(more.chunks) == 7
    assert set(more.chunks["docno"]) - {"r0", "r1", "r2", "r3"} < {"o0", "o1", "o2", "o3"}  # of rank 1
    assert len(few.topics) == TOPICS


def test_the_measures_are_those_of_the_order_by_cosine() -> None:
    found = Validation.of(data(), "P@1", n_topics=10, n_chunks=100, seed=0)
    chunks = found.chunks["docno"].tolist()
    roles: list[str] = []

    def encode(texts: list[str], role: str) -> np.ndarray:
        roles.append(role)
        vectors = np.zeros((len(texts), TOPICS + 1), dtype=np.float32)
        for row, text in enumerate(texts):
            name = text.split()[1]
            i = int(name[1:])
            if name[0] in "qr" and i < TOPICS:
                vectors[row, i] = 1.0
                if name == "r0":  # farther from its question than another chunk
                    vectors[row] *= 0.3
            elif name == "o5" or name == "o0":
                vectors[row, 0] = 0.5
        return vectors

    values = found.values(encode)
    assert roles == ["query", "passage"]
    assert "o0" in chunks
    assert values["validation_p_at_1"] == pytest.approx(3 / 4)
    assert values["validation_r_at_5"] == pytest.approx(1.0)
    assert values["validation_ndcg_at_10"] == pytest.approx((3 + 1 / np.log2(3)) / 4)


def test_topics_without_evidence_are_told() -> None:
    given = data()
    with pytest.raises(DataError, match=r"^validation: no topic has evidence that stands in a document$"):
        Validation.of(replace(given, topics=given.topics.tail(1)), "R@5", 2, 10, 0)
