"""Paired tests call equal systems different as rarely as they say, and find a difference that is there."""

from __future__ import annotations

import pytest

from simulations.paired_tests import hallucination_rejections, sign_flip_rejections

pytestmark = pytest.mark.slow


def test_equal_hallucination_shares_are_rarely_called_different() -> None:
    assert hallucination_rejections((0.2, 0.2), 0.5, 120, 500, seed=0) <= 0.06


def test_different_hallucination_shares_are_found() -> None:
    assert hallucination_rejections((0.35, 0.15), 0.5, 120, 200, seed=0) >= 0.8


def test_the_sign_flip_test_holds_its_level_where_systems_are_exchangeable() -> None:
    for n in (12, 30, 120):
        assert sign_flip_rejections(False, n, 500, seed=0) <= 0.075


def test_the_null_of_the_sign_flip_test_is_exchangeability_and_not_a_mean_of_0() -> None:
    assert sign_flip_rejections(True, 30, 500, seed=0) >= 0.1
