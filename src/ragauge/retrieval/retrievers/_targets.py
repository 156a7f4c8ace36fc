"""Objects of other libraries, built from the `_target_` mappings of a configuration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ragauge.contract.errors import ConfigError


def build(key: str, spec: Mapping[str, Any], offers: Mapping[str, Any]) -> Any:
    """What the dotted path `_target_` makes, called with the spec's other keys (`_args_` by position).

    Nested mappings with a `_target_` are built first. Of `offers` each call gets those that its signature
    names and the spec does not set; a LangChain class that takes documents only through `from_documents`
    is called there. ConfigError names the key that cannot be found or called.
    """
    target = _locate(key, spec.get("_target_"))
    if "documents" in offers and "documents" not in _parameters(target):
        target = getattr(target, "from_documents", target)
    named = {k: _build_nested(f"{key}.{k}", v, offers) for k, v in spec.items() if k not in _RESERVED}
    args = _build_nested(f"{key}._args_", spec.get("_args_", []), offers)
    offered = {k: v for k, v in offers.items() if k in _parameters(target) and k not in named}
    try:
        return target(*args, **offered, **named)
    except (TypeError, ImportError) as error:
        given = ", ".join([*named, *offered]) or "nothing"
        raise ConfigError(f"{key}: {spec['_target_']} called with {given}: {error}") from error


_RESERVED = ("_target_", "_args_")


def _build_nested(key: str, value: Any, offers: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        if "_target_" in value:
            return build(key, value, offers)
        return {k: _build_nested(f"{key}.{k}", v, offers) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_build_nested(f"{key}[{i}]", v, offers) for i, v in enumerate(value)]
    return value


def _locate(key: str, path: object) -> Callable[..., Any]:
    """The class or function at a dotted path such as package.module.Class.method."""
    if not isinstance(path, str) or "." not in path:
        raise ConfigError(f"{key}._target_={path!r}: must be the dotted path of a class or function")
    names = path.split(".")
    for cut in range(len(names) - 1, 0, -1):
        module = ".".join(names[:cut])
        try:
            found: Any = import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise ConfigError(f"{key}._target_={path!r}: {module} needs {error.name}") from error
            continue
        except ImportError as error:
            raise ConfigError(f"{key}._target_={path!r}: {module} cannot be imported: {error}") from error
        for name in names[cut:]:
            found = getattr(found, name, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
        break
    raise ConfigError(f"{key}._target_={path!r}: there is no such class or function")


def _parameters(target: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(target).parameters
    except ValueError:  # some built-in types have no signature
        return {}
