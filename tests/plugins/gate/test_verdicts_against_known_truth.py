"""A gate finds no regression where there is none, and one that is there as often as was planned."""

from __future__ import annotations

import pytest

from plugins.gate.gating_simulation import (
    few_topics_regressed,
    gates,
    passed_in_two_looks,
    power,
    skewed_passed,
    skewed_regressed,
    wrongly_passed,
)

pytestmark = pytest.mark.slow


def test_a_gate_rarely_has_a_regression_where_there_is_no_difference() -> None:
    regressed, _ = gates(60, 0.0, 80, seed=0)
    assert regressed <= 0.1  # 5 % and three standard errors of 80 gates are 12 %
    for n in (5, 20):
        assert few_topics_regressed(n, 0.3, 500, seed=0) <= 0.07


def test_a_gate_finds_a_drop_that_is_there() -> None:
    assert gates(80, 0.02, 10, seed=0, worse=0.2)[0] == 1


@pytest.mark.parametrize("shares", [False, True])
def test_verdicts_come_as_often_as_was_planned(shares: bool) -> None:
    for difference, tolerance, verdict in ((-0.08, 0.02, "regressed"), (0.0, 0.05, "pass")):
        assert 0.7 <= power(shares, difference, tolerance, verdict, 200, seed=0)[1] <= 0.9


def test_few_topics_that_differ_rarely_pass_what_is_worse() -> None:
    for n in (40, 100, 200):
        assert wrongly_passed(n, 0.02, 0.02, 300, seed=0) <= 0.05


def test_long_tails_neither_pass_nor_regress_too_often() -> None:
    # 7 % and three standard errors of 400.
    assert skewed_passed("lognormal", 50, 0.05, 400, seed=0) <= 0.108
    assert skewed_regressed("lognormal", 50, 400, seed=0) <= 0.108


def test_two_looks_together_err_in_six_of_a_hundred() -> None:
    assert passed_in_two_looks(50, 0.05, 500, seed=0) <= 0.092  # and three standard errors
