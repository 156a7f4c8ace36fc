"""Documents cut into chunks by the workers of an engine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ragauge.contract.engine import slices
from ragauge.contract.protocols import Chunker, Tokenizer, Tools


def chunked(chunker: Chunker, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
    """Frame `chunks`, in document order; what the chunker makes of all documents at once.

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
    """Documents to their chunks, and what was counted meanwhile."""

    chunker: Chunker
    tokenizer: Tokenizer | None
    store: _Place

    def __call__(self, docs: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
        counted: Counter[str] = Counter()
        tools = Tools(self.store, None, self.tokenizer, counted=counted)  # type: ignore[arg-type]
        tools = tools.limited_to(self.chunker.uses, type(self.chunker).__name__)
        return self.chunker.chunk(docs, tools), dict(counted)
