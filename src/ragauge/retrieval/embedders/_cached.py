"""An embedder whose vectors are kept in a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.contract.identity import identity
from ragauge.contract.protocols import Embedder, Role
from ragauge.store.vectors import VectorCache, vectors_name


@dataclass(frozen=True)
class CachedEmbedder:
    """Any embedder, each distinct text of which is embedded once in the life of the store at `root`.

    The model is not even loaded where all vectors are there.
    """

    model: Embedder
    root: Path

    def identity(self) -> dict[str, Any]:
        """The model's own: where vectors are kept changes none of them."""
        return identity(self.model)

    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        """float32 [len(texts), dimensions], rows of length 1 in the order of `texts`."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return self.model.embed([], role, self.root)
        known = identity(self.model)
        name = vectors_name(known)
        if not getattr(self.model, "symmetric", True):
            name = f"{name}-{role}"
        title = f"embedding with {known.get('model', known.get('component', type(self.model).__name__))}"
        cache = VectorCache(self.root, name, title)
        vectors = cache.get(distinct, lambda missing: self.model.embed(missing, role, self.root))
        if len(distinct) == len(texts):
            return vectors
        row = {text: i for i, text in enumerate(distinct)}
        return vectors[[row[text] for text in texts]]
