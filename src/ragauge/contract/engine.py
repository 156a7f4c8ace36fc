"""Config group `engine`: runs the work inside a stage in this process or on workers elsewhere.

An engine changes no result, so it is in no stage's key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ragauge.contract.checks import require_count
from ragauge.contract.default import Default
from ragauge.contract.option import CONF, option

# A block of rows in, its result out. It is sent to workers by pickle: it holds parameters, and loads a model
# at its first block, for itself or for its process. Equal ones are taken for one and the same.
Work = Callable[[Any], Any]

Rows = TypeVar("Rows", bound=Sequence[Any])


class Held(Protocol):
    """Workers that each hold a part, such as a shard of an index."""

    def ask(self, block: Any) -> list[Any]:
        """Each worker's output for the block, in order."""


class Engine(ABC):
    """Config group `engine`.

    block_rows: rows of a block; None: all rows are one block, for who maps anyway works in this process.
    rows_at_once: rows that keep all workers busy for a while; None: the caller's own number.
    shards: parts of an index of vectors that an exact search goes through, each held by a worker.
    """

    block_rows = Default[int | None](None)
    rows_at_once = Default[int | None](None)
    shards = Default(1)

    @abstractmethod
    def map(self, work: Work, blocks: Iterable[Any]) -> Iterator[Any]:
        """One result per block, in order, even if workers are lost meanwhile.

        Blocks are read, and results kept, a few ahead of what was taken. An error of the work is raised as
        it is.
        """

    @abstractmethod
    def hold(self, works: Sequence[Work]) -> Held:
        """A worker per work, for the lifetime of the returned object."""


@option("engine/local")
class LocalEngine(Engine):
    """`engine=local`: this process does the work itself, all rows in one block."""

    shards: int = CONF

    def __post_init__(self) -> None:
        require_count("engine.shards", self.shards)

    def map(self, work: Work, blocks: Iterable[Any]) -> Iterator[Any]:
        """The results of the blocks in order, computed lazily."""
        return map(work, blocks)

    def hold(self, works: Sequence[Work]) -> Held:
        """The works themselves."""
        return _HeldHere(tuple(works))


@dataclass(frozen=True)
class _HeldHere:
    works: tuple[Work, ...]

    def ask(self, block: Any) -> list[Any]:
        return [work(block) for work in self.works]


def slices(n: int, engine: Engine) -> Iterator[slice]:
    """The engine's blocks of n rows, in order; one empty block for n = 0."""
    size = engine.block_rows or max(n, 1)
    return (slice(start, start + size) for start in range(0, max(n, 1), size))


def in_blocks(rows: Rows, engine: Engine) -> Iterator[Rows]:
    """The rows in the engine's blocks, in order; one empty block without rows."""
    return (rows[at] for at in slices(len(rows), engine))  # type: ignore[misc]
