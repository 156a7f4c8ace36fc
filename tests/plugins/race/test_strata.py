"""Races over topics that were added later."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from plugins.race.race_simulation import MARGIN, Setting, races_with_additions
from ragauge.plugins.race.course import Rules
from ragauge.plugins.race.strata import errors, interleaved, run_stratified_race
from ragauge.plugins.race.sweeping import _earlier_races, _file


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


def test_the_mean_of_all_topics_weighs_strata_by_their_sizes() -> None:
    of = interleaved([10, 30])
    values = np.vstack([of == 1, of == 0]).astype(float)
    course = run_stratified_race(lambda s, n: None if n > 12 else values[list(s), :n], 2, of, Rules(first=12))
    assert course.why == "the money ran out"
    assert course.results()["mean"].tolist() == pytest.approx([0.75, 0.25])
    assert course.best == 0


def races(root: Path, order: Sequence[str], **rules: float) -> tuple[list[list[str]], str]:
    systems: Any = [
        SimpleNamespace(name=name, pipeline=SimpleNamespace(store=SimpleNamespace(root=root))) for name in "ab"
    ]
    return _earlier_races(systems, "em", Rules(**rules), order)  # type: ignore[arg-type]


def test_topics_added_since_a_race_by_the_same_rules_are_a_stratum_and_it_says_so(tmp_path: Path) -> None:
    first, more, most = ["a", "b", "c"], ["x", "a", "b", "c"], ["x", "a", "y", "b", "z", "c"]
    assert races(tmp_path, first) == ([first], "")
    assert races(tmp_path, first) == ([first], "")
    strata, note = races(tmp_path, more)
    assert strata == [["a", "b", "c"], ["x"]]
    assert "3 and 1 topics are strata" in note
    assert "errors of 2.50% and 1.25%" in note
    strata, note = races(tmp_path, most)
    assert strata == [["a", "b", "c"], ["x"], ["y", "z"]]
    assert races(tmp_path, more)[0] == [["a", "b", "c"], ["x"]]  # as it was begun
    other, note = races(tmp_path, most, margin=0.1)
    assert other == [most]
    assert "raced before with margin 0.03" in note
    file = _file(tmp_path, ["x", "a"], np.array([1, 0]), 1)
    assert pd.read_csv(file).to_dict("list") == {"qid": ["x", "a"], "answered": [1, 0], "stratum": [1, 0]}


@pytest.mark.slow
def test_the_best_stays_though_topics_were_added_because_it_lost() -> None:
    found = races_with_additions(Setting(2, 400, MARGIN + 0.001), 250, 30, 7)
    assert found.wrong <= 0.05
    assert found.means >= 0.95
