"""Every part of a retrieval's defaults in one table: what its key holds, and what its index is known by."""

from __future__ import annotations

from typing import Any

from ragauge.contract.identity import identity
from ragauge.retrieval.chunkers import NoChunker, SemanticChunker, TokenChunker
from ragauge.retrieval.compressors import NoCompressor
from ragauge.retrieval.embedders import SentenceTransformerEmbedder
from ragauge.retrieval.expanders import NoExpander
from ragauge.retrieval.order import LongContextOrder, RankOrder, ReverseOrder
from ragauge.retrieval.queries import NoRewriter
from ragauge.retrieval.rerankers import NoReranker
from ragauge.retrieval.retrievers import BM25, MLQ, MMR, Hybrid, NoRetrieval, Oracle, RecordedRetrieval, Reo, Sim

OPTIONS: Any = {"bm25": BM25(), "sim": Sim()}
NONE, DENSE = {"index": "none", "version": 1}, {"index": "dense", "version": 1}
# The part, its name and version and fields, and the identity of its index.
DEFAULTS: list[tuple[Any, str, int, dict[str, Any], dict[str, Any]]] = [
    (NoChunker(), "none", 1, {}, {}),
    (TokenChunker(), "tokens", 1, {"size": 128, "overlap": 16}, {}),
    (
        SemanticChunker(), "semantic", 3,
        {"min_sentence_chars": 40, "window_each_side": 1, "breakpoint_percentile": 80, "max_tokens": 256}, {},
    ),
    (NoRewriter(), "none", 1, {}, {}),
    (NoReranker(), "none", 1, {}, {}),
    (NoCompressor(), "none", 1, {}, {}),
    (NoExpander(), "none", 1, {}, {}),
    (RankOrder(), "rank", 1, {"cut": "last"}, {}),
    (ReverseOrder(), "reverse", 1, {"cut": "last"}, {}),
    (LongContextOrder(), "long_context", 1, {"cut": "last"}, {}),
    (NoRetrieval(), "none", 1, {}, NONE),
    (
        BM25(), "bm25", 2,
        {"top_k": 30, "formula": "lucene", "k1": 0.9, "b": 0.4, "stemmer": "snowball", "stopwords": "language"},
        {"index": "bm25", "version": 2, "language": "english", "snowball": "3"},
    ),
    (Sim(), "sim", 1, {"top_k": 30}, DENSE),
    (MMR(), "mmr", 1, {"top_k": 30, "fetch_k": 60, "lambda_mult": 0.5}, DENSE),
    (Reo(), "reo", 1, {"top_k": 30, "reorder": "after_cut"}, DENSE),
    (
        MLQ(), "mlq", 1,
        {
            "top_k": 30, "queries": "auto", "n_queries": 3, "with_question": True, "union": "rrf", "rrf_constant": 60,
            "prompt": "A search engine",
        },
        DENSE,
    ),
    (Oracle(), "oracle", 1, {"top_k": 1000}, NONE),
    (RecordedRetrieval(), "recorded", 3, {"system": None, "on_missing": "raise", "top_k": 1000}, NONE),
]  # fmt: skip


def test_what_a_key_holds_where_nothing_is_set() -> None:
    for part, name, version, fields, index in DEFAULTS:
        found = identity(part)
        if "prompt" in found:
            found["prompt"] = found["prompt"][:15]
        assert found == {"component": name, "version": version, **fields}
        if index:
            known = dict(part.index_identity())
            if "snowball" in known:
                known["snowball"] = known["snowball"].partition(".")[0]
            assert known == index


def test_what_an_embedder_and_a_hybrid_are_known_by() -> None:
    found = identity(SentenceTransformerEmbedder(backend="torch"))
    assert len(found.pop("digest")) == 64
    own = {"component": "sentence_transformers", "version": 1, "model": "all-MiniLM-L6-v2", "backend": "torch"}
    assert found == {**own, "device": "cpu", "query_prefix": "", "passage_prefix": ""}
    hybrid = identity(Hybrid(options=OPTIONS))
    arms = hybrid.pop("options")
    assert {name: arm["top_k"] for name, arm in arms.items()} == {"bm25": 100, "sim": 100}
    assert hybrid == {
        "component": "hybrid", "version": 1, "arms": ["bm25", "sim"], "top_k": 30, "depth": 100, "fusion": "rrf",
        "normalise": "min_max", "rrf_constant": 60, "alpha": None, "weights": None,
    }  # fmt: skip
