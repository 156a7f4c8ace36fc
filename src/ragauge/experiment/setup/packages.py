"""Configs outside conf/, of plug-ins and installed packages, and shadowing among them.

A package names its folder of config groups by an entry point of the group `ragauge.configs`. That folder comes behind
conf/ on Hydra's search path, and the one of `--config-dir` behind both. The plug-ins of ragauge do the same, and come
before other packages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin

from ragauge.contract import loading
from ragauge.contract.errors import ConfigError

ENTRY_POINT_GROUP = "ragauge.configs"
_ROOT = Path(__file__).parents[2]  # the package ragauge


@dataclass(frozen=True)
class ConfigPackage:
    """An installed package with config groups: its dotted name, folder and distribution."""

    module: str
    folder: Traversable
    distribution: str  # name and version

    @property
    def own(self) -> bool:
        """Whether it is a ragauge plug-in."""
        return self.module.startswith("ragauge.")


class PackageSearchPath(SearchPathPlugin):
    """Adds the installed packages to Hydra's search path."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Appends ragauge's plug-ins, then the other packages, in the order of their distributions' names."""
        for package in config_packages():
            # ragauge's own by its folder, so that no plug-in is imported for its options.
            place = f"file://{package.folder}" if package.own else f"pkg://{package.module}"
            search_path.append(package.distribution, place)


def config_packages() -> tuple[ConfigPackage, ...]:
    """ragauge's plug-ins and the installed packages with config groups, by name of distribution.

    Raises ConfigError with entry point and distribution for an unreadable one.
    """
    return packages_of(tuple(loading.points_of(ENTRY_POINT_GROUP)))


@cache
def packages_of(points: tuple[EntryPoint, ...]) -> tuple[ConfigPackage, ...]:
    """The packages that these entry points name."""
    found = [_package(point) for point in points]
    return tuple(sorted(found, key=lambda package: (not package.own, package.distribution, package.module)))


def refuse_shadowed(conf: Path, config_dir: Path | None = None) -> None:
    """ConfigError for a file shadowed by one of the same name earlier on Hydra's search path.

    The places are conf (ragauge's own), the packages, and config_dir (that of `--config-dir`).
    """
    for option, owner in owners(conf).items():
        if config_dir is not None and (config_dir / f"{option}.yaml").is_file():
            raise _shadowed(option, f"--config-dir {config_dir}", owner)


def owners(conf: Path) -> dict[str, str]:
    """The distribution of each option, by option such as retriever/bm25; conf is ragauge's own.

    ConfigError for an option in two distributions.
    """
    found = dict.fromkeys(_options(conf), "ragauge")
    for package in config_packages():
        for option in _options(package.folder):
            if option in found:
                raise _shadowed(option, package.distribution, found[option])
            found[option] = package.distribution
    return found


def _shadowed(option: str, owner: str, first: str) -> ConfigError:
    return ConfigError(
        f"{option}.yaml of {owner} would never be read, since {first} has one, too: give it another name"
    )


def _package(point: EntryPoint) -> ConfigPackage:
    distribution = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown distribution"
    where = f"{loading.where(point)} of {distribution}"
    if not re.fullmatch(r"\w+(\.\w+)*", point.value):
        raise ConfigError(f"{where}: must be the dotted name of a package, such as team_config.conf")
    if point.value.startswith("ragauge."):
        own = _ROOT.joinpath(*point.value.split(".")[1:])
        if not own.is_dir():
            raise ConfigError(f"{where}: there is no folder {own}; after a plug-in has gone: pip install -e .")
        return ConfigPackage(point.value, own, distribution)
    try:
        module = import_module(point.value)
    except Exception as error:
        raise ConfigError(f"{where}: cannot be imported ({type(error).__name__}: {error})") from error
    if not hasattr(module, "__path__"):
        raise ConfigError(f"{where}: is a module, but must be a package, whose folder holds config groups")
    folder = files(point.value)
    if next(_options(folder), None) is None:
        raise ConfigError(f"{where}: holds no YAML file; are its files in the distribution (setuptools: package-data)?")
    return ConfigPackage(point.value, folder, distribution)


def _options(folder: Traversable, group: str = "") -> Iterator[str]:
    """The configs below a folder, such as retriever/bm25."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _options(entry, f"{group}{entry.name}/")
        elif entry.name.endswith(".yaml"):
            yield group + entry.name.removesuffix(".yaml")
