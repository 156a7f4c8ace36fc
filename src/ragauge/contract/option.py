"""The defaults of ragauge's components, which stand in the files of their options and nowhere else."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

_PACKAGE = Path(__file__).resolve().parents[1]
FOLDERS = (_PACKAGE / "conf", _PACKAGE.parents[1] / "conf")  # of an installed wheel, of a source tree
CONF: Any = object()  # value of a field whose default stands in the option's file

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True)
def option(name: str) -> Callable[[type[_T]], type[_T]]:
    """Makes a frozen dataclass of a component: fields at CONF have the defaults of the option, such as retriever/bm25.

    A component's own file is in the conf/ of its plug-in, or in that of ragauge.
    """

    def made(cls: type[_T]) -> type[_T]:
        values = values_of(name, cls.__module__)
        inherited = getattr(cls, "__dataclass_fields__", {})
        for field in [*inherited, *inspect.get_annotations(cls)]:
            given = cls.__dict__.get(field, inherited.get(field))
            if isinstance(given, dataclasses.Field) and given.default is CONF:
                cls.__annotations__[field] = given.type or cls.__annotations__[field]
                setattr(cls, field, dataclasses.field(default=values[field], metadata=given.metadata))
            elif given is CONF:
                setattr(cls, field, values[field])
        return dataclasses.dataclass(frozen=True)(cls)

    return made


@cache
def values_of(name: str, module: str = "") -> dict[str, Any]:
    """The settings of an option as they stand in its file and in those that it builds on, lists as tuples."""
    import yaml

    own = [_PACKAGE / "plugins" / module.split(".")[2] / "conf"] if module.startswith("ragauge.plugins.") else []
    file = next(file for folder in (*own, *FOLDERS) if (file := folder / f"{name}.yaml").is_file())
    with file.open(encoding="utf-8") as text:
        settings: dict[str, Any] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    found: dict[str, Any] = {}
    for base in settings.pop("defaults", ()):
        if str(base).endswith("@_here_"):
            found |= values_of(base.removeprefix("/").removesuffix("@_here_"))
    found |= settings
    return {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}
