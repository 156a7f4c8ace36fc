"""Where calls go: the LangChain model of a config with its key, one per process, and its rate."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragauge.contract.errors import ConfigError
from ragauge.contract.loading import locate
from ragauge.contract.redact import redact
from ragauge.llms.guarded import guard

if TYPE_CHECKING:
    from ragauge.llms.settings import ChatSettings


_LOCAL_KEY = "EMPTY"  # what servers that check no key are sent; the clients refuse an empty one
_NOT_AWAY = {"follow_redirects": False}


@dataclass
class _Gate:
    """When the next call to an endpoint may start: the rate limit and the server's own requests to wait."""

    spacing: float  # seconds between calls
    next_slot: float = 0.0
    not_before: float = 0.0

    async def enter(self) -> None:
        now = time.monotonic()
        slot = max(now, self.next_slot)
        self.next_slot = slot + self.spacing
        await asyncio.sleep(slot - now)
        while (wait := self.not_before - time.monotonic()) > 0:
            await asyncio.sleep(wait)

    def pause(self, seconds: float) -> None:
        self.not_before = max(self.not_before, time.monotonic() + seconds)


def _api_key(llm: ChatSettings) -> str | None:
    """The key to send; None leaves it to the client."""
    if llm.api_key_env is None:
        return None
    key = os.environ.get(llm.api_key_env)
    # A server of one's own may check no key; left to the client it would be sent another service's.
    if not key and not llm.chat.get("base_url"):
        raise ConfigError(f"api_key_env: the environment variable {llm.api_key_env} is not set")
    return key or _LOCAL_KEY


def key_to_send(llm: ChatSettings) -> str | None:
    """The key that calls are sent with, the client's own choice included; None where there is none."""
    try:
        key = _api_key(llm)
    except ConfigError:
        return None
    theirs = "OPENAI_API_KEY" if "openai" in llm.chat["_target_"] else "OLLAMA_API_KEY"
    return key or os.environ.get(theirs)


@functools.lru_cache(maxsize=16)
def _endpoint(chat: str, api_key: str | None, requests_per_minute: float | None, pid: int) -> tuple[Any, _Gate]:
    """The LangChain model and its gate, one per process and config."""
    return build_chat_model(json.loads(chat), api_key), _Gate(60 / (requests_per_minute or float("inf")))


def build_chat_model(chat: Mapping[str, Any], api_key: str | None = None) -> Any:
    """The LangChain chat model that `_target_` and its arguments name; ConfigError if there is none such."""
    target = chat["_target_"]
    arguments = {key: value for key, value in chat.items() if key != "_target_"}
    class_name = target.rpartition(".")[2]
    cls = locate("chat", target)
    if not hasattr(cls, "ainvoke"):
        raise ConfigError(f"chat._target_: {target} is not a LangChain chat model")
    known = {
        name for key, info in getattr(cls, "model_fields", {}).items() for name in (key, info.alias) if name is not None
    }
    unknown = sorted(set(arguments) - known)
    if unknown and known:
        raise ConfigError(f"chat.{unknown[0]}: {class_name} has no such argument; allowed: {', '.join(sorted(known))}")
    if "max_retries" in known:
        arguments.setdefault("max_retries", 0)  # retries are counted, paced and limited here
    if "sync_client_kwargs" in known:  # Ollama's may ask at once whether the model is there
        arguments["sync_client_kwargs"] = {**(arguments.get("sync_client_kwargs") or {}), **_NOT_AWAY}
    if api_key is not None:
        arguments["api_key"] = api_key
    try:
        model = cls(**arguments)
    except Exception as error:
        raise ConfigError(f"chat: {class_name} cannot be made: {redact(str(error))}") from None
    return guard(model)
