"""A Milvus collection of chunks: its name, its fields and indexes, and its filling."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.store import canonical_json, locked

# The fields; words is what the server makes of text.
ID, VECTOR, TEXT, WORDS = "id", "vector", "text", "words"
_LONGEST_TEXT = 65_535  # bytes of a VARCHAR
_EMBEDDED = 1 << 14  # chunks whose vectors are in memory at a time


@dataclass(frozen=True)
class ChunkCollection:
    """The chunks' data in the collection, by row number.

    vectors: index_type and params of the embedder's vectors; None where it has none. words: k1, b and the
    analyzer of the full text search; None where it has none. block: rows of one request.
    """

    vectors: Mapping[str, Any] | None
    words: Mapping[str, Any] | None
    block: int

    @property
    def content(self) -> dict[str, Any]:
        """The settings that can differ between collections of the same chunks and vectors."""
        return {"vectors": self.vectors, "words": self.words}

    def name(self, chunks: pd.DataFrame, tools: Tools) -> str:
        """A name determined by the chunks, their order, the embedder and the collection's settings."""
        embedder = None if self.vectors is None else identity(tools.embedder)
        found = hashlib.sha256(canonical_json({**self.content, "embedder": embedder}).encode())
        for docno, text in zip(chunks["docno"], chunks["text"], strict=True):
            found.update(f"{len(docno)} {docno}{len(text)} {text}".encode("utf-8", "surrogatepass"))
        return f"ragauge_{found.hexdigest()[:32]}"

    def check_texts(self, chunks: pd.DataFrame) -> None:
        """DataError for a text too long for a collection with words."""
        if self.words is not None:
            for docno, text in zip(chunks["docno"], chunks["text"], strict=True):
                if 4 * len(text) > _LONGEST_TEXT and (size := len(as_sent(text).encode())) > _LONGEST_TEXT:
                    raise DataError(
                        f"chunk {docno!r} has {size:,} bytes; Milvus searches texts of at most "
                        f"{_LONGEST_TEXT:,}: choose a chunker that cuts shorter, or retriever.mode=dense"
                    )

    def ensure(self, client: Any, name: str, chunks: pd.DataFrame, tools: Tools) -> None:
        """Makes the collection on a server that lacks it, whole or not at all."""
        with locked(tools.store.root / ".locks" / f"{name}.lock"):
            if client.has_collection(name):
                return
            draft = f"{name}_draft_{uuid.uuid4().hex[:12]}"
            try:
                self.fill(client, draft, chunks, tools)
                _renamed(client, draft, name)
            finally:
                if client.has_collection(draft):
                    client.drop_collection(draft)

    def fill(self, client: Any, name: str, chunks: pd.DataFrame, tools: Tools) -> None:
        """Makes the collection of all chunks, at least one, with its indexes, and loads it.

        ConfigError where the embedder gives windows of a chunk vectors of their own: a row has one.
        """
        if self.vectors is not None and tools.embedder.windows([]) is not None:
            raise ConfigError("embedder.long=max: retriever=milvus keeps one vector a chunk; mean, or retriever=sim")
        for rows in self._rows(chunks, tools):
            if rows[0][ID] == 0:
                dimensions = 0 if self.vectors is None else len(rows[0][VECTOR])
                schema = self._schema(client, dimensions)
                client.create_collection(name, schema=schema)
            for at in range(0, len(rows), self.block):
                client.insert(name, rows[at : at + self.block])
        client.flush(name)
        # Now, not before: Milvus Lite builds the index of rows that come later beside the work, and says
        # nothing where it cannot.
        client.create_index(name, self._indexes(client))
        client.load_collection(name)
        check_rows(client, name, len(chunks))

    def _rows(self, chunks: pd.DataFrame, tools: Tools) -> Iterator[list[dict[str, Any]]]:
        for start in range(0, len(chunks), _EMBEDDED):
            texts = chunks["text"].iloc[start : start + _EMBEDDED].tolist()
            rows: list[dict[str, Any]] = [{ID: start + i} for i in range(len(texts))]
            if self.vectors is not None:
                vectors = tools.embedder.embed(texts).astype(np.float32, copy=False)
                for row, vector in zip(rows, vectors, strict=True):
                    row[VECTOR] = vector
            if self.words is not None:
                for row, text in zip(rows, texts, strict=True):
                    row[TEXT] = as_sent(text)
            yield rows

    def _schema(self, client: Any, dimensions: int) -> Any:
        from pymilvus import DataType, Function, FunctionType

        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field(ID, DataType.INT64, is_primary=True)
        if self.vectors is not None:
            schema.add_field(VECTOR, DataType.FLOAT_VECTOR, dim=dimensions)
        if self.words is not None:
            analysed = {"enable_analyzer": True, "analyzer_params": dict(self.words["analyzer"])}
            schema.add_field(TEXT, DataType.VARCHAR, max_length=_LONGEST_TEXT, **analysed)
            schema.add_field(WORDS, DataType.SPARSE_FLOAT_VECTOR)
            fields = {"input_field_names": [TEXT], "output_field_names": [WORDS]}
            schema.add_function(Function("bm25", FunctionType.BM25, **fields))
        return schema

    def _indexes(self, client: Any) -> Any:
        # Under a key of their own in JSON, as Milvus Lite reads them too: those that stand beside it, as
        # pymilvus lays them out by itself, it ignores.
        found = client.prepare_index_params()
        if self.vectors is not None:
            kind, params = self.vectors["index_type"], {"params": self.vectors["params"]}
            found.add_index(VECTOR, kind, metric_type="COSINE", params=params)
        if self.words is not None:
            params = {"params": {"bm25_k1": self.words["k1"], "bm25_b": self.words["b"]}}
            found.add_index(WORDS, "SPARSE_INVERTED_INDEX", metric_type="BM25", params=params)
        return found


def _renamed(client: Any, draft: str, name: str) -> None:
    """Renames the draft, unless another store, whose lock ours does not see, was first."""
    from pymilvus import MilvusException

    try:
        client.rename_collection(draft, name)
    except MilvusException:
        if not client.has_collection(name):
            raise


def check_rows(client: Any, name: str, n_chunks: int) -> None:
    """DataError if the collection's number of rows is not that of the chunks."""
    told = client.query(name, output_fields=["count(*)"], consistency_level="Strong")
    if (held := int(told[0]["count(*)"])) != n_chunks:
        raise DataError(
            f"Milvus collection {name} holds {held} rows for {n_chunks} chunks; drop it, and it is made again"
        )


def as_sent(text: str) -> str:
    """The text in valid UTF-8: lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
