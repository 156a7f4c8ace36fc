"""`chunker=llama_index` and `chunker=langchain` against what the libraries return themselves."""

from __future__ import annotations

import json
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.component import Embedder, Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.plugins.adapters.chunkers import LangChainChunker, LlamaIndexChunker
from ragauge.store import Store


class Counts(Embedder):
    """Unit vectors of the counts of five letters."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Any, store: Store | None = None) -> np.ndarray:
        self.texts += texts
        vectors = np.array([[text.count(c) + 0.1 for c in "aeirs"] for text in texts], dtype=np.float32)
        found: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return found


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(Store(tmp_path), Counts(), None)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def docs() -> pd.DataFrame:
    """The shipped sample, joined to ten longer documents with white space of several kinds."""
    lines = (files("ragauge.datasets") / "sample" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    joined = ["\n\n \t".join(texts[i::10]) + "\n" for i in range(10)]
    return pd.DataFrame({"docno": [f"d{i}" for i in range(10)], "title": "", "text": joined})


def checked(chunks: pd.DataFrame, docs: pd.DataFrame) -> pd.DataFrame:
    """The chunks, each of which is the piece of its parent that its offsets say."""
    frames.check("chunks", chunks)
    texts = dict(zip(docs["docno"], docs["text"], strict=True))
    for row in chunks.itertuples():
        assert row.text == texts[row.parent][row.start : row.end]
    return chunks


def same_texts(chunks: pd.DataFrame, docs: pd.DataFrame, split: Any) -> None:
    for docno, text in zip(docs["docno"], docs["text"], strict=True):
        own = chunks[chunks["parent"] == docno]["text"]
        assert [" ".join(t.split()) for t in own] == [" ".join(t.split()) for t in split(text) if t.strip()]


SPLITTERS = [
    ("RecursiveCharacterTextSplitter", {"chunk_size": 300, "chunk_overlap": 60}),
    ("CharacterTextSplitter", {"separator": " ", "chunk_size": 200, "chunk_overlap": 50}),
    ("RecursiveCharacterTextSplitter", {"chunk_size": 80, "chunk_overlap": 0, "strip_whitespace": False}),
]


@pytest.mark.parametrize(("name", "arguments"), SPLITTERS)
def test_same_chunks_as_langchain(name: str, arguments: dict[str, Any], docs: pd.DataFrame, tools: Tools) -> None:
    import langchain_text_splitters

    chunker = LangChainChunker({"_target_": f"langchain_text_splitters.{name}", **arguments})
    assert chunker.uses == frozenset()
    chunks = checked(chunker.chunk(docs, tools), docs)
    same_texts(chunks, docs, getattr(langchain_text_splitters, name)(**arguments).split_text)


@pytest.mark.parametrize("overlap", [0, 20])
def test_same_chunks_as_llama_index(overlap: int, docs: pd.DataFrame, tools: Tools) -> None:
    from llama_index.core.node_parser import SentenceSplitter

    arguments = {"chunk_size": 100, "chunk_overlap": overlap}
    target = "llama_index.core.node_parser.SentenceSplitter"
    chunker = LlamaIndexChunker({"_target_": target, **arguments})
    assert chunker.uses == frozenset()
    chunks = checked(chunker.chunk(docs, tools), docs)
    same_texts(chunks, docs, SentenceSplitter(**arguments).split_text)


def test_an_embedding_splitter_gets_the_embedder(docs: pd.DataFrame, tools: Tools) -> None:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.node_parser import SemanticSplitterNodeParser
    from llama_index.core.schema import Document

    class Own(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            found: list[float] = Counts().embed([text])[0].tolist()
            return found

        _get_query_embedding = _get_text_embedding

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    target = "llama_index.core.node_parser.SemanticSplitterNodeParser"
    chunker = LlamaIndexChunker({"_target_": target, "breakpoint_percentile_threshold": 80})
    assert chunker.uses == {"embedder"}
    few = docs.iloc[:3]
    chunks = checked(chunker.chunk(few, tools), few)
    theirs = SemanticSplitterNodeParser(embed_model=Own(), breakpoint_percentile_threshold=80)
    same_texts(chunks, few, lambda text: [n.text for n in theirs.get_nodes_from_documents([Document(text=text)])])
    assert tools.embedder.texts  # type: ignore[attr-defined]


class Rewrites:
    """A splitter whose chunks are not pieces of the text."""

    def split_text(self, text: str) -> list[str]:
        return [text[:10], "a summary of the rest, " + "s" * 40]


class Loses:
    """A splitter whose second piece begins within the first and ends behind it, and whose third leaves a gap."""

    def split_text(self, text: str) -> list[str]:
        return [text[:9], text[4:7], text[12:14]]


class ByMeaning:
    """A splitter that takes embeddings as LangChain's do: the piece nearest to the text's last word stands alone."""

    def __init__(self, embeddings: Any) -> None:
        self.embeddings = embeddings

    def split_text(self, text: str) -> list[str]:
        pieces = text.split(", ")
        near = np.array(self.embeddings.embed_documents(pieces)) @ self.embeddings.embed_query(text.split()[-1])
        at = int(near.argmax())
        return [one for one in (", ".join(pieces[:at]), pieces[at], ", ".join(pieces[at + 1 :])) if one]


def test_a_langchain_splitter_gets_the_embedder(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langchain_text_splitters.ByMeaning", ByMeaning, raising=False)
    chunker = LangChainChunker({"_target_": "langchain_text_splitters.ByMeaning"})
    assert chunker.uses == {"embedder"}
    frame = pd.DataFrame({"docno": ["a"], "title": "", "text": ["aaa, sss, iii, rrr, see ss"]})
    embedder = SimpleNamespace(embed=lambda texts, role="passage": Counts().embed(texts))
    chunks = chunker.chunk(frame, Tools(tools.store, embedder, None))  # type: ignore[arg-type]
    assert chunks["text"].tolist() == ["aaa", "sss", "iii, rrr, see ss"]


def test_a_chunk_that_is_no_piece_of_its_document_is_named(
    docs: pd.DataFrame, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langchain_text_splitters.Rewrites", Rewrites, raising=False)
    chunker = LangChainChunker({"_target_": "langchain_text_splitters.Rewrites"})
    with pytest.raises(DataError, match=r"docno='d0': .*Rewrites made .*'a summary of the rest, s{37}…'"):
        chunker.chunk(docs, tools)


def test_text_in_no_chunk_is_counted(
    docs: pd.DataFrame, tools: Tools, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("langchain_text_splitters.Loses", Loses, raising=False)
    texts = ["one two three four", " ", "one two three", "eight one twos"]
    frame = pd.DataFrame({"docno": list("abcd"), "title": "", "text": texts})
    chunks = LangChainChunker({"_target_": "langchain_text_splitters.Loses"}).chunk(frame, tools)
    of_a = ["one two t", "two", "e"]
    assert chunks["text"].tolist() == [*of_a, *of_a, "eight one", "t o", "os"]
    # Of a: "hre" in the gap and "four" at the end; of c "hre"; of d "tw".
    assert "12 characters of 3 document(s) are in no chunk, such as 7 of docno='a'" in caplog.text


def test_what_is_no_splitter_is_refused(docs: pd.DataFrame, tools: Tools) -> None:
    for cls, what in ((LlamaIndexChunker, "NodeParser"), (LangChainChunker, "TextSplitter")):
        with pytest.raises(ConfigError, match=rf"chunker\.splitter: builtins\.dict .*no \w+ {what}"):
            cls({"_target_": "builtins.dict"}).chunk(docs, tools)
        with pytest.raises(ConfigError, match=r"chunker\.splitter\._target_='no\.such': there is no such"):
            cls({"_target_": "no.such"}).chunk(docs, tools)


def test_target_parameters_and_version_of_the_package_are_part_of_the_identity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ragauge.plugins.adapters import chunkers

    target = "langchain_text_splitters.CharacterTextSplitter"
    first = identity(LangChainChunker({"_target_": target, "chunk_size": 100}))
    known = {"component": "langchain", "version": 1, "splitter": {"_target_": target, "chunk_size": 100}}
    versions = {"langchain-text-splitters": metadata.version("langchain-text-splitters")}
    assert first == {**known, "versions": versions, "code": first["code"]}
    assert identity(LlamaIndexChunker({"_target_": "builtins.dict"}))["component"] == "llama_index"
    assert identity(LangChainChunker({"_target_": target, "chunk_size": 101})) != first
    monkeypatch.setattr(chunkers, "_versions", lambda top: {"langchain-text-splitters": "0"})
    assert identity(LangChainChunker({"_target_": target, "chunk_size": 100})) != first
