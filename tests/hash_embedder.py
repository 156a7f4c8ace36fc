"""An embedder of tests, in a module of its own, so that another process can read it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ragauge.contract.component import Embedder, Role


@dataclass(frozen=True)
class HashEmbedder(Embedder):
    """Unit vectors of hashed words: texts that share words are near each other."""

    dimensions: int = 64

    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row, 0] = 1e-3  # an empty text has a direction, too
            for word in re.findall(r"\w+", text.casefold()):
                digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
                vectors[row, digest[0] % self.dimensions] += 1 if digest[1] % 2 else -1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
