"""BM25 against a plain reading of its formula, and on a public collection against values once measured."""

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge.retrieval.retrievers import BM25

DATA = Path(__file__).resolve().parents[2] / "../shared/data"


def run_of(retriever, folder, docnos, texts, queries):
    chunks = pd.DataFrame({"docno": docnos, "text": texts}, dtype="str")
    topics = pd.DataFrame({"qid": [str(i) for i in range(len(queries))], "query": queries})
    retriever.build_index(chunks, folder, None)
    return retriever.transformer(chunks, folder, None)(topics)


def random_texts(seed):
    """Texts and queries of 26 words of unequal frequency; a query may hold a word twice."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{chr(97 + i)}" for i in range(26)])
    share = 1 / np.arange(3, 29)
    texts = [" ".join(rng.choice(words, size=rng.integers(1, 30), p=share / share.sum())) for _ in range(120)]
    return texts, [" ".join(rng.choice(words, size=3)) for _ in range(30)]


IDF = {
    "lucene": lambda chunks, n, k1: math.log(1 + (chunks - n + 0.5) / (n + 0.5)),
    "robertson": lambda chunks, n, k1: max(0.0, math.log((chunks - n + 0.5) / (n + 0.5))),
    "atire": lambda chunks, n, k1: (k1 + 1) * math.log(chunks / n),
}


@pytest.mark.parametrize("formula", IDF)
@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.2, 0.75), (2.0, 0.0), (0.5, 1.0)])
def test_formula(tmp_path, formula, k1, b):
    """Sum over the query's words of idf * tf / (tf + k1 (1 - b + b length / mean))."""
    texts, queries = random_texts(5)
    docnos = [f"d{i:03}" for i in range(len(texts))]
    run = run_of(BM25(top_k=120, k1=k1, b=b, formula=formula, stemmer="none"), tmp_path, docnos, texts, queries)

    bags = [Counter(text.split()) for text in texts]
    mean = sum(bag.total() for bag in bags) / len(bags)
    holding = Counter(word for bag in bags for word in bag)
    idf = {w: IDF[formula](len(bags), n, k1) for w, n in holding.items()}
    for row, query in enumerate(queries):
        scores = {
            docno: sum(
                idf[w] * bag[w] / (bag[w] + k1 * (1 - b + b * bag.total() / mean)) for w in query.split() if w in bag
            )
            for docno, bag in zip(docnos, bags, strict=True)
        }
        hits = run[run["qid"] == str(row)]
        assert dict(zip(hits["docno"], hits["score"], strict=True)) == pytest.approx(
            {docno: score for docno, score in scores.items() if score > 0}, abs=1e-9
        )
        assert hits["docno"].tolist() == sorted(hits["docno"], key=lambda docno: (-scores[docno].__round__(9), docno))


@pytest.mark.parametrize("formula", IDF)
def test_bm25s_gives_the_same_scores(tmp_path, formula):
    bm25s = pytest.importorskip("bm25s")
    texts, queries = random_texts(6)
    run = run_of(
        BM25(top_k=120, formula=formula, stemmer="none"), tmp_path, [str(i) for i in range(120)], texts, queries
    )
    theirs = bm25s.BM25(method=formula, k1=0.9, b=0.4, dtype="float64")
    theirs.index([text.split() for text in texts], show_progress=False)
    for row, query in enumerate(queries):
        hits = run[run["qid"] == str(row)]
        ours = np.zeros(120)
        ours[hits["docno"].astype(int)] = hits["score"]
        assert ours == pytest.approx(theirs.get_scores(query.split()), abs=1e-6)


def test_rank_bm25_gives_the_same_order(tmp_path):
    """Its formula is robertson's, times k1 + 1, where no word is in more than half of the texts."""
    rank_bm25 = pytest.importorskip("rank_bm25")
    rng = np.random.default_rng(7)
    words = np.array([f"word{chr(97 + i)}{chr(97 + j)}" for i in range(6) for j in range(6)])
    texts = [" ".join(rng.choice(words, size=rng.integers(5, 30))) for _ in range(120)]
    queries = [" ".join(rng.choice(words, size=4)) for _ in range(30)]
    run = run_of(
        BM25(top_k=120, formula="robertson", k1=1.5, b=0.75, stemmer="none"),
        tmp_path,
        [str(i) for i in range(120)],
        texts,
        queries,
    )
    theirs = rank_bm25.BM25Okapi([text.split() for text in texts], k1=1.5, b=0.75)
    for row, query in enumerate(queries):
        hits = run[run["qid"] == str(row)]
        of_hits = theirs.get_scores(query.split())[hits["docno"].astype(int)]
        assert (np.diff(of_hits) <= 1e-9).all()
        assert hits["score"].to_numpy() * 2.5 == pytest.approx(of_hits, abs=1e-6)


@pytest.mark.skipif(not (DATA / "rag_mini_texts.csv").exists(), reason="needs RAG Mini BioASQ")
def test_reference_points(tmp_path):
    """Of the default BM25; PISA with Terrier's stop words has 0.870, 0.327, 0.398 and 0.710."""
    passages = pd.read_csv(DATA / "rag_mini_texts.csv", dtype=str)
    questions = pd.read_csv(DATA / "rag_mini_questions_val.csv", dtype=str)
    docnos = [f"{name}%p0" for name in passages["id"]]
    run = run_of(BM25(top_k=5), tmp_path, docnos, passages["text"].tolist(), questions["question"].tolist())
    relevant = [{f"{name}%p0" for name in re.findall(r"\d+", ids)} for ids in questions["text_ids"]]
    run["found"] = [docno in relevant[int(qid)] for qid, docno in zip(run["qid"], run["docno"], strict=True)]
    sizes = np.array([len(names) for names in relevant])
    for cut, precision, recall in ((1, 0.870, 0.327), (5, 0.398, 0.710)):
        found = run[run["rank"] < cut].groupby("qid")["found"].sum()
        found = found.reindex([str(i) for i in range(len(relevant))], fill_value=0).to_numpy()
        assert found.mean() / cut == pytest.approx(precision, abs=0.005)
        assert (found / sizes).mean() == pytest.approx(recall, abs=0.005)
        if cut == 1:
            assert found.mean() >= 0.868
        else:
            assert (found / sizes).mean() >= 0.70
