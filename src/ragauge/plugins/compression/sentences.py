"""`compressor=sentences`: the sentences of the passages most similar to the question."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Literal

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_choice, require_count, require_number
from ragauge.contract.component import Embedder, Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Compressor
from ragauge.retrieval.passages import with_texts
from ragauge.texts.sentences import sentence_spans

_BLOCK = 1 << 16  # sentences whose vectors are in memory at a time: 100 MB of 384 floats each
_DECIMALS = 12  # beyond this a sum of products depends on the processor; equal sentences stay equal


@option("compressor/sentences")
class SentenceCompressor(Compressor):
    """Keeps of a topic's passages the sentences of the highest cosine to the question, in their order.

    share: at most this share of the topic's text is kept, best sentence first; the best one always is. None is no
        limit. of: whether the share is one of characters or of sentences.
    threshold: a kept sentence has at least this cosine, in [-1, 1]; None is no threshold. Where no sentence
        of a topic reaches it, the topic has no passage left.
    depth: passages of a topic that are looked at, best first; all others are left out. None is all.
    A passage without a kept sentence is dropped. Between sentences that were not neighbours stands a space.
    Source: the extractive compressor of Xu, Shi and Choi, RECOMP, ICLR 2024, with the config's embedder.
    """

    component = "sentences"
    version = 2
    kind = "sentences"
    uses = frozenset({"embedder"})

    share: float | None = CONF
    of: Literal["characters", "sentences"] = CONF
    threshold: float | None = CONF
    depth: int | None = CONF

    def __post_init__(self) -> None:
        require_number("compressor.share", self.share, 0, 1, above=True, null="no limit")
        require_choice("compressor.of", self.of, ("characters", "sentences"))
        require_number("compressor.threshold", self.threshold, -1, 1, null="no threshold")
        require_count("compressor.depth", self.depth, null="all passages")
        if self.share is None and self.threshold is None:
            raise ConfigError("compressor=sentences: give compressor.share, compressor.threshold, or both")

    def compress(self, passages: pd.DataFrame, topics: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `passages` of the kept sentences."""
        texts = passages["text"].tolist()
        spans_of = {text: sentence_spans(text) for text in dict.fromkeys(texts)}
        # A row per sentence, passage by passage.
        passage = np.repeat(np.arange(len(texts)), [len(spans_of[text]) for text in texts])
        spans = [span for text in texts for span in spans_of[text]]
        sentences = [texts[row][a:b] for row, (a, b) in zip(passage, spans, strict=True)]
        topic = pd.factorize(passages["qid"])[0][passage]
        query = passages["qid"].map(topics.set_index("qid")["query"]).to_numpy(dtype=object)[passage]
        cosine = cosines(sentences, query.tolist(), tools.embedder)
        size = np.array([len(s) for s in sentences]) if self.of == "characters" else np.ones(len(sentences))
        keep = np.ones(len(sentences), dtype=bool)
        if self.share is not None:
            keep &= within_share(topic, cosine, size, self.share)
        if self.threshold is not None:
            keep &= cosine >= self.threshold
        kept: list[list[tuple[int, tuple[int, int]]]] = [[] for _ in texts]
        for row in np.flatnonzero(keep):
            kept[passage[row]].append((int(row), spans[row]))
        return with_texts(passages, [_joined(text, rows) for text, rows in zip(texts, kept, strict=True)])


def cosines(sentences: list[str], queries: list[str], embedder: Embedder) -> np.ndarray:
    """float64 [n]: the cosine of every sentence to its query; equal texts of a block are embedded once."""
    found = np.empty(len(sentences))
    for block in _blocks(len(sentences)):
        passages, which = _distinct(sentences[block])
        asked, by = _distinct(queries[block])
        left = embedder.embed(passages).astype(np.float64)
        right = embedder.embed(asked, "query").astype(np.float64)
        found[block] = np.einsum("ij,ij->i", left[which], right[by]).round(_DECIMALS)
    return found


def within_share(topic: np.ndarray, score: np.ndarray, size: np.ndarray, share: float) -> np.ndarray:
    """bool [n]: the rows of highest score of every topic, with sizes summing to at most `share` of its total.

    Taken one after the other until the next would be too much; the best row of a topic always is. Equals are
    taken in their order. topic: int64 [n], ascending from 0.
    """
    if len(topic) == 0:
        return np.zeros(0, dtype=bool)
    order = np.lexsort((-score, topic))
    taken = np.cumsum(size[order])
    first = np.searchsorted(topic, topic)  # ascending: where the rows of the topic begin
    before = taken[first] - size[order][first]
    allowed = share * np.bincount(topic, size)[topic]
    fits = (taken - before <= allowed * (1 + 1e-12)) | (first == np.arange(len(topic)))
    keep = np.zeros(len(topic), dtype=bool)
    keep[order[fits]] = True
    return keep


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, n, _BLOCK))


def _distinct(texts: list[str]) -> tuple[list[str], np.ndarray]:
    """The distinct texts, and each text's index among them."""
    number: dict[str, int] = {}
    which = np.array([number.setdefault(text, len(number)) for text in texts], dtype=np.int64)
    return list(number), which


def _joined(text: str, rows: list[tuple[int, tuple[int, int]]]) -> str:
    """The text of the sentences [(row, span)]; keeps the text between neighbours."""
    runs = [[span for _, (_, span) in group] for _, group in groupby(enumerate(rows), lambda r: r[1][0] - r[0])]
    return " ".join(text[run[0][0] : run[-1][1]] for run in runs)
