"""A stand-in for `ragauge.contract.progress.progress` that keeps what it is told."""

from __future__ import annotations

from typing import Any, TextIO

from ragauge.contract.progress import Progress


class CountedProgress:
    """Called as `progress` is; `done` then has {what: (steps done, steps to be done)}."""

    def __init__(self) -> None:
        self.done: dict[str, tuple[int, int | None]] = {}

    def __call__(self, total: int | None, what: str, unit: str = "step") -> Progress:
        return _Work(self, what, total)


class _Work:
    def __init__(self, counted: CountedProgress, what: str, total: int | None) -> None:
        self.counted, self.what, self.total, self.n = counted, what, total, 0

    def update(self, n: int = 1) -> None:
        self.n += n
        self.counted.done[self.what] = (self.n, self.total)

    def restart(self, total: int | None, done: int = 0) -> None:
        self.total, self.n = total, done

    def set_postfix_str(self, s: str = "", refresh: bool = True) -> None:
        """Nothing is kept of it."""

    def write(self, s: str, file: TextIO | None = None) -> None:
        """Nothing is kept of it."""

    def __enter__(self) -> _Work:
        self.counted.done[self.what] = (0, self.total)
        return self

    def __exit__(self, *ended: Any) -> None:
        """It ends with its last step."""
