"""Rooms, plug-ins and tests use what other rooms say in public: a private name is for its own room and its tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from processes import ROOT

# What reaches into another room nevertheless, until that room says it in public.
KNOWN = {
    "comparison/test_semantic_chunker.py": {"retrieval"},
    "contract/test_patterns.py": {"answering"},
    "experiment/test_in_batches.py": {"store"},
    "findings/test_also_logged.py": {"compare"},
    "experiment/test_pipeline.py": {"store"},
    "experiment/test_team_server.py": {"track"},
    "plugins/upkeep/test_store_cli.py": {"store"},
    "simulations/predictor.py": {"estimate"},
}


def room_of(path: Sequence[str]) -> str:
    """The room of a path, such as store; of a plug-in plugins.<name>."""
    return ".".join(path[: 2 if path[0] == "plugins" else 1])


def reached(code: str, own: str) -> Iterator[str]:
    """The other rooms of which a file imports a private module or name; `own` is its own room."""
    for node in ast.walk(ast.parse(code)):
        if not (isinstance(node, ast.ImportFrom) and str(node.module).startswith("ragauge.")):
            continue
        path = str(node.module).split(".")[1:]
        for alias in node.names:
            private = any(name.startswith("_") and not name.startswith("__") for name in [*path, alias.name])
            if private and room_of(path) != own:
                yield room_of(path)


def test_no_room_or_plug_in_imports_a_private_name_of_another_room() -> None:
    rooms = ROOT / "src" / "ragauge"
    assert [
        f"{file.relative_to(rooms)}: {room}"
        for file in sorted(rooms.rglob("*.py"))
        for room in reached(file.read_text(encoding="utf-8"), room_of(file.relative_to(rooms).parts))
    ] == []


def test_no_test_imports_a_private_name_of_another_room() -> None:
    tests = ROOT / "tests"
    found: dict[str, set[str]] = {}
    for file in sorted(tests.rglob("*.py")):
        place = file.relative_to(tests)
        if rooms := set(reached(file.read_text(encoding="utf-8"), room_of(place.parts))):
            found[place.as_posix()] = rooms
    more = {place: rooms - KNOWN.get(place, set()) for place, rooms in found.items()}
    assert [f"{place}: {', '.join(rooms)}" for place, rooms in more.items() if rooms] == []
    there = {place: rooms for place, rooms in KNOWN.items() if (tests / place).is_file()}  # a plug-in may be gone
    assert found == there, "take out of KNOWN what reaches into no other room any more"


def test_what_is_private_and_what_is_another_room() -> None:
    assert list(reached("from ragauge.store._entries import Key", "commands")) == ["store"]
    assert list(reached("from ragauge.store import Store, _entries", "commands")) == ["store"]
    assert list(reached("from ragauge.show.html import _environment", "contract")) == ["show"]
    assert list(reached("from ragauge.store._entries import Key", "store")) == []
    assert list(reached("from ragauge.contract.job_files import __name__", "store")) == []
