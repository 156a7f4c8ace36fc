"""`retriever=milvus`: vectors, full text or both in Milvus, embedded or a cluster."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from ragauge.contract.checks import require, require_choice, require_count, require_number
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Retriever
from ragauge.plugins.milvus import _clients
from ragauge.plugins.milvus._collection import (
    ID,
    VECTOR,
    WORDS,
    ChunkCollection,
    as_sent,
    check_rows,
)
from ragauge.retrieval.ranking import ranks_within
from ragauge.retrieval.retrievers.dense import RECALL_DEPTH, exact_nearest, recall_rows
from ragauge.retrieval.retrievers.ranking import (
    NO_ROWS,
    Hits,
    as_transformer,
    check_chunks,
    docno_order,
    rows_with_words,
    run_frame,
    top_hits,
)

_FILE, _LITE = "milvus.json", "lite"  # in the index folder: what was made, and the data of Milvus Lite
_MOST_HITS = 16_384  # that Milvus gives for a query
_HITS_PER_CALL, _QUERIES_PER_CALL = 50_000, 200
# Scores come as float32: what two equal ones may be apart.
_APART = {"dense": 1e-6, "bm25": 1e-5, "hybrid": 1e-7}
Ask = Callable[[np.ndarray, int], Sequence[Any]]


@option("retriever/milvus")
class Milvus(Retriever):
    """The top_k chunks by Milvus, from a collection named after the chunks and the embedder.

    uri: a server, or None for Milvus Lite in this process. token: for a server that wants one.
    mode: `dense` compares vectors, and `score` is the cosine. `bm25` is the server's full text search (k1, b,
        analyzer). `hybrid` has the server fuse the first `depth` hits of both, and `score` is the sum of 1 /
        (rrf_constant + rank), ranks from 1.
    index, index_params, search_params: the index of the vectors, as Milvus names them.
    timeout: seconds that a server may take to connect, and for one request of 200 queries at most.
    Searches see all that was written (consistency level Strong). Chunks of equal text have equal scores, and
    ties are broken by docno, at the cut-off, too, among the 16,384 hits that Milvus gives at most.
    """

    component = "milvus"

    uri: str | None = CONF
    token: str | None = field(default=None, repr=False, metadata={"runtime": True})
    mode: Literal["dense", "bm25", "hybrid"] = CONF
    top_k: int = CONF
    depth: int = CONF
    rrf_constant: float = CONF
    index: str = CONF
    index_params: Mapping[str, Any] = field(default_factory=dict)
    search_params: Mapping[str, Any] = field(default_factory=dict)
    k1: float = CONF
    b: float = CONF
    analyzer: Mapping[str, Any] = field(default_factory=lambda: {"type": "standard"})
    revision: int = CONF
    block: int = runtime(CONF)
    timeout: float = runtime(CONF)

    def __post_init__(self) -> None:
        address = None if self.uri is None else urlsplit(str(self.uri))
        if address is not None and (address.password or address.username):
            told = "retriever.uri: holds a user or password; retriever.token='${oc.env:NAME}' takes them"
            raise ConfigError(told)
        ok = address is None or (address.scheme in ("http", "https") and bool(address.hostname))
        allowed = "null (Milvus Lite in this process) and addresses such as http://host:19530"
        require("retriever.uri", self.uri, ok, allowed)
        require_choice("retriever.mode", self.mode, ("dense", "bm25", "hybrid"))
        require_count("retriever.top_k", self.top_k, most=_MOST_HITS)
        least = self.top_k if self.mode == "hybrid" else 1
        require_count("retriever.depth", self.depth, least, "at least top_k", most=_MOST_HITS)
        require_number("retriever.rrf_constant", self.rrf_constant, 0, above=True)
        require_number("retriever.k1", self.k1, 0)
        require_number("retriever.b", self.b, 0, 1)
        require_count("retriever.block", self.block, most=10_000)
        require_number("retriever.timeout", self.timeout, 0, above=True)
        for name in ("index_params", "search_params", "analyzer"):
            ok = isinstance(getattr(self, name), Mapping)
            require(f"retriever.{name}", getattr(self, name), ok, "mappings, such as {ef: 100}")
        if self.uri is None and self.mode != "dense":
            # What else it is told of its analyser it ignores, and says nothing.
            ok = dict(self.analyzer) == {"type": "standard"}
            allowed = "{type: standard} with Milvus Lite (uri=null)"
            require("retriever.analyzer", dict(self.analyzer), ok, allowed)

    @property
    def uses(self) -> frozenset[str]:
        """The embedder, unless only words are searched."""
        return frozenset() if self.mode == "bm25" else frozenset({"embedder"})

    @property
    def space(self) -> str:
        """How it searches several queries of a rewriter: as one vector, or as texts in turn."""
        return "dense" if self.mode == "dense" else "text"

    @property
    def approximate(self) -> bool:
        """Whether the vector index may miss chunks."""
        return self.mode != "bm25" and self.index.upper() != "FLAT"

    @property
    def _collection(self) -> ChunkCollection:
        vectors = {"index_type": self.index, "params": dict(self.index_params)}
        words = {"k1": self.k1, "b": self.b, "analyzer": dict(self.analyzer)}
        return ChunkCollection(
            None if self.mode == "bm25" else vectors, None if self.mode == "dense" else words, self.block
        )

    @property
    def _who(self) -> str:
        return f"retriever.uri={'null' if self.uri is None else self.uri}"

    def index_identity(self) -> Mapping[str, Any]:
        """The place and content of the collection."""
        at = {"at": self.uri, "revision": self.revision}
        return {"index": "milvus", "version": 1, **at, **self._collection.content}

    def build_index(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> None:
        """Makes the collection if missing: in the folder with Milvus Lite, else on the server."""
        collection = self._collection
        collection.check_texts(check_chunks(chunks))
        name = collection.name(chunks, tools)
        if len(chunks):
            with _clients.told_in_one_line(self._who), ExitStack() as stack:
                if self.uri is None:
                    client = _clients.lite(stack, folder / _LITE, self.timeout)
                    collection.fill(client, name, chunks, tools)
                else:
                    client = _clients.connected(stack, self.uri, self.token, self.timeout)
                    collection.ensure(client, name, chunks, tools)
            (folder / _LITE / "LOCK").unlink(missing_ok=True)
        made = {"collection": name, "chunks": len(chunks)}
        (folder / _FILE).write_text(json.dumps(made), encoding="utf-8")

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """Maps topics to Milvus's hits; remakes a collection that a server no longer has."""
        made = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        if made["chunks"] != len(chunks):
            raise DataError(f"{folder / _FILE}: made of {made['chunks']} chunks, not of {len(chunks)}")
        order, twins = docno_order(chunks), _twins(chunks)

        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            rows, plain = rows_with_words(topics), topics.drop(columns="query_vec", errors="ignore")
            if len(rows) == 0 or len(chunks) == 0:
                return run_frame(plain, chunks, NO_ROWS, NO_ROWS, score=np.empty(0))
            with _clients.told_in_one_line(self._who):
                client, name = self._client(chunks, folder, tools), made["collection"]
                texts = np.array([as_sent(query) for query in topics["query"].iloc[rows]], dtype=object)
                ask = self._asking(client, name, texts, self._vectors(topics.iloc[rows], tools))

                def search(asked: np.ndarray, depth: int) -> Hits:
                    return _levelled(self._hits(ask, asked, depth, len(chunks)), twins)

                hits = top_hits(search, np.arange(len(rows)), order, self.top_k, _APART[self.mode])
            return run_frame(plain, chunks, rows[hits.topic], hits.chunk, score=hits.score)

        return as_transformer("Milvus", rank)

    def recall(self, topics: pd.DataFrame, chunks: pd.DataFrame, folder: Path, tools: Tools) -> float:
        """Share of the ten most similar chunks found by vector search, over 1,000 topics at most.

        1 where no topic can be searched for.
        """
        rows = recall_rows(topics)
        if len(rows) == 0 or len(chunks) == 0:
            return 1.0
        queries = self._vectors(topics.iloc[rows], tools)
        assert queries is not None
        with tempfile.TemporaryDirectory() as scratch:
            exact = exact_nearest(queries, chunks, Path(scratch), tools)
        made = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        with _clients.told_in_one_line(self._who):
            ask = self._asking_vectors(self._client(chunks, folder, tools), made["collection"], queries)
            near = self._hits(ask, np.arange(len(rows)), max(self.top_k, RECALL_DEPTH), len(chunks))
        first = ranks_within(near.topic) < RECALL_DEPTH
        pairs = [topic * len(chunks) + chunk for topic, chunk, _ in (exact, near)]
        return float(np.isin(pairs[0], pairs[1][first]).mean())

    def _client(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Any:
        """A client with the folder's collection loaded; stays open in this process."""
        file = (folder / _FILE).resolve()
        name = json.loads(file.read_text(encoding="utf-8"))["collection"]

        def opened(stack: ExitStack) -> Any:
            if self.uri is None:
                client = _clients.lite_copy(stack, file.parent / _LITE, self.timeout)
            else:
                client = _clients.connected(stack, self.uri, self.token, self.timeout)
                self._collection.ensure(client, name, chunks, tools)
            client.load_collection(name)
            check_rows(client, name, len(chunks))
            return client

        if self.uri is None:
            return _clients.kept((str(file), file.stat().st_mtime_ns, name), opened)
        return _clients.kept((self.uri, self.token, name), opened)

    def _vectors(self, topics: pd.DataFrame, tools: Tools) -> np.ndarray | None:
        """float32 [topics, dimensions]: the query vectors, a rewriter's if it gave some."""
        if self.mode == "bm25":
            return None
        if "query_vec" in topics:
            return np.stack(topics["query_vec"].tolist()).astype(np.float32, copy=False)
        found = tools.embedder.embed(topics["query"].tolist(), "query")
        return found.astype(np.float32, copy=False)

    def _asking(self, client: Any, name: str, texts: np.ndarray, vectors: np.ndarray | None) -> Ask:
        """A function that searches rows of the queries to a depth and returns their hits, the best first."""
        of_words = {"metric_type": "BM25"}
        if vectors is None:
            return lambda rows, depth: client.search(
                name, list(texts[rows]), anns_field=WORDS, search_params=of_words, **self._wanted(depth)
            )
        if self.mode == "dense":
            return self._asking_vectors(client, name, vectors)

        def ask(rows: np.ndarray, depth: int) -> Sequence[Any]:
            from pymilvus import AnnSearchRequest, RRFRanker

            requests = [
                AnnSearchRequest(list(vectors[rows]), VECTOR, self._of_vectors, limit=self.depth),
                AnnSearchRequest(list(texts[rows]), WORDS, of_words, limit=self.depth),
            ]
            ranker = RRFRanker(self.rrf_constant)  # pyrefly: ignore[bad-argument-type]
            found: Sequence[Any] = client.hybrid_search(name, requests, ranker, **self._wanted(depth))
            return found

        return ask

    def _asking_vectors(self, client: Any, name: str, vectors: np.ndarray) -> Ask:
        return lambda rows, depth: client.search(
            name,
            list(vectors[rows]),
            anns_field=VECTOR,
            search_params=self._of_vectors,
            **self._wanted(depth),
        )

    @property
    def _of_vectors(self) -> dict[str, Any]:
        return {"metric_type": "COSINE", "params": dict(self.search_params)}

    def _wanted(self, depth: int) -> dict[str, Any]:
        return {
            "limit": depth,
            "output_fields": [ID],
            "consistency_level": "Strong",
            "timeout": self.timeout if self.uri else None,  # what works in this process cannot go away
        }

    def _hits(self, ask: Ask, rows: np.ndarray, depth: int, n_chunks: int) -> Hits:
        """The hits of the rows, searched in blocks; DataError for an invalid reply."""
        depth = min(depth, _MOST_HITS)
        block = max(1, min(_QUERIES_PER_CALL, _HITS_PER_CALL // depth))
        told: list[Any] = []
        for start in range(0, len(rows), block):
            asked = rows[start : start + block]
            answers = ask(asked, depth)
            if len(answers) != len(asked):
                raise DataError(f"{self._who}: {len(answers)} answers came for {len(asked)} queries")
            told += answers
        topic = np.repeat(rows, [len(hits) for hits in told])
        chunk = np.array([hit["id"] for hits in told for hit in hits], dtype=np.int64)
        score = np.array([hit["distance"] for hits in told for hit in hits], dtype=np.float64)
        if self.mode == "bm25":
            score = np.abs(score)  # Milvus Lite says how far, below 0, where a server says how near
        for wrong, what in (
            ((chunk < 0) | (chunk >= n_chunks), "is of no chunk"),
            (~np.isfinite(score), "has no finite score"),
            (pd.Series(topic * n_chunks + chunk).duplicated().to_numpy(), "came twice for a query"),
        ):
            if wrong.any():
                raise DataError(f"{self._who}: the hit of id {chunk[int(np.argmax(wrong))]} {what}")
        return Hits(topic, chunk, score)


def _twins(chunks: pd.DataFrame) -> np.ndarray | None:
    """int64 [chunks]: a number shared by chunks of equal text; None if all texts differ."""
    code, distinct = pd.factorize(chunks["text"])
    return None if len(distinct) == len(chunks) else np.asarray(code, dtype=np.int64)


def _levelled(hits: Hits, twins: np.ndarray | None) -> Hits:
    """The hits; equal texts get the best score among them, since an index may score them differently."""
    if twins is None or len(hits.chunk) == 0:
        return hits
    by = [hits.topic, twins[hits.chunk]]
    return hits._replace(score=pd.Series(hits.score).groupby(by).transform("max").to_numpy())
