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


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.2, 0.75), (2.0, 0.0), (0.5, 1.0)])
def test_formula(tmp_path, k1, b):
    """Sum over words of log((N - n + .5) / (n + .5)) (k1 + 1) tf / (tf + k1 (1 - b + b length / mean))."""
    rng = np.random.default_rng(5)
    words = np.array([f"word{chr(97 + i)}" for i in range(26)])
    share = 1 / np.arange(3, 29)
    texts = [" ".join(rng.choice(words, size=rng.integers(1, 30), p=share / share.sum())) for _ in range(120)]
    queries = [" ".join(rng.choice(words, size=3, replace=False)) for _ in range(30)]
    docnos = [f"d{i:03}" for i in range(len(texts))]
    run = run_of(BM25(top_k=50, k1=k1, b=b, stemmer="none"), tmp_path, docnos, texts, queries)

    bags = [Counter(text.split()) for text in texts]
    mean = sum(bag.total() for bag in bags) / len(bags)
    holding = Counter(word for bag in bags for word in bag)
    idf = {w: max(1e-6, math.log((len(bags) - n + 0.5) / (n + 0.5))) for w, n in holding.items()}
    for qid, hits in run.groupby("qid"):
        scores = [
            sum(
                idf[w] * (k1 + 1) * bag[w] / (bag[w] + k1 * (1 - b + b * bag.total() / mean))
                for w in queries[int(qid)].split()
                if w in bag
            )
            for bag in bags
        ]
        expected = sorted((s for s in scores if s > 0), reverse=True)[:50]
        assert hits["score"].tolist() == pytest.approx(expected, rel=1e-4, abs=1e-5)
        of_hits = [scores[int(docno[1:])] for docno in hits["docno"]]
        assert hits["score"].tolist() == pytest.approx(of_hits, rel=1e-4, abs=1e-5)


@pytest.mark.skipif(not (DATA / "rag_mini_texts.csv").exists(), reason="needs RAG Mini BioASQ")
def test_reference_points(tmp_path):
    """P@1 0.870, R@1 0.327, P@5 0.398, R@5 0.710: PISA, porter2, Terrier's stop words, k1 0.9, b 0.4."""
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
