"""An engine of small blocks and several shards that sends everything through pickle, as workers get it."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragauge.contract.engine import Held, Work


@dataclass(frozen=True)
class BlocksEngine:
    """Works in this process. `mapped`: how many blocks each kind of work got."""

    block_rows: int | None = 2
    shards: int = 3
    rows_at_once: int | None = 6
    mapped: dict[str, int] = field(default_factory=dict, compare=False)

    def map(self, work: Work, blocks: Iterable[Any]) -> Iterator[Any]:
        sent = pickle.loads(pickle.dumps(work))
        for block in blocks:
            name = type(work).__name__
            self.mapped[name] = self.mapped.get(name, 0) + 1
            yield pickle.loads(pickle.dumps(sent(pickle.loads(pickle.dumps(block)))))

    def hold(self, works: Sequence[Work]) -> Held:
        return Crew([pickle.loads(pickle.dumps(work)) for work in works], self.mapped)


@dataclass(frozen=True)
class Crew:
    works: list[Work]
    mapped: dict[str, int]

    def ask(self, block: Any) -> list[Any]:
        name = type(self.works[0]).__name__
        self.mapped[name] = self.mapped.get(name, 0) + len(self.works)
        return [pickle.loads(pickle.dumps(work(block))) for work in self.works]
