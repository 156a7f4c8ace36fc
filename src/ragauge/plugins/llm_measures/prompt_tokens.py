"""Log probabilities of a prompt's tokens by a model: OpenAI's completions with echo, which vLLM servers offer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple

from ragauge.contract.usage import Usage
from ragauge.llms.clients import hooks
from ragauge.llms.json_replies import json_of
from ragauge.llms.replies import Received
from ragauge.llms.usage import token_counts

_NOT_TOLD = "the server gives no log probabilities of a prompt: POST /completions with echo and logprobs"


class Told(NamedTuple):
    """The summed log probability (nats) of a prompt's tokens after the first, and the number of these tokens."""

    logprob: float
    tokens: int


class PromptTokens:
    """The client that `ragauge.llms.calls` asks: a reply is the JSON of `Told` for the prompt.

    model: as the server calls it. base_url: the address that /completions stands under. api_key: sent as a bearer
    token.
    """

    def __init__(self, model: str, base_url: str, api_key: str | None = None) -> None:
        self._model, self._url = model, f"{base_url.rstrip('/')}/completions"
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._client: Any = None

    async def ainvoke(self, messages: Sequence[tuple[str, str]]) -> Received:
        """The server's log probabilities for the last message. Raises the errors of httpx, also for a refusal."""
        import httpx

        if self._client is None:  # belongs to the event loop that it is first used on
            self._client = httpx.AsyncClient(timeout=None, event_hooks=hooks())
        # Servers of vLLM write at least one token.
        asked = {"model": self._model, "prompt": messages[-1][1], "echo": True, "logprobs": 1, "max_tokens": 1}
        answer = await self._client.post(self._url, json={**asked, "temperature": 0}, headers=self._headers)
        answer.raise_for_status()
        return _received(answer.content)


def _received(content: bytes) -> Received:
    try:
        reply = json.loads(content)
        usage = reply.get("usage") or {}
        n_prompt, n_written = usage["prompt_tokens"], usage.get("completion_tokens")
        told = reply["choices"][0]["logprobs"]["token_logprobs"][1:n_prompt]
        whole = len(told) == n_prompt - 1 > 0 and all(isfinite(value) and value <= 0 for value in told)
    except (ValueError, LookupError, TypeError, AttributeError):
        return Received("", "", Usage(), _NOT_TOLD)
    counts = token_counts(n_prompt, n_written)
    if not whole:
        return Received("", "", Usage(*counts), _NOT_TOLD)
    return Received(json.dumps(Told(sum(told), len(told))._asdict()), "stop", Usage(*counts), None)


def read_told(reply: str) -> Told | None:
    """Parses `Told` from JSON; None for anything else."""
    try:
        found = Told(**json_of(reply))
        return Told(float(found.logprob), int(found.tokens))
    except (TypeError, ValueError):
        return None
