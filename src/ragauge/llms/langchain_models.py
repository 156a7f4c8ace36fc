"""LangChain's clients of OpenAI and Ollama with what they leave out of a reply, and the token limit by its right name.

Kept beside a reply's text: thoughts in fields of their own, an error of the choice, and the text and the usage of a
reply that the client gives up as cut.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from ragauge.llms.replies import THOUGHTS, status_of, token_counts, told_in

_LIMIT, _LIMIT_OF_OPENAI = "max_tokens", "max_completion_tokens"
_REFUSES_FIELDS = (400, 422)
_OPENAI = "api.openai.com"


@functools.cache
def with_whole_replies(cls: type) -> type:
    """The class of a LangChain chat model, with a client of OpenAI or Ollama extended as above; others as they are."""
    mixin = _OpenAI if hasattr(cls, "_create_chat_result") else _Ollama if cls.__name__ == "ChatOllama" else None
    return cls if mixin is None else type(cls.__name__, (mixin, cls), {"__module__": cls.__module__})


class _OpenAI:
    """A client of OpenAI's protocol.

    Servers that are not OpenAI's are sent the limit as `max_tokens`, which all of them know, and OpenAI's as LangChain
    names it. One that refuses a request because of this name is sent the other name from then on.
    """

    def limit_name(self) -> str:
        """The name by which this server is sent the limit of completion tokens."""
        known: str | None = self.__dict__.get("_limit_name")
        if known is not None:
            return known
        host = urlsplit(str(getattr(getattr(self, "root_async_client", None), "base_url", ""))).hostname
        is_theirs = host in (None, _OPENAI) or "azure" in type(self).__name__.lower()
        return _LIMIT_OF_OPENAI if is_theirs else _LIMIT

    def use_limit_name(self, name: str) -> None:
        """Sends the limit by this name from now on."""
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
        told = response
        if isinstance(response, dict):
            # LangChain adds up what the server says, and fails where it is no number.
            told = {**response, "usage": _believed(response.get("usage"))}
        result = super()._create_chat_result(told, generation_info)  # type: ignore[misc]
        for choice, generation in zip(told["choices"], result.generations, strict=False):
            beside = generation.message.additional_kwargs
            beside |= {name: choice["message"][name] for name in (*THOUGHTS, "refusal") if choice["message"].get(name)}
            if choice.get("error"):
                generation.generation_info["finish_reason"] = f"error: {_message_of(choice['error'])}"
        return result


class _Ollama:
    """Ollama's client."""

    async def _acreate_chat_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        thoughts = ""
        async for part in super()._acreate_chat_stream(*args, **kwargs):  # type: ignore[misc]
            if not isinstance(part, str):
                thoughts += (part.get("message") or {}).get("thinking") or ""
                if part.get("done") and thoughts:
                    part = {**dict(part), "thinking": thoughts}
            yield part


def _believed(usage: Any) -> dict[str, int] | None:
    """The counts of tokens in a usage; None where it holds none, or what is no number of tokens."""
    if not isinstance(usage, Mapping):
        return None
    names = ("prompt_tokens", "completion_tokens")
    counts = token_counts(*map(usage.get, names))
    return {name: n for name, n in zip(names, counts, strict=True) if n is not None} or None


def _message_of(error: Any) -> str:
    return str(error.get("message") or error) if isinstance(error, Mapping) else str(error)
