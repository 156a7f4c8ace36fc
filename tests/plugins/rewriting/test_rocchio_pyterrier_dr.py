"""rewriter=prf searches dense retrievers with the vectors of pyterrier_dr's VectorPrf."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.component import Tools
from ragauge.plugins.rewriting.prf import PRF
from ragauge.retrieval.retrievers import Sim
from ragauge.retrieval.searching import search

prf_of = pytest.importorskip("pyterrier_dr.prf")
N, DEPTH = 120, 4


def test_the_same_hits_at_the_same_cosines(tools: Tools, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    vocabulary = [f"word{i}" for i in range(50)]
    texts = [" ".join(rng.choice(vocabulary, 6)) for _ in range(N)]
    chunks = pd.DataFrame({"docno": [f"c{i:03}" for i in range(N)], "text": texts}, dtype="str")
    questions = [" ".join(rng.choice(vocabulary, 3)) for _ in range(25)]
    topics = pd.DataFrame({"qid": [f"q{i:02}" for i in range(25)], "query": questions}, dtype="str")
    sim, prf = Sim(top_k=N), PRF(fb_docs=DEPTH, alpha=0.8, beta=0.6)
    sim.build_index(chunks, tmp_path, tools)
    first = sim.transformer(chunks, tmp_path, tools)(topics)
    ours = search(sim, topics, prf.rewrite(topics, first, chunks, tools), prf, chunks, tmp_path, tools)

    vectors = tools.embedder.embed(texts)
    row = dict(zip(chunks["docno"], range(N), strict=True))
    asked = dict(zip(topics["qid"], tools.embedder.embed(questions, "query"), strict=True))
    theirs = prf_of.VectorPrf(alpha=0.8, beta=0.6, k=DEPTH)(
        first.assign(query_vec=first["qid"].map(asked), doc_vec=[vectors[row[docno]] for docno in first["docno"]])
    )
    assert theirs["qid"].tolist() == topics["qid"].tolist()
    for qid, moved in zip(theirs["qid"], theirs["query_vec"], strict=True):
        cosine = vectors.astype(float) @ moved / np.linalg.norm(moved)
        hits = ours[ours["qid"] == qid].set_index("docno")["score"].reindex(chunks["docno"])
        assert hits.to_numpy() == pytest.approx(cosine, abs=1e-5)
