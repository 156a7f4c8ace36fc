from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.contract import component, frames
from ragauge.contract.component import Embedder
from ragauge.contract.errors import ConfigError, DataError
from ragauge.retrieval.retrievers import MLQ, MMR, Reo, Sim, dense
from ragauge.retrieval.retrievers.dense import mmr_order

TEXTS = {
    "a%p0": "apple pear plum",
    "b%p0": "apple pear",
    "c%p0": "apple",
    "d%p0": "train boat plane",
    "e%p0": "train boat",
    "f%p0": "",
}


def chunks_of(texts):
    return pd.DataFrame({"docno": list(texts), "text": list(texts.values())}, dtype="str")


def search(retriever, tools, folder, queries, texts=TEXTS):
    chunks = chunks_of(texts)
    folder.mkdir(exist_ok=True)
    if not any(folder.iterdir()):
        retriever.build_index(chunks, folder, tools)
    topics = pd.DataFrame({"qid": [f"q{i}" for i in range(len(queries))], "query": queries})
    return retriever.transformer(chunks, folder, tools)(topics)


def test_sim_orders_by_cosine(tools, tmp_path):
    run = search(Sim(top_k=2), tools, tmp_path / "i", ["train boat", "apple"])
    frames.check("run", run)
    assert run["qid"].tolist() == ["q0", "q0", "q1", "q1"]
    assert run["docno"].tolist() == ["e%p0", "d%p0", "c%p0", "b%p0"]
    assert run["rank"].tolist() == [0, 1, 0, 1]
    e, d = (tools.embedder.embed([TEXTS[name]])[0].astype(float) for name in ("e%p0", "d%p0"))
    assert run["score"].iloc[0] == pytest.approx(e @ e, abs=1e-12)
    assert run["score"].iloc[1] == pytest.approx(e @ d, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 50), st.integers(0, 10_000))
def test_sim_against_a_full_sort_with_equal_texts(tmp_path_factory, n_chunks, top_k, seed):
    from ragauge.contract.component import Tools

    rng = np.random.default_rng(seed)
    pool = rng.normal(size=(8, 16)).astype(np.float32)
    pool /= np.linalg.norm(pool, axis=1, keepdims=True)

    class Embedder(component.Embedder):
        def embed(self, texts, store=None):
            return pool[[int(text) for text in texts]]

    texts = {f"d{i}": str(rng.integers(8)) for i in rng.permutation(n_chunks)}
    tools = Tools(store=None, embedder=Embedder(), tokenizer=None)
    run = search(Sim(top_k), tools, tmp_path_factory.mktemp("sim"), ["3", "5"], texts)
    for qid, query in (("q0", 3), ("q1", 5)):
        cosine = {d: round(float(pool[query].astype(float) @ pool[int(t)].astype(float)), 9) for d, t in texts.items()}
        expected = sorted(texts, key=lambda d: (-cosine[d], d))[:top_k]
        assert run[run["qid"] == qid]["docno"].tolist() == expected


def test_a_topic_finds_the_same_alone_and_among_others(tools, tmp_path):
    queries = [f"apple train {i}" for i in range(60)]
    together = search(Sim(), tools, tmp_path / "i", queries)
    alone = search(Sim(), tools, tmp_path / "i", queries[:1])
    pd.testing.assert_frame_equal(together[together["qid"] == "q0"], alone)


@pytest.mark.parametrize("retriever", [Sim(), MMR(), Reo(), Reo(reorder="before_cut")], ids=repr)
class TestEveryDenseRetriever:
    def test_empty_queries_have_no_hits(self, retriever, tools, tmp_path):
        run = search(retriever, tools, tmp_path / "i", ["", None, "?!", "\x00", "apple", float("nan")])
        assert set(run["qid"]) == {"q4"}
        frames.check("run", run)

    def test_no_topics_and_no_chunks(self, retriever, tools, tmp_path):
        full = search(retriever, tools, tmp_path / "i", ["apple"])
        assert search(retriever, tools, tmp_path / "i", []).columns.equals(full.columns)
        assert len(search(retriever, tools, tmp_path / "none", ["apple"], {})) == 0

    def test_all_chunks_where_there_are_fewer_than_top_k(self, retriever, tools, tmp_path):
        run = search(retriever, tools, tmp_path / "i", ["apple", "boat"])
        assert len(run) == 2 * len(TEXTS)
        assert (run.groupby("qid")["score"].diff().dropna() <= 0).all()

    def test_one_index_for_all(self, retriever, tools, tmp_path):
        assert retriever.index_identity() == Sim(3).index_identity()

    def test_an_index_of_other_chunks(self, retriever, tools, tmp_path):
        search(retriever, tools, tmp_path / "i", ["apple"])
        with pytest.raises(DataError, match="6 vectors for 1 chunks"):
            search(retriever, tools, tmp_path / "i", ["apple"], {"a": "apple"})


def test_an_index_written_in_blocks_is_the_same(tools, tmp_path, monkeypatch):
    texts = [f"text {i} of {i % 3}" for i in range(7)]
    chunks = pd.DataFrame({"docno": [f"d{i}" for i in range(7)], "text": texts})
    monkeypatch.setattr(dense, "_BLOCK_TEXTS", 3)
    Sim().build_index(chunks, tmp_path, tools)
    written = np.load(tmp_path / "vectors.npy")
    assert written.dtype == np.float32
    np.testing.assert_array_equal(written, tools.embedder.embed(texts))


