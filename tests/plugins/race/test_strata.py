"""Races over topics that were added later."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from plugins.race.race_simulation import MARGIN, Setting, races_with_additions
from ragauge.plugins.race.course import Rules
from ragauge.plugins.race.strata import errors, interleaved, run_stratified_race


def test_strata_are_answered_in_proportion_and_have_less_than_alpha_together() -> None:
    of = interleaved([90, 30, 1])
    assert of[:5].tolist() == [0, 0, 1, 1, 2]
    assert np.bincount(of).tolist() == [90, 30, 1]
    assert abs(of[:60].tolist().count(1) - 15) <= 2
    assert errors(0.05, 3) == [0.025, 0.0125, 0.00625]


def test_the_hopeless_leave_and_all_topics_are_exact() -> None:
    of = interleaved([300, 100])
    table = np.zeros((3, 400))
    table[1] = 1.0
    table[2] = of == 1  # right on the added topics alone
    asked: list[tuple[list[int], int]] = []

    def ask(systems: Sequence[int], n: int) -> np.ndarray:
        asked.append((list(systems), n))
        return table[list(systems), :n]

    course = run_stratified_race(ask, 3, of, Rules())
    assert course.running == [1]
    assert course.dropped[0].n < course.dropped[2].n or course.dropped[0].n == asked[-1][1]
    rows = course.results().set_index("system")
    assert rows.loc[2, "low"] < 0.25 < rows.loc[2, "high"]
    close = np.vstack([table[2], table[2]])
    whole = run_stratified_race(lambda s, n: close[list(s), :n], 2, of, Rules(margin=0.0, batch=200)).results()
    np.testing.assert_allclose(whole[["mean", "low", "high"]], 0.25)


@pytest.mark.slow
def test_the_best_stays_though_topics_were_added_because_it_lost() -> None:
    found = races_with_additions(Setting(2, 400, MARGIN + 0.001), 250, 30, 7)
    assert found.wrong <= 0.05
    assert found.means >= 0.95
