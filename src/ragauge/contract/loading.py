"""Loads by name: components by `_target_`, packages' objects by entry points, names of lazy packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints
from importlib.metadata import entry_points as of_all_groups
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from ragauge.contract.adoption import adopted, heir_of
from ragauge.contract.errors import ConfigError
from ragauge.contract.extras import lacks

if TYPE_CHECKING:
    import inspect

    from ragauge.contract.finding import ComparisonFinding, Finding, JobFinding

    _F = TypeVar("_F", Finding, JobFinding, ComparisonFinding)


_T = TypeVar("_T")

# Functions that Python gave `ragauge.run` and `ragauge.sweep` in the place of a component, by dotted path: `locate`
# finds them though no other process could import them.
GIVEN: dict[str, Callable[..., Any]] = {}


def build(key: str, spec: Mapping[str, Any], offers: Mapping[str, Any], *kinds: type) -> Any:
    """Calls the object at the dotted path `_target_` with the spec's other keys (`_args_` by position).

    Nested mappings with a `_target_` are built first, unless the spec says `_recursive_: false`; Hydra's
    `_convert_` is passed over, since values are plain here. Each call gets those of `offers` that its signature names
    and the spec does not set. A LangChain class that takes documents only through `from_documents` is called there.
    `kinds` are the base classes that the component may be of: one that inherits from none of them is adopted as the
    first (`ragauge.contract.adoption`). ConfigError names the key that cannot be found or called.
    """
    target = locate(key, spec.get("_target_"))
    if kinds and isinstance(target, type):
        kind = next((kind for kind in kinds if issubclass(target, kind)), kinds[0])
        target = heir_of(key, target, kind)
    if "documents" in offers and "documents" not in parameters(target):
        target = getattr(target, "from_documents", target)
    named = {k: v for k, v in spec.items() if k not in _RESERVED}
    args = spec.get("_args_", [])
    if spec.get("_recursive_", True):
        named = {k: _build_nested(f"{key}.{k}", v, offers) for k, v in named.items()}
        args = _build_nested(f"{key}._args_", args, offers)
    offered = {k: v for k, v in offers.items() if k in parameters(target) and k not in named}
    try:
        made = target(*args, **offered, **named)
    except (TypeError, ImportError) as error:
        if lacking := lacks(f"{key}._target_={spec['_target_']}", error):
            raise lacking from error
        given = ", ".join([*named, *offered]) or "nothing"
        raise ConfigError(f"{key}: {spec['_target_']} called with {given}: {error}") from error
    return made if not kinds or isinstance(made, kinds) else adopted(key, made, kinds[0])


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
    if path in GIVEN:
        return GIVEN[path]
    names = path.split(".")
    for cut in range(len(names) - 1, 0, -1):
        module = ".".join(names[:cut])
        try:
            found: Any = import_module(module)
        except ModuleNotFoundError as error:
            if lacking := lacks(f"{key}._target_={path}", error):
                raise lacking from error
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
    """The class at a dotted path if it is a subclass of `kind`; None otherwise.

    A missing class is an error later, when it is built.
    """
    try:
        found = locate(key, path)
    except ConfigError:
        return None
    return found if isinstance(found, type) and issubclass(found, kind) else None


def parameters(target: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a class or function by name; empty if Python does not know them."""
    import inspect  # here and below: the help of ragauge does without

    try:
        return inspect.signature(target).parameters
    except ValueError:  # some built-in types have no signature
        return {}


def wants(key: str, spec: Mapping[str, Any], offer: str) -> bool:
    """Whether `build` would pass the offer to any call of the spec; ConfigError as in `build`."""
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


@lru_cache(maxsize=4)
def _installed(places: tuple[tuple[str, int], ...]) -> Any:  # its type is another one before Python 3.12
    return of_all_groups()


def entry_points(group: str) -> EntryPoints:
    """The installed entry points of a group; packages are read once, and again after a change."""
    places = tuple((place, os.stat(place).st_mtime_ns) for place in sys.path if os.path.isdir(place))
    found: EntryPoints = _installed(places).select(group=group)
    return found


def points_of(group: str) -> list[EntryPoint]:
    """The entry points of a group, by name."""
    return sorted(entry_points(group=group), key=lambda point: point.name)


def where(point: EntryPoint) -> str:
    """An entry point's name for errors."""
    return f"entry point {point.name} = {point.value!r} (group {point.group})"


def loaded(point: EntryPoint) -> Any:
    """The object of an entry point; ConfigError if it cannot be loaded."""
    try:
        return point.load()
    except Exception as error:
        raise _unloaded(point, error) from error


def points_used(group: str, config: Mapping[str, Any] | None) -> list[EntryPoint]:
    """The entry points of a group that a config (plain values) uses; all of them without a config.

    A config uses one if it sets a key of its name (such as a.b), or builds a component of its package. An object with
    several names occurs once.
    """
    settings = [] if config is None else list(_settings(config))
    used = [point for point in points_of(group) if config is None or _used(point, settings)]
    return list({point.value: point for point in used}.values())


def _used(point: EntryPoint, settings: Iterable[tuple[str, Any]]) -> bool:
    package = point.value.partition(":")[0].rpartition(".")[0] + "."
    return any(
        (key.endswith(f".{point.name}") and bool(value))
        or (key.endswith("._target_") and str(value).startswith(package))
        for key, value in settings
    )


def _settings(node: object, above: str = ".") -> Iterator[tuple[str, Any]]:
    """Every key of nested mappings and lists, as .a.b, with its value; list items restart the path."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield f"{above}{key}", value
            yield from _settings(value, f"{above}{key}.")
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _settings(value)


def findings_of(kind: type[_F], own: Iterable[type[_F]], on_use: Iterable[EntryPoint] = ()) -> Iterator[_F]:
    """ragauge's findings of a kind (for a sweep, a job or a comparison), then those of packages.

    A job loads the findings of jobs alone; `on_use` are entry points beside those of the kind's group.
    ConfigError for an object of another kind, and for a duplicate name.
    """
    taken = set()
    for cls in own:
        taken.add(cls.name)
        yield cls()
    for point in chain(points_of(kind.group), on_use):
        made = loaded(point)
        try:
            finding = made()
        except Exception as error:
            raise _unloaded(point, error) from error
        if not isinstance(finding, kind):
            raise ConfigError(f"{where(point)}: is no ragauge.contract.finding.{kind.__name__}")
        if finding.name in taken:
            raise ConfigError(f"{where(point)}: there is a finding {finding.name!r} already")
        taken.add(finding.name)
        yield finding


def _unloaded(point: EntryPoint, error: Exception) -> ConfigError:
    return ConfigError(f"{where(point)}: cannot be loaded ({type(error).__name__}: {error})")


def lazily(package: str) -> Callable[[str], Any]:
    """The function `__getattr__` of a package that imports its names under `if TYPE_CHECKING:` alone (PEP 562).

    The first use of a name imports the module that the statement there names.
    """
    homes: dict[str, str] = {}

    def __getattr__(name: str) -> Any:
        if not homes:
            homes.update(_homes(package))
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return __getattr__


def _homes(package: str) -> dict[str, str]:
    """{name: source module} of a package's own file."""
    import ast

    spec = find_spec(package)
    source = spec.loader.get_source(package) if spec is not None else ""  # type: ignore[union-attr]
    return {
        alias.name: str(node.module)
        for node in ast.walk(ast.parse(source or ""))
        if isinstance(node, ast.ImportFrom) and node.level == 0 and str(node.module).startswith(f"{package}.")
        for alias in node.names
    }
