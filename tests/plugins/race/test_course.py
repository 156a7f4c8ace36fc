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
