"""`measure=semantic`: similarity of the context's sentences to the evidence's, by the embedder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ragauge.contract.checks import require_choice
from ragauge.contract.component import Tools
from ragauge.contract.identity import later
from ragauge.contract.measures import MeasuresPieces, Pieces
from ragauge.contract.progress import progress
from ragauge.measures.matching import CORRECTIONS
from ragauge.texts.sentences import sentence_spans

_BLOCK = 1 << 16  # sentences whose vectors are in memory at a time: 100 MB of 384 floats each
_DECIMALS = 6  # of a cosine: vectors are float32, and equal sentences are equal


@dataclass(frozen=True)
class Semantic(MeasuresPieces):
    """The highest cosine of a context's sentence to each sentence of the evidence, by the config's embedder.

    A part's value is the mean over its sentences; a cosine below 0 counts as 0. A sentence that the budget
    cuts counts with the share of its characters that stand in the context, so that no value falls when the
    budget grows. Sentences are those of the passages, none goes over from one into the next; white space is
    folded. `correct` is for the stages, as of every measure: cosines of unrelated sentences are far from 0.
    """

    component = "semantic"
    name = "semantic"
    version = 2
    uses = frozenset({"embedder"})

    correct: str = later("none")

    def __post_init__(self) -> None:
        require_choice("measure.correct", self.correct, CORRECTIONS)

    def score_pieces(
        self,
        evidence: Sequence[Sequence[str]],
        layouts: Sequence[Pieces],
        ends: Sequence[np.ndarray],
        tools: Tools,
    ) -> list[np.ndarray]:
        """For every layout float64 [its evidence, its ends] in [0, 1]; all ends from one pass."""
        spans = _Spans()
        found: list[np.ndarray] = []
        with progress(len(layouts), "scoring by semantic", "context") as bar:
            for block in _blocks(layouts, spans):
                found += self._block(evidence[block], layouts[block], ends[block], spans, tools)
                bar.update(block.stop - block.start)
        return found

    def embedded(self, docs: Sequence[str], evidence: Sequence[str]) -> list[str]:
        """The sentences of documents and evidence to embed."""
        spans = _Spans()
        return [sentence for text in (*docs, *evidence) for _, _, sentence in spans.of(text)]

    def _block(
        self,
        evidence: Sequence[Sequence[str]],
        layouts: Sequence[Pieces],
        ends: Sequence[np.ndarray],
        spans: _Spans,
        tools: Tools,
    ) -> list[np.ndarray]:
        parts = [[[text for _, _, text in spans.of(part)] for part in of_topic] for of_topic in evidence]
        contexts = [
            [
                (start + first, start + last, text)
                for passage, start in zip(pieces.texts, pieces.starts, strict=True)
                for first, last, text in spans.of(passage)
            ]
            for pieces in layouts
        ]
        number: dict[str, int] = {}
        wanted = [number.setdefault(text, len(number)) for c in contexts for _, _, text in c]
        asked = [number.setdefault(text, len(number)) for topic in parts for part in topic for text in part]
        vectors = tools.embedder.embed(list(number))
        rows, of_parts = iter(wanted), iter(asked)
        found = []
        for topic, sentences, of_topic in zip(parts, contexts, ends, strict=True):
            of_context = vectors[[next(rows) for _ in sentences]].astype(np.float64)
            counts = [len(part) for part in topic]
            of_evidence = vectors[[next(of_parts) for _ in range(sum(counts))]].astype(np.float64)
            values = _highest(of_evidence @ of_context.T, sentences, of_topic)
            at = np.cumsum([0, *counts])[:-1]
            found.append(np.add.reduceat(values, at, axis=0) / np.array(counts)[:, None])
        return found


def _highest(cosines: np.ndarray, sentences: Sequence[tuple[int, int, str]], ends: np.ndarray) -> np.ndarray:
    """float64 [evidence sentences, ends]: the highest cosine, times the share of its sentence before the end.

    `cosines` are [evidence sentences, context sentences].
    """
    if not sentences:
        return np.zeros((len(cosines), len(ends)))
    start, stop = np.array([(first, last) for first, last, _ in sentences]).T
    share = np.clip((np.asarray(ends)[:, None] - start) / (stop - start), 0, 1)
    known = np.clip(cosines.round(_DECIMALS), 0, 1)
    return np.stack([(known * of_end).max(axis=1) for of_end in share], axis=1)


class _Spans:
    """The sentences of texts, (start, end, folded text), found once per text."""

    def __init__(self) -> None:
        self._known: dict[str, list[tuple[int, int, str]]] = {}

    def of(self, text: str) -> list[tuple[int, int, str]]:
        if text not in self._known:
            self._known[text] = [(a, b, " ".join(text[a:b].split())) for a, b in sentence_spans(text)]
        return self._known[text]


def _blocks(layouts: Sequence[Pieces], spans: _Spans) -> Iterator[slice]:
    """Runs of layouts with about as many sentences as a block may have."""
    start = size = 0
    for at, pieces in enumerate(layouts):
        size += sum(len(spans.of(text)) for text in pieces.texts)
        if size >= _BLOCK:
            yield slice(start, at + 1)
            start, size = at + 1, 0
    if start < len(layouts):
        yield slice(start, len(layouts))
