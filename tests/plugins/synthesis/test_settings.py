"""What is to be written: shares of the kinds by hand, and keys that are not allowed."""

from __future__ import annotations

from typing import Any

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.plugins.synthesis.settings import Filters, Settings


@pytest.mark.parametrize(
    ("n", "shares", "wanted"),
    [
        (100, {}, {"one_hop": 50, "two_hop": 20, "comparison": 15, "unanswerable": 15}),
        # 3.5, 1.4, 1.05 and 1.05: the half is rounded up
        (7, {}, {"one_hop": 4, "two_hop": 1, "comparison": 1, "unanswerable": 1}),
        # 1, 0.4, 0.3 and 0.3: what is left is of the kind that lacks most
        (2, {}, {"one_hop": 1, "two_hop": 1}),
        (1, {}, {"one_hop": 1}),
        # 29 of 100 are 28.999999999999996 in floating point, and 57 are 56.99999999999999
        (100, {"two_hop": 0.29, "one_hop": 0.57, "comparison": 0.14},
         {"one_hop": 57, "two_hop": 29, "comparison": 14}),
        (10, {"unanswerable": 0.25, "one_hop": 0.75}, {"one_hop": 8, "unanswerable": 2}),
        (10, {"one_hop": 0, "two_hop": 1, "comparison": None}, {"two_hop": 10}),
    ],
)  # fmt: skip
def test_the_shares_of_questions_are_by_largest_remainders(
    n: int, shares: dict[str, float | None], wanted: dict[str, int]
) -> None:
    found = Settings(n_questions=n, shares=shares).wanted()
    assert list(found.items()) == list(wanted.items())


@pytest.mark.parametrize("n", range(1, 41))
def test_shares_add_up_and_none_is_a_whole_question_away_from_its_part(n: int) -> None:
    for parts in ((1, 1, 1, 1), (7, 1, 1, 1), (1, 2, 3, 4), (3, 3, 3, 1), (0, 1, 8, 1)):
        kinds = ("one_hop", "two_hop", "comparison", "unanswerable")
        settings = Settings(n, shares={kind: part / sum(parts) for kind, part in zip(kinds, parts, strict=True)})
        found = settings.wanted()
        assert sum(found.values()) == n
        for kind, part in zip(kinds, parts, strict=True):
            lower = n * part // sum(parts)
            assert found.get(kind, 0) in ({lower} if n * part % sum(parts) == 0 else {lower, lower + 1})


def test_shares_that_add_up_to_a_millionth_more_than_one_want_no_question_more() -> None:
    found = Settings(1_000_000, shares={"one_hop": 0.001, "two_hop": 0.999001}).wanted()
    assert found == {"one_hop": 1_000, "two_hop": 999_000}


def test_rules_write_questions_that_one_document_answers_alone() -> None:
    assert Settings(5, "cloze").wanted() == {"one_hop": 5}
    with pytest.raises(ConfigError, match=r"^shares\.two_hop=0\.5: writer=cloze, a stand-in by rules"):
        Settings(5, "cloze", {"one_hop": 0.5, "two_hop": 0.5})


def test_drafts_are_twice_the_questions_unless_told() -> None:
    assert (Settings(8).most_drafts, Settings(8, max_drafts=9).most_drafts) == (16, 9)
    for given, told in (
        ({"max_chars": 199}, "max_chars=199: allowed"),
        ({"n_questions": 8, "max_drafts": 7}, "max_dr"),
    ):
        with pytest.raises(ConfigError, match=told):
            Settings(**given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"duplicate_cosine": 1.5},
            "filters.duplicate_cosine=1.5: allowed are numbers above 0 to 1, and null",
        ),
        ({"duplicate_cosine": 0}, "filters.duplicate_cosine=0: allowed are numbers above 0 to 1"),
        ({"closed_book_f1": 1.1}, "filters.closed_book_f1=1.1: allowed are numbers above 0 to 1"),
        ({"closed_book": "all"}, "filters.closed_book='all': allowed are tokens, llm, skip"),
        ({"round_trip_top_k": 1001}, "filters.round_trip_top_k=1001: allowed are integers from 1 to 1,000"),
        ({"follows": "no"}, "filters.follows='no': allowed are true, false"),
    ],
)
def test_filters_that_are_not_allowed_are_named(given: dict[str, Any], told: str) -> None:
    assert Filters(duplicate_cosine=1, closed_book_f1=1, round_trip_top_k=1000) is not None
    with pytest.raises(ConfigError) as raised:
        Filters(**given)
    assert str(raised.value).startswith(told)
