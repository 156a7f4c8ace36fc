"""An embedder with vectors cached in a store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.contract.component import Embedder, Role
from ragauge.contract.engine import Engine, LocalEngine, in_blocks
from ragauge.contract.errors import DataError
from ragauge.contract.identity import identity
from ragauge.store import Store
from ragauge.store.vectors import VectorCache, vectors_name

# A text whose vector lies beside the others, and shows whether a server still has the model that gave them.
PROBE = "ragauge embeds this line again before it asks a server for more vectors."
BESIDE = "ragauge embeds"  # a shorter text, sent with it: llama.cpp can mix up texts that it computes together
SAME = 0.999  # cosine from which on two vectors of it are of one model; batches move it by some 1e-6
PROBED = set[tuple[int, Path]]()  # by process: folders of vectors whose probe was compared


@dataclass(frozen=True)
class CachedEmbedder(Embedder):
    """Any embedder, embedding each distinct text once in the life of the store at `root`.

    The model is not even loaded where all vectors are there. The engine's workers embed; the cache is written
    by this process. `counted` has what a server embedded: embedder_texts, embedder_tokens, embedder_cost_usd.
    """

    model: Embedder
    root: Path
    engine: Engine = field(default_factory=LocalEngine)
    counted: dict[str, float] = field(default_factory=dict, compare=False)

    def identity(self) -> dict[str, Any]:
        """The model's identity, since the store does not change vectors, with what a server says that it serves."""
        served = self.model.served(Store(self.root)) if self.model.by_server else {}
        return {**identity(self.model), **({"served": served} if served else {})}

    def windows(self, texts: Sequence[str]) -> list[list[str]] | None:
        """The model's own."""
        return self.model.windows(texts)

    def missing(self, texts: Sequence[str], role: Role = "passage") -> list[str]:
        """The distinct texts that `embed` would embed now."""
        return self._cache(role).missing(list(dict.fromkeys(texts)))

    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        """float32 [len(texts), dimensions], rows of length 1 in the order of `texts`.

        DataError where a server gives other vectors than those that the store has of it.
        """
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return self.model.embed([], role, self.root)
        cache = self._cache(role)
        work = _Embedding(self.model, role, self.root.absolute())

        def embed(missing: list[str]) -> np.ndarray:
            return np.concatenate(list(self.engine.map(work, in_blocks(missing, self.engine))))

        def ask(missing: list[str]) -> Iterator[tuple[Sequence[int], np.ndarray]]:
            self._require_same(cache, role)
            for piece in self.model.pieces(missing, role, self.root):
                yield piece.rows, piece.vectors
                self._count("embedder_texts", len(piece.rows))
                self._count("embedder_cost_usd", piece.usage.cost_usd)
                if piece.usage.prompt_tokens is not None:  # a server that reports none leaves them missing
                    self._count("embedder_tokens", piece.usage.prompt_tokens)

        vectors = cache.get(distinct, ask if self.model.by_server else embed, self.engine.rows_at_once)
        if len(distinct) == len(texts):
            return vectors
        row = {text: i for i, text in enumerate(distinct)}
        return vectors[[row[text] for text in texts]]

    def _cache(self, role: Role) -> VectorCache:
        name = vectors_name(self.identity())
        if not self.model.symmetric:
            name = f"{name}-{role}"
        return VectorCache(self.root, name, f"embedding with {self._name}")

    @property
    def _name(self) -> str:
        known = identity(self.model)
        by_component = known.get("component", type(self.model).__name__)
        return str(known.get("model", getattr(self.model, "model_name", by_component)))

    def _count(self, name: str, n: float) -> None:
        self.counted[name] = self.counted.get(name, 0) + n

    def _require_same(self, cache: VectorCache, role: Role) -> None:
        """Compares the server's vector of PROBE with the kept one, and with that beside another text, once per process.

        Keeps it where there is none. DataError where they differ.
        """
        if (os.getpid(), cache.folder) in PROBED:
            return
        was_kept = not cache.missing([PROBE])
        (now,) = self.model.embed([PROBE], role, self.root)
        (beside, _) = self.model.embed([PROBE, BESIDE], role, self.root)
        if not (cosine := _cosine(now, beside)) >= SAME:
            raise DataError(
                f"embedder: the server gives a text of {self._name} another vector beside a shorter text than alone "
                f"(cosine {cosine:.3f}), so its vectors are of no use. llama.cpp with several slots needs --kv-unified"
            )
        (kept,) = cache.get([PROBE], lambda texts: now[None])
        if was_kept and not (cosine := _cosine(kept, now)) >= SAME:
            raise DataError(
                f"embedder: {self._name} is served with other weights than before: the store's vector of one text and "
                f"the server's have a cosine of {cosine:.3f}. Give the new ones a name of their own: "
                "embedder.revision=2"
            )
        PROBED.add((os.getpid(), cache.folder))


def _cosine(one: np.ndarray, two: np.ndarray) -> float:
    return float(one @ two) if len(one) == len(two) else 0.0


@dataclass(frozen=True)
class _Embedding:
    """Texts to vectors, by a model that each process loads once."""

    model: Embedder
    role: Role
    root: Path

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        # Another machine may not see the store; what the model keeps there is then made without.
        return self.model.embed(texts, self.role, self.root if self.root.is_dir() else None)
