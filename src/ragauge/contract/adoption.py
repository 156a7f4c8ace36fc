"""Components that inherit from no base class: what they lack is an error, and the rest is the base's default."""

from __future__ import annotations

import inspect
from functools import lru_cache
from types import FunctionType, new_class
from typing import Any, TypeVar, cast

from ragauge.contract.errors import ConfigError

K = TypeVar("K")


def adopted(key: str, component: object, kind: type[K]) -> K:
    """The component, as one of this kind (`Retriever`, `Judge`, ...).

    Its class may inherit from nothing. ConfigError names a method that it lacks, or one that takes other arguments.
    """
    heir = heir_of(key, type(component), kind)
    if heir is not type(component):
        try:
            object.__setattr__(component, "__class__", heir)
        except TypeError as error:
            name = type(component).__name__
            raise ConfigError(f"{key}: {name} has __slots__: let it inherit from {_path(kind)}") from error
    return cast("K", component)


def heir_of(key: str, cls: type, kind: type[K]) -> type[K]:
    """The class if it inherits from all that it is; else a subclass of it, of the same name, code and identity.

    It is one of the kind, and of those special cases of the kind in ragauge.contract whose abstract methods it has.
    Members that the class does not define have their defaults. Raises ConfigError as `adopted` does.
    """
    heir = _heir(cls, kind)
    if missing := sorted(getattr(heir, "__abstractmethods__", ())):
        raise ConfigError(f"{key}: {_path(cls)} is no {kind.__name__}: it has no {' and no '.join(missing)}")
    for base in heir.__mro__:
        if base.__module__.startswith("ragauge.contract."):
            _check_arguments(key, cls, base)
    return heir


@lru_cache(maxsize=256)
def _heir(cls: type, kind: type[K]) -> type[K]:
    able = [kind, *(one for one in _below(kind) if all(hasattr(cls, name) for name in one.__abstractmethods__))]
    above = {base for one in able for base in one.__mro__[1:]}
    bases = [one for one in able if one not in above and not issubclass(cls, one)]
    if not bases:
        return cls
    # Its name in the store is its own, not one that it inherits (`ragauge.contract.identity.named`).
    own = {name: vars(cls)[name] for name in ("__module__", "__doc__", "component") if name in vars(cls)}
    members = {**own, "__qualname__": cls.__qualname__, "__reduce_ex__": lambda self, _: _reduced(self, cls, kind)}
    try:
        return cast("type[K]", new_class(cls.__name__, (cls, *bases), {}, lambda namespace: namespace.update(members)))
    except TypeError as error:
        raise ConfigError(f"{_path(cls)}: {error}: let it inherit from {_path(kind)}") from error


def _below(kind: Any) -> list[Any]:
    """The special cases of a kind, all levels down: classes in ragauge.contract with abstract methods of their own."""
    own = [one for one in kind.__subclasses__() if one.__module__.startswith("ragauge.contract.")]
    below = [deeper for one in own for deeper in _below(one)]
    return [*(one for one in own if any(vars(one).get(name) for name in one.__abstractmethods__)), *below]


def _reduced(component: Any, cls: type, kind: type) -> tuple[Any, ...]:
    """Lets pickle and copy make the heir's class anew where it arrives."""
    return _new, (cls, kind), component.__getstate__()


def _new(cls: type, kind: type[K]) -> K:
    return object.__new__(_heir(cls, kind))


@lru_cache(maxsize=1024)
def _check_arguments(key: str, cls: type, kind: type) -> None:
    for name, wanted in vars(kind).items():
        own = inspect.getattr_static(cls, name, None)
        if (
            not isinstance(wanted, FunctionType)
            or not isinstance(own, FunctionType)
            or own.__module__ == kind.__module__
        ):
            continue
        needed = [one for one in inspect.signature(wanted).parameters.values() if one.default is one.empty]
        if any(one.kind is one.VAR_POSITIONAL for one in needed):
            continue
        try:
            inspect.signature(own).bind(*needed)
        except TypeError as error:
            takes = f"({', '.join(one.name for one in needed)}), as {kind.__name__}.{name} does"
            raise ConfigError(f"{key}: {_path(cls)}.{name} must take {takes}: {error}") from error


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
