"""The usage that comes with a reply, in the words of each provider."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ragauge.contract.usage import Usage

_MOST_TOKENS = 10**9  # above this a number is no count of one call's tokens
# What the server's cache gave and took, as OpenAI and most others say it; DeepSeek; Anthropic.
_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_WRITTEN = ("cache_write_tokens", "cache_creation_input_tokens")


def token_counts(prompt: Any, completion: Any) -> tuple[int | None, int | None]:
    """Reported token counts, rounded up; None for an absent one.

    Where one of them is no number of tokens, neither is believed.
    """
    found = list[int | None]()
    for count in (prompt, completion):
        number = isinstance(count, (int, float)) and not isinstance(count, bool)
        if count is not None and not (number and 0 <= count <= _MOST_TOKENS):  # NaN is not within, either
            return None, None
        found.append(None if count is None else math.ceil(count))
    return found[0], found[1]


def with_cache(usage: Usage, cached: Any, written: Any) -> Usage:
    """The usage with counts of the server's cache, which are part of the prompt's; without those that cannot be."""
    cached, written = token_counts(cached, written)
    fits = (cached or 0) + (written or 0) <= (usage.prompt_tokens or 0)
    return replace(usage, cached_tokens=cached, written_tokens=written) if fits else usage


def of_openai(response: Mapping[str, Any]) -> Usage:
    """The usage of a response in OpenAI's form, by any of the servers that speak it; without what is no count."""
    told = _mapping(response.get("usage"))
    usage = Usage(*token_counts(told.get("prompt_tokens"), told.get("completion_tokens")))
    known = {
        "cached_tokens": _mapping(response.get("timings")).get("cache_n"),  # llama.cpp
        **told,
        **_mapping(told.get("prompt_tokens_details")),
    }
    of_cache = (next((known[n] for n in names if known.get(n) is not None), None) for names in (_CACHED, _WRITTEN))
    return with_cache(usage, *of_cache)


def as_openai(usage: Usage) -> dict[str, Any] | None:
    """The counts in OpenAI's form; None if nothing is known."""
    details = {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.written_tokens}
    counts = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
    told: dict[str, Any] = {name: n for name, n in counts.items() if n is not None}
    if of_cache := {name: n for name, n in details.items() if n is not None}:
        told["prompt_tokens_details"] = of_cache
    return told or None


def of_anthropic(usage: Any) -> Usage:
    """The usage of a message in Anthropic's form, whose input tokens leave out those that were cached or written."""
    told = _mapping(usage)
    prompt, completion = token_counts(told.get("input_tokens"), told.get("output_tokens"))
    cached, written = token_counts(told.get(_CACHED[-1]), told.get(_WRITTEN[-1]))
    if prompt is not None:
        prompt += (cached or 0) + (written or 0)
    return with_cache(Usage(prompt, completion), cached, written)


def of_message(message: Any) -> Usage:
    """The usage of a message of LangChain."""
    about = message.response_metadata or {}
    # The clients make 0 of a count that is missing, so that the server's own words come first.
    told = _mapping(about.get("token_usage"))
    if "prompt_tokens" in told or "completion_tokens" in told:
        return of_openai({"usage": told})
    if "prompt_eval_count" in about or "eval_count" in about:  # Ollama
        return Usage(*token_counts(about.get("prompt_eval_count"), about.get("eval_count")))
    told = message.usage_metadata or {}
    usage = Usage(*token_counts(told.get("input_tokens"), told.get("output_tokens")))
    details = _mapping(told.get("input_token_details"))
    # A service tier stands before the name, and Anthropic's writes are told by how long they are kept.
    cached = [n for name, n in details.items() if name.endswith("cache_read")]
    written = [n for name, n in details.items() if name.endswith("cache_creation") or name.startswith("ephemeral_")]
    return with_cache(usage, *(sum(n or 0 for n in counts) if counts else None for counts in (cached, written)))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
