"""Races on tables whose answers are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.plugins.race.course import BEATEN, Course, Rules, run_race


def raced(table: np.ndarray, rules: Rules, most: int | None = None) -> tuple[Course, list[tuple[list[int], int]]]:
    asked: list[tuple[list[int], int]] = []

    def ask(systems: Sequence[int], n: int) -> np.ndarray | None:
        asked.append((list(systems), n))
        return None if most is not None and n > most else table[list(systems), :n]

    return run_race(ask, *table.shape, rules), asked


def test_the_hopeless_leave_at_the_first_look_and_are_asked_no_more() -> None:
    table = np.zeros((3, 400))
    table[1] = 1.0
    table[2, ::2] = 1.0
    course, asked = raced(table, Rules())
    assert asked == [([0, 1, 2], 60)]
    assert course.running == [1]
    assert course.used == [60, 60, 60]
    assert {dropped.why for dropped in course.dropped.values()} == {BEATEN}
    assert course.dropped[0].rival == 1
    assert course.why == "one system is left"
    rows = course.results().set_index("system")
    assert rows.loc[1, "difference"] == 0
    assert rows.loc[0, "difference_high"] < -0.5
    assert rows.loc[2, "low"] < 0.5 < rows.loc[2, "high"]


def test_systems_that_tie_leave_one() -> None:
    rng = np.random.default_rng(3)
    table = np.repeat((rng.random(2000) < 0.5).astype(float)[None], 3, axis=0)
    course, _ = raced(table, Rules(first=60, batch=50))
    assert course.running == [0]  # of equal means the first
    assert all(dropped.why != BEATEN for dropped in course.dropped.values())
    assert max(course.used) < 400


def test_a_close_race_takes_all_topics_and_is_exact_then() -> None:
    table = np.tile([1.0, 0.0], (2, 65))
    table[0, -1] = 1.0
    course, asked = raced(table, Rules(margin=0.0, first=50, batch=50))
    assert [n for _, n in asked] == [50, 100, 130]
    assert course.why == "all topics are answered"
    rows = course.results()
    np.testing.assert_allclose(rows["low"], table.mean(axis=1))
    np.testing.assert_allclose(rows["high"], table.mean(axis=1))


def test_the_money_runs_out() -> None:
    rng = np.random.default_rng(5)
    table = (rng.random((3, 500)) < 0.5).astype(float)
    course, _ = raced(table, Rules(margin=0.0), most=100)
    assert course.why == "the money ran out"
    assert course.used == [100, 100, 100]
    assert len(course.running) == 3


def test_a_system_that_cannot_be_answered_leaves_the_race_to_the_others() -> None:
    rng = np.random.default_rng(6)
    table = (rng.random((3, 500)) < 0.5).astype(float)
    table[1, 70] = np.nan
    table[2] = 0.0
    course, asked = raced(table, Rules(margin=0.0))
    assert asked[1] == ([0, 1], 80)  # the last was beaten at the first look
    assert course.failed == {1: 60}
    assert course.running == [0]
    assert course.used == [80, 60, 60]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"margin": -0.1}, "race.margin=-0.1: allowed are numbers from 0 to 0.5"),
        ({"alpha": 0.0}, "race.alpha=0.0"),
        ({"first": 1}, "race.first=1: allowed are integers from 2"),
        ({"batch": 0}, "race.batch=0"),
    ],
)
def test_rules_out_of_range(rules: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Rules(**rules)  # type: ignore[arg-type]
