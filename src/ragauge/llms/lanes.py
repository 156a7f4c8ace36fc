"""The order of calls: those of one topic in a row, since their prompts begin alike and servers keep beginnings."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice, pairwise

from ragauge.contract.visible import is_blank
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
    in_slices: whether the server keeps a beginning only where a request marks its end, as Anthropic's does.
    """

    topics: Mapping[str, Hashable] = field(default_factory=dict)
    ahead: frozenset[str] = frozenset()
    slots: int | None = None
    in_slices: bool = False
    _ended: set[Hashable] = field(default_factory=set)

    def lanes(self, jobs: Sequence[Asked]) -> Lanes:
        """The jobs by their topics, those of one in a row as they stand in `jobs`."""
        rows = (list(row) for _, row in groupby(jobs, key=lambda one: self.topics.get(one.key, one.key)))
        return Lanes((deque(in_slices(row) if self.in_slices else row) for row in rows), self.slots)

    def end(self, key: str) -> None:
        """No further request of the key's topic is asked ahead."""
        self._ended.add(self.topics.get(key))

    def is_left(self, key: str) -> bool:
        """Whether the request is left to the job that needs it, since one of its topic failed."""
        return key in self.ahead and self.topics.get(key) in self._ended


def in_slices(row: Sequence[Asked]) -> list[Asked]:
    """The requests by the length of their prompts, ascending, each slice of what they have in common marked once.

    Each request marks its beginning in common with the next one. The next one reads it, and marks more.
    """
    row = sorted(row, key=lambda one: len(one.prompt))
    alike = [_in_common(one.prompt, other.prompt) for one, other in pairwise(row)]
    found, cuts = list[Asked](), list[int]()
    for one, before, after in zip(row, [0, *alike], [*alike, 0], strict=True):
        cuts = [cut for cut in cuts if cut <= before]
        begin, end = (cuts or [0])[-1], after
        if is_blank(one.prompt[begin:end]) or (end < len(one.prompt) and is_blank(one.prompt[end:])):
            end = 0  # Anthropic refuses a part that holds white space alone
        cuts = sorted({*cuts, end} - {0})
        found.append(replace(one, cuts=tuple(cuts), kept=frozenset({before, end} & {*cuts})))
    return found


def _in_common(one: str, other: str) -> int:
    """The characters with which both begin."""
    unlike = (i for i, (left, right) in enumerate(zip(one, other, strict=False)) if left != right)
    return next(unlike, min(len(one), len(other)))
