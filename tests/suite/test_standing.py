"""The line that says where a run of the tests stands."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from standing import Standing, minutes, standing


def test_a_line_says_how_many_how_long_and_how_much_is_left() -> None:
    assert standing(2310, 5782, 1, 130) == "2,310 of 5,782 tests (40%), 1 failed, 2 min 10 s, about 3 min 15 s left"
    assert [minutes(seconds) for seconds in (0.4, 59.4, 59.6, 605)] == ["0 s", "59 s", "1 min 00 s", "10 min 05 s"]


def test_a_line_comes_every_half_minute_and_counts_each_test_once() -> None:
    now, lines = [0.0], list[str]()
    run = Standing(lines.append, lambda: now[0])
    run.pytest_xdist_node_collection_finished(None, ["a", "b", "c", "d"])
    run.pytest_xdist_node_collection_finished(None, ["a", "b", "c", "d"])  # the second worker's

    def ends(seconds: float, failed: bool = False) -> None:
        now[0] += seconds
        for when in ("setup", "call", "teardown"):
            report: Any = SimpleNamespace(when=when, failed=failed and when == "call")
            run.pytest_runtest_logreport(report)

    ends(29)
    assert lines == []
    ends(1, failed=True)
    ends(20)
    assert lines == ["2 of 4 tests (50%), 1 failed, 30 s, about 30 s left"]
    ends(10)
    assert lines[1:] == ["4 of 4 tests (100%), 1 failed, 1 min 00 s, about 0 s left"]
