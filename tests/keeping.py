"""A compressor that needs no model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.retrieval import Compressor
from ragauge.retrieval.passages import with_texts
from ragauge.texts.sentences import sentence_spans


@dataclass(frozen=True)
class Keeping(Compressor):
    """Keeps the first sentences of every passage."""

    component: ClassVar[str] = "keeping"
    kind: ClassVar[str] = "keeping"
    uses: ClassVar[frozenset[str]] = frozenset()

    sentences: int = 1
    depth: int | None = None

    def compress(self, passages: pd.DataFrame, topics: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        return with_texts(
            passages, [text[: sentence_spans(text)[: self.sentences][-1][1]] for text in passages["text"]]
        )
