"""Token counts in the words of each provider, as raw replies and as LangChain's messages."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_openai import ChatOpenAI

from ragauge.contract.usage import Usage
from ragauge.llms.langchain_models import with_whole_replies
from ragauge.llms.replies import of_completion, read_message
from ragauge.llms.usage import of_anthropic, of_message


def body(usage: Any, **beside: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Paris"}, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage, **beside}


def told(prompt: int, completion: int, cached: int | None = None, written: int | None = None) -> Usage:
    return Usage(prompt, completion, cached_tokens=cached, written_tokens=written)


OPENAI = {"prompt_tokens": 2006, "completion_tokens": 300, "total_tokens": 2306}
IN_OPENAIS_FORM = {
    "openai": (
        {**OPENAI, "prompt_tokens_details": {"cached_tokens": 1920, "audio_tokens": 0},
         "completion_tokens_details": {"reasoning_tokens": 0}},
        {}, told(2006, 300, 1920),
    ),
    "openai_with_writes": (
        {**OPENAI, "prompt_tokens_details": {"cached_tokens": 1024, "cache_write_tokens": 982}},
        {}, told(2006, 300, 1024, 982),
    ),
    "none_cached": ({**OPENAI, "prompt_tokens_details": {"cached_tokens": 0}}, {}, told(2006, 300, 0)),
    "deepseek": (
        {**OPENAI, "prompt_cache_hit_tokens": 1984, "prompt_cache_miss_tokens": 22}, {}, told(2006, 300, 1984)
    ),
    "llama_cpp": (
        OPENAI, {"timings": {"cache_n": 1991, "prompt_n": 15, "prompt_ms": 30.2, "predicted_n": 300}},
        told(2006, 300, 1991),
    ),
    "sglang": (
        {**OPENAI, "prompt_tokens_details": {"cached_tokens": 2000}, "reasoning_tokens": 0}, {}, told(2006, 300, 2000)
    ),
    "vllm_without_its_flag": ({**OPENAI, "prompt_tokens_details": None}, {}, told(2006, 300)),
    "more_than_the_prompt": ({**OPENAI, "prompt_tokens_details": {"cached_tokens": 2007}}, {}, told(2006, 300)),
    "no_numbers": ({**OPENAI, "prompt_tokens_details": {"cached_tokens": "many"}}, {}, told(2006, 300)),
    "none": (None, {}, Usage()),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_OPENAIS_FORM)
def test_a_reply_in_openais_form_tells_what_the_server_had_in_its_cache(name: str) -> None:
    usage, beside, expected = IN_OPENAIS_FORM[name]
    model = with_whole_replies(ChatOpenAI)(model="m", api_key="none")
    result = model._create_chat_result(body(usage, **beside))
    message = result.generations[0].message
    message.response_metadata = {**(result.llm_output or {}), **message.response_metadata, "finish_reason": "stop"}
    assert read_message(message, "langchain_openai.ChatOpenAI").usage == expected
    assert of_completion(body(usage, **beside)).usage == expected
    if usage is not None:  # a streamed reply has the usage in its last part, and as metadata alone
        part = {**body(usage, **beside), "object": "chat.completion.chunk", "choices": []}
        chunk = model._convert_chunk_to_generation_chunk(part, AIMessageChunk, None)
        assert of_message(chunk.message) == expected


ANTHROPIC = {
    "input_tokens": 50, "cache_creation_input_tokens": 248, "cache_read_input_tokens": 1800, "output_tokens": 503,
    "cache_creation": {"ephemeral_5m_input_tokens": 248, "ephemeral_1h_input_tokens": 0},
}  # fmt: skip


def test_anthropics_input_tokens_leave_out_those_of_its_cache() -> None:
    assert of_anthropic(ANTHROPIC) == told(2098, 503, 1800, 248)
    assert of_anthropic({"input_tokens": 50, "output_tokens": 3}) == told(50, 3)
    assert of_anthropic({"input_tokens": "50", "output_tokens": 3}) == of_anthropic(None) == Usage()


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        # Anthropic: what is kept for five minutes and for an hour stands under names of its own, 0 under the other.
        ({"cache_read": 1800, "cache_creation": 0, "ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 48},
         told(2098, 503, 1800, 248)),
        ({"cache_read": 0, "cache_creation": 2048}, told(2098, 503, 0, 2048)),
        ({"cache_read": 1536}, told(2098, 503, 1536)),  # Gemini, from cachedContentTokenCount
        ({"priority_cache_read": 1024, "priority": 1074}, told(2098, 503, 1024)),  # OpenAI's service tiers
        ({}, told(2098, 503)),
        (None, told(2098, 503)),
    ],
)  # fmt: skip
def test_langchains_metadata_tell_it_too(details: Any, expected: Usage) -> None:
    metadata: Any = {"input_tokens": 2098, "output_tokens": 503, "total_tokens": 2601}
    metadata |= {} if details is None else {"input_token_details": details}
    assert of_message(AIMessage("Paris", usage_metadata=metadata)) == expected
