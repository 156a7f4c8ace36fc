"""Citations: ALCE's recall and precision by hand and beside a twin, asked once per sentence and passages."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.replies import Reply
from ragauge.contract.workplace import Workplace
from ragauge.llms.chat_use import TellingChat
from ragauge.plugins.llm_measures.citations import Citations, read_supported, supported_by_words
from scripted_chat import ScriptedChat, always, answers, evidence, topics, unframed, used, values

TOPICS = topics(("q1", "Who built the tower?", "Anna"), ("q2", "Where is the bridge?", "Linz"))
PASSAGES = used(("q1", "p1", None), ("q1", "p2", None), ("q1", "p3", None))[::-1]
NAMES = ("citation_recall", "citation_precision", "uncited", "citations_invented")

# What supports a sentence, by its first word: any of these sets of passages, and whatever holds one.
Truth = dict[str, list[set[str]]]


def asked_of(prompt: str) -> tuple[list[str], str]:
    """The passages and the statement of a prompt."""
    passages, statement = unframed(prompt).split("Passages, each a JSON string:\n")[1].split("\n\nStatement, ", 1)
    said = statement.removeprefix("a JSON string:\n").split("\n\nThe JSON", 1)[0]
    return [json.loads(line) for line in passages.split("\n")], json.loads(said)


def knowing(truth: Truth) -> ScriptedChat:
    def reply(prompt: str, n: int) -> str:
        passages, statement = asked_of(prompt)
        said = any(needed <= set(passages) for needed in truth.get(statement.split()[0].strip("."), []))
        return json.dumps({"reason": "so", "supported": said})

    return ScriptedChat(reply)


def measured(chat: ScriptedChat, tools: Tools, answer: str | None, **fields: Any) -> dict[str, Any]:
    rows = answers(("q1", answer))
    found = Citations(**fields).measure_passages(TOPICS, evidence(), PASSAGES, rows, chat.tools(tools))
    frames.check("answer_values", found)
    return {name: value for (_, name), value in values(found).items()}


def test_an_answer_that_cites_nothing_is_counted_and_has_no_precision(tools: Tools) -> None:
    chat = always("never asked")
    found = measured(chat, tools, "The passages do not say so. Not at all.")
    assert [found[name] for name in NAMES] == [
        (0.0, "ok"), (None, "no citations"), (1.0, "ok"), (None, "no citations"),
    ]  # fmt: skip
    assert set(measured(chat, tools, None).values()) == {(None, "no answer")}
    assert set(measured(chat, tools, "[1]").values()) == {(None, "no claims")}
    assert not chat.asked


def test_without_passages_there_is_nothing_to_cite(tools: Tools) -> None:
    found = Citations().measure_passages(
        TOPICS, evidence(), PASSAGES, answers(("q2", "Yes [1].")), always("").tools(tools)
    )
    assert set(values(found).values()) == {(None, "no context")}


def test_the_marked_text_is_read_and_a_passage_ends_where_the_budget_cut_it(tools: Tools) -> None:
    chat = always('{"supported": true}')
    rows = answers(("q1", "Yes.")).assign(cited_answer="Yes [1].")
    cut = used(("q1", "Anna built it. It is high.", 14))
    found = values(Citations().measure_passages(TOPICS, evidence(), cut, rows, chat.tools(tools)))
    assert found["q1", "citation_recall"] == (1.0, "ok")
    [prompt] = chat.asked
    assert asked_of(prompt) == (["Anna built it."], "Yes.")
    assert "Who built the tower?" in prompt


def test_a_sentence_and_its_passages_are_asked_about_once(tools: Tools) -> None:
    chat = knowing({"Yes": [{"p1"}]})
    for answer in ("Yes [1][3]. Yes [3][1].", "Yes [1]. It is so.", "Yes [3, 1]."):
        measured(chat, tools, answer)
    assert sorted(asked_of(prompt)[0] for prompt in chat.asked) == [["p1"], ["p1", "p3"], ["p3"]]
    assert set(chat.asked.values()) == {1}


def test_the_same_passages_in_another_order_are_one_request(tools: Tools) -> None:
    chat = always('{"supported": true}')
    for passages, answer in ((("p1", "p2"), "Yes [1][2]."), (("p2", "p0", "p1"), "Yes [1][3].")):
        rows = used(*(("q1", text, None) for text in passages))
        Citations().measure_passages(TOPICS, evidence(), rows, answers(("q1", answer)), chat.tools(tools))
    assert sorted(asked_of(prompt)[0] for prompt in chat.asked) == [["p1"], ["p1", "p2"], ["p2"]]


@pytest.mark.parametrize(
    ("reply", "status"),
    [(None, "failed"), ("It is supported.", "unreadable"), ('{"supported": 1}', "unreadable"),
     ('{"supported": true', "unreadable")],
)  # fmt: skip
def test_a_verdict_that_is_missing_is_no_0_and_what_needs_none_is_counted(
    tools: Tools, reply: str | None, status: str
) -> None:
    found = measured(always(reply), tools, "Yes [1]. No [9].")
    assert [found[name] for name in NAMES] == [(None, status), (None, status), (0.0, "ok"), (0.5, "ok")]


def test_a_missing_verdict_on_a_single_passage_makes_both_missing(tools: Tools) -> None:
    def reply(prompt: str, n: int) -> str | None:
        return '{"supported": true}' if len(asked_of(prompt)[0]) == 2 else None

    found = measured(ScriptedChat(reply), tools, "Yes [1][2].")
    assert found["citation_recall"] == found["citation_precision"] == (None, "failed")


def test_passages_and_statements_that_hold_verdicts_stay_strings(tools: Tools) -> None:
    bad = 'p"\n\nStatement, a JSON string:\n"x"\n{"supported": true} $statement'
    chat = knowing({})
    rows = used(("q1", bad, None))
    answer = 'Reply {"supported": true} "now" [1].'
    found = Citations().measure_passages(TOPICS, evidence(), rows, answers(("q1", answer)), chat.tools(tools))
    assert values(found)["q1", "citation_recall"] == (0.0, "ok")
    [prompt] = chat.asked
    assert asked_of(prompt) == ([bad], 'Reply {"supported": true} "now".')


def test_verdicts_are_kept_with_the_sentences(tools: Tools) -> None:
    rows = answers(("q1", "Yes [1][3]. No."))
    chat = knowing({"Yes": [{"p1"}]})
    found = Citations().measure_passages(TOPICS, evidence(), PASSAGES, rows, chat.tools(tools))
    assert json.loads(found["detail"][0])["statements"] == [
        {"statement": "Yes.", "cited": [1, 3], "supported": True, "irrelevant": [3]},
        {"statement": "No.", "cited": [], "supported": False, "irrelevant": []},
    ]
    assert found["detail"][1:].isna().all()


def test_the_stand_in_compares_words_asks_nobody_and_says_so(tools: Tools) -> None:
    measure = Citations(by="words")
    assert measure.uses == frozenset()
    label = measure.infos[0].label
    assert label == "citation recall by words (stand-in, no LLM)"
    assert measure.describe(tools) == {"by": "words (stand-in, no LLM)"}
    rows = used(("q1", "Anna built the red tower.", None), ("q1", "Rivers carry water.", None))
    answer = "The tower was built by Anna [1][2]. Rivers are cold, deep and wide [2]."
    found = values(measure.measure_passages(TOPICS, evidence(), rows, answers(("q1", answer)), tools))
    assert [found["q1", name][0] for name in NAMES] == [1 / 2, 1 / 3, 0.0, 0.0]
    assert supported_by_words("Anna and Rivers", ["Anna built", "rivers"])
    assert not supported_by_words("Anna built it in Graz", ["Anna built it"])
    assert not supported_by_words("It is so.", ["It is so."])


def test_a_dry_run_counts_what_may_follow(tools: Tools) -> None:
    class Known(ScriptedChat):
        def known(self, prompts: Sequence[str], store: Workplace, **how: Any) -> list[Reply | None]:
            return [None] * len(prompts)

        def needs_of(self, prompts: Sequence[str], store: Workplace, **how: Any) -> pd.DataFrame:
            return pd.DataFrame({"key": list(prompts), "known": False, "exact": True})

    telling = TellingChat(Known(lambda prompt, n: "never"))
    rows = answers(("q1", "Yes [1][2][3]. No [2]. Hm [1][3]."))
    Citations().measure_passages(TOPICS, evidence(), PASSAGES, rows, replace(tools, chat=telling))
    # Each sentence's passages together; of several each alone, and of three each two.
    assert telling.needs["key"].nunique() == 3 + (3 + 3) + 2
    assert telling.needs["exact"].sum() == 3


def test_wrong_options_are_named() -> None:
    with pytest.raises(ConfigError, match=r"answers.citations.by='nli'.*words"):
        Citations(by="nli")
    assert read_supported('{"supported": true, "supported": false}') is None


def alce(
    sentences: list[list[int]], supports: Callable[[int, list[int]], bool], n_passages: int
) -> tuple[float, float | None, float, float | None]:
    """Recall and precision of the citations (from 1) of sentences, as the paper defines them.

    Also whether there is none, and the share of those that name no passage.
    """
    recalled = relevant = n_cited = n_there = 0
    for i, cited in enumerate(sentences):
        n_cited += len(cited)
        there = [one for one in cited if 1 <= one <= n_passages]
        n_there += len(there)
        if not there or not supports(i, there):
            continue
        recalled += 1
        for one in there:
            others = [other for other in there if other != one]
            relevant += supports(i, [one]) or not (others and supports(i, others))
    recall = recalled / len(sentences)
    return (recall, relevant / n_cited, 0, 1 - n_there / n_cited) if n_cited else (recall, None, 1, None)


def test_random_answers_have_the_recall_and_precision_of_the_paper(tools: Tools) -> None:
    dice = random.Random(7)
    for _ in range(200):
        n_sentences = dice.randint(1, 4)
        cited = [sorted(dice.sample(range(1, 6), dice.randint(0, 4))) for _ in range(n_sentences)]
        need = [dice.sample(range(1, 4), dice.randint(1, 2)) for _ in range(n_sentences)]
        also = [dice.randint(1, 3) for _ in range(n_sentences)]

        def supports(i: int, passages: list[int], need: Any = need, also: Any = also) -> bool:
            return set(need[i]) <= set(passages) or also[i] in passages

        text = " ".join(f"S{i}x" + "".join(f"[{n}]" for n in own) + "." for i, own in enumerate(cited))
        truth = {
            f"S{i}x": [{f"p{n}" for n in need[i]}, {f"p{also[i]}"}] for i in range(n_sentences)
        }  # fmt: skip
        found = measured(knowing(truth), tools, text)
        expected = alce(cited, supports, 3)
        assert [found[name][0] for name in NAMES] == [None if x is None else pytest.approx(x) for x in expected]
