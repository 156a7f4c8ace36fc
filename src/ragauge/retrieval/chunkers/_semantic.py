"""Chunks that end where the subject changes, by embeddings of neighbouring sentences."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_count, require_number
from ragauge.contract.component import Tools
from ragauge.contract.option import CONF, option
from ragauge.contract.progress import duration
from ragauge.contract.retrieval import Chunker
from ragauge.retrieval.chunkers.spans import Span, chunks_frame, split_long
from ragauge.texts.sentences import sentence_spans

log = logging.getLogger(__name__)

_MANY_WINDOWS = 1_024  # fewer take minutes with no usual model
_TIMED_WINDOWS = 128  # of many, to foresee how long all take
_LONG_SECONDS = 300.0
_BLOCK_WINDOWS = 1 << 17  # whose vectors are in memory at a time: 200 MB of 384 floats each


@option("chunker/semantic")
class SemanticChunker(Chunker):
    """Chunks of sentences, broken where the windows around two neighbouring ones are far apart.

    Sentences are merged until each has `min_sentence_chars` characters. Each is embedded together with its
    `window_each_side` neighbours on both sides. A break is between two of them where the cosine distance of their
    windows is above the document's own `breakpoint_percentile` (0 to 100, linear interpolation) of these distances. It
    is the rule of LlamaIndex's SemanticSplitterNodeParser. A chunk longer than `max_tokens` of the config's tokenizer
    is split further, at sentence ends where possible (null: no chunk is).
    """

    component = "semantic"
    version = 3
    uses = frozenset({"embedder", "tokenizer"})

    min_sentence_chars: int = CONF
    window_each_side: int = CONF
    breakpoint_percentile: float = CONF
    max_tokens: int | None = CONF

    def __post_init__(self) -> None:
        for key in ("min_sentence_chars", "window_each_side"):
            require_count(f"chunker.{key}", getattr(self, key), 0)
        require_number("chunker.breakpoint_percentile", self.breakpoint_percentile, 0, 100)
        require_count("chunker.max_tokens", self.max_tokens, null="no maximum")

    def chunk(self, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `chunks`, in document order; the windows of many documents are embedded in one call."""
        texts = docs["text"].tolist()
        sentences = [
            (row, start, end)
            for row, text in enumerate(texts)
            for start, end in merge_sentences(sentence_spans(text), self.min_sentence_chars)
        ]
        if not sentences:
            return chunks_frame(docs, [])
        rows, starts, ends = np.array(sentences, dtype=np.int64).T
        breaks = self._breaks(texts, rows, starts, ends, tools)
        first = np.flatnonzero(np.r_[True, breaks | (rows[1:] != rows[:-1])])
        last = np.r_[first[1:], len(rows)] - 1
        spans: list[Span] = list(zip(rows[first].tolist(), starts[first].tolist(), ends[last].tolist(), strict=True))
        if self.max_tokens is not None:
            spans = split_long(texts, spans, tools.tokenizer, self.max_tokens)
        return chunks_frame(docs, spans)

    def embedded(self, docs: Sequence[str], evidence: Sequence[str]) -> list[str]:
        """The documents' windows of sentences, to be embedded."""
        found = []
        for text in docs:
            spans = merge_sentences(sentence_spans(text), self.min_sentence_chars)
            for at in range(len(spans)) if len(spans) > max(2, self.window_each_side + 1) else ():
                last = min(at + self.window_each_side, len(spans) - 1)
                found.append(text[spans[max(at - self.window_each_side, 0)][0] : spans[last][1]])
        return found

    def _breaks(
        self, texts: list[str], rows: np.ndarray, starts: np.ndarray, ends: np.ndarray, tools: Tools
    ) -> np.ndarray:
        """Whether a chunk ends between sentences i and i + 1 of the same document, bool [sentences - 1]."""
        breaks = np.zeros(len(rows) - 1, dtype=bool)
        head = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
        count = np.diff(np.r_[head, len(rows)])
        # One distance is its own percentile, and windows that all span the document are equal: no break.
        at = np.flatnonzero(np.repeat(count > max(2, self.window_each_side + 1), count))
        if len(at) == 0:
            return breaks
        low = np.maximum(at - self.window_each_side, np.repeat(head, count)[at])
        high = np.minimum(at + self.window_each_side, np.repeat(head + count, count)[at] - 1)
        for number, block in enumerate(blocks_of_groups(rows[at], _BLOCK_WINDOWS)):
            here = at[block]
            spans = zip(rows[here], starts[low[block]], ends[high[block]], strict=True)
            windows = [texts[row][start:end] for row, start, end in spans]
            if number == 0:
                _warn_of_duration(windows, len(at), texts, tools)
            distances = cosine_distances(tools.embedder.embed(windows))
            inside = rows[here[1:]] == rows[here[:-1]]
            before = here[:-1][inside]
            breaks[before] = above_percentile(distances[inside], rows[before], self.breakpoint_percentile)
        return breaks


