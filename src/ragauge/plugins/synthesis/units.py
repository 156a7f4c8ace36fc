"""The sources of questions: a document, or a pair of related ones; uses all once before any twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ragauge.contract.component import Embedder
from ragauge.contract.errors import ConfigError
from ragauge.plugins.synthesis.documents import Documents
from ragauge.plugins.synthesis.names import shared_names
from ragauge.plugins.synthesis.settings import COMPARISON, ONE_HOP, TWO_HOP, UNANSWERABLE

POOL = 3000  # documents, the first of the order, among which pairs are looked for
_OPENING = 500  # characters of a document by which it is told what kind it is of
_SAME_TEXT = 0.98  # cosine from which on two documents say the same
_NEIGHBOURS = 10  # of a document, the nearest of its stratum

Pairs = Mapping[str, Sequence[tuple[str, str]]]  # by docno: other documents, and what they share


@dataclass(frozen=True)
class Unit:
    """The source of one draft.

    about: the name that two documents share; "" where they need not share one.
    use: how often its documents were used for the kind before.
    """

    kind: str
    docnos: tuple[str, ...]
    about: str = ""
    use: int = 0


class Drawer:
    """Draws units of each kind: every document at most once per kind until all were used."""

    def __init__(self, documents: Documents, kinds: Sequence[str], embedder: Embedder) -> None:
        self._documents = documents
        self._pool = dict(list(documents.in_order.items())[:POOL])
        self._waiting: dict[str, list[Unit]] = {kind: [] for kind in kinds}
        cycles: dict[str, Callable[[], Iterator[list[Unit]]]] = {
            ONE_HOP: lambda: self._alone(ONE_HOP),
            UNANSWERABLE: lambda: self._alone(UNANSWERABLE),
            TWO_HOP: lambda: self._paired(TWO_HOP, self._sharing()),
            COMPARISON: lambda: self._paired(COMPARISON, self._alike(embedder)),
        }
        self._cycles = {kind: cycles[kind]() for kind in kinds}
        for kind in kinds:
            self._waiting[kind] = next(self._cycles[kind], [])
            if not self._waiting[kind]:
                why = {
                    TWO_HOP: f"no two of the {len(self._pool):,} documents share a rare name",
                    COMPARISON: f"no two of the {len(self._pool):,} documents are of one kind",
                }[kind]
                raise ConfigError(f"shares.{kind}: {why}; set shares without it: shares={{one_hop:1}}")

    def draw(self, kind: str, n: int) -> list[Unit]:
        """At most n units without a document in common; [] if none is left."""
        if not self._waiting[kind]:
            self._waiting[kind] = next(self._cycles[kind], [])
        found, self._waiting[kind] = self._waiting[kind][:n], self._waiting[kind][n:]
        return found

    def _alone(self, kind: str) -> Iterator[list[Unit]]:
        use = 0
        while True:
            yield [Unit(kind, (docno,), use=use) for docno in self._documents.in_order]
            use += 1

    def _paired(self, kind: str, pairs: Pairs) -> Iterator[list[Unit]]:
        """Pairs without a document in common per cycle; no pair repeats."""
        done: set[frozenset[str]] = set()
        use = 0
        while True:
            used: set[str] = set()
            units = []
            for docno in self._pool:
                for other, about in pairs.get(docno, ()) if docno not in used else ():
                    if other not in used and frozenset((docno, other)) not in done:
                        done.add(frozenset((docno, other)))
                        used |= {docno, other}
                        units.append(Unit(kind, (docno, other), about, use))
                        break
            if not units:
                return
            yield units
            use += 1

    def _sharing(self) -> Pairs:
        return shared_names({docno: f"{one.title}.\n\n{one.text}" for docno, one in self._pool.items()})

    def _alike(self, embedder: Embedder) -> Pairs:
        """The nearest documents of the same stratum by the embedding of their opening, without copies."""
        docnos = list(self._pool)
        texts = [f"{one.title}\n{one.text[:_OPENING]}" for one in self._pool.values()]
        vectors = embedder.embed(texts)
        strata = np.array([one.stratum for one in self._pool.values()])
        found = {}
        for i, docno in enumerate(docnos):
            cosine = vectors @ vectors[i]
            cosine[(strata != strata[i]) | (cosine >= _SAME_TEXT)] = -np.inf
            nearest = np.argsort(-cosine, kind="stable")[:_NEIGHBOURS]
            found[docno] = [(docnos[j], "") for j in nearest if np.isfinite(cosine[j])]
        return found
