"""A corpus of which one document changed: nothing else of it is embedded again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from ragauge.contract.component import Embedder, Role
from ragauge.contract.identity import runtime
from ragauge.retrieval.chunkers import SemanticChunker, TokenChunker
from ragauge.texts.sentences import sentence_spans
from small_pipeline import TOPICS, SmallPipelines

# Six sentences each of more than 40 characters, so that the semantic chunker merges none of them.
DOCS = tuple(
    {
        "docno": f"d{i}",
        "title": "",
        "text": " ".join(
            f"Document {i} says in its sentence {j} something about the subject {i * 7 + j}." for j in range(6)
        ),
    }
    for i in range(1, 6)
)


@dataclass(frozen=True)
class CountingEmbedder(Embedder):
    """An embedder that keeps what it is asked to embed."""

    component: ClassVar[str] = "counting"

    inner: Any = runtime(None)
    seen: list[str] = field(default_factory=list, metadata={"runtime": True})

    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        self.seen.extend(texts)
        vectors: np.ndarray = self.inner.embed(texts, role, scratch)
        return vectors


@pytest.fixture
def embedder(hash_embedder: Embedder) -> CountingEmbedder:
    return CountingEmbedder(hash_embedder)


def embedded(
    small: SmallPipelines, embedder: CountingEmbedder, docs: Sequence[Mapping[str, Any]], **parts: Any
) -> list[str]:
    """The texts that a job over these documents embeds, in the store of the jobs before it."""
    before = len(embedder.seen)
    small(docs=docs, embedder=embedder, **parts).frame("scores")
    found = embedder.seen[before:]
    assert len(set(found)) == len(found)
    return found


def changed(docs: Sequence[Mapping[str, Any]], row: int, old: str, new: str) -> list[Mapping[str, Any]]:
    text = str(docs[row]["text"])
    assert text.count(old) == 1
    return [{**doc, "text": text.replace(old, new)} if i == row else doc for i, doc in enumerate(docs)]


def test_of_a_changed_document_only_its_own_windows_and_chunks(
    small: SmallPipelines, embedder: CountingEmbedder
) -> None:
    parts = {"chunker": SemanticChunker(max_tokens=None)}
    first = embedded(small, embedder, DOCS, **parts)
    assert len(first) > 5 * 6 + len(TOPICS)
    # The third sentence of six stands in the windows around the second, the third and the fourth.
    docs = changed(DOCS, 1, "sentence 2 something", "sentence 2 another thing")
    again = embedded(small, embedder, docs, **parts)
    text = str(docs[1]["text"])
    spans = sentence_spans(text)
    assert len(spans) == 6
    windows = {text[spans[i - 1][0] : spans[i + 1][1]] for i in (1, 2, 3)}
    assert windows <= set(again)
    own = small(docs=docs, embedder=embedder, **parts).frame("chunks")
    new = own.loc[own["text"].str.contains("another thing"), "text"]
    assert len(new) == 1
    # A break may fall elsewhere in the changed document, and nowhere else.
    assert windows | set(new) <= set(again) <= windows | set(own.loc[own["parent"] == "d2", "text"])
    assert len(again) <= 3 + 3


@pytest.mark.parametrize(
    ("overlap", "count"),
    [(0, 1), (4, 2)],  # a word in one chunk, and in the overlap of two
)
def test_of_a_changed_document_only_the_chunks_with_the_change(
    small: SmallPipelines, embedder: CountingEmbedder, overlap: int, count: int
) -> None:
    parts = {"chunker": TokenChunker(size=12, overlap=overlap)}
    embedded(small, embedder, DOCS, **parts)
    # The tenth token of the document; with an overlap of four the second chunk begins with the ninth.
    docs = changed(DOCS, 1, "sentence 0 something about the", "sentence 0 something about one")
    again = embedded(small, embedder, docs, **parts)
    assert len(again) == count
    assert all("about one subject" in f"about {text}" for text in again)


@pytest.mark.parametrize("chunker", [SemanticChunker(), TokenChunker(size=12, overlap=4)], ids=repr)
def test_a_new_document_embeds_itself_and_one_that_is_gone_nothing(
    small: SmallPipelines, embedder: CountingEmbedder, chunker: Any
) -> None:
    embedded(small, embedder, DOCS[:4], chunker=chunker)
    again = embedded(small, embedder, DOCS, chunker=chunker)
    assert again
    assert all(text in str(DOCS[4]["text"]) for text in again)
    assert embedded(small, embedder, [*DOCS[:3], DOCS[4]], chunker=chunker) == []
    assert embedded(small, embedder, DOCS[::-1], chunker=chunker) == []


def test_the_question_that_changed_is_the_only_one_embedded(small: SmallPipelines, embedder: CountingEmbedder) -> None:
    embedded(small, embedder, DOCS)
    topics = [{**TOPICS[0], "query": "Who made the tower?"}, *TOPICS[1:]]
    assert embedded(small, embedder, DOCS, topics=topics) == ["Who made the tower?"]
