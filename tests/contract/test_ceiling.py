"""How large the core may be: what passes a ceiling is a plug-in, or something goes for it.

The core is what every job may import and every reader must know: `src/ragauge` without `plugins/`. It once held 67,500
lines, seven products in one room, and one statistic touched eighteen files. The ceilings are the sizes at which the
rooms of docs/rooms.md could be told apart again, physical lines as `wc -l` counts them, docstrings included.
"""

from __future__ import annotations

from pathlib import Path

from processes import ROOT

SOURCE = ROOT / "src" / "ragauge"
LINES, FILES, LINES_OF_EXPERIMENT = 45_000, 300, 7_000


def lines(files: list[Path]) -> int:
    return sum(file.read_bytes().count(b"\n") for file in files)


def test_the_core_keeps_below_its_ceiling() -> None:
    core = [file for file in SOURCE.rglob("*.py") if "plugins" not in file.relative_to(SOURCE).parts]
    assert lines(core) <= LINES, "make it a plug-in (CONTRIBUTING.md), or delete as much"
    assert len(core) <= FILES, "let a small file join the one that imports it"
    assert lines(list((SOURCE / "experiment").rglob("*.py"))) <= LINES_OF_EXPERIMENT
