"""Families of tests and primary measures: read from a config and from MLflow, said in words, refused."""

from __future__ import annotations

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.families import Families, check_primary

TITLES = {"ir_score": "IR score", "correct": "right", "f1": "token F1"}


def test_a_logged_run_says_what_its_config_said() -> None:
    assert Families.of_params({}) == Families("measure", ("ir_score", "right"))
    found = Families.of_params({"report.family": "all", "report.primary": '["f1"]'})
    assert found == Families("all", ["f1"])


def test_measures_are_primary_or_exploratory_by_name() -> None:
    assert Families().in_words(TITLES) == "primary measures: IR score, right; exploratory: token F1"
    assert Families(primary=["ir_score", "right", "f1"]).in_words(TITLES) == (
        "primary measures: IR score, right, token F1"
    )
    assert Families(primary=["hallucination"]).in_words(TITLES) == (
        "primary measures: none (without values: hallucination); exploratory: IR score, right, token F1"
    )


def test_a_primary_measure_that_is_not_there_is_refused_with_those_that_are() -> None:
    check_primary(["f1", "right", "ir_score", "hallucination"], ["f1"])
    with pytest.raises(
        ConfigError,
        match=r"^report\.primary: this job has no measure 'em'; it has ir_score, right, hallucination, f1$",
    ):
        check_primary(["em"], ["f1"])
