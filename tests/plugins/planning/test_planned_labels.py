"""Planned numbers of labels keep what they promise."""

from __future__ import annotations

import pytest

from plugins.planning.labels_simulation import widths_of_planned_labels

pytestmark = pytest.mark.slow


def test_planned_labels_give_the_width() -> None:
    _, width, covered = widths_of_planned_labels(1000, 6.0, 0.1, 30, seed=0)
    assert width == pytest.approx(0.1, abs=0.005)
    assert covered >= 0.85
