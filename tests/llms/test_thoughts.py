"""Thoughts at the beginning of a reply are no part of it, in every form in which servers send them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from ragauge.llms.replies import read_message
from ragauge.llms.thoughts import without_thoughts

GPT_OSS = "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>Paris<|return|>"
MARKS = ("<think>", "</think>", "[THINK]", "[/THINK]", "<|channel|>", "final<|message|>", "\n", "{", "a", "`", " ")


@pytest.mark.parametrize(
    ("reply", "answer", "thoughts"),
    [
        ("<think>\nLondon? No.\n</think>\n\nParis", "Paris", "London? No."),
        ("<THINKING>Hm.</THINKING>Paris", "Paris", "Hm."),
        ("London? No.\n</think>\n\nParis", "Paris", "London? No."),  # the prompt held the opening mark
        ("London? No.</think>Paris", "Paris", "London? No."),
        ("<think>\nLondon? Let me see", "", "London? Let me see"),
        ("<think>a <think>b</think> c</think>Paris", "Paris", "a <think>b</think> c"),
        ("<think>It says <think> there.</think>Paris", "Paris", "It says <think> there."),
        ("<think>a</think>\n<think>b</think>\nParis", "Paris", "a\n\nb"),
        ("<think>\n\n</think>\n\nParis", "Paris", ""),
        ("<think>Hm.</think><answer>Paris</answer>", "Paris", "Hm."),
        ("[THINK]Hm.[/THINK]Paris", "Paris", "Hm."),
        ("◁think▷Hm.◁/think▷Paris", "Paris", "Hm."),
        (GPT_OSS, "Paris", "Easy."),
        ("<|channel|>analysis<|message|>Easy", "", "Easy"),
        ("analysisEasy.assistantfinalParis", "Paris", "Easy."),
        (
            '<details type="reasoning" done="true">\n<summary>Thought</summary>\nHm.\n</details>\nParis',
            "Paris",
            "<summary>Thought</summary>\nHm.",
        ),
        ("\ufeff<think>Hm.</think>Paris", "Paris", "Hm."),
        # Marks that are quoted are part of the answer.
        (
            "<details><summary>Why</summary>It is.</details>\nParis",
            "<details><summary>Why</summary>It is.</details>\nParis",
            "",
        ),
        ("Paris", "Paris", ""),
        ("The tag </think> ends the thoughts.", "The tag </think> ends the thoughts.", ""),
        ("Models write `<think>` and `</think>`.", "Models write `<think>` and `</think>`.", ""),
        ("As in:\n<think>\nHm.\n</think>\n", "As in:\n<think>\nHm.\n</think>\n", ""),
        ('{"label": 5, "reason": "ends with\n</think>\nx"}', '{"label": 5, "reason": "ends with\n</think>\nx"}', ""),
        ("analysis of the data", "analysis of the data", ""),
    ],
)
def test_the_thoughts_at_the_beginning_are_apart(reply: str, answer: str, thoughts: str) -> None:
    assert without_thoughts(reply) == (answer, thoughts)


@given(st.lists(st.sampled_from(MARKS), max_size=12).map("".join))
def test_what_is_left_holds_no_further_thoughts(reply: str) -> None:
    rest, _ = without_thoughts(reply)
    assert without_thoughts(rest) == (rest, "")


def read(content: Any, finish: str = "stop", **beside: Any) -> Any:
    message = AIMessage(content, additional_kwargs=beside, response_metadata={"finish_reason": finish})
    return read_message(message, "langchain_openai.ChatOpenAI")


@pytest.mark.parametrize(
    "received",
    [
        read("Paris", reasoning_content="Hm."),
        read("Paris", reasoning="Hm."),
        read("Paris", reasoning="Hm.", reasoning_content="Hm."),  # the same under both names
        read([{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Paris"}]),
        read([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Paris"}]),
        read([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}, "Paris"]),
        read([{"type": "reasoning_content", "reasoning_content": {"text": "Hm."}}, "Paris"]),
    ],
)
def test_thoughts_in_fields_and_parts_of_a_message_are_kept_beside_the_text(received: Any) -> None:
    assert (received.text, received.thoughts, received.refused) == ("Paris", "Hm.", None)


@pytest.mark.parametrize(
    ("received", "refused", "again"),
    [
        (read("<think>Hm."), "thoughts and no answer", False),
        (read("", reasoning_content="Paris"), "thoughts and no answer", False),
        (read("<think>Hm", "length"), "the token limit was reached by thoughts, before any text", False),
        (read("", "MAX_TOKENS"), "the token limit was reached before any text", False),
        (read("Par", "error"), "the reply is not whole: it ended with 'error'", True),
        (read("Par", "abort"), "the reply is not whole: it ended with 'abort'", True),
        (read("Par", "unknown"), "the reply is not whole: it ended with 'unknown'", True),
        (read("Par", "content_filter"), "the server withheld the reply: it ended with 'content_filter'", False),
        (read("Par", "SAFETY"), "the server withheld the reply: it ended with 'SAFETY'", False),
        (read("", refusal="No."), "the model refuses: No.", False),
        (read(""), "an empty reply", True),
        *((read("Paris", end), None, True) for end in ("stop", "eos_token", "end_turn", "COMPLETE", "length", "tired")),
    ],
)
def test_a_reason_of_ending_says_whether_there_is_an_answer(received: Any, refused: str | None, again: bool) -> None:
    assert (received.refused, received.again) == (refused, again)
