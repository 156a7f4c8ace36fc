"""Facts in answers, and answers with another one."""

from __future__ import annotations

import numpy as np
import pytest

from ragauge.plugins.training.trainers.facts import Facts, kind_of


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("1,476", "number"),
        ("in 1832", "number"),
        ("in the year 1832", "text"),
        ("12 people", "number"),
        ("Yes, both", "yes or no"),
        ("no.", "yes or no"),
        ("Kraer Mills", "name"),
        ("the Rhine", "name"),
        ("a bookish baker", "text"),
        ("the Mayor of the old town", "name"),
        ("the Mayor of the very old town", "text"),
        ("She was born in 1832 in Steilkelby, near the coast", "text"),
        ("", "text"),
    ],
)
def test_kinds(answer: str, kind: str) -> None:
    assert kind_of(answer) == kind


def test_a_changed_fact_is_one_of_its_kind_and_never_a_right_answer() -> None:
    facts = Facts(["1,476", "1476", "2,957", "Kraer Mills", "Bow Works", "yes"])
    rng = np.random.default_rng(0)
    found = {facts.changed("1,476", ["1,476", "1476"], [], "", rng) for _ in range(20)}
    assert found == {"2,957"}
    said = "The payroll of Kraer Mills lists 1,476 people."
    changed = facts.changed(said, ["1,476", "1476"], [], "", rng)
    assert changed == "The payroll of Kraer Mills lists 2,957 people."
    twice = facts.changed("Of 1,476 looms 1,476 ran.", ["1,476", "1476"], [], "", rng)
    assert twice == "Of 2,957 looms 1,476 ran."
    assert facts.changed("Kraer Mills", ["Kraer Mills"], [], "", rng) == "Bow Works"
    whole = facts.changed("Kraer Mills ring.", ["Kraer", "Kraer Mills"], [], "", rng)
    assert whole == "Bow Works ring."
    assert facts.changed("Bo met Kraer Mills there.", [], [], "", rng) == "Bo met Bow Works there."
    assert facts.changed("Yes.", ["Yes."], [], "", rng) == "No"
    assert facts.changed("a baker", ["a baker"], [], "", rng) is None


def test_what_is_known_to_be_wrong_comes_first_and_then_half_the_time_what_stands_in_the_passage() -> None:
    facts = Facts([f"Town{letter}" for letter in "ABCDEFGHIJ"])
    rng = np.random.default_rng(0)
    assert facts.changed("TownA", ["TownA"], ["TownZ"], "", rng) == "TownZ"
    found = [facts.changed("TownA", ["TownA"], [], "From TownA to TownB.", rng) for _ in range(200)]
    assert "TownA" not in found
    assert 80 <= found.count("TownB") <= 140  # a half, and a ninth of the other half
