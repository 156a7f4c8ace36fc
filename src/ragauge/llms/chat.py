"""Chat models that can be asked: any of LangChain's, named by its class; nothing paid twice, cost known.

Every finished call is in the ledger before its reply is used; what fails after its retries is a reply
without text and with the error.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import runtime
from ragauge.contract.protocols import Reply
from ragauge.contract.redact import refuse_secrets
from ragauge.llms.calls import CUT, Batch, as_cached, as_reply, run_batch
from ragauge.llms.ledger import Ledger, open_ledger
from ragauge.store import canonical_json

if TYPE_CHECKING:
    from ragauge.store import Store

__all__ = ["CONNECTION_KEYS", "CUT", "ChatLLM"]

# Keys of a chat model's config that say how it is reached, not what it answers.
CONNECTION_KEYS = frozenset(
    {
        *("base_url", "endpoint", "azure_endpoint", "organization", "default_headers", "default_query"),
        *("timeout", "request_timeout", "stream_chunk_timeout", "max_retries", "service_tier"),
        *("client_kwargs", "async_client_kwargs", "sync_client_kwargs", "http_socket_options"),
        *("streaming", "stream_usage", "disable_streaming", "validate_model_on_init"),
        *("num_thread", "num_gpu", "keep_alive", "verbose", "name", "tags", "metadata"),
    }
)
_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "num_predict", "max_output_tokens", "max_new_tokens")
_OUTPUT_BOUND = 4096  # completion tokens assumed at most where the config sets no limit
_CHARACTERS_PER_TOKEN = 4  # of English text, for estimates before a call
_PROCESS = f"process-{uuid.uuid4().hex}"


@dataclass(frozen=True)
class ChatLLM:
    """A chat model that can be asked.

    chat: `_target_` (a LangChain chat model's class) and its arguments. All but CONNECTION_KEYS are part of
        the model's identity.
    concurrency: calls in flight at most.   requests_per_minute: calls started at most; null for no limit.
    timeout: seconds per attempt.   retries: attempts after the first.
    backoff: seconds before the first retry at most, doubled with every further one.
    max_wait: seconds of one pause at most; a server that asks for more is not asked again.
    give_up_after: requests in a row that fail on every attempt before the rest is not tried (MissingError).
    api_key_env: the environment variable that holds the key; null leaves it to the client.
    price: US dollars per million tokens, {prompt, completion}; null where calls cost nothing.
    max_cost_usd: no call starts that could take what `budget` has spent above this (GateError).
    budget: the name under which cost is summed in the ledger, a sweep's id; by default this process.
    expected_tokens: completion tokens per call, for estimates.
    ledger: file or postgresql:// URL; null for RAGAUGE_LEDGER, and without it ledger.db in the store.
    """

    chat: Mapping[str, Any]
    concurrency: int = runtime(4)
    requests_per_minute: float | None = runtime(None)
    timeout: float = runtime(120.0)
    retries: int = runtime(5)
    backoff: float = runtime(1.0)
    max_wait: float = runtime(300.0)
    give_up_after: int = runtime(25)
    api_key_env: str | None = runtime(None)
    price: Mapping[str, float] | None = runtime(None)
    max_cost_usd: float | None = runtime(None)
    budget: str | None = runtime(None)
    expected_tokens: int = runtime(60)
    ledger: str | None = runtime(None)

    def __post_init__(self) -> None:
        if not isinstance(self.chat, Mapping) or not isinstance(self.chat.get("_target_"), str):
            raise ConfigError("chat: needs _target_, the dotted name of a LangChain chat model's class")
        object.__setattr__(self, "chat", json.loads(_as_json(self.chat)))
        refuse_secrets(self.chat, "chat")
        for name, least in (("concurrency", 1), ("retries", 0), ("give_up_after", 1), ("expected_tokens", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigError(f"{name}: {value!r} is not an integer of at least {least}")
        for name in ("timeout", "max_wait", "requests_per_minute"):
            value = getattr(self, name)
            if not (value is None and name == "requests_per_minute") and not _is_number(value, above=0):
                raise ConfigError(f"{name}: {value!r} is not a number above 0")
        if not _is_number(self.backoff, least=0):
            raise ConfigError(f"backoff: {self.backoff!r} is not a number of at least 0")
        if self.price is not None and (
            set(self.price) != {"prompt", "completion"}
            or not all(_is_number(value, least=0) for value in self.price.values())
        ):
            raise ConfigError(
                f"price: {self.price!r} is not {{prompt: ..., completion: ...}} in USD per million tokens"
            )
        if self.max_cost_usd is not None and not _is_number(self.max_cost_usd, least=0):
            raise ConfigError(f"max_cost_usd: {self.max_cost_usd!r} is not a number of at least 0")
        if self.max_cost_usd is not None and self.price is None:
            raise ConfigError("max_cost_usd: needs price: {prompt: ..., completion: ...}, which is null")

    @property
    def budget_name(self) -> str:
        """The name under which the ledger sums what is spent."""
        return self.budget or _PROCESS

    @property
    def model_name(self) -> str:
        """The model's name as the server knows it."""
        return str(self.chat.get("model", self.chat.get("model_name", "?")))

    def chat_identity(self) -> dict[str, Any]:
        """What can change a reply, as JSON values: the model's class and arguments but connection keys."""
        return {key: value for key, value in self.chat.items() if key not in CONNECTION_KEYS}

    def identity(self) -> dict[str, Any]:
        """What can change the part's output; here the model alone."""
        cls = type(self)
        return {"class": f"{cls.__module__}.{cls.__qualname__}", "version": 1, "chat": self.chat_identity()}

    def ask(
        self,
        prompts: Sequence[str],
        store: Store,
        what: str,
        *,
        salt: str = "",
        options: Mapping[str, Any] | None = None,
    ) -> list[Reply]:
        """One reply per prompt, in order; finished calls are kept and never paid twice.

        `options` go with the request (a JSON schema, say), `salt` tells a deliberate repetition from the
        same request; both are part of what the ledger knows a call by. A reply cut at the token limit has its
        text and the error CUT. A call that fails on every attempt gives text None and the error. Of equal
        prompts the first is paid, the others are marked as cached; a cached reply has the tokens of its call
        and costs 0. Raises ConfigError where every call would fail (key, model, address), GateError before
        `max_cost_usd` is exceeded, MissingError after `give_up_after` failures in a row.
        """
        requests = [self._request(prompt, salt, options) for prompt in prompts]
        keys = [_digest(request) for request in requests]
        first = {key: i for i, key in reversed(list(enumerate(keys)))}
        ledger = self._ledger(store)
        known = ledger.find(list(first))
        # The empty reply of an earlier run is no answer: its key is not found, it is asked again.
        todo = [(key, i) for key, i in first.items() if key not in known]
        todo.sort(key=lambda pair: pair[1])
        fresh: dict[str, Reply] = {}
        if todo:
            batch = Batch(self, ledger, options or {}, what)
            jobs = [(key, requests[i], prompts[i]) for key, i in todo]
            fresh = run_batch(batch.run(jobs))
        cached = {key: as_cached(as_reply(call)) for key, call in known.items()}
        return [
            cached[key]
            if key in cached
            else (fresh[key] if first[key] == i or fresh[key].text is None else as_cached(fresh[key]))
            for i, key in enumerate(keys)
        ]

    def estimate(
        self,
        prompts: Sequence[str],
        store: Store,
        *,
        options: Mapping[str, Any] | None = None,
        expected_tokens: int | None = None,
        seen: set[str] | None = None,
    ) -> dict[str, float]:
        """What asking would need: {calls, calls_cached, prompt_tokens, completion_tokens, cost_usd}.

        Calls are the distinct requests that are not in the ledger. `seen` gathers requests over several
        estimates: what is in it is not counted again. Tokens are estimates, of 4 characters each.
        """
        seen = set() if seen is None else seen
        lengths = {_digest(self._request(prompt, "", options)): len(prompt) for prompt in prompts}
        known = self._ledger(store).find(list(lengths))
        todo = [key for key in lengths if key not in known and key not in seen]
        seen.update(lengths)
        prompt_tokens = sum(-(-lengths[key] // _CHARACTERS_PER_TOKEN) for key in todo)
        completion_tokens = len(todo) * (self.expected_tokens if expected_tokens is None else expected_tokens)
        return {
            "calls": len(todo),
            "calls_cached": len(prompts) - len(todo),
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "cost_usd": self.cost(prompt_tokens, completion_tokens),
        }

    def spent(self, store: Store) -> float:
        """US dollars spent so far under the budget's name."""
        return self._ledger(store).spent(self.budget_name)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars of so many tokens; 0 where no price is set."""
        if self.price is None:
            return 0.0
        return (prompt_tokens * self.price["prompt"] + completion_tokens * self.price["completion"]) / 1e6

    def cost_bound(self, prompt: str) -> float:
        """The most that one call can cost: a byte a prompt token, and the limit of completion tokens."""
        limit = max((self.chat.get(key) or 0 for key in _OUTPUT_LIMITS), default=0)
        limit = limit if limit > 0 else _OUTPUT_BOUND
        return self.cost(len(prompt.encode("utf-8", "replace")) + 64, limit)

    def _request(self, prompt: str, salt: str, options: Mapping[str, Any] | None) -> str:
        request: dict[str, Any] = {"chat": self.chat_identity(), "messages": [["human", prompt]]}
        if options:
            request["options"] = options
        if salt:
            request["salt"] = salt
        return canonical_json(request)

    def _ledger(self, store: Store) -> Ledger:
        return open_ledger(self.ledger or os.environ.get("RAGAUGE_LEDGER") or store.root / "ledger.db")


def _as_json(value: Any) -> str:
    try:
        return canonical_json(_plain(value))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"chat: only plain values are allowed ({error})") from None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def _is_number(value: Any, least: float = float("-inf"), above: float = float("-inf")) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and value >= least and value > above and value < float("inf")


def _digest(request: str) -> str:
    return hashlib.sha256(request.encode("utf-8", "surrogatepass")).hexdigest()
