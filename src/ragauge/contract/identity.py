"""What identifies a component: its name, version, parameters and foreign code.

A component is a frozen dataclass whose fields are its config keys. Fields made with `runtime()` change how
the work is done, not what comes out (paths, threads, batch sizes, retries); they stay out of the identity.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragauge.contract.fingerprint import code_digests

if TYPE_CHECKING:
    pass


def runtime(default: Any) -> Any:
    """A dataclass field that does not change the part's output."""
    return dataclasses.field(default=default, metadata={"runtime": True})


def identity(part: Any) -> dict[str, Any]:
    """What can change the part's output, as JSON values: class, version, all but runtime fields, and code.

    A part that is no dataclass (one wrapped from another library) has its own `identity()` method.
    Raises TypeError where there is neither.
    """
    own = getattr(part, "identity", None)
    if callable(own):
        return {**own(), **code_of(part)}
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        raise TypeError(f"{type(part).__name__} is neither a dataclass nor has it an identity() method")
    cls = type(part)
    return {
        "class": f"{cls.__module__}.{cls.__qualname__}",
        "version": getattr(part, "version", 1),
        **{name: _plain(getattr(part, name)) for name in _own_fields(part)},
        **code_of(part),
    }


def code_of(part: Any) -> dict[str, dict[str, str]]:
    """`{"code": digests}` of the code outside of ragauge that makes the part's output; {} if there is none.

    It is that of the part's class and, unless the part says itself what identifies it, that of every
    `_target_` in its fields.
    """
    names = {cls.__module__ for cls in type(part).__mro__}
    if not callable(getattr(part, "identity", None)):
        names.update(_targets([getattr(part, name) for name in _own_fields(part)]))
    digests = code_digests(names)
    return {"code": digests} if digests else {}


def _own_fields(part: Any) -> list[str]:
    return [f.name for f in dataclasses.fields(part) if not f.metadata.get("runtime", False)]


def _targets(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(value.get("_target_"), str):
            yield value["_target_"]
        yield from _targets(list(value.values()))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _targets(item)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, Sequence):
        return [_plain(v) for v in value]
    return identity(value)