def _warn_of_duration(windows: list[str], n_windows: int, texts: list[str], tools: Tools) -> None:
    """Warns if embedding all windows is slow, estimated from some of them; stored vectors take no time."""
    if len(windows) < _MANY_WINDOWS:
        return
    tools.embedder.embed(windows[:1])  # loads the model
    some = windows[1 :: len(windows) // _TIMED_WINDOWS]
    began = time.monotonic()
    tools.embedder.embed(some)
    seconds = (time.monotonic() - began) * n_windows / len(some)
    if seconds >= _LONG_SECONDS:
        longest = f"{max(map(len, texts)):,}"
        log.warning(
            "chunker=semantic embeds %s windows of sentences, about %s with this embedder (documents: %s, the "
            "longest of %s characters); chunker.window_each_side=0 embeds a sentence once, chunker=tokens none",
            f"{n_windows:,}", duration(seconds), f"{len(texts):,}", longest,
        )  # fmt: skip


def merge_sentences(spans: list[tuple[int, int]], min_chars: int) -> list[tuple[int, int]]:
    """Spans of consecutive sentences with at least `min_chars` characters each, from the first on.

    A rest at the end that is too short joins the span before it; a text that is too short as a whole stays one.
    """
    merged: list[tuple[int, int]] = []
    begin: int | None = None
    for start, end in spans:
        begin = start if begin is None else begin
        if end - begin >= min_chars:
            merged.append((begin, end))
            begin = None
    if begin is not None:
        begin = merged.pop()[0] if merged else begin
        merged.append((begin, spans[-1][1]))
    return merged


def blocks_of_groups(groups: np.ndarray, size: int) -> Iterator[slice]:
    """Slices of sorted `groups`: whole groups, about `size` rows each."""
    start = 0
    while start < len(groups):
        end = min(start + size, len(groups))
        end = int(np.searchsorted(groups, groups[end - 1], side="right"))
        yield slice(start, end)
        start = end


def cosine_distances(vectors: np.ndarray) -> np.ndarray:
    """1 - cosine of each row and the next, float64 [n - 1]."""
    inner = np.einsum("ij,ij->i", vectors[:-1], vectors[1:], dtype=np.float64)
    length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    return 1 - inner / (length[:-1] * length[1:])


def above_percentile(values: np.ndarray, groups: np.ndarray, percentile: float) -> np.ndarray:
    """Whether each value is above the percentile of its group, bool [n]; `groups` is sorted.

    Groups of one size are handed to numpy together, so that the cost is linear in the number of values.
    """
    above = np.zeros(len(values), dtype=bool)
    head = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
    count = np.diff(np.r_[head, len(values)])
    for size in np.unique(count):
        at = head[count == size][:, None] + np.arange(size)
        above[at] = values[at] > np.percentile(values[at], percentile, axis=1, keepdims=True)
    return above
