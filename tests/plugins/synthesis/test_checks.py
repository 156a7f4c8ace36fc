"""What is asked about a draft, and what becomes of it by the reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pytest

from ragauge.llms.json_replies import Found
from ragauge.plugins.synthesis import checks
from ragauge.plugins.synthesis.drafts import NOT_APPLICABLE, PASSED, Draft, Span, Written
from ragauge.plugins.synthesis.settings import Filters
from ragauge.plugins.synthesis.units import Unit


def draft(number: int, answer: str | None = "1711", kind: str = "one_hop", docnos: str = "d") -> Draft:
    written = Written(f"Question {number}?", answer)
    return Draft(number, Unit(kind, tuple(docnos)), (f"what draft {number} was shown",), written=written)


class Asked:
    """Replies by what a prompt holds, and the prompts that were asked."""

    def __init__(self, replies: dict[str, str]) -> None:
        self.replies = replies
        self.prompts: list[str] = []

    def __call__(
        self, purpose: str, readers: Mapping[str, Callable[[str], Any]], guesses: Mapping[str, Any]
    ) -> dict[str, Found]:
        found = {}
        for prompt, read in readers.items():
            self.prompts.append(prompt)
            text = next(text for held, text in self.replies.items() if held in prompt)
            value = read(text)
            found[prompt] = Found(value, "ok" if value is not None else "unreadable", text)
        return found


def test_every_document_of_a_draft_is_to_be_found_and_hits_count_by_their_rank() -> None:
    def search(topics: pd.DataFrame) -> pd.DataFrame:
        rows = [(qid, docno, rank, docno) for qid in topics["qid"] for rank, docno in enumerate("aabc")]
        return pd.DataFrame(rows[::-1], columns=["qid", "docno", "rank", "text"])

    found = [draft(0, docnos="ac"), draft(1, docnos="az"), draft(2, None, "unanswerable", "b")]
    passages = checks.round_trip(found, search, Filters(round_trip="filter", round_trip_top_k=3))
    assert [one.results["round_trip_rank"] for one in found] == [3, None, 2]
    assert [one.rejected_by for one in found] == [None, "round_trip", None]
    assert [one.results["round_trip"] for one in found][::2] == [PASSED, NOT_APPLICABLE]
    assert passages == {found[2].qid: ["a", "a", "b"]}


@pytest.mark.parametrize(("said", "struck"), [("true", True), ("false", False)])
def test_what_its_own_document_or_a_passage_answers_is_not_unanswerable(said: str, struck: bool) -> None:
    one, other = draft(0, None, "unanswerable"), draft(1, None, "unanswerable")
    ask = Asked({"Question": f'{{"answered": {said}}}'})
    checks.not_answered([one, other], {one.qid: ["a passage", "x" * 3000, "a passage"]}, ask)
    assert [d.rejected_by for d in (one, other)] == ["answerable" if struck else None] * 2
    if not struck:
        assert one.results["answerable"] == PASSED
    texts = [line for prompt in ask.prompts for line in prompt.splitlines() if line.startswith('["')]
    assert [json.loads(line) for line in texts] == [
        ["what draft 0 was shown", "a passage", "x" * 2000], ["what draft 1 was shown"],
    ]  # fmt: skip


def test_an_answer_that_follows_passes_and_one_that_does_not_is_struck() -> None:
    one, other = draft(0), draft(1)
    for each in (one, other):
        each.spans = (Span("d", 0, 5, "It was built in 1711."),)
    checks.follows([one, other], Asked({"Question 0": '{"follows": true}', "Question 1": '{"follows": false}'}))
    assert (one.rejected_by, one.results["follows"]) == (None, PASSED)
    assert other.rejected_by == "follows"


@pytest.mark.parametrize(
    ("said", "answer", "known", "f1"),
    [
        ("Unknownville was founded in 1711", "1711", True, 2 / 6),  # no word of not knowing
        ("unknown", "1711", False, 0.0),
        ("unknown 1711", "1711", False, 2 / 3),
        ("Graz Graz Linz", "Graz Graz Wien", True, 2 / 3),  # both of the two count
        ("Graz Linz", "Graz Wien Linz Steyr", True, 2 / 3),
        ("Graz", "Graz Wien Linz Steyr", False, 2 / 5),
    ],
)
def test_a_reply_without_documents_is_held_against_the_answer_by_token_f1(
    said: str, answer: str, known: bool, f1: float
) -> None:
    one = draft(0, answer)
    checks.closed_book([one], Asked({"Question": said}), Filters(closed_book_f1=0.6))
    assert one.results["closed_book_f1"] == pytest.approx(f1, abs=1e-4)
    assert (one.rejected_by == "closed_book") is known
