"""Question, contexts and answer in spans of several libraries, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ragauge.plugins.traces.shapes import Passage, answer_of, docno_of, passages_of, question_of

USER, BOT = {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}
PARTS = [
    {"type": "text", "text": "Wh"},
    {"type": "image_url", "image_url": {}},
    {"type": "text", "text": "y?"},
]


@pytest.mark.parametrize(
    "inputs",
    [
        "Why?",
        {"question": "Why?"},
        {"query": "Why?", "session": "s1"},
        {"input": {"question": "Why?"}},
        {"q": "Why?"},  # the only argument of a function
        {"messages": [{"role": "system", "content": "Be brief."}, BOT, USER], "model": "m"},  # OpenAI
        {"messages": [USER, BOT]},  # an answered one
        {"messages": [{"role": "user", "content": PARTS}]},
        {"messages": [PARTS[0], USER]},  # a part among messages is none of them
        {"input": [USER], "model": "m"},  # OpenAI's responses
        {"messages": [[{"type": "human", "content": "Why?", "additional_kwargs": {}}]]},  # LangChain
        {"messages": [["system", "Be brief."], ["user", "Why?"]]},
        {"str_or_query_bundle": {"query_str": "Why?", "image_path": None}},  # LlamaIndex
        {"message": "Why?", "chat_history": []},
    ],
)
def test_the_question_is_found_in_the_inputs_of(inputs: Any) -> None:
    assert question_of(inputs) == "Why?"


@pytest.mark.parametrize("inputs", [None, "", "  ", 3, {}, [], {"a": "x", "b": "y"}, {"messages": [BOT]},
                                    {"nodes": [{"text": "Why?"}]}, {"texts": ["Why?"]}])  # fmt: skip
def test_no_question_is_made_up_from(inputs: Any) -> None:
    assert question_of(inputs) is None


@pytest.mark.parametrize(
    "outputs",
    [
        "So.",
        {"answer": "So.", "context": [{"page_content": "text"}]},
        {"content": "So.", "type": "ai", "additional_kwargs": {}},  # LangChain's message
        {"choices": [{"message": BOT, "finish_reason": "stop"}], "usage": {}},  # OpenAI
        {"choices": [{"message": BOT}, {"message": {"role": "assistant", "content": "Or so."}}]},
        {
            "output": [
                {"type": "reasoning"},
                {"role": "assistant", "content": [{"type": "output_text", "text": "So."}]},
            ]
        },
        {"messages": [{"type": "human", "content": "Why?"}, {"type": "ai", "content": "So."}]},  # LangGraph
        {"generations": [[{"text": "So."}]]},
        {"response": "So.", "source_nodes": []},  # LlamaIndex
        {"result": "So.", "documents": ["text"]},
    ],
)
def test_the_answer_is_found_in_the_outputs_of(outputs: Any) -> None:
    assert answer_of(outputs) == "So."


@pytest.mark.parametrize("outputs", [None, "", {"a": 1, "b": 2}, [], {"messages": [USER]}])
def test_no_answer_is_made_up_from(outputs: Any) -> None:
    assert answer_of(outputs) is None


@pytest.mark.parametrize(
    "outputs",
    [
        [{"page_content": "text", "metadata": {"doc_uri": "d"}, "id": "1"}],
        [{"content": "text", "metadata": {"source": "d", "page": 3}}],
        [{"text": "text", "doc_id": "d"}],
        [{"node": {"text": "text", "metadata": {"file_path": "d"}}, "score": 0.5}],  # LlamaIndex
        [[{"page_content": "text", "metadata": {"url": "d"}}, 0.5]],  # with its score
        {"documents": [{"page_content": "text", "metadata": {"source": "d"}}]},
        '[{"page_content": "text", "metadata": {"source": "d"}}]',
    ],
)
def test_a_passage_and_its_document_are_found_in_the_outputs_of(outputs: Any) -> None:
    assert passages_of(outputs) == [Passage("text", "d")]


def test_passages_without_a_document_or_a_text() -> None:
    assert passages_of(["a", {"page_content": "b"}]) == [Passage("a", None), Passage("b", None)]
    assert passages_of([{"metadata": {"source": "d"}}, {"page_content": "  "}, 3, None]) == []
    assert [passages_of(nothing) for nothing in (None, "", 3, {}, [])] == [[]] * 5


def test_a_document_s_name_is_a_docno() -> None:
    assert docno_of(" my file.pdf\n") == "my%20file.pdf"
    assert docno_of("a%p1") == "a%25p1"  # would be chunk 1 of a
