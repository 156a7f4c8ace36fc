"""Shares that are foreseen hold their intervals, shifted and misspecified; worse answers at equal features do not."""

from __future__ import annotations

import pytest

from simulations.foreseen import drifts, held

pytestmark = pytest.mark.slow


def test_foreseen_shares_hold_where_the_window_is_shifted_and_the_predictor_wrong() -> None:
    found = held("bent and shifted", 200, 400, 15, seed=0)
    assert min(found["right"], found["hallucination"], found["these"]) >= 0.66
    assert found["topics"] < 0.4
    assert drifts("shifted", 5, seed=0) == 1.0
    assert drifts("alike", 40, seed=0) < 0.2


def test_what_no_feature_shows_is_missed() -> None:
    found = held("other answers", 200, 400, 4, seed=0)
    assert found["right"] == 0.0
    assert found["bias"] > 0.1
