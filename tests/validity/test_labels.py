"""Labels that are drawn where the judge may err hold their intervals and narrow them; so do those of another period."""

from __future__ import annotations

import pytest

from simulations.labels import labelled, nearly_all_right, other_period

pytestmark = pytest.mark.slow


def test_labels_drawn_where_the_judge_errs_are_narrower_and_cover() -> None:
    found = labelled("no evidence", 1500, (100,), 200, 10, seed=0)[100]
    assert found["correct_width"] < 0.95
    assert found["difference_width"] < 0.95
    assert min(found[name] for name in ("correct", "hallucination", "difference")) >= 0.6
    assert abs(found["correct_bias"]) < 0.04


def test_a_wrong_expectation_costs_little() -> None:
    found = labelled("inverted", 1500, (100,), 0, 10, seed=0)[100]
    assert found["correct_width"] < 1.15
    assert min(found[name] for name in ("correct", "hallucination", "difference")) >= 0.6


def test_labels_of_another_prevalence_serve_rogan_gladen_and_not_ppi() -> None:
    found = other_period(200, 0.8, 0.2, 400, seed=0)
    assert found["coverage"] >= 0.92
    assert abs(found["bias"]) < 0.02
    assert found["ppi"] < 0.1


def test_labels_that_are_nearly_always_alike_keep_the_interval() -> None:
    found = nearly_all_right(0.98, 0.5, 20, 150, seed=98)
    assert found["alike"] > 0.5
    assert found["coverage"] >= 0.88
    assert found["width"] > 0.02
