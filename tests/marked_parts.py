"""Components that leave a mark for every block they work on, so that a test knows where it was done."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ragauge.contract.component import Embedder, Role, Tools
from ragauge.contract.identity import runtime
from ragauge.contract.retrieval import Chunker
from ragauge.retrieval.chunkers import TokenChunker


def mark(folder: Path, rows: int, seconds: float) -> None:
    """A file that says which node worked on so many rows; the work then takes its time."""
    (folder / f"{rows}-{os.environ.get('RAY_NODE_ID', _node())}-{uuid.uuid4().hex}").touch()
    time.sleep(seconds)


def _node() -> str:
    import ray

    return ray.get_runtime_context().get_node_id() if ray.is_initialized() else "here"


@dataclass(frozen=True)
class MarkedEmbedder(Embedder):
    """An embedder that marks its blocks."""

    model: Embedder
    marks: Path = runtime(None)
    seconds: float = runtime(0.0)

    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        if self.marks is not None:
            mark(self.marks, len(texts), self.seconds)
        return self.model.embed(texts, role, scratch)


@dataclass(frozen=True)
class MarkedChunker(Chunker):
    """Chunks of tokens; blocks are marked."""

    component: ClassVar[str] = "marked"
    uses: ClassVar[frozenset[str]] = frozenset({"tokenizer"})

    chunker: TokenChunker = field(default_factory=lambda: TokenChunker(size=12, overlap=4))
    marks: Path = runtime(None)
    seconds: float = runtime(0.0)

    def chunk(self, docs: pd.DataFrame, tools: Tools) -> Any:
        if self.marks is not None:
            mark(self.marks, len(docs), self.seconds)
        tools.count("documents_seen", len(docs))
        return self.chunker.chunk(docs, tools)
