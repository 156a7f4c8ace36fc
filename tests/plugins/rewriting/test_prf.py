"""Feedback by hand, and RM3 over words against brute force."""

import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from ragauge.plugins.rewriting.prf import PRF, relevance_model
from ragauge.retrieval.retrievers import BM25
from ragauge.retrieval.searching import check_queries, search
from ragauge.texts.words import words


def frames_of(texts, questions):
    chunks = pd.DataFrame({"docno": [f"c{i:03}" for i in range(len(texts))], "text": texts}, dtype="str")
    topics = pd.DataFrame({"qid": [f"q{i}" for i in range(len(questions))], "query": questions}, dtype="str")
    return chunks, topics


def run_of(*rows):
    return pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"])


def written(rewriter, topics, run, chunks):
    return check_queries(rewriter.rewrite(topics, run, chunks, None), topics, "a test")


def test_the_relevance_model_by_hand():
    # 3 of 4 of the weight is the first's: apple 3/4 * 1/2, boat 3/4 * 1/2 + 1/4 * 1/4, car 1/4 * 3/4.
    docs = [["apple", "boat"], ["boat", "car", "car", "car"]]
    assert relevance_model(docs, [3.0, 1.0], 5) == pytest.approx({"boat": 7 / 16, "apple": 6 / 16, "car": 3 / 16})
    assert relevance_model(docs, [3.0, 1.0], 2) == pytest.approx({"boat": 7 / 13, "apple": 6 / 13})
    assert relevance_model(docs, [0.75, 0.25], 5) == pytest.approx({"boat": 7 / 16, "apple": 6 / 16, "car": 3 / 16})
    # Scores that are not above 0 say nothing of shares.
    for scores in ([0.5, -0.5], [0.5, 0.0]):
        assert relevance_model(docs, scores, 5) == pytest.approx({"boat": 3 / 8, "car": 3 / 8, "apple": 2 / 8})
    assert relevance_model([[], []], [1.0, 1.0], 5) == {}
    assert relevance_model([], [], 5) == {}


def test_the_rows_by_hand():
    texts = ["Boats and the apple b", "car, car", "none", "?!"]
    chunks, topics = frames_of(texts, ["What are apple boats?", "what", "?", "x", "what are"])
    first = ("q4", "c001", 3.0, 0), ("q3", "c003", 1.0, 0)
    run = run_of(*first, ("q0", "c000", 2.0, 0), ("q0", "c001", 2.0, 1), ("q0", "c002", 1.0, 2))
    found = written(PRF(fb_docs=2, fb_terms=2, original_weight=0.4, alpha=1, beta=0.5), topics, run, chunks)
    rows = [tuple(row) for row in found[["qid", "query", "weight", "space", "role", "origin"]].to_numpy()]
    assert rows == [
        ("q0", "What are apple boats?", 1.0, "dense", "query", "question"),
        ("q0", "Boats and the apple b", 0.25, "dense", "passage", "feedback"),
        ("q0", "car, car", 0.25, "dense", "passage", "feedback"),
        ("q0", "What are apple boats?", 0.2, "lexical", "query", "question"),  # two words of its own
        ("q0", "car", pytest.approx(0.6 * 2 / 3), "lexical", "query", "feedback"),
        ("q0", "apple", pytest.approx(0.6 / 3), "lexical", "query", "feedback"),
        ("q1", "what", 1.0, "any", "query", "failed"),
        ("q2", "?", 1.0, "any", "query", "question"),
        ("q3", "x", 1.0, "dense", "query", "question"),  # its hit has no word
        ("q3", "x", 1.0, "lexical", "query", "question"),
        ("q4", "what are", 1.0, "dense", "query", "question"),
        ("q4", "car, car", 0.5, "dense", "passage", "feedback"),
        ("q4", "what are", 0.4, "lexical", "query", "question"),  # function words alone: one, not none
        ("q4", "car", 0.6, "lexical", "query", "feedback"),
    ]
    assert found["search"].eq(0).all()


def test_rm3_against_brute_force(tmp_path):
    """Every chunk's score is the sum over words of (RM3's share) * (BM25's score for the word alone)."""
    rng = np.random.default_rng(6)
    vocabulary = np.array([f"w{chr(97 + i)}{chr(97 + j)}x" for i in range(6) for j in range(6)])
    share = 1 / np.arange(3, 39)
    texts = [" ".join(rng.choice(vocabulary, rng.integers(4, 25), p=share / share.sum())) for _ in range(150)]
    chunks, topics = frames_of(texts, [" ".join(rng.choice(vocabulary[10:], 3)) for _ in range(25)])
    bm25, prf = BM25(top_k=150, stemmer="none"), PRF(fb_docs=4, fb_terms=6, original_weight=0.35)
    bm25.build_index(chunks, tmp_path)
    transformer = bm25.transformer(chunks, tmp_path)
    first = transformer(topics)
    run = search(bm25, topics, written(prf, topics, first, chunks), prf, chunks, tmp_path, None)
    alone = transformer(pd.DataFrame({"qid": vocabulary, "query": vocabulary}))
    of_word = alone.pivot(index="docno", columns="qid", values="score").reindex(chunks["docno"]).fillna(0)
    for qid, question in zip(topics["qid"], topics["query"], strict=True):
        best = first[(first["qid"] == qid) & (first["rank"] < 4)]
        model = Counter()
        for docno, score in zip(best["docno"], best["score"], strict=True):
            found = re.findall(r"\w+", texts[int(docno[1:])])
            for word in found:
                model[word] += score / best["score"].sum() / len(found)
        kept = dict(sorted(model.items(), key=lambda item: (-item[1], item[0]))[:6])
        weights = Counter({word: 0.65 * value / sum(kept.values()) for word, value in kept.items()})
        for word in question.split():  # which may stand there twice
            weights[word] += 0.35 / 3
        expected = sum(weight * of_word[word] for word, weight in weights.items())
        hits = run[run["qid"] == qid].set_index("docno")["score"].reindex(chunks["docno"]).fillna(0)
        assert hits.to_numpy() == pytest.approx(expected.to_numpy(), rel=1e-9, abs=1e-12)


def test_words_of_any_script_are_terms(tmp_path):
    chunks, topics = frames_of(["北京是首都", "首都机场", "Die Straße", "boat"], ["北京"])
    bm25, prf = BM25(top_k=4), PRF(fb_docs=1, fb_terms=10)
    bm25.build_index(chunks, tmp_path)
    first = bm25.transformer(chunks, tmp_path)(topics)
    assert first["docno"].tolist() == ["c000"]
    queries = written(prf, topics, first, chunks)
    terms = queries.loc[queries["space"].eq("lexical") & queries["origin"].eq("feedback"), "query"]
    assert set(terms) == {"北京", "京是", "是首", "首都"}
    run = search(bm25, topics, queries, prf, chunks, tmp_path, None)
    assert run["docno"].tolist() == ["c000", "c001"]
    assert words("Anna's 2 Straßen, 東京 x京") == ["anna", "2", "strassen", "東京", "x", "京"]


def test_one_side_alone():
    chunks, topics = frames_of(["apple boat"], ["apple"])
    run = run_of(("q0", "c000", 1.0, 0))
    dense = written(PRF(alpha=0), topics, run, chunks).query("space == 'dense'")
    assert dense["origin"].tolist() == ["feedback"]
    plain = written(PRF(beta=0, original_weight=1), topics, run, chunks)
    assert plain["origin"].tolist() == ["question", "question"]
