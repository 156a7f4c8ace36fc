"""Components and objects of other libraries, built from the `_target_` mappings of a configuration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

from ragauge.contract.errors import ConfigError

_T = TypeVar("_T")


def build(key: str, spec: Mapping[str, Any], offers: Mapping[str, Any]) -> Any:
    """What the dotted path `_target_` makes, called with the spec's other keys (`_args_` by position).

    Nested mappings with a `_target_` are built first, unless the spec says `_recursive_: false`; Hydra's
    `_convert_` is passed over, since values are plain here. Of `offers` each call gets those that its
    signature names and the spec does not set; a LangChain class that takes documents only through
    `from_documents` is called there. ConfigError names the key that cannot be found or called.
    """
    target = locate(key, spec.get("_target_"))
    if "documents" in offers and "documents" not in parameters(target):
        target = getattr(target, "from_documents", target)
    named = {k: v for k, v in spec.items() if k not in _RESERVED}
    args = spec.get("_args_", [])
    if spec.get("_recursive_", True):
        named = {k: _build_nested(f"{key}.{k}", v, offers) for k, v in named.items()}
        args = _build_nested(f"{key}._args_", args, offers)
    offered = {k: v for k, v in offers.items() if k in parameters(target) and k not in named}
    try:
        return target(*args, **offered, **named)
    except (TypeError, ImportError) as error:
        given = ", ".join([*named, *offered]) or "nothing"
        raise ConfigError(f"{key}: {spec['_target_']} called with {given}: {error}") from error


_RESERVED = ("_target_", "_args_", "_recursive_", "_convert_")


def _build_nested(key: str, value: Any, offers: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        if "_target_" in value:
            return build(key, value, offers)
        return {k: _build_nested(f"{key}.{k}", v, offers) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_build_nested(f"{key}[{i}]", v, offers) for i, v in enumerate(value)]
    return value


def locate(key: str, path: object) -> Callable[..., Any]:
    """The class or function at a dotted path such as package.module.Class.method; ConfigError if none is."""
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


def class_of(key: str, path: object, kind: type[_T]) -> type[_T] | None:
    """The class at a dotted path where it is one of a kind; None for any other, and where there is none.

    That there is none is told where it is built.
    """
    try:
        found = locate(key, path)
    except ConfigError:
        return None
    return found if isinstance(found, type) and issubclass(found, kind) else None


def parameters(target: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a class or function by name; empty where Python cannot tell them."""
    try:
        return inspect.signature(target).parameters
    except ValueError:  # some built-in types have no signature
        return {}


def wants(key: str, spec: Mapping[str, Any], offer: str) -> bool:
    """Whether `build` would hand the offer to any call of the spec; ConfigError as `build` raises it."""
    found = offer not in spec and offer in parameters(locate(key, spec.get("_target_")))
    inner = spec.values() if spec.get("_recursive_", True) else ()
    return found or any(_wants_nested(f"{key}.{k}", v, offer) for k, v in zip(spec, inner, strict=False))


def _wants_nested(key: str, value: Any, offer: str) -> bool:
    if isinstance(value, Mapping):
        if "_target_" in value:
            return wants(key, value, offer)
        return any(_wants_nested(f"{key}.{k}", v, offer) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return any(_wants_nested(f"{key}[{i}]", v, offer) for i, v in enumerate(value))
    return False
