"""A pytest plugin that a copy of the package with probes imports as `mutants_reached`.

It writes the file that the environment names as MUTANTS_REACHED, a line of JSON for each test that ended,
and for each place that a test, or a fixture of several tests, came to, in whatever process. With
MUTANTS_TESTS (a file of node ids) pytest runs these tests alone, in their order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_AT = "MUTANTS_AT"  # the environment's name for what runs now; the processes that a test starts have it, too
_told: set[tuple[int, str]] = set()
_seconds: dict[str, float] = {}
_failed: set[str] = set()


def reached(number: int) -> None:
    """Tells that a place is reached; None, so that `reached(1) or x` is x."""
    by = os.environ.get(_AT, "")
    if (number, by) not in _told:
        _told.add((number, by))
        _tell(place=number, by=by)


def _tell(**line: Any) -> None:
    if file := os.environ.get("MUTANTS_REACHED"):
        with open(file, "a", encoding="utf-8") as to:
            to.write(json.dumps(line) + "\n")


def _name(fixture: Any) -> str:
    return f"fixture {fixture.baseid}::{fixture.argname}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    os.environ[_AT] = item.nodeid
    yield
    os.environ.pop(_AT)


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[None]:
    before = os.environ.get(_AT)
    if fixturedef.scope != "function":
        os.environ[_AT] = _name(fixturedef)
    yield
    if before is not None:
        os.environ[_AT] = before


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Iterator[None]:
    outcome: Any = yield
    _seconds[item.nodeid] = _seconds.get(item.nodeid, 0) + call.duration
    if outcome.get_result().failed:
        _failed.add(item.nodeid)
    if call.when == "teardown":
        of_several = [
            _name(fixture)
            for fixtures in item._fixtureinfo.name2fixturedefs.values()
            for fixture in fixtures
            if fixture.scope != "function"
        ]
        _tell(
            test=item.nodeid,
            seconds=_seconds[item.nodeid],
            failed=item.nodeid in _failed,
            fixtures=of_several,
        )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    if file := os.environ.get("MUTANTS_TESTS"):
        order = {node: i for i, node in enumerate(Path(file).read_text(encoding="utf-8").splitlines())}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in order])
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])
