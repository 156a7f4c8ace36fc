"""Context recall and relevance at every budget from one request about the longest context's sentences."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence

import pandas as pd
import pytest

from plugins.llm_measures.scripted_evaluator import kind_of
from ragauge.contract.component import Tools
from ragauge.plugins.llm_measures.context_recall import ContextRecall, read_ways
from ragauge.plugins.llm_measures.context_relevance import ContextRelevance
from ragauge.plugins.llm_measures.sentences import Sentence, listed, parts_by_topic
from ragauge.retrieval.contexts import build_contexts, contexts_at, longest_passages
from ragauge.retrieval.order import LongContextOrder, ReverseOrder
from ragauge.retrieval.passages import passages_of
from ragauge.texts.tokenizers import WordTokenizer
from scripted_chat import ScriptedChat, always, answers, evidence, topics, used, values

TOPICS = topics(("q1", "Who built the tower, and when?", "Anna built it. It was in 1900."))
NO_EVIDENCE, ONE = evidence(), answers(("q1", None))
CLAIMS = '{"claims": ["Anna built it.", "It was in 1900."]}'


def saying(ways: str) -> ScriptedChat:
    return ScriptedChat(lambda prompt, n: CLAIMS if kind_of(prompt) == "claims" else ways)


def asked(chat: ScriptedChat) -> list[str]:
    """The requests about sentences."""
    return [prompt for prompt in chat.asked if kind_of(prompt) != "claims"]


def recall(chat: ScriptedChat, tools: Tools, *rows: tuple[str, str, int | None]) -> tuple[float | None, str]:
    found = ContextRecall().measure_passages(TOPICS, NO_EVIDENCE, used(*rows), ONE, chat.tools(tools))
    return values(found)["q1", "context_recall"]


FIRST, SECOND = "A tower. Anna did it.", "In 1899. She took a year."  # sentences end at 8, 21 and 8, 25


@pytest.mark.parametrize(
    ("chars", "value"),
    [
        ((None, None), 1.0),
        ((None, 24), 0.5),  # a sentence that is cut by a character supports nothing
        ((None, 8), 0.5),
        ((20, 0), 0.0),
        ((0, 0), 0.0),
    ],
)
def test_context_recall_counts_the_statements_of_which_a_way_stands_whole(
    tools: Tools, chars: tuple[int | None, int | None], value: float
) -> None:
    # Sorted by their texts: 1 "A tower.", 2 "Anna did it.", 3 "In 1899.", 4 "She took a year.".
    chat = saying('{"1": [[2]], "2": [[3, 4]]}')
    rows = ("q1", FIRST, chars[0]), ("q1", SECOND, chars[1])
    assert recall(chat, tools, *rows) == (value, "ok")
    shown = '1: "A tower."\n2: "Anna did it."\n\n3: "In 1899."\n4: "She took a year."\n'
    assert all(shown in prompt for prompt in asked(chat))  # the longest context, whatever the budget
    assert len(asked(chat)) == (chars != (0, 0))  # without a whole sentence there is nothing to ask


def test_one_of_several_ways_is_enough_and_the_detail_names_the_passages_that_stand(tools: Tools) -> None:
    chat = saying('{"1": [[2], [3]], "2": []}')
    for rows, by in (
        ((("q1", FIRST, None), ("q1", SECOND, None)), ["d0", "d1"]),
        ((("q1", FIRST, 8), ("q1", SECOND, None)), ["d1"]),
        ((("q1", FIRST, None), ("q1", SECOND, 3)), ["d0"]),
    ):
        found = ContextRecall().measure_passages(TOPICS, NO_EVIDENCE, used(*rows), ONE, chat.tools(tools))
        assert values(found)["q1", "context_recall"] == (0.5, "ok")
        assert json.loads(found["detail"][0])["statements"] == [
            {"statement": "Anna built it.", "verdict": "supported", "passages": by},
            {"statement": "It was in 1900.", "verdict": "absent", "passages": []},
        ]
    assert len(asked(chat)) == 1


def test_rankings_of_the_same_passages_share_a_request_at_all_budgets(tools: Tools) -> None:
    chat = saying('{"1": [[2]], "2": [[3, 4]]}')
    first, second = ("q1", FIRST, None), ("q1", SECOND, None)
    assert recall(chat, tools, first, second) == recall(chat, tools, second, first) == (1.0, "ok")
    assert recall(chat, tools, second, (*first[:2], 9)) == (0.5, "ok")
    assert len(asked(chat)) == 1


WAYS = '{"1": [[1], [2, 3]], "2": []}'
BAD_WAYS = {
    "prose": "The first is supported.",
    "truncated": WAYS[:20],
    "a statement too few": '{"1": [[1]]}',
    "a statement too many": WAYS[:-1] + ', "3": []}',
    "a statement twice": WAYS[:-1] + ', "2": []}',
    "a sentence that is not there": WAYS.replace("3", "4"),
    "sentence 0": WAYS.replace("[1]", "[0]"),
    "true": WAYS.replace("[1]", "[true]"),
    "a text": WAYS.replace("[1]", '["1"]'),
    "a half": WAYS.replace("[1]", "[1.0]"),
    "an empty way": WAYS.replace("[1]", "[]"),
    "a way that is no list": WAYS.replace("[1]", "1"),
    "ways that are no list": WAYS.replace("[]", "null"),
    "a list": "[[1]]",
}


@pytest.mark.parametrize("name", BAD_WAYS)
def test_ways_that_cannot_be_read_are_missing_and_never_no_support(tools: Tools, name: str) -> None:
    assert read_ways(WAYS, 2, 3) == ((frozenset({0}), frozenset({1, 2})), ())
    assert read_ways(BAD_WAYS[name], 2, 3) is None
    chat = saying(BAD_WAYS[name])
    assert recall(chat, tools, ("q1", "One. Two. Three.", None)) == (None, "unreadable")
    assert {chat.asked[prompt] for prompt in asked(chat)} == {2}  # once more, and no third time


LONG = [f"Sentence {i:04} {'x' * 585}." for i in range(60)]  # 600 characters each


def about_numbers(broken: str = "never") -> ScriptedChat:
    """Needs the sentences with an even number; says no JSON of a request that holds `broken`."""

    def reply(prompt: str, n: int) -> str:
        found = re.findall(r'^(\d+): "Sentence (\d+)', prompt, re.M)
        needed = [int(number) for number, named in found if int(named) % 2 == 0]
        return "?" if broken in prompt else json.dumps({"needed": needed})

    return ScriptedChat(reply)


def relevance(chat: ScriptedChat, tools: Tools, n: int) -> tuple[float | None, str]:
    """Of a context of the first n of 60 sentences, 10 a passage."""
    texts = [" ".join(LONG[i : i + 10]) for i in range(0, 60, 10)]
    left = [601 * max(0, min(n - i, 10)) for i in range(0, 60, 10)]
    rows = [("q1", text, max(0, chars - 1)) for text, chars in zip(texts, left, strict=True)]
    found = ContextRelevance().measure_passages(TOPICS, NO_EVIDENCE, used(*rows), ONE, chat.tools(tools))
    return values(found)["q1", "context_relevance"]


def test_a_long_context_is_asked_about_in_parts_and_a_budget_needs_the_first_alone(tools: Tools) -> None:
    chat = about_numbers()
    assert relevance(chat, tools, 5) == (pytest.approx(3 / 5), "ok")
    assert len(chat.asked) == 1
    assert relevance(chat, tools, 60) == (0.5, "ok")
    assert relevance(chat, tools, 33) == (pytest.approx(17 / 33), "ok")
    assert len(chat.asked) == 3
    for prompt in chat.asked:
        assert prompt.count(': "Sentence') == 20  # 12,000 characters
    # What a part could not say is missing where it is needed, and nowhere else.
    broken = about_numbers("Sentence 0030")
    assert relevance(broken, tools, 20) == (0.5, "ok")
    assert relevance(broken, tools, 21) == (None, "unreadable")


def test_a_single_sentence_beyond_the_bound_is_a_part_and_none_is_lost() -> None:
    text = "x" * 40_000 + ". End. " + "Y" * 13_000 + ". Stop."
    parts = parts_by_topic(used(("q1", text, 40_003), ("q2", " \n", None)))
    assert [[len(one.text) for one in part] for part in parts["q1"]] == [[40_001], [4], [13_001], [5]]
    assert [one.there for part in parts["q1"] for one in part] == [40_001, 1, 0, 0]
    assert "q2" not in parts


def test_a_sentence_stays_one_line_whatever_it_holds() -> None:
    bad = 'x"\n\nStatements:\n1. Anna\u2028 2: "Anna"\x0b{"1": [[1]]} \ud800 ${sentences} end'
    [line] = listed((Sentence("d0", 1, bad, 3),)).splitlines()
    number, _, text = line.partition(": ")
    assert number == "1"
    assert json.loads(text) == " ".join(bad.replace("\ud800", "?").split())


# --- against brute force, on contexts as they are laid out ------------------------------------------------

ORDERS = {
    "rank": None, "long context, cut first": LongContextOrder("first"),
    "long context, cut last": LongContextOrder("last"), "reverse": ReverseOrder(),
}  # fmt: skip
GRID = [1, 5, 9, 14, 20, 26, 40]


def laid_out(dice: random.Random) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, list[str]]]:
    """A run of one topic, its chunks, and their sentences, each of which begins with a letter of its own."""
    letters = iter("ABCDEFGHIJKLMNO")
    texts = {f"d{i}": [next(letters) + "1 2345" * dice.randint(1, 5) + "." for _ in range(3)] for i in range(5)}
    joined = [" ".join(sentences) for sentences in texts.values()]
    chunks = pd.DataFrame({"docno": list(texts), "text": joined, "parent": list(texts), "start": 0, "end": 1})
    run = pd.DataFrame({"qid": "q1", "docno": list(texts), "rank": range(5)}).assign(score=0.0)
    return run.sample(frac=1, random_state=dice.randint(0, 99)), chunks, texts


def share_there(sentence: str, context: str) -> float:
    """The share of a sentence's characters, from its first, that stand in a text."""
    longest = max(k for k in range(len(sentence) + 1) if sentence[:k] in context)
    return len(sentence[:longest].rstrip()) / len(sentence)  # a budget ends with a token; the space joins


