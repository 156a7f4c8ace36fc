"""Races keep the best system, pay for few answers, and end with intervals that hold."""

from __future__ import annotations

import pytest

from plugins.race.race_simulation import MARGIN, Setting, races

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "setting",
    [
        Setting(10, 500, MARGIN + 0.001),
        Setting(10, 500, MARGIN + 0.001, "one near, the others 20 points lower"),
        Setting(2, 500, MARGIN + 0.001, share=0.1, skewed=True),
    ],
)
def test_the_best_stays_and_intervals_hold(setting: Setting) -> None:
    found = races(setting, 100, 7, intervals=20)
    assert found.wrong <= 0.05
    assert found.means >= 0.95
    assert found.differences >= 0.95


def test_few_answers_are_paid_for() -> None:
    found = races(Setting(10, 1000, 0.06), 20, 7)
    assert found.calls <= 0.4
    assert found.wrong == 0
