from math import log
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.retrieval.retrievers import BM25, _postings

TEXTS = {
    "paris%p0": "Paris is the capital of France.",
    "rome%p0": "Rome is the capital of Italy; it was founded long ago.",
    "cafe%p0": "A café is where coffee is sold.",
    "beijing%p0": "北京是中华人民共和国的首都。",
    "moscow%p0": "Москва — столица России.",
    "with space%p0": "Running runners ran a marathon.",
    "empty%p0": "",
    "dots%p0": "...!?",
}


def chunks_of(texts):
    return pd.DataFrame({"docno": list(texts), "text": list(texts.values())}, dtype="str")


def search(folder: Path, texts, queries, retriever=None):
    retriever = retriever or BM25()
    chunks = chunks_of(texts)
    folder.mkdir(parents=True, exist_ok=True)
    retriever.build_index(chunks, folder, None)
    topics = pd.DataFrame({"qid": [f"q {i}" for i in range(len(queries))], "query": queries})
    return retriever.transformer(chunks, folder, None)(topics)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bm25")
    chunks = chunks_of(TEXTS)
    BM25().build_index(chunks, folder, None)
    transformer = BM25().transformer(chunks, folder, None)

    def ask(*queries):
        return transformer(pd.DataFrame({"qid": [f"q{i}" for i in range(len(queries))], "query": queries}))

    return ask


@pytest.mark.parametrize(
    ("query", "docno"),
    [
        ("Which city is the capital of France?", "paris%p0"),
        ("ITALY", "rome%p0"),
        ("café", "cafe%p0"),
        ("CAFE", "cafe%p0"),
        ("cafe\u0301s", "cafe%p0"),
        ("北京", "beijing%p0"),
        ("москва", "moscow%p0"),
        ("run", "with space%p0"),
    ],
)
def test_finds(built, query, docno):
    run = built(query)
    frames.check("run", run)
    assert run["docno"].iloc[0] == docno


@pytest.mark.parametrize(
    "query",
    ["", "  ", "the of is", "?!...", "\x00", "日本", "xyzzy", "\u200b", "😀", None, float("nan"), "« »"],
)
def test_no_hits_rather_than_an_error(built, query):
    run = built(query, "Paris")
    assert run["qid"].tolist() == ["q1"]
    frames.check("run", run)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(st.lists(st.text(), max_size=4))
def test_any_query(built, queries):
    run = built(*queries)
    assert set(run["docno"]) <= set(TEXTS)


def test_no_topics(built):
    run = built()
    assert len(run) == 0
    assert {"qid", "query", "docno", "score", "rank"} <= set(run.columns)


def test_is_a_pyterrier_transformer(built, tmp_path):
    import pyterrier as pt

    chunks = chunks_of(TEXTS)
    BM25().build_index(chunks, tmp_path, None)
    transformer = BM25().transformer(chunks, tmp_path, None)
    assert isinstance(transformer, pt.Transformer)
    run = (transformer % 1)(pd.DataFrame({"qid": ["1"], "query": ["capital"]}))
    assert run["docno"].tolist() == ["paris%p0"]
    with pytest.raises(pt.validate.InputValidationError, match="query"):
        transformer(pd.DataFrame({"qid": ["1"]}))


def test_sorted_by_topic_as_given_then_rank_with_ties_by_docno(tmp_path):
    texts = dict.fromkeys("dbca", "apple pie") | {"e": "apple apple pie", "f": "pear"}
    run = search(tmp_path, texts, ["pear", "apple"])
    assert run["qid"].tolist() == ["q 0"] + ["q 1"] * 5
    assert run["docno"].tolist() == ["f", "e", "a", "b", "c", "d"]
    assert run["rank"].tolist() == [0, 0, 1, 2, 3, 4]


def test_ties_across_the_cut_keep_the_first_docnos(tmp_path):
    texts = {f"d{i:03}": "apple" for i in reversed(range(200))} | {"x": "pear"}
    run = search(tmp_path, texts, ["apple"], BM25(top_k=3))
    assert run["docno"].tolist() == ["d000", "d001", "d002"]


@pytest.mark.parametrize("texts", [{}, {"a": ""}, {"a": "", "b": "?!"}], ids=["none", "empty", "no words"])
def test_nothing_to_index(tmp_path, texts):
    assert len(search(tmp_path, texts, ["anything"])) == 0


def test_searching_writes_nothing(tmp_path):
    chunks = chunks_of(TEXTS)
    BM25().build_index(chunks, tmp_path, None)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    BM25(top_k=2, threads=2).transformer(chunks, tmp_path, None)(pd.DataFrame({"qid": ["1"], "query": ["capital"]}))
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == before


