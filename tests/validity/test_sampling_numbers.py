"""Few judged topics and labels by people give numbers without bias, and tests that hold their level."""

from __future__ import annotations

import pytest

from simulations.sampling import (
    answered_sample,
    earlier_verdicts,
    human_corrected,
    human_difference,
    paired_sample,
    sampled_shares,
)

pytestmark = pytest.mark.slow


def test_class_shares_of_a_small_sample_add_up_to_1_and_are_covered() -> None:
    found = sampled_shares("uniform", 500, 30, 60, seed=0)
    assert found["sum_lo"] == pytest.approx(1)
    assert found["sum_hi"] == pytest.approx(1)
    assert found["coverage"] >= 0.92


def test_a_sample_of_answers_covers_both_targets_and_is_narrower_where_the_score_says_something() -> None:
    for kind, at_most in (("useful", 0.92), ("useless", 1.05)):
        for of_target in answered_sample(kind, 500, 100, 30, seed=0).values():
            assert of_target["sum"] == pytest.approx(0, abs=1e-9)
            assert of_target["coverage"] >= 0.88
            assert of_target["difference"] >= 0.83
            assert of_target["width"] <= at_most * of_target["plain"]


def test_an_earlier_run_adds_topics_where_it_knows_something_and_bends_nothing() -> None:
    for correlation, least, most in ((0.7, 1.4, 2.0), (0.0, 0.97, 1.15)):
        found = earlier_verdicts(500, 100, correlation, 0.0, 60, seed=0)
        assert least < found["effective"] < most
        assert found["coverage"] >= 0.9
        assert abs(found["bias"]) < 0.02


def test_equal_systems_are_rarely_called_different_under_neymans_strata() -> None:
    found = paired_sample("neyman", 2000, 400, 0.0, 0.2, 150, seed=0)
    assert found["rejected"] <= 0.09
    assert found["coverage"] >= 0.9
    assert found["mcnemar"] >= 0.15  # the attack: McNemar's test takes strata for as frequent as drawn


def test_labels_only_where_the_judge_said_right_are_refused() -> None:
    assert human_corrected(40, "right", 0.5, (0.3, 0.05), 20, seed=0)["refused"] == 1


def test_labels_drawn_at_random_or_by_verdict_have_no_bias() -> None:
    for drawn, n, share, errors in (("random", 20, 0.1, (0.05, 0.05)), ("halves", 40, 0.3, (0.3, 0.05))):
        found = human_corrected(n, drawn, share, errors, 100, seed=0)
        assert found["refused"] <= 0.03
        assert abs(found["bias"]) < 0.025
        assert found["coverage"] >= 0.9


def test_a_judge_that_is_kinder_to_one_system_does_not_bend_the_corrected_test() -> None:
    found = human_difference(60, 0.0, (0.3, 0.05), 200, seed=0)
    assert found["judge"] >= 0.9
    assert found["rejected"] <= 0.085
    assert found["coverage"] >= 0.9