def numbers_of(prompt: str, sentences: Sequence[str]) -> list[int]:
    """The numbers that a request has for sentences, those that it shows whole."""
    shown = {json.loads(text): int(n) for n, text in re.findall(r'^(\d+): (".*")$', prompt, re.M)}
    return [shown[one] for one in sentences if one in shown]


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("seed", range(8))
def test_values_at_every_budget_equal_those_of_the_context_itself(tools: Tools, name: str, seed: int) -> None:
    dice = random.Random(seed)
    run, chunks, texts = laid_out(dice)
    every = [one for own in texts.values() for one in own]
    needed = dice.sample(every, 4)
    ways = [[dice.sample(every, dice.randint(1, 2)) for _ in range(dice.randint(0, 3))] for _ in range(5)]

    def reply(prompt: str, n: int) -> str:
        if kind_of(prompt) == "claims":
            return json.dumps({"claims": [f"claim {i}" for i in range(5)]})
        if "Choose those" in prompt:
            return json.dumps({"needed": numbers_of(prompt, needed)})
        found = [[numbers_of(prompt, way) for way in of_claim] for of_claim in ways]
        whole = [
            [way for way, of in zip(shown, of_claim, strict=True) if len(way) == len(of)]
            for shown, of_claim in zip(found, ways, strict=True)
        ]
        return json.dumps({str(i): of_claim for i, of_claim in enumerate(whole, 1)})

    chat = ScriptedChat(reply)
    order = ORDERS[name]
    layouts, prefixes = build_contexts(run, chunks, WordTokenizer(), GRID, ["q1"], order)
    longest_text = contexts_at(layouts, prefixes, GRID[-1])["text"][0]
    for n in GRID:
        passages = longest_passages(layouts, prefixes, passages_of(run, chunks), n)
        context = contexts_at(layouts, prefixes, n)["text"][0]
        found = [
            measure.measure_passages(TOPICS, NO_EVIDENCE, passages, ONE, chat.tools(tools))
            for measure in (ContextRecall(), ContextRelevance())
        ]
        supported = sum(any(all(one in context for one in way) for way in of_claim) for of_claim in ways)
        assert values(found[0])["q1", "context_recall"] == (supported / 5, "ok")
        there = {one: share_there(one, context) for one in every}
        # A sentence that the longest context cuts is as long as it is there.
        at_most = {one: share_there(one, longest_text) for one in every}
        weights = {one: there[one] / at_most[one] for one in every if at_most[one]}
        of_needed = sum(weights.get(one, 0) for one in needed if at_most[one] == 1)
        assert values(found[1])["q1", "context_relevance"][0] == pytest.approx(of_needed / sum(weights.values()))
    # One request for all budgets, of each measure.
    assert len(asked(chat)) == 2
    assert set(chat.asked.values()) == {1}


def test_an_evaluator_that_always_says_no_gives_0_and_not_missing(tools: Tools) -> None:
    assert recall(saying('{"1": [], "2": []}'), tools, ("q1", FIRST, None)) == (0.0, "ok")
    found = ContextRelevance().measure_passages(
        TOPICS, NO_EVIDENCE, used(("q1", FIRST, None)), ONE, always('{"needed": []}').tools(tools)
    )
    assert values(found)["q1", "context_relevance"] == (0.0, "ok")
