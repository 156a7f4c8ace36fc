"""Fixtures that several rooms share: stand-ins that satisfy the real Protocols, and a store of their own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from ragauge.parts import Tools
from ragauge.store import Store
from ragauge.tokenizers import WordTokenizer
from servers import postgres_server
from small_pipeline import SmallPipelines

# How long an example takes says more of the machine than of the code.
settings.register_profile("ragauge", deadline=None)
settings.load_profile("ragauge")


@dataclass(frozen=True)
class HashEmbedder:
    """Unit vectors of hashed words: texts that share words are near each other."""

    dimensions: int = 64

    def embed(self, texts: Sequence[str], store: Store | None = None) -> np.ndarray:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row, 0] = 1e-3  # an empty text has a direction, too
            for word in re.findall(r"\w+", text.casefold()):
                digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
                vectors[row, digest[0] % self.dimensions] += 1 if digest[1] % 2 else -1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def hash_embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def word_tokenizer() -> WordTokenizer:
    return WordTokenizer()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def tools(store: Store, hash_embedder: HashEmbedder, word_tokenizer: WordTokenizer) -> Tools:
    return Tools(store=store, embedder=hash_embedder, tokenizer=word_tokenizer)


@pytest.fixture
def small(tmp_path: Path, hash_embedder: HashEmbedder) -> SmallPipelines:
    return SmallPipelines(tmp_path, hash_embedder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """URL of a PostgreSQL database."""
    with postgres_server() as url:
        yield url
