"""Chunkers of LlamaIndex and LangChain, built from YAML; their chunks must be pieces of the documents."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from typing import Any, ClassVar

import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.loading import build, wants
from ragauge.contract.progress import progress
from ragauge.contract.retrieval import Chunker
from ragauge.plugins.adapters.place import place
from ragauge.retrieval.chunkers.spans import Span, chunks_frame

log = logging.getLogger(__name__)

_SHOWN = 60  # characters of a piece in an error


@dataclass(frozen=True)
class _Wrapped(Chunker):
    """The base of both: the mapping with `_target_`, and its packages' versions.

    The versions are part of the identity, so that chunks of another release are made again.
    """

    _offer: ClassVar[str]  # the parameter by which a splitter of the library takes an embedding model

    splitter: Mapping[str, Any]
    versions: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        target = str(self.splitter.get("_target_"))
        object.__setattr__(self, "versions", _versions(target.partition(".")[0]))

    @property
    def uses(self) -> frozenset[str]:
        """The embedder, if the splitter has a parameter for one that the config leaves out."""
        return frozenset({"embedder"} if wants("chunker.splitter", self.splitter, self._offer) else ())

    def chunk(self, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `chunks`, in document order; DataError names a document whose pieces are not in it."""
        name = self.splitter.get("_target_")
        split = self._split(tools)
        spans: list[Span] = []
        left_out: dict[str, int] = {}
        with progress(len(docs), f"chunking by {name}", "document") as bar:
            for row, (docno, text) in enumerate(zip(docs["docno"], docs["text"], strict=True)):
                bar.update()
                if not text.strip():
                    continue
                pieces = split(text)
                try:
                    found = place(text, pieces)
                except ValueError as error:
                    piece = str(error)
                    shown = piece if len(piece) <= _SHOWN else piece[:_SHOWN] + "…"
                    raise DataError(
                        f"docno={docno!r}: {name} made a chunk that is not in the document behind the one "
                        f"before it: {shown!r}. Chunks must be pieces of their document, in reading order"
                    ) from None
                spans += ((row, start, end) for start, end in found)
                missed = _uncovered(text, found)
                if missed:
                    left_out[docno] = missed
        if left_out:
            docno, total = next(iter(left_out)), sum(left_out.values())
            log.warning(
                "%s: %d characters of %d document(s) are in no chunk, such as %d of docno=%r",
                name, total, len(left_out), left_out[docno], docno,
            )  # fmt: skip
        return chunks_frame(docs, spans)

    def _split(self, tools: Tools) -> Callable[[str], list[str]]:
        raise NotImplementedError

    def _built(self, embedder: Any) -> Any:
        return build("chunker.splitter", self.splitter, {self._offer: embedder})

    def _refuse(self, made: Any, what: str) -> ConfigError:
        name = self.splitter.get("_target_")
        return ConfigError(f"chunker.splitter: {name} made a {type(made).__name__}, which is no {what}")


@dataclass(frozen=True)
class LlamaIndexChunker(_Wrapped):
    """Any LlamaIndex NodeParser, given as a mapping with `_target_`.

    A parser whose signature has `embed_model` gets the config's embedder. Sizes in tokens are counted in the
    library's own tokens, unless the mapping gives the parser another tokenizer.
    """

    component = "llama_index"
    _offer: ClassVar[str] = "embed_model"

    def _split(self, tools: Tools) -> Callable[[str], list[str]]:
        from llama_index.core.node_parser import NodeParser
        from llama_index.core.schema import Document, MetadataMode

        parser = self._built(_llama_index_embedding(tools) if self.uses else None)
        if not isinstance(parser, NodeParser):
            raise self._refuse(parser, "LlamaIndex NodeParser")

        def split(text: str) -> list[str]:
            nodes = parser.get_nodes_from_documents([Document(text=text)])
            return [node.get_content(metadata_mode=MetadataMode.NONE) for node in nodes]

        return split


@dataclass(frozen=True)
class LangChainChunker(_Wrapped):
    """Any LangChain TextSplitter, given as a mapping with `_target_`.

    A splitter whose signature has `embeddings` gets the config's embedder.
    """

    component = "langchain"
    _offer: ClassVar[str] = "embeddings"

    def _split(self, tools: Tools) -> Callable[[str], list[str]]:
        splitter = self._built(_langchain_embeddings(tools) if self.uses else None)
        if not callable(getattr(splitter, "split_text", None)):
            raise self._refuse(splitter, "LangChain TextSplitter")
        # Splitters by headings return Documents.
        return lambda text: [getattr(piece, "page_content", piece) for piece in splitter.split_text(text)]


def _llama_index_embedding(tools: Tools) -> Any:
    from llama_index.core.base.embeddings.base import BaseEmbedding

    class Embedding(BaseEmbedding):
        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            vectors: list[list[float]] = tools.embedder.embed(texts).tolist()
            return vectors

        def _get_text_embedding(self, text: str) -> list[float]:
            return self._get_text_embeddings([text])[0]

        def _get_query_embedding(self, query: str) -> list[float]:
            vector: list[float] = tools.embedder.embed([query], "query")[0].tolist()
            return vector

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    # One call a document, however many sentences it has.
    return Embedding(model_name="ragauge", embed_batch_size=2048)


def _langchain_embeddings(tools: Tools) -> Any:
    from langchain_core.embeddings import Embeddings

    class Embedding(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            vectors: list[list[float]] = tools.embedder.embed(texts).tolist()
            return vectors

        def embed_query(self, text: str) -> list[float]:
            vector: list[float] = tools.embedder.embed([text], "query")[0].tolist()
            return vector

    return Embedding()


def _uncovered(text: str, spans: list[tuple[int, int]]) -> int:
    """The number of characters outside all spans, white space excluded; spans are sorted by start."""

    def gaps() -> Iterator[str]:
        reached = 0
        for start, end in spans:
            yield text[reached:start]
            reached = max(reached, end)
        yield text[reached:]

    return sum(not char.isspace() for gap in gaps() for char in gap)


@lru_cache(maxsize=16)
def _versions(top: str) -> dict[str, str]:
    """The version of every installed distribution of the top-level package."""
    names = sorted(set(metadata.packages_distributions().get(top, ())))
    return {name: metadata.version(name) for name in names}
