"""Settings of a chat model: connection and highest cost of a call; and the client made from them."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from ragauge.contract.checks import is_number, require_choice, require_flag, require_number, shown
from ragauge.contract.errors import ConfigError, RagaugeError
from ragauge.contract.extras import EXTRA_OF, require_extra
from ragauge.contract.identity import later, runtime
from ragauge.contract.loading import loaded, locate, points_of
from ragauge.contract.redact import redact, remember, secret_in
from ragauge.contract.usage import Usage
from ragauge.llms.addresses import is_own
from ragauge.llms.chat_use import PROCESS
from ragauge.llms.clients import guard
from ragauge.llms.langchain_models import with_whole_replies
from ragauge.llms.pace import FIRST, FOUND, Pace, most_in_flight
from ragauge.llms.prices import Price
from ragauge.llms.replies import Received
from ragauge.llms.served import models_at
from ragauge.llms.structured import NONE, WAYS
from ragauge.store import canonical_json
from ragauge.texts.languages import AUTO, CODES, named_language

# Keys of a chat model's config that say how it is reached, not what it answers.
CONNECTION_KEYS = frozenset(
    {
        *("base_url", "endpoint", "azure_endpoint", "organization", "default_headers", "default_query"),
        *("timeout", "request_timeout", "stream_chunk_timeout", "max_retries", "service_tier"),
        *("client_kwargs", "async_client_kwargs", "sync_client_kwargs", "http_socket_options"),
        *("streaming", "stream_usage", "disable_streaming", "validate_model_on_init"),
        *("num_thread", "num_gpu", "keep_alive", "verbose", "name", "tags", "metadata", "server"),
    }
)
NOW, BATCH = "now", "batch"  # values of `submit`
_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "num_predict", "max_output_tokens", "max_new_tokens")
_OUTPUT_BOUND = 4096  # completion tokens assumed at most where the config sets no limit
# The largest values that make sense; above them sums and waits would leave what a float can hold.
_MOST_SECONDS, _MOST_USD, _MOST_FACTOR, _MOST_TOKENS = 10**7, 10**9, 1_000, 10**8
_COUNTS = (
    ("concurrency", 1, 10_000),
    ("retries", 0, 1_000),
    ("give_up_after", 1, 10**9),
    ("expected_tokens", 0, _MOST_TOKENS),
)
_PROMPT_MARGIN = 64  # prompt tokens beside the prompt's own: the chat template's


def submitter(name: str) -> Any:
    """The module that submits calls differently: the entry point `name` of the group ragauge.submits.

    check(llm): ConfigError for a model that it cannot serve. fill(llm, asked, ledger, what, readers): the
    replies by key to what the ledger lacks; with `submit=now` those alone that an open batch will bring.
    """
    points = {point.name: point for point in points_of("ragauge.submits")}
    require_choice("submit", name, (NOW, *points))
    return loaded(points[name])


@dataclass(frozen=True)
class ChatSettings:
    """How a chat model is reached, asked and paid for.

    chat: `_target_` (a LangChain chat model's class) and its arguments. All but CONNECTION_KEYS are part of
        the model's identity.
    concurrency: calls in flight at most; auto finds the number (see ragauge.llms.pace).
    requests_per_minute: calls started at most; null for no limit.
    timeout: seconds per attempt; doubled for the next one after a late reply.   retries: attempts after the first.
    backoff: seconds before the first retry at most, doubled with every further one.
    max_wait: seconds of one pause at most; a server that asks for more is not asked again. Also those that a server
        may take to load its model or to restart.
    give_up_after: requests in a row that fail on every attempt before the rest is not tried (MissingError).
    api_key_env: the environment variable that holds the key; null leaves it to the client.
    price: US dollars per million tokens, {prompt, completion, cached, written}; auto for those of genai-prices
        (`ragauge.llms.prices`); null where calls cost nothing.
    max_cost_usd: no call starts that could take what `budget` has spent above this (GateError).
    budget: the name under which cost is summed in the ledger, a sweep's id; by default this process.
    expected_tokens: completion tokens per call, for estimates.
    submit: now, call by call, or batch, all calls of a stage as one batch of the provider (docs/batches.md).
    submit_wait: whether the job waits for its batch, or ends (WaitingError) and is run again.
    submit_poll: seconds between two looks at a batch.   submit_price_factor: price of a batch over that of a call now.
    language: that of the material, which every prompt then names; auto is that of each prompt's own material. English
        is not named.
    schema: how the server takes a JSON schema for replies that are JSON: `response_format` (OpenAI, vLLM, llama.cpp),
        `format` (Ollama), or none, where the prompt alone asks for JSON.
    ledger: file or postgresql:// URL; null for RAGAUGE_LEDGER, and without it ledger.db in the store.
    """

    limit_key: ClassVar[str] = ""  # the setting of another limit of completion tokens, of `ChatLLM.beside_answers`

    chat: Mapping[str, Any]
    concurrency: int | str = runtime(FIRST)
    requests_per_minute: float | None = runtime(None)
    timeout: float = runtime(120.0)
    retries: int = runtime(5)
    backoff: float = runtime(1.0)
    max_wait: float = runtime(300.0)
    give_up_after: int = runtime(25)
    api_key_env: str | None = runtime(None)
    price: Mapping[str, float] | str | None = runtime(None)
    max_cost_usd: float | None = runtime(None)
    budget: str | None = runtime(None)
    expected_tokens: int = runtime(60)
    submit: str = runtime(NOW)
    submit_wait: bool = runtime(True)
    submit_poll: float = runtime(30.0)
    submit_price_factor: float = runtime(0.5)
    language: str = later("english")
    schema: str = later(NONE)
    ledger: str | None = runtime(None)

    def __post_init__(self) -> None:
        if not isinstance(self.chat, Mapping) or not isinstance(self.chat.get("_target_"), str):
            raise ConfigError("chat: needs _target_, the dotted name of a LangChain chat model's class")
        chat = json.loads(_as_json(self.chat))
        if chat.get("stop", ()) is None:
            del chat["stop"]  # not every class has it
        object.__setattr__(self, "chat", chat)
        package = self.chat["_target_"].partition(".")[0]
        if package in EXTRA_OF:
            require_extra(self.chat["_target_"], package)
        # How the server is reached is kept nowhere, and may hold a key that was read from the environment.
        if told := secret_in(self.chat_identity(), "chat"):
            raise ConfigError(told)
        remember({"chat": self.chat, "api_key_env": self.api_key_env})
        if "model" in self.chat and not self.chat["model"]:
            names = models_at(self.chat, key_to_send(self))
            listed = f"; {redact(self.address)} lists: {names}" if names else ""
            raise ConfigError(
                "chat.model is not given: set llm.chat.model (or judge's, evaluator's), or server.model for all of "
                f"them{listed}"
            )
        for name, least, most in _COUNTS:
            value = getattr(self, name)
            may_be_found = name == "concurrency"
            if may_be_found and value == FOUND:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                also = f", and not {FOUND}" if may_be_found else ""
                raise ConfigError(f"{name}: {shown(value)} is not an integer from {least} to {most:,}{also}")
        object.__setattr__(self, "language", named_language("language", self.language, (*CODES.values(), AUTO)))
        require_choice("schema", self.schema, WAYS)
        require_flag("submit_wait", self.submit_wait)
        require_number("submit_poll", self.submit_poll, 0, _MOST_SECONDS, above=True)
        require_number("submit_price_factor", self.submit_price_factor, 0, _MOST_FACTOR)
        if self.submit != NOW:
            submitter(self.submit).check(self)
        for name, most in (("timeout", _MOST_SECONDS), ("max_wait", _MOST_SECONDS), ("requests_per_minute", _MOST_USD)):
            value = getattr(self, name)
            if not (value is None and name == "requests_per_minute") and not _is_number(value, 0, most, above=True):
                raise ConfigError(f"{name}: {shown(value)} is not a number above 0, {most:,} at most")
        if not _is_number(self.backoff, 0, _MOST_SECONDS):
            raise ConfigError(f"backoff: {shown(self.backoff)} is not a number from 0 to {_MOST_SECONDS:,}")
        _ = self.prices  # ConfigError where they are none
        if self.max_cost_usd is not None and not _is_number(self.max_cost_usd, 0, _MOST_USD):
            raise ConfigError(f"max_cost_usd: {shown(self.max_cost_usd)} is not a number from 0 to {_MOST_USD:,}")
        for name in _OUTPUT_LIMITS:
            limit = self.chat.get(name)
            if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit > _MOST_TOKENS):
                raise ConfigError(f"chat.{name}: {shown(limit)} is not an integer of at most {_MOST_TOKENS:,}")
        self._check_limit()

    def _check_limit(self) -> None:
        """ConfigError if `max_cost_usd` is set and the highest cost of a call unknown."""
        if self.max_cost_usd is not None and self.price is None:
            raise ConfigError("max_cost_usd: needs price: {prompt: ..., completion: ...}, which is null")

    @cached_property
    def prices(self) -> Price | None:
        """The prices of its tokens, those of a batch with `submit=batch`; None without a price."""
        price = Price.of(self.price, self.model_name, self.chat.get("base_url"))
        return price if price is None or self.submit == NOW else price.times(self.submit_price_factor)

    @property
    def budget_name(self) -> str:
        """The name of the budget in the ledger."""
        return self.budget or PROCESS

    @property
    def most_in_flight(self) -> int:
        """The calls in flight at most."""
        return most_in_flight(self.chat) if isinstance(self.concurrency, str) else self.concurrency

    @property
    def model_name(self) -> str:
        """The model's name on the server."""
        return str(self.chat.get("model", self.chat.get("model_name", "?")))

    @property
    def address(self) -> str:
        """Where calls go: the base_url, else the client's class."""
        return address_of(self.chat)

    @property
    def most_tokens(self) -> tuple[str, int] | None:
        """Name and number of the configured limit of completion tokens; None without one."""
        given = [(name, self.chat[name]) for name in _OUTPUT_LIMITS if (self.chat.get(name) or 0) > 0]
        return given[0] if given else None

    @property
    def limit(self) -> str:
        """The configured limit of completion tokens, as `chat.max_tokens=256`, for errors."""
        given = self.most_tokens
        if given is None:
            return "the server's own limit, without chat.max_tokens"
        return f"{self.limit_key or f'chat.{given[0]}'}={given[1]}"

    @property
    def place(self) -> str:
        """The model and its address, for errors."""
        address = self.chat.get("base_url")
        return f"model {self.model_name}" + (f" at {redact(str(address))}" if address else "")

    def chat_identity(self) -> dict[str, Any]:
        """Everything that can change a reply, as JSON values: the model's class and arguments but connection keys."""
        return {key: value for key, value in self.chat.items() if key not in CONNECTION_KEYS}

    def cost(self, usage: Usage) -> float:
        """US dollars of these tokens; 0 without a price."""
        return 0.0 if self.prices is None else self.prices.cost(usage)

    def token_bounds(self, prompt: str, options: Mapping[str, Any] | None = None) -> tuple[int, int]:
        """Upper bounds of prompt and completion tokens of a call: its bytes, and the completion limit."""
        sent = prompt + (canonical_json(options) if options else "")
        limit = max((options or {}).get(key) or self.chat.get(key) or 0 for key in _OUTPUT_LIMITS)
        limit = limit if limit > 0 else _OUTPUT_BOUND
        return len(sent.encode("utf-8", "replace")) + _PROMPT_MARGIN, limit

    def cost_bound(self, prompt: str, options: Mapping[str, Any] | None = None) -> float:
        """The most that one call can cost, in US dollars: `token_bounds` at the dearest price of each token."""
        return 0.0 if self.prices is None else self.prices.dearest.cost(Usage(*self.token_bounds(prompt, options)))

    def expected_cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars of a call estimated at so many tokens."""
        return self.cost(Usage(prompt_tokens, completion_tokens))

    def charge(self, prompt: str, options: Mapping[str, Any] | None, received: Received | None) -> Usage:
        """The usage of a call with its cost; at its upper bound, and counted as unknown, where tokens are not known.

        received: the server's reply; None for a call that may have cost something and gave nothing.
        """
        usage = Usage() if received is None else received.usage
        cost, unknown = self.cost(usage), None in (usage.prompt_tokens, usage.completion_tokens)
        if unknown and self.prices is not None:
            most_prompt, most_completion = self.token_bounds(prompt, options)
            if usage.prompt_tokens is None:
                cost += self.prices.dearest.cost(Usage(most_prompt))
            if usage.completion_tokens is None:
                cost += self.prices.cost(Usage(0, most_completion))
        return replace(usage, cost_usd=cost, calls=1, usage_unknown=int(unknown))


def address_of(chat: Mapping[str, Any]) -> str:
    """Where calls of these settings of a chat model go: the base_url, else the client's class; "" without any."""
    return str(chat.get("base_url") or chat.get("_target_") or "")


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


def _is_number(value: Any, least: float, most: float, above: bool = False) -> bool:
    return is_number(value) and least <= value <= most and not (above and value == least)


_LOCAL_KEY = "EMPTY"  # what servers that check no key are sent; the clients refuse an empty one
_MAY_BE_UNSET = "RAGAUGE_API_KEY"  # the default of servers of one's own
_NOT_AWAY = {"follow_redirects": False}


@dataclass
class _Gate:
    """The earliest start of the next call to an endpoint, by rate limit and the server's requests to wait.

    takes_schemas: False once the server has refused a request for the JSON schema in it.
    """

    spacing: float  # seconds between calls
    pace: Pace
    next_slot: float = 0.0
    not_before: float = 0.0
    takes_schemas: bool = True

    async def enter(self) -> None:
        now = time.monotonic()
        slot = max(now, self.next_slot)
        self.next_slot = slot + self.spacing
        await asyncio.sleep(slot - now)
        while (wait := self.not_before - time.monotonic()) > 0:
            await asyncio.sleep(wait)

    def pause(self, seconds: float) -> None:
        self.not_before = max(self.not_before, time.monotonic() + seconds)


def api_key(llm: ChatSettings) -> str | None:
    """The key to send; None leaves it to the client. ConfigError for the lack of a key that a service checks."""
    if llm.api_key_env is None:
        return None
    key = os.environ.get(llm.api_key_env)
    # A server of one's own may check no key; left to the client it would be sent another service's.
    address = str(llm.chat.get("base_url") or "")
    if not key and not (address and (llm.api_key_env == _MAY_BE_UNSET or is_own(address))):
        raise ConfigError(f"api_key_env: the environment variable {llm.api_key_env} is not set")
    return key or _LOCAL_KEY


def key_to_send(llm: ChatSettings) -> str | None:
    """The key of calls, possibly the client's own choice; None without one."""
    try:
        key = api_key(llm)
    except ConfigError:
        return None
    target = llm.chat["_target_"]
    theirs = "OPENAI_API_KEY" if "openai" in target else "OLLAMA_API_KEY"
    return key if target.startswith("ragauge.") else key or os.environ.get(theirs)


@functools.lru_cache(maxsize=16)
def _endpoint(chat: str, api_key: str | None, requests_per_minute: float | None, pid: int) -> tuple[Any, _Gate]:
    """The LangChain model of a config and its gate, one per process."""
    config = json.loads(chat)
    gate = _Gate(60 / (requests_per_minute or float("inf")), Pace(most_in_flight(config)))
    return build_chat_model(config, api_key), gate


def build_chat_model(chat: Mapping[str, Any], api_key: str | None = None) -> Any:
    """The LangChain chat model of `_target_` and its arguments; ConfigError if there is none."""
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
        model = with_whole_replies(cls)(**arguments)
        if "max_completion_tokens" in arguments and hasattr(model, "use_limit_name"):
            model.use_limit_name("max_completion_tokens")
    except RagaugeError:
        raise
    except Exception as error:
        raise ConfigError(f"chat: {class_name} cannot be made: {redact(str(error))}") from None
    return guard(model)
