"""Extends LangChain's clients of OpenAI and Ollama: whole replies, and the right name of the token limit.

It keeps thoughts in fields of their own, an error of the choice, and text and usage of a reply that was cut.
"""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from ragauge.llms.failures import status_of, told_in
from ragauge.llms.replies import THOUGHTS, message_of, of_completion
from ragauge.llms.usage import as_openai, of_openai
from ragauge.texts.surrogates import without_surrogates

_LIMIT, _LIMIT_OF_OPENAI = "max_tokens", "max_completion_tokens"
_REFUSES_FIELDS = (400, 422)
_OPENAI = "api.openai.com"
# Options of a request of openai's client, and the arguments of its methods that set them.
_BESIDE_BODY = {"headers": "extra_headers", "params": "extra_query", "extra_json": "extra_body", "timeout": "timeout"}


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

    async def ainvoke(self, messages: Any, config: Any = None, **options: Any) -> Any:
        """A reply to chat completions as `Received`; a message of LangChain where it is streamed or of another API."""
        used = self.limit_name()
        try:
            return await self._reply(messages, config, options)
        except Exception as error:
            if status_of(error) not in _REFUSES_FIELDS or used not in told_in(error):
                raise
            self.use_limit_name(_LIMIT if used == _LIMIT_OF_OPENAI else _LIMIT_OF_OPENAI)
            try:
                return await self._reply(messages, config, options)
            except Exception as second:
                if status_of(second) not in _REFUSES_FIELDS:
                    raise
                self.use_limit_name(used)
            raise  # what the server said of the request as it was meant

    async def _reply(self, messages: Any, config: Any, options: Mapping[str, Any]) -> Any:
        client: Any = getattr(self, "root_async_client", None)
        payload = {} if client is None else self._get_request_payload(messages, **options)
        if payload.pop("stream", False) or "messages" not in payload:
            return await super().ainvoke(messages, config, **options)  # type: ignore[misc]
        # LangChain, and the client's own methods, check and convert what they send and get piece by piece, which takes
        # longer than sending it.
        beside = {name: payload.pop(of) for name, of in _BESIDE_BODY.items() if of in payload}
        if beside or not _sends_alike(client):
            body = await client.post("/chat/completions", cast_to=object, body=payload, options=beside)
        else:
            body = await _posted(client, payload)
        return of_completion(json.loads(body) if isinstance(body, (str, bytes)) else body)

    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> Any:
        if hasattr(response, "model_dump"):
            response = response.model_dump(exclude={"choices": {"__all__": {"message": {"parsed"}}}}, warnings=False)
        if isinstance(response, dict):
            # LangChain adds up what the server says, and fails where it is no number.
            response = {**response, "usage": as_openai(of_openai(response))}
        for choice in _choices(response):
            choice["message"]["content"] = _content(choice["message"].get("content"))
        result = super()._create_chat_result(response, generation_info)  # type: ignore[misc]
        for choice, generation in zip(_choices(response), result.generations, strict=False):
            generation.message.additional_kwargs |= _beside(choice["message"])
            if choice.get("error"):
                generation.generation_info["finish_reason"] = f"error: {message_of(choice['error'])}"
        return result

    def _convert_chunk_to_generation_chunk(self, chunk: Any, *args: Any, **kwargs: Any) -> Any:
        """A part of a streamed reply."""
        if isinstance(chunk, dict):
            chunk = {**chunk, "usage": as_openai(of_openai(chunk))}
        deltas = [choice["delta"] for choice in _choices(chunk, "delta")]
        for delta in deltas:
            delta["content"] = _content(delta.get("content"))
        found = super()._convert_chunk_to_generation_chunk(chunk, *args, **kwargs)  # type: ignore[misc]
        if found is not None and deltas:
            found.message.additional_kwargs |= _beside(deltas[0])
        return found


class _Ollama:
    """Ollama's client. A call may have a token limit of its own, `num_predict`."""

    def _chat_params(self, *args: Any, num_predict: int | None = None, **kwargs: Any) -> dict[str, Any]:
        params: dict[str, Any] = super()._chat_params(*args, **kwargs)  # type: ignore[misc]
        own = {} if num_predict is None else {"num_predict": num_predict}
        return {**params, "options": {**params["options"], **own}}

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


def _sends_alike(client: Any) -> bool:
    """Whether the client of openai sends each request to one address with the same headers.

    Azure's makes the address from the request, and a key that is a function is asked for before each.
    """
    return type(client).__name__ == "AsyncOpenAI" and isinstance(client.api_key, str) and not client.default_query


async def _posted(client: Any, payload: Mapping[str, Any]) -> bytes:
    """The body of the reply to a request that the client of openai would send; its error for a refusal."""
    headers = {**client.auth_headers, **client.default_headers}
    sent = client._client.build_request(
        "POST",
        f"{client.base_url}chat/completions",
        headers={name: value for name, value in headers.items() if isinstance(value, str)},
        content=json.dumps(payload, ensure_ascii=False, allow_nan=False).encode(),
        timeout=client.timeout,
    )
    response = await client._client.send(sent)
    if response.status_code >= 400:
        raise client._make_status_error_from_response(response)
    body: bytes = response.content
    return body


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
