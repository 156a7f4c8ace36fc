"""The rounds of a synthesis by script: who is struck by what, how many are written, and when it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

import pandas as pd
import pytest

from plugins.synthesis.scripted_writer import TOWNS, document, kind_of, reply
from ragauge.llms.json_replies import Found
from ragauge.plugins.synthesis.documents import drawn
from ragauge.plugins.synthesis.drafts import Draft, Written
from ragauge.plugins.synthesis.rounds import Result, Synthesis, outcome, unanswered
from ragauge.plugins.synthesis.settings import Filters, Settings
from ragauge.plugins.synthesis.units import Unit

# By hand, of a first question about each town: the others have nothing that strikes.
STRUCK = {
    "Aldor": "evidence", "Belmar": "follows", "Cresta": "closed_book", "Elbrin": "unreadable",
    "Ilmar": "follows",
}  # fmt: skip
REPEAT = {"Dunmor", "Fallow"}  # the same question: the later one is struck


class Asking:
    """Asks the script; what it has no reply to has failed. without: purposes that nobody can be asked for."""

    def __init__(self, said: Callable[[str], str | None] = reply, without: tuple[str, ...] = ()) -> None:
        self.said, self.without = said, without
        self.asked: list[tuple[str, str]] = []

    def can(self, purpose: str) -> bool:
        return purpose not in self.without

    def __call__(
        self, purpose: str, readers: Mapping[str, Callable[[str], Any]], guesses: Mapping[str, Any]
    ) -> dict[str, Found[Any]]:
        found: dict[str, Found[Any]] = {}
        for prompt, read in readers.items():
            assert self.can(purpose)
            self.asked.append((purpose, prompt))
            text = self.said(prompt)
            value = None if text is None else read(text)
            status = "failed" if text is None else "unreadable" if value is None else "ok"
            found[prompt] = Found(value, status, text)
        return found


def synthesis(settings: Settings, ask: Asking, embedder: Any, tell: Callable[[str], None]) -> Synthesis:
    rows = [(f"{town}.md", f"{town}.md", document(town)) for town in TOWNS]
    corpus = pd.DataFrame(rows, columns=["docno", "title", "text"]).astype("str")
    given: Any = ask
    return Synthesis(drawn(corpus, "none", 0), settings, given, embedder, tell=tell)


def one_hop(n: int, most: int | None = None, **filters: Any) -> Settings:
    kept = Filters(duplicate_cosine=None, **filters)
    return Settings(n, shares={"one_hop": 1}, max_drafts=most, filters=kept)


def town(draft: Draft) -> str:
    return PurePosixPath(draft.unit.docnos[0]).stem


def struck(result: Result) -> dict[str, str]:
    return {town(draft): str(draft.rejected_by) for draft in result.rejected}


def test_every_draft_is_struck_by_what_is_wrong_with_it(hash_embedder) -> None:
    told: list[str] = []
    ask = Asking()
    result = synthesis(one_hop(16, 16), ask, hash_embedder, told.append).run()
    [later] = [town(draft) for draft in result.rejected if town(draft) in REPEAT]
    assert struck(result) == {**STRUCK, later: "duplicate"}
    assert later == [town(draft) for draft in result.drafts if town(draft) in REPEAT][1]
    assert sorted(town(draft) for draft in result.drafts) == sorted(TOWNS)
    assert [draft.number for draft in result.drafts] == list(range(16))
    # The drafts that may be written are written: none is left for the six that lack.
    assert result.lacking() == {"one_hop": 6}
    assert told == ["round 1: 16 draft(s), 10 question(s) accepted, 6 to go"]
    assert outcome(result) == {
        "synthesis_drafts": 16, "synthesis_accepted": 10, "synthesis_accepted_one_hop": 10,
        "synthesis_rejected_failed": 0, "synthesis_rejected_unreadable": 1,
        "synthesis_rejected_no_sentence": 0, "synthesis_rejected_language": 0, "synthesis_rejected_evidence": 1,
        "synthesis_rejected_duplicate": 1, "synthesis_rejected_round_trip": 0,
        "synthesis_rejected_follows": 2, "synthesis_rejected_answerable": 0,
        "synthesis_rejected_closed_book": 1,
    }  # fmt: skip
    # Of what was written without evidence, or could not be read, nothing further is asked.
    about = {purpose: sum(purpose == one for one, _ in ask.asked) for purpose, _ in ask.asked}
    assert about == {"questions": 16, "follows": 14, "closed book": 12}
    assert {kind_of(prompt) for purpose, prompt in ask.asked if purpose == "closed book"} == {"closed book"}


def test_what_is_struck_is_written_anew_until_there_are_enough(hash_embedder) -> None:
    told: list[str] = []
    result = synthesis(one_hop(9), Asking(), hash_embedder, told.append).run()
    first = result.drafts[:9]
    repeated = len(REPEAT & {town(draft) for draft in first}) == 2
    lost = sum(town(draft) in STRUCK for draft in first) + repeated
    assert lost > 0
    assert told[0] == f"round 1: 9 draft(s), {9 - lost} question(s) accepted, {lost} to go"
    assert len(told) > 1
    assert told[-1].endswith("9 question(s) accepted, 0 to go")
    assert len(result.accepted) == 9
    assert result.lacking() == {}
    assert [draft.number for draft in result.drafts] == list(range(len(result.drafts)))
    second = result.drafts[9 : 9 + lost]
    assert told[1].startswith(f"round 2: {lost} draft(s), ")
    assert not {town(draft) for draft in second} & {town(draft) for draft in first}


def test_later_rounds_write_no_more_than_what_is_left_of_the_drafts(hash_embedder) -> None:
    told: list[str] = []
    nothing = {"follows": '{"follows": false}'}
    ask = Asking(lambda prompt: nothing.get(kind_of(prompt), reply(prompt)))
    result = synthesis(one_hop(5, 13), ask, hash_embedder, told.append).run()
    assert [line.split(",")[0] for line in told] == [
        "round 1: 5 draft(s)", "round 2: 5 draft(s)", "round 3: 3 draft(s)",
    ]  # fmt: skip
    assert (len(result.drafts), result.accepted) == (13, [])


def test_drafts_without_a_reply_are_counted_as_unanswered(hash_embedder) -> None:
    silent = ("Gorlan", "Lunden", "Aldor")  # the last fails by its evidence before it is asked about

    def said(prompt: str) -> str | None:
        asked = kind_of(prompt) == "follows" and any(f"bridge of {name}" in prompt for name in silent)
        return None if asked else reply(prompt)

    result = synthesis(one_hop(16, 16), Asking(said), hash_embedder, lambda line: None).run()
    assert {name: why for name, why in struck(result).items() if name in silent} == {
        "Gorlan": "failed", "Lunden": "failed", "Aldor": "evidence",
    }  # fmt: skip
    assert unanswered(result) == 2
    assert outcome(result)["synthesis_rejected_failed"] == 2


def test_a_filter_that_is_off_or_has_nobody_to_ask_strikes_nothing(hash_embedder) -> None:
    def run(ask: Asking, **filters: Any) -> Result:
        return synthesis(one_hop(16, 16, **filters), ask, hash_embedder, lambda line: None).run()

    off = run(Asking(), follows=False, closed_book="skip")
    assert set(struck(off)) & set(STRUCK) == {"Aldor", "Elbrin"}
    nobody = run(Asking(without=("closed book",)))
    assert set(struck(nobody)) & set(STRUCK) == {"Aldor", "Belmar", "Elbrin", "Ilmar"}
    for result in (off, nobody):
        assert {draft.results["closed_book"] for draft in result.accepted} == {"not asked"}
    assert all("follows" not in draft.results for draft in off.drafts)


@pytest.mark.parametrize(("accepted", "lacking"), [(0, 3), (2, 1), (3, None), (4, None)])
def test_what_lacks_is_what_is_wanted_but_for_what_was_accepted(accepted: int, lacking: int | None) -> None:
    drafts = [Draft(i, Unit("two_hop", (str(i),)), ("",), written=Written("?")) for i in range(6)]
    for draft in drafts[accepted:]:
        draft.rejected_by = "follows"
    result = Result(Settings(4, shares={"one_hop": 0.25, "two_hop": 0.75}), drafts)
    assert result.lacking() == {"one_hop": 1, **({"two_hop": lacking} if lacking else {})}


def test_whoever_writes_from_a_document_again_is_told_what_was_written_from_it(hash_embedder) -> None:
    ask = Asking()
    result = synthesis(one_hop(16, 32), ask, hash_embedder, lambda line: None).run()
    prompts = [prompt for purpose, prompt in ask.asked if purpose == "questions"]
    written = {town(draft): draft.question for draft in result.drafts[:16] if draft.written is not None}
    seconds = [(draft, prompt) for draft, prompt in zip(result.drafts, prompts, strict=True) if draft.unit.use == 1]
    assert len(seconds) >= 6
    for draft, prompt in seconds:
        if town(draft) in written:
            assert json.dumps([written[town(draft)]], ensure_ascii=False) in prompt
    assert all(question not in prompt for question in written.values() for prompt in prompts[:16])
