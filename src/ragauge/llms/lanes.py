"""The order of calls: those of one topic in a row, since their prompts begin alike and servers keep beginnings."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice

from ragauge.llms.asked import Asked


@dataclass(eq=False)
class Lane:
    """A row's requests that were not given out yet, and the number of those in flight."""

    left: deque[Asked]
    in_flight: int = 0


@dataclass
class Lanes:
    """Gives out requests one by one, and begins as few rows as that allows.

    A row has one request in flight, whose prompt is computed when the next one comes. most: rows that are begun at a
    time; beyond it requests of one row wait together for the place where its prompts are kept.
    """

    rows: Iterator[deque[Asked]]
    most: int | None
    _begun: list[Lane] = field(default_factory=list)

    def take(self) -> tuple[Lane, Asked] | None:
        """The next request, with its lane for `end`; None if no further one can be in flight."""
        self._begun = [lane for lane in self._begun if lane.left]
        free = [lane for lane in self._begun if not lane.in_flight]
        if not free and (self.most is None or len(self._begun) < self.most):
            free = [Lane(row) for row in islice(self.rows, 1)]
            self._begun += free
        if not free and self.most is not None:
            free = sorted(self._begun, key=lambda lane: lane.in_flight)
        if not free:
            return None
        free[0].in_flight += 1
        return free[0], free[0].left.popleft()

    def end(self, lane: Lane) -> None:
        """A request of the lane is no longer in flight."""
        lane.in_flight -= 1


@dataclass(frozen=True)
class Row:
    """The requests of one `ask` that stand in a row, by their keys.

    topics: the topic of a key; a key without one is a topic by itself.
    ahead: the keys that other jobs of the sweep will ask for. They are asked until a request of their topic
        fails, or its reply cannot be read. Their failures count nowhere.
    slots: how many prompts the server keeps; None is at least as many as there are calls in flight.
    """

    topics: Mapping[str, Hashable] = field(default_factory=dict)
    ahead: frozenset[str] = frozenset()
    slots: int | None = None
    _ended: set[Hashable] = field(default_factory=set)

    def lanes(self, jobs: Sequence[Asked]) -> Lanes:
        """The jobs by their topics, those of one in a row as they stand in `jobs`."""
        rows = groupby(jobs, key=lambda one: self.topics.get(one.key, one.key))
        return Lanes((deque(row) for _, row in rows), self.slots)

    def end(self, key: str) -> None:
        """No further request of the key's topic is asked ahead."""
        self._ended.add(self.topics.get(key))

    def is_left(self, key: str) -> bool:
        """Whether the request is left to the job that needs it, since one of its topic failed."""
        return key in self.ahead and self.topics.get(key) in self._ended
