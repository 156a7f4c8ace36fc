"""Intervals hold what the judge says over all wordings of its prompt, not only what it says under one."""

from __future__ import annotations

import pytest

from simulations.prompts import pairs_by_prompts, shares_by_prompts

pytestmark = pytest.mark.slow


def test_a_sample_of_three_prompts_covers_where_one_prompt_does_not() -> None:
    found = shares_by_prompts(500, 0.034, 150, seed=0)
    assert found["one"][0] < 0.85
    assert found["sample"][0] >= 0.93
    assert found["own"][0] >= 0.91


def test_prompts_that_move_systems_apart_are_no_difference_of_systems() -> None:
    found = pairs_by_prompts(500, 0.034, 0.03, 0.0, 80, seed=0)
    assert found["sample"][0] >= 0.92
    assert found["sample"][2] <= 0.08
