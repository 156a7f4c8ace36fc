"""`python tests/without_plugin.py NAME [ARGUMENT ...]`: `python run.py [ARGUMENT ...]` where a plug-in was deleted.

Its entry points are hidden, and every import of it fails.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType

from ragauge.contract import loading


class Deleted:
    """Finds no module of a package, as if its folder were not there."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if self.holds(name):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

    def holds(self, module: str) -> bool:
        return f"{module}.".startswith(f"{self.package}.")

    def left(self, points: Iterable[EntryPoint]) -> EntryPoints:
        """The entry points of other packages."""
        return EntryPoints(point for point in points if not self.holds(point.module))


def delete(plugin: str) -> None:
    """Hides the plug-in from this process."""
    deleted, entry_points = Deleted(f"ragauge.plugins.{plugin}"), loading.entry_points
    loaded = [module for module in sys.modules if deleted.holds(module)]
    assert not loaded, f"imported already: {loaded}"
    sys.meta_path.insert(0, deleted)
    loading.entry_points = lambda group: deleted.left(entry_points(group))


if __name__ == "__main__":
    from ragauge.commands.cli import main

    delete(sys.argv.pop(1))
    sys.exit(main())
