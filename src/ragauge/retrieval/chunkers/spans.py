"""Pieces of documents as offsets: trimmed, kept under a number of tokens, and laid out as frame `chunks`.

Documents may be cut by the workers of an engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ragauge.contract import frames
from ragauge.contract.component import Tokenizer, Tools
from ragauge.contract.engine import slices
from ragauge.contract.retrieval import Chunker
from ragauge.texts.sentences import sentence_spans

Span = tuple[int, int, int]  # row of the document; first and past-the-last character in its text


def trim(texts: Sequence[str], spans: Iterable[Span]) -> list[Span]:
    """The spans without white space at their ends, and without blank ones."""
    trimmed = []
    for row, start, end in spans:
        piece = texts[row][start:end].rstrip()
        end = start + len(piece)
        start = end - len(piece.lstrip())
        if start < end:
            trimmed.append((row, start, end))
    return trimmed


def chunks_frame(docs: pd.DataFrame, spans: Iterable[Span]) -> pd.DataFrame:
    """Frame `chunks` of spans in document order and, within a document, in reading order."""
    parents, texts = docs["docno"].tolist(), docs["text"].tolist()
    trimmed = trim(texts, spans)
    if not trimmed:
        return frames.empty("chunks")
    rows, starts, ends = np.array(trimmed, dtype=np.int64).T
    first = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
    number = np.arange(len(rows)) - np.repeat(first, np.diff(np.r_[first, len(rows)]))
    return pd.DataFrame(
        {
            "docno": pd.Series([f"{parents[row]}%p{i}" for row, i in zip(rows, number, strict=True)], dtype="str"),
            "text": pd.Series([texts[row][start:end] for row, start, end in trimmed], dtype="str"),
            "parent": pd.Series([parents[row] for row in rows], dtype="str"),
            "start": starts,
            "end": ends,
        }
    )


def split_long(texts: Sequence[str], spans: Iterable[Span], tokenizer: Tokenizer, max_tokens: int) -> list[Span]:
    """The spans, each with more than `max_tokens` tokens split at sentence ends, or else at token ends.

    Sentences are packed greedily; one that is too long by itself is cut behind a word where there is one.
    Tokens are counted in the piece's own text, since a tokenizer may cut a piece otherwise than the same
    words inside their document. A single character that takes more tokens stands alone.
    """
    done: list[Span] = []
    pending = trim(texts, spans)
    while pending:
        pieces = [texts[row][start:end] for row, start, end in pending]
        parts: list[Span] = []
        for (row, start, end), piece, tokens in zip(pending, pieces, tokenizer.offsets(pieces), strict=True):
            if len(tokens) <= max_tokens or len(piece) == 1:
                done.append((row, start, end))
            else:
                parts.extend((row, start + a, start + b) for a, b in _split(piece, tokens, max_tokens))
        pending = trim(texts, parts)
    return sorted(done)


def _split(text: str, tokens: np.ndarray, max_tokens: int) -> list[tuple[int, int]]:
    """At least two pieces of a text that has more than one character and more than `max_tokens` tokens."""
    pieces = []
    begin = taken = 0  # the piece at hand begins here; its sentences were taken up to there

    def count(end: int) -> int:
        return int(np.subtract(*np.searchsorted(tokens[:, 0], [end, begin])))

    for start, end in sentence_spans(text):
        if count(end) > max_tokens:
            if taken > begin:
                pieces.append((begin, taken))
            begin = start
            while count(end) > max_tokens:
                cut = _cut(text, tokens, begin, end, max_tokens)
                pieces.append((begin, cut))
                begin = cut
        taken = end
    if taken > begin:
        pieces.append((begin, taken))
    return pieces


def _cut(text: str, tokens: np.ndarray, begin: int, end: int, max_tokens: int) -> int:
    """End of a piece from `begin`: at most `max_tokens` tokens on, after a word if any."""
    first = int(np.searchsorted(tokens[:, 0], begin))
    ends = tokens[first : first + max_tokens, 1]
    following = tokens[first + 1 : first + 1 + max_tokens, 0]
    # Tokens that are bytes of one character overlap; there is no cutting between them.
    clean = [int(at) for at, after in zip(ends, following, strict=False) if at <= after and begin < at < end]
    words = [at for at in clean if text[at].isspace()]
    return (words or clean or [begin + 1])[-1]


def chunked(chunker: Chunker, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
    """Frame `chunks` of all documents, in document order.

    A chunker that embeds stays in this process: its texts are embedded by the engine, and their vectors kept.
    """
    if tools.engine.block_rows is None or "embedder" in chunker.uses:
        return chunker.chunk(docs, tools)
    tokenizer = tools.tokenizer if "tokenizer" in chunker.uses else None
    work = _Chunking(chunker, tokenizer, _Place(tools.store.root.absolute()))
    blocks = (docs.iloc[at].reset_index(drop=True) for at in slices(len(docs), tools.engine))
    found = []
    for chunks, counted in tools.engine.map(work, blocks):
        found.append(chunks)
        for name, n in counted.items():
            tools.count(name, n)
    # A block of documents without text has no chunk, and perhaps other dtypes.
    return pd.concat([chunks for chunks in found if len(chunks)] or found[:1], ignore_index=True)


@dataclass(frozen=True)
class _Place:
    """The store of the job, if the worker's machine has it."""

    root: Path


@dataclass(frozen=True)
class _Chunking:
    """Documents to their chunks, with the counts made meanwhile."""

    chunker: Chunker
    tokenizer: Tokenizer | None
    store: _Place

    def __call__(self, docs: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
        counted: Counter[str] = Counter()
        tools = Tools(self.store, None, self.tokenizer, counted=counted)  # type: ignore[arg-type]
        tools = tools.limited_to(self.chunker.uses, type(self.chunker).__name__)
        return self.chunker.chunk(docs, tools), dict(counted)