def test_an_index_of_other_chunks(tmp_path):
    chunks = chunks_of(TEXTS)
    BM25().build_index(chunks, tmp_path, None)
    with pytest.raises(DataError, match="holds no BM25 index of these 3 chunks"):
        BM25().transformer(chunks.head(3), tmp_path, None)


@pytest.mark.parametrize("stemmer", ["snowball", "none"])
@pytest.mark.parametrize("stopwords", ["language", "none"])
def test_analysis_is_the_same_on_both_sides(tmp_path, stemmer, stopwords):
    texts = {"a": "Running nations, Москва café", "b": "a standing house", "c": "other", "d": "more"}
    queries = ["running", "NATIONS", "москва", "CAFÉ"]
    run = search(tmp_path, texts, queries, BM25(stemmer=stemmer, stopwords=stopwords))
    assert run["docno"].tolist() == ["a", "a", "a", "a"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("top_k", 0),
        ("top_k", 2.5),
        ("top_k", True),
        ("k1", -0.1),
        ("b", 1.1),
        ("k1", "much"),
        ("b", float("nan")),
        ("stemmer", "porter2"),
        ("stopwords", "terrier"),
        ("formula", "okapi"),
        ("threads", 0),
    ],
)
def test_values_that_cannot_be(field, value):
    with pytest.raises(ConfigError, match=rf"retriever\.{field}="):
        BM25(**{field: value})


@pytest.mark.parametrize(
    ("formula", "scores"),
    [
        # Lengths 3, 2, 1, mean 2: norms 0.5 + 0.5 * 3 / 2 = 1.25, and 1. Two of three chunks hold apple.
        ("lucene", {"a": log(1 + 1.5 / 2.5) * 2 / 3.25, "b": log(1 + 1.5 / 2.5) * 1 / 2}),
        ("atire", {"a": 2 * log(3 / 2) * 2 / 3.25, "b": 2 * log(3 / 2) * 1 / 2}),
        ("robertson", {}),  # apple is in more than half of the chunks
    ],
)
def test_by_hand(tmp_path, formula, scores):
    texts = {"a": "apple apple pie", "b": "apple pear", "c": "plum"}
    run = search(tmp_path / "one", texts, ["apple"], BM25(k1=1, b=0.5, formula=formula))
    assert dict(zip(run["docno"], run["score"], strict=True)) == pytest.approx(scores, rel=1e-12)
    twice = search(tmp_path / "two", texts, ["apples, Apple!"], BM25(k1=1, b=0.5, formula=formula))
    assert twice["score"].tolist() == [2 * score for score in run["score"]]


def test_chunks_of_equal_words_have_equal_scores(tmp_path):
    """Wherever they stand, and whatever other queries are searched with them."""
    words = [f"word{chr(97 + i)}" for i in range(20)]
    rng = np.random.default_rng(3)
    bags = [rng.choice(words, 8) for _ in range(50)]
    texts = {f"{copy}-{i}": " ".join(rng.permutation(bag)) for copy in "ba" for i, bag in enumerate(bags)}
    queries = [" ".join(rng.choice(words, 6)) for _ in range(20)]
    run = search(tmp_path, texts, queries, BM25(top_k=100))
    of_bag = run.assign(bag=run["docno"].str.partition("-")[2]).groupby(["qid", "bag"])["score"]
    assert set(of_bag.nunique()) == {1}
    assert set(of_bag.size()) == {2}
    alone = search(tmp_path / "alone", texts, queries[:1], BM25(top_k=100))
    pd.testing.assert_frame_equal(run[run["qid"] == "q 0"], alone)


def test_blocks_and_processes_change_nothing(tmp_path, monkeypatch):
    texts = {f"d{i:02}": f"word{i % 7} word{i % 5} word{i % 3} filler " * (1 + i % 4) for i in range(90)}
    queries = ["word1 word4", "filler", "word6"]
    one = search(tmp_path / "one", texts, queries)
    monkeypatch.setattr(_postings, "_TEXTS_AT_ONCE", 20)
    monkeypatch.setattr(_postings, "_POSTINGS_AT_ONCE", 30)
    for threads in (1, 2):
        pd.testing.assert_frame_equal(one, search(tmp_path / str(threads), texts, queries, BM25(threads=threads)))
    assert {file.name for file in (tmp_path / "2").iterdir()} == {file.name for file in (tmp_path / "one").iterdir()}
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "2" / file.name).read_bytes()


def test_a_count_beyond_a_byte(tmp_path):
    run = search(tmp_path, {"a": "apple " * 300, "b": "apple pie"}, ["apple"], BM25(b=0))
    of = dict(zip(run["docno"], run["score"], strict=True))
    assert of["a"] / of["b"] == pytest.approx((300 / 300.9) / (1 / 1.9))
