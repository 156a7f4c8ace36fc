"""Searching with queries that have weights, and what of them is refused."""

import numpy as np
import pandas as pd
import pytest

from ragauge.contract import component
from ragauge.contract.errors import DataError
from ragauge.retrieval.queries import NoRewriter
from ragauge.retrieval.retrievers import BM25, NoRetrieval
from ragauge.retrieval.searching import check_queries, queries_frame, query_checks, search

TEXTS = {
    "a": "The running boat of the north",
    "b": "apple apple car",
    "c": "boat boat the generous apple",
    "d": "run, dog",
    "e": "elephant zebra generously",
    **{f"x{i:02}": f"filler number{i}" for i in range(20)},
}


def topics_of(*questions):
    return pd.DataFrame({"qid": [f"q{i}" for i in range(len(questions))], "query": questions}, dtype="str")


def one_search(*parts, qid="q0"):
    return queries_frame(
        {"qid": qid, "search": 0, "query": text, "weight": weight, "origin": "llm"} for text, weight in parts
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A function of queries that searches with BM25; and the same of one text a query, without weights."""
    folder = tmp_path_factory.mktemp("bm25")
    chunks = pd.DataFrame({"docno": list(TEXTS), "text": list(TEXTS.values())}, dtype="str")
    BM25().build_index(chunks, folder)

    def ask(queries, retriever=None):
        topics = topics_of(*["question"] * queries["qid"].nunique())
        return search(retriever or BM25(), topics, queries, NoRewriter(), chunks, folder, None)

    def plain(text):
        transformer = BM25().transformer(chunks, folder)
        run = transformer(topics_of(text))
        return dict(zip(run["docno"], run["score"], strict=True))

    return ask, plain


def scores(run):
    return dict(zip(run["docno"], run["score"], strict=True))


@pytest.mark.parametrize("weight", [1.0, 0.3, 7.0])
def test_equal_weights_give_what_the_joined_text_gives(built, weight):
    """But for the factor; stop words, case and stems are those of a question."""
    ask, plain = built
    run = ask(one_search(("The RUNS of", weight), ("boat", weight), ("generous", weight)))
    expected = plain("The RUNS of boat generous")
    assert run["docno"].tolist() == list(expected)
    assert {docno: score / weight for docno, score in scores(run).items()} == pytest.approx(expected, rel=1e-12)


def test_a_score_is_the_weighted_sum_of_the_texts_scores(built):
    """Exactly, whatever the weights; a word counts as often as the texts hold it."""
    ask, plain = built
    parts = [("boat boat apple", 1.0), ("boats generous", 0.123456789), ("zebra", 1e-7)]
    expected = {}
    for text, weight in parts:
        for docno, score in plain(text).items():
            expected[docno] = expected.get(docno, 0) + weight * score
    assert scores(ask(one_search(*parts))) == pytest.approx(expected, rel=1e-12)


def test_a_rank_turns_with_the_weights(built):
    ask, _ = built
    for weights, first in (((1, 0.1), "d"), ((0.1, 1), "e")):
        run = ask(one_search(("dog", weights[0]), ("zebra", weights[1])))
        assert run["docno"].iloc[0] == first


def test_texts_without_a_word_of_the_index_find_nothing(built):
    ask, _ = built
    both = pd.concat([one_search(("the", 1.0), ("unknown", 0.5)), one_search(("dog", 1.0), ("the", 1.0), qid="q1")])
    assert ask(both)["qid"].unique().tolist() == ["q1"]
    assert len(ask(one_search(("the", 1.0), ("of", 0.5)))) == 0


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"query": " "}, "a query without text"),
        ({"weight": 0.0}, "a weight that is not above 0"),
        ({"weight": -1.0}, "a weight that is not above 0"),
        ({"space": "sparse"}, "a space that is none of any, dense, lexical"),
        ({"role": "document"}, "a role that is neither query nor passage"),
        ({"qid": "z"}, r"2 topic\(s\) without a query or unknown, such as 'q0'"),
    ],
)
def test_queries_that_cannot_be_searched_for(values, told):
    queries = queries_frame([{"qid": "q0", "search": 0, "query": "dog", "origin": "llm"} | values])
    with pytest.raises(DataError, match=f"Own: .*{told}"):
        check_queries(queries, topics_of("dog"), "Own")


def test_an_empty_question_is_no_error():
    queries = queries_frame([{"qid": "q0", "search": 0, "query": "", "origin": "question"}])
    assert len(check_queries(queries, topics_of(""), "Own")) == 1


def test_a_retriever_for_which_nothing_was_written(tools, tmp_path):
    chunks = pd.DataFrame({"docno": ["a"], "text": ["dog"]}, dtype="str")
    queries = queries_frame([{"qid": "q0", "search": 0, "query": "dog", "origin": "llm", "space": "dense"}])
    with pytest.raises(DataError, match=r"NoRetrieval: .* no query.* for dense retrievers, .* text"):
        search(NoRetrieval(), topics_of("dog"), queries, NoRewriter(), chunks, tmp_path, tools)


def test_the_checks_of_queries_by_hand():
    """q0: cosines 0 and 0.6; of its first two hits one is new. q1 failed. q2 found nothing itself."""
    vectors = {"Who?": [1, 0], "Anna": [0, 1], "Bert": [0.6, 0.8], "What?": [1, 0], "Dogs": [1, 0]}

    class Embedder(component.Embedder):
        def embed(self, texts, role="passage", scratch=None):
            assert role == ("passage" if texts == ["Bert"] else "query")
            return np.array([vectors[text] for text in texts], dtype=np.float32)

    queries = queries_frame(
        [
            {"qid": "q0", "search": 0, "query": "Who?", "origin": "question"},
            {"qid": "q0", "search": 1, "query": "Anna", "origin": "llm"},
            {"qid": "q0", "search": 2, "query": "Bert", "origin": "llm", "role": "passage"},
            {"qid": "q0", "search": 2, "query": "word", "origin": "feedback", "space": "lexical"},
            {"qid": "q1", "search": 0, "query": "Where?", "origin": "failed"},
            {"qid": "q2", "search": 0, "query": "Dogs", "origin": "llm"},
        ]
    )
    run = pd.DataFrame(
        [("q0", "a", 0), ("q0", "x", 1), ("q0", "y", 2), ("q1", "a", 0), ("q2", "a", 0)],
        columns=["qid", "docno", "rank"],
    )
    own = pd.DataFrame([("q0", "a"), ("q0", "b"), ("q1", "a")], columns=["qid", "docno"])
    found = query_checks(topics_of("Who?", "Where?", "What?", "?"), queries, run, own, Embedder())
    assert found["qid"].tolist() == ["q0", "q1", "q2", "q3"]
    assert found["similarity"].tolist() == pytest.approx([0.3, float("nan"), 1, float("nan")], nan_ok=True)
    assert found["new_hits"].tolist() == pytest.approx([0.5, 0, 1, float("nan")], nan_ok=True)
    assert found["failed"].tolist() == [False, True, False, False]
