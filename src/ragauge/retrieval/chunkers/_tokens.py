"""Chunks of a fixed number of tokens, and documents that stay whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_count
from ragauge.contract.component import Tools
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Chunker
from ragauge.retrieval.chunkers.spans import chunks_frame, trim


@dataclass(frozen=True)
class NoChunker(Chunker):
    """Every document whole, as the chunk `<docno>%p0`; one without text has none."""

    component = "none"

    def chunk(self, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `chunks`, in document order."""
        return chunks_frame(docs, ((row, 0, len(text)) for row, text in enumerate(docs["text"])))


@option("chunker/tokens")
class TokenChunker(Chunker):
    """Chunks of `size` tokens that share `overlap` tokens with the one before.

    Tokens are those of the config's tokenizer. A chunk is shorter where a cut would fall inside a character,
    where its own text, read alone, has more than `size` tokens, and at the document's end. A single token
    that by itself reads as more than `size` tokens stands alone.
    """

    component = "tokens"
    uses = frozenset({"tokenizer"})

    size: int = CONF
    overlap: int = CONF

    def __post_init__(self) -> None:
        require_count("chunker.size", self.size, note="tokens")
        require_count("chunker.overlap", self.overlap, 0, most=self.size - 1, note="less than size")

    def chunk(self, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `chunks`, in document order."""
        texts = docs["text"].tolist()
        tokens = tools.tokenizer.offsets(texts)
        plans = [trim(texts, self._spans(row, tokens[row])) for row in range(len(texts))]
        planned = [span for plan in plans for span in plan]
        read_alone = tools.tokenizer.offsets([texts[row][start:end] for row, start, end in planned])
        too_long = {span[0] for span, own in zip(planned, read_alone, strict=True) if len(own) > self.size}
        for row in too_long:  # rare: only these are worth a call of the tokenizer per chunk

            def fits(start: int, end: int, text: str = texts[row]) -> bool:
                return len(tools.tokenizer.offsets([text[start:end].strip()])[0]) <= self.size

            plans[row] = list(self._spans(row, tokens[row], fits))
        return chunks_frame(docs, (span for plan in plans for span in plan))

    def _spans(
        self, row: int, tokens: np.ndarray, fits: Callable[[int, int], bool] | None = None
    ) -> Iterator[tuple[int, int, int]]:
        """The chunks of one document, the longest that `fits` (start, end) where that is given."""
        # Tokens before which a chunk may begin or end: all but those that share a character with the last.
        borders = np.r_[0, 1 + np.flatnonzero(tokens[1:, 0] >= tokens[:-1, 1]), len(tokens)]
        begin = 0
        while begin < len(tokens):
            nearest, beyond = np.searchsorted(borders, [begin, begin + self.size], side="right")
            last = max(nearest, beyond - 1)
            start = int(tokens[begin, 0])
            if fits is not None:
                while last > nearest and not fits(start, int(tokens[borders[last] - 1, 1])):
                    last -= 1
            end = borders[last]
            yield row, start, int(tokens[end - 1, 1])
            if end == len(tokens):
                return
            shared = borders[np.searchsorted(borders, end - self.overlap, side="right") - 1]
            begin = max(shared, borders[nearest])
