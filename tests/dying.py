"""A process that ends at a step, played within this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Killed(BaseException):
    """The process is gone."""


def dying(real: Callable[..., Any], nth: int, when: str, calls: list[str]) -> Callable[..., Any]:
    """`real`, which is gone before or after its nth call; `calls` gets its name at each."""

    def dies(*given: Any, **more: Any) -> Any:
        calls.append(real.__name__)
        if when == "before" and len(calls) == nth:
            raise Killed
        found = real(*given, **more)
        if when == "after" and len(calls) == nth:
            raise Killed
        return found

    return dies