def test_mmr_order_by_hand():
    to_query = np.array([[0.9, 0.88, 0.5, 0.1]])
    between = np.array([[[1, 0.99, 0.2, 0.0], [0.99, 1, 0.2, 0.0], [0.2, 0.2, 1, 0.3], [0.0, 0.0, 0.3, 1]]])
    # Second step at 0.5: 0.44 - 0.495, 0.25 - 0.1, 0.05 - 0; third: 0.44 - 0.495, 0.05 - 0.15.
    assert mmr_order(to_query, between, 0.5, 4).tolist() == [[0, 2, 1, 3]]
    assert mmr_order(to_query, between, 1.0, 3).tolist() == [[0, 1, 2]]
    assert mmr_order(to_query, between, 0.0, 3).tolist() == [[0, 3, 2]]


def test_mmr_ranks_by_its_own_order(tools, tmp_path):
    texts = {"a": "apple pear", "b": "apple pear", "c": "apple plum", "d": "car"}
    run = search(MMR(top_k=3, fetch_k=4, lambda_mult=0.4), tools, tmp_path / "i", ["apple pear"], texts)
    assert run["docno"].iloc[0] == "a"
    assert run["docno"].iloc[1] != "b"
    assert run["score"].tolist() == [1, 1 / 2, 1 / 3]
    assert run["similarity"].iloc[0] == pytest.approx(1)


def test_mmr_with_lambda_1_is_sim(tools, tmp_path):
    sim = search(Sim(4), tools, tmp_path / "i", ["apple boat", "plane"])
    mmr = search(MMR(4, lambda_mult=1.0), tools, tmp_path / "i", ["apple boat", "plane"])
    assert mmr["docno"].tolist() == sim["docno"].tolist()
    assert mmr["similarity"].tolist() == sim["score"].tolist()


def test_reo_before_the_cut_puts_the_best_of_an_even_number_last(tools, tmp_path):
    sim = search(Sim(4), tools, tmp_path / "i", ["apple", "boat"])
    reo = search(Reo(4, reorder="before_cut"), tools, tmp_path / "i", ["apple", "boat"])
    for qid in ("q0", "q1"):
        ranked = sim[sim["qid"] == qid]["docno"].tolist()
        found = reo[reo["qid"] == qid]
        assert found["docno"].tolist() == [ranked[i] for i in (1, 3, 2, 0)]
        assert found["score"].tolist() == [1, 1 / 2, 1 / 3, 1 / 4]
        assert found["similarity"].idxmax() == found.index[-1]


def test_reo_after_the_cut_is_sim_with_a_note_to_the_context(tools, tmp_path):
    sim = search(Sim(4), tools, tmp_path / "i", ["apple"])
    reo = search(Reo(4), tools, tmp_path / "i", ["apple"])
    pd.testing.assert_frame_equal(sim, reo)
    assert Reo().reorder_after_cut
    assert not Reo(reorder="before_cut").reorder_after_cut
    assert not Sim().reorder_after_cut


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: Sim(0), "top_k"),
        (lambda: MMR(top_k=10, fetch_k=9), "fetch_k"),
        (lambda: MMR(lambda_mult=1.5), "lambda_mult"),
        (lambda: Reo(reorder="never"), "reorder"),
    ],
)
def test_values_that_cannot_be(make, key):
    with pytest.raises(ConfigError, match=rf"retriever\.{key}="):
        make()


class OfRoles(Embedder):
    """As a question, a text has the direction of the other texts; each call is kept."""

    def __init__(self):
        self.asked = []

    def embed(self, texts, role="passage", scratch=None):
        self.asked.append((list(texts), role))
        first = [(text == "apple") == (role == "passage") for text in texts]
        return np.array([[1, 0] if one else [0, 1] for one in first], dtype=np.float32).reshape(-1, 2)


@pytest.mark.parametrize("retriever", [Sim(), MMR(), Reo(), MLQ(queries="rules")], ids=lambda it: it.component)
def test_a_question_is_embedded_as_a_question(retriever, tools, tmp_path):
    embedder = OfRoles()
    run = search(retriever, replace(tools, embedder=embedder), tmp_path / "i", ["apple"], {"a": "apple", "b": "boat"})
    asked = {(text, role) for texts, role in embedder.asked for text in texts}
    assert {("apple", "passage"), ("boat", "passage"), ("apple", "query")} <= asked
    assert ("boat", "query") not in asked
    assert dict(zip(run["docno"], run["similarity" if "similarity" in run else "score"], strict=True)) == {
        "a": 0,
        "b": 1,
    }


def test_recall_embeds_its_questions_as_questions(tools, tmp_path):
    embedder = OfRoles()
    tools, chunks = replace(tools, embedder=embedder), chunks_of({"a": "apple", "b": "boat"})
    Sim().build_index(chunks, tmp_path, tools)
    Sim().recall(pd.DataFrame({"qid": ["q0"], "query": ["apple"]}), chunks, tmp_path, tools)
    assert embedder.asked == [(["apple", "boat"], "passage"), (["apple"], "query")]
