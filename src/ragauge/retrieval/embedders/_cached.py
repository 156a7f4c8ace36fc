"""An embedder with vectors cached in a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.contract.component import Embedder, Role
from ragauge.contract.engine import Engine, LocalEngine, in_blocks
from ragauge.contract.identity import identity
from ragauge.store.vectors import VectorCache, vectors_name


@dataclass(frozen=True)
class CachedEmbedder(Embedder):
    """Any embedder, embedding each distinct text once in the life of the store at `root`.

    The model is not even loaded where all vectors are there. The engine's workers embed; the cache is written
    by this process.
    """

    model: Embedder
    root: Path
    engine: Engine = field(default_factory=LocalEngine)

    def identity(self) -> dict[str, Any]:
        """The model's identity, since the store does not change vectors."""
        return identity(self.model)

    def windows(self, texts: Sequence[str]) -> list[list[str]] | None:
        """The model's own."""
        return self.model.windows(texts)

    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        """float32 [len(texts), dimensions], rows of length 1 in the order of `texts`."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return self.model.embed([], role, self.root)
        known = identity(self.model)
        name = vectors_name(known)
        if not self.model.symmetric:
            name = f"{name}-{role}"
        title = f"embedding with {known.get('model', known.get('component', type(self.model).__name__))}"
        cache = VectorCache(self.root, name, title)
        work = _Embedding(self.model, role, self.root.absolute())

        def embed(missing: list[str]) -> np.ndarray:
            return np.concatenate(list(self.engine.map(work, in_blocks(missing, self.engine))))

        vectors = cache.get(distinct, embed, self.engine.rows_at_once)
        if len(distinct) == len(texts):
            return vectors
        row = {text: i for i, text in enumerate(distinct)}
        return vectors[[row[text] for text in texts]]


@dataclass(frozen=True)
class _Embedding:
    """Texts to vectors, by a model that each process loads once."""

    model: Embedder
    role: Role
    root: Path

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        # Another machine may not see the store; what the model keeps there is then made without.
        return self.model.embed(texts, self.role, self.root if self.root.is_dir() else None)
