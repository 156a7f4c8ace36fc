"""Which settings the key of every part of a retrieval holds, and what its index is known by."""

from __future__ import annotations

from typing import Any

from ragauge.contract.identity import identity
from ragauge.contract.option import values_of
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
# The part, its option and version and fields, and the identity of its index.
DEFAULTS: list[tuple[Any, str, int, str, dict[str, Any]]] = [
    (NoChunker(), "chunker/none", 1, "", {}),
    (TokenChunker(), "chunker/tokens", 1, "size overlap", {}),
    (
        SemanticChunker(), "chunker/semantic", 3,
        "min_sentence_chars window_each_side breakpoint_percentile max_tokens", {},
    ),
    (NoRewriter(), "rewriter/none", 1, "", {}),
    (NoReranker(), "reranker/none", 1, "", {}),
    (NoCompressor(), "compressor/none", 1, "", {}),
    (NoExpander(), "expander/none", 1, "", {}),
    (RankOrder(), "order/rank", 1, "cut", {}),
    (ReverseOrder(), "order/reverse", 1, "cut", {}),
    (LongContextOrder(), "order/long_context", 1, "cut", {}),
    (NoRetrieval(), "retriever/none", 1, "", NONE),
    (
        BM25(), "retriever/bm25", 2, "top_k formula k1 b stemmer stopwords",
        {"index": "bm25", "version": 2, "language": "english", "snowball": "3"},
    ),
    (Sim(), "retriever/sim", 1, "top_k", DENSE),
    (MMR(), "retriever/mmr", 1, "top_k fetch_k lambda_mult", DENSE),
    (Reo(), "retriever/reo", 1, "top_k reorder", DENSE),
    (MLQ(), "retriever/mlq", 1, "top_k queries n_queries with_question union rrf_constant prompt", DENSE),
    (Oracle(), "retriever/oracle", 1, "top_k", NONE),
    (RecordedRetrieval(), "retriever/recorded", 3, "system on_missing top_k", NONE),
]  # fmt: skip


def test_what_a_key_holds_where_nothing_is_set() -> None:
    written = {"prompt": MLQ().prompt, "system": None, "on_missing": "raise"}  # where conf/ names another place
    for part, option, version, fields, index in DEFAULTS:
        values = {**values_of(option), **written}
        given = {"component": option.partition("/")[2], "version": version}
        assert identity(part) == given | {name: values[name] for name in fields.split()}
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
    values = values_of("retriever/hybrid")
    assert {name: arm["top_k"] for name, arm in arms.items()} == dict.fromkeys(("bm25", "sim"), values["depth"])
    assert hybrid == {
        "component": "hybrid",
        "version": 1,
        "arms": ["bm25", "sim"],
        **{
            name: values[name] for name in ["top_k", "depth", "fusion", "normalise", "rrf_constant", "alpha", "weights"]
        },
    }
