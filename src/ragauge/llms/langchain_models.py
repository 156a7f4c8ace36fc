"""Extends LangChain's clients of OpenAI and Ollama: whole replies, and the right name of the token limit.

It keeps thoughts in fields of their own, an error of the choice, and text and usage of a reply that was cut.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from ragauge.llms.replies import THOUGHTS, status_of, token_counts, told_in
from ragauge.texts.surrogates import without_surrogates

_LIMIT, _LIMIT_OF_OPENAI = "max_tokens", "max_completion_tokens"
_REFUSES_FIELDS = (400, 422)
_OPENAI = "api.openai.com"


@functools.cache
def with_whole_replies(cls: type) -> type:
    """A LangChain chat model class; clients of OpenAI and Ollama are extended as above."""
    mixin = _OpenAI if hasattr(cls, "_create_chat_result") else _Ollama if cls.__name__ == "ChatOllama" else None
    return cls if mixin is None else type(cls.__name__, (mixin, cls), {"__module__": cls.__module__})


class _OpenAI:
    """A client of OpenAI's protocol.

    Servers that are not OpenAI's are sent the limit as `max_tokens`, which all of them know, and OpenAI's as LangChain
    names it. One that refuses a request because of this name is sent the other name from then on.
    """

    def limit_name(self) -> str:
        """This server's parameter name for the limit of completion tokens."""
        known: str | None = self.__dict__.get("_limit_name")
        if known is not None:
            return known
        host = urlsplit(str(getattr(getattr(self, "root_async_client", None), "base_url", ""))).hostname
        is_theirs = host in (None, _OPENAI) or "azure" in type(self).__name__.lower()
        return _LIMIT_OF_OPENAI if is_theirs else _LIMIT

    def use_limit_name(self, name: str) -> None:
        """Sends the limit under this name from now on."""
        self.__dict__["_limit_name"] = name

    def _get_request_payload(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(*args, **kwargs)  # type: ignore[misc]
        for name in (_LIMIT, _LIMIT_OF_OPENAI):
            if name in payload:
                payload[self.limit_name()] = payload.pop(name)
        return payload

    async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
        used = self.limit_name()
        try:
            return await self._reply(*args, **kwargs)
        except Exception as error:
            if status_of(error) not in _REFUSES_FIELDS or used not in told_in(error):
                raise
            self.use_limit_name(_LIMIT if used == _LIMIT_OF_OPENAI else _LIMIT_OF_OPENAI)
            try:
                return await self._reply(*args, **kwargs)
            except Exception as second:
                if status_of(second) not in _REFUSES_FIELDS:
                    raise
                self.use_limit_name(used)
            raise  # what the server said of the request as it was meant

    async def _reply(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return await super()._agenerate(*args, **kwargs)  # type: ignore[misc]
        except Exception as error:
            completion = getattr(error, "completion", None)  # of a reply to a schema that was cut or filtered
            if completion is None:
                raise
            return self._create_chat_result(completion)

    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> Any:
        if hasattr(response, "model_dump"):
            response = response.model_dump(exclude={"choices": {"__all__": {"message": {"parsed"}}}}, warnings=False)
        if isinstance(response, dict):
            # LangChain adds up what the server says, and fails where it is no number.
            response = {**response, "usage": _believed(response.get("usage"))}
        for choice in _choices(response):
            choice["message"]["content"] = _content(choice["message"].get("content"))
        result = super()._create_chat_result(response, generation_info)  # type: ignore[misc]
        for choice, generation in zip(_choices(response), result.generations, strict=False):
            generation.message.additional_kwargs |= _beside(choice["message"])
            if choice.get("error"):
                generation.generation_info["finish_reason"] = f"error: {_message_of(choice['error'])}"
        return result

    def _convert_chunk_to_generation_chunk(self, chunk: Any, *args: Any, **kwargs: Any) -> Any:
        """A part of a streamed reply."""
        if isinstance(chunk, dict):
            chunk = {**chunk, "usage": _believed(chunk.get("usage"))}
        deltas = [choice["delta"] for choice in _choices(chunk, "delta")]
        for delta in deltas:
            delta["content"] = _content(delta.get("content"))
        found = super()._convert_chunk_to_generation_chunk(chunk, *args, **kwargs)  # type: ignore[misc]
        if found is not None and deltas:
            found.message.additional_kwargs |= _beside(deltas[0])
        return found


class _Ollama:
    """Ollama's client."""

    async def _acreate_chat_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        thoughts, half = "", ""
        async for part in super()._acreate_chat_stream(*args, **kwargs):  # type: ignore[misc]
            if isinstance(part, str):
                yield part
                continue
            message = dict(part.get("message") or {})
            thoughts += message.get("thinking") or ""
            text, done = half + (message.get("content") or ""), part.get("done")
            # Half of a surrogate pair at the end may have its other half in the next part.
            half = text[-1] if text and not done and "\ud800" <= text[-1] <= "\udbff" else ""
            message["content"] = without_surrogates(text.removesuffix(half))
            yield {**dict(part), "message": message, **({"thinking": thoughts} if done and thoughts else {})}


def _choices(response: Any, holds: str = "message") -> list[dict[str, Any]]:
    """The choices with a message in a reply, or with a `delta` in a part of one."""
    choices = response.get("choices") if isinstance(response, dict) else None
    listed = choices if isinstance(choices, list) else []
    return [choice for choice in listed if isinstance(choice, dict) and isinstance(choice.get(holds), dict)]


def _content(content: Any) -> Any:
    """A message's content for LangChain: a text valid in UTF-8, a list of parts, or None."""
    if isinstance(content, Mapping):
        content = content.get("text")
    if isinstance(content, (int, float)) and not isinstance(content, bool):
        content = str(content)
    return without_surrogates(content) if isinstance(content, str) else content


def _beside(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message's thoughts and refusal beside its text."""
    return {name: message[name] for name in (*THOUGHTS, "refusal") if message.get(name)}


def _believed(usage: Any) -> dict[str, int] | None:
    """The token counts in a usage; None if absent or invalid."""
    if not isinstance(usage, Mapping):
        return None
    names = ("prompt_tokens", "completion_tokens")
    counts = token_counts(*map(usage.get, names))
    return {name: n for name, n in zip(names, counts, strict=True) if n is not None} or None


def _message_of(error: Any) -> str:
    return str(error.get("message") or error) if isinstance(error, Mapping) else str(error)
