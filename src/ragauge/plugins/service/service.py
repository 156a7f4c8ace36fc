"""A running RAG system asked by HTTP, with the calls, retries, limits and ledger of chat models.

The ledger keeps a response's answer and contexts, so that one request serves both components.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import urlsplit

from ragauge.contract.checks import require, require_choice, require_number
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import named, runtime
from ragauge.contract.redact import redact, remember, secret_in
from ragauge.contract.replies import Reply
from ragauge.contract.topics import HISTORY
from ragauge.contract.usage import Usage, usage_of
from ragauge.contract.workplace import Workplace
from ragauge.llms.chat import ChatLLM
from ragauge.llms.replies import Received
from ragauge.plugins.service.response import Response, check_paths, kept_response
from ragauge.store import canonical_json

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

METHODS = ("POST", "GET", "PUT")
PLACEHOLDERS = ("question", "messages", "qid", "history", "n_tokens", "context")
_CLIENT = "ragauge.plugins.service.client.ServiceClient"
_OF_CLIENT = ("url", "method", "headers", "response")
_USUAL_REQUEST = {"question": "{question}"}
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_NO_BOUND = 10**12  # tokens: nobody can say how many a service reads and writes


@dataclass(frozen=True)
class Service(ChatLLM):
    """A service to ask; made by `of` from the config's `service`.

    chat: the client and its arguments: url, method, headers, and response, the paths in what comes back.
    request: the template of what is sent. Where a text is one placeholder alone, its value keeps its type.
    called: the name of the service that replaces its address.
    revision: that of the service; another one has other replies.
    cost_per_request: US dollars that a request costs at most, charged where the service does not tell.
    """

    component = "service"
    _reads_prompts: ClassVar[bool] = False  # a prompt is a request in JSON

    request: Mapping[str, Any] | None = None
    called: str | None = None
    revision: str | float | None = None
    cost_per_request: float | None = runtime(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        request = _USUAL_REQUEST if self.request is None else self.request
        object.__setattr__(self, "request", _checked_request(request, self.chat["method"]))
        for name in ("called", "revision"):
            value = getattr(self, name)
            plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
            ok = value is None or (plain and str(value).strip() != "")
            require({"called": "name", "revision": "version"}[name], value, ok, "texts, numbers and null")
        require_number("cost_per_request", self.cost_per_request, 0, null="")
        paths = self.chat["response"]
        if self.price is not None and not (paths["prompt_tokens"] and paths["completion_tokens"]):
            raise ConfigError(
                "price: needs response.prompt_tokens and response.completion_tokens, the paths of what is "
                "priced; cost_per_request is the price of a request"
            )

    @classmethod
    def of(cls, service: Mapping[str, Any] | None, budget: str | None = None, ledger: str | None = None) -> Self:
        """The service of a config; ConfigError names the key (`service.url`) and the allowed values.

        budget, ledger: those of the job, in the place of the config's unless they are None.
        """
        if not isinstance(service, Mapping):
            raise ConfigError(f"service={service!r}: allowed is a mapping with url, request, response, …")
        renamed = {"name": "called", "version": "revision"}
        own = {f.name for f in fields(cls)} - {"chat", *renamed.values()}
        allowed = [*_OF_CLIENT, *renamed, *sorted(own - {"request"}), "request"]
        unknown = next((key for key in service if key not in allowed), None)
        if unknown is not None:
            raise ConfigError(f"service.{unknown}: unknown; allowed are {', '.join(allowed)}")
        of_job = {"budget": budget, "ledger": ledger}
        given = {**service, **{key: value for key, value in of_job.items() if value is not None}}
        try:
            remember({"service": dict(service)})
            chat = {
                "_target_": _CLIENT,
                "url": _checked_url(service.get("url")),
                "method": service.get("method", "POST"),
                "headers": _checked_headers(service.get("headers") or {}),
                "response": check_paths(_mapping("response", service.get("response") or {})),
            }
            require_choice("method", chat["method"], METHODS)
            settings: dict[str, Any] = {key: value for key, value in given.items() if key in own}
            return cls(chat, called=given.get("name"), revision=given.get("version"), **settings)
        except ConfigError as error:
            raise ConfigError(f"service.{error}") from None

    # --- what tells it apart ------------------------------------------------------------------------------

    def chat_identity(self) -> dict[str, Any]:
        """The settings that can change a reply, besides the request: method, paths and revision."""
        paths = {name: path for name, path in self.chat["response"].items() if path is not None}
        revision = {} if self.revision is None else {"version": self.revision}
        return {"method": self.chat["method"], "response": paths, **revision}

    def identity(self) -> dict[str, Any]:
        """Everything that can change the service's answer, except its address (`served`)."""
        return {**named(self), "service": {**self.chat_identity(), "request": self.request}}

    def served(self, store: Workplace) -> dict[str, Any]:
        """The service's name, or its address without user, password and keys: its only identification."""
        return {"address": _address(self.chat["url"])} if self.called is None else {"name": str(self.called)}

    @property
    def model_name(self) -> str:
        """Its name, or its address."""
        return str(self.called or _address(self.chat["url"]))

    @property
    def place(self) -> str:
        """Its name in error messages."""
        return f"the service at {_address(self.chat['url'])}"

    def asks_with(self, placeholder: str) -> bool:
        """Whether the request holds the placeholder."""
        return placeholder in _placeholders(self.request)

    # --- asking -------------------------------------------------------------------------------------------

    def prompts(
        self,
        qids: Sequence[str],
        questions: Sequence[str],
        n_tokens: Sequence[int] | None = None,
        contexts: Sequence[str] | None = None,
        topics: pd.DataFrame | None = None,
    ) -> list[str]:
        """The request of every topic, canonical JSON, for `ask`; topics: with earlier turns, if any."""
        said = {} if topics is None or HISTORY not in topics else dict(zip(topics["qid"], topics[HISTORY], strict=True))
        histories = [_messages(said.get(qid, ())) for qid in qids]
        if any(histories) and not (self.asks_with("history") or self.asks_with("messages")):
            log.warning("%s is not sent earlier turns: service.request holds no {history} or {messages}", self.place)
        filled = {
            "qid": qids,
            "question": questions,
            "history": histories,
            "messages": [
                [*of, {"role": "user", "content": question}] for of, question in zip(histories, questions, strict=True)
            ],
            "n_tokens": None if n_tokens is None else [int(n) for n in n_tokens],
            "context": contexts,
        }
        given = {name: values for name, values in filled.items() if values is not None}
        return [
            canonical_json(_filled(self.request, dict(zip(given, row, strict=True))))
            for row in zip(*given.values(), strict=True)
        ]

    def response(self, reply: Reply) -> Response | None:
        """The service's answer; None if it gave no response."""
        return None if reply.text is None else kept_response(reply.text)

    # --- what it costs ------------------------------------------------------------------------------------

    def _check_limit(self) -> None:
        if self.max_cost_usd is not None and self.cost_per_request is None:
            raise ConfigError("max_cost_usd: needs cost_per_request, the most that one costs, which is null")

    def token_bounds(self, prompt: str, options: Mapping[str, Any] | None = None) -> tuple[int, int]:
        """No bound: the service decides how much it reads and writes per request."""
        return _NO_BOUND, _NO_BOUND

    def cost_bound(self, prompt: str, options: Mapping[str, Any] | None = None) -> float:
        """The most that one request can cost, in US dollars, from the config."""
        return self.cost_per_request or 0.0

    def expected_cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars of a request with an estimated number of tokens."""
        if self.cost_per_request is not None:
            return self.cost_per_request
        return self.cost(Usage(prompt_tokens, completion_tokens))

    def charge(self, prompt: str, options: Mapping[str, Any] | None, received: Received | None) -> Usage:
        """The cost reported by the service, else its tokens at their price, else cost_per_request."""
        usage = replace(Usage() if received is None else received.usage, calls=1)
        if received is not None and received.billed is not None:
            return replace(usage, cost_usd=received.billed)
        if self.price is not None and usage.prompt_tokens is not None and usage.completion_tokens is not None:
            return replace(usage, cost_usd=self.cost(usage))
        expected = self.price is not None or self.chat["response"]["cost_usd"] is not None
        unknown = expected or (received is None and self.cost_per_request is not None)
        return replace(usage, cost_usd=self.cost_per_request or 0.0, usage_unknown=int(unknown))

    def cost_of_kept(self, replies: pd.DataFrame) -> float:
        """The original cost of the ledger's replies in US dollars; NaN if unknown."""
        if not len(replies):
            return 0.0
        if self.chat["response"]["cost_usd"] is not None:
            return float("nan")
        if self.price is not None:
            return self.cost(usage_of(replies))
        return len(replies) * (self.cost_per_request or 0.0)


def _mapping(key: str, value: Any) -> Mapping[str, Any]:
    require(key, value, isinstance(value, Mapping), "mappings")
    found: Mapping[str, Any] = value
    return found


def _checked_url(url: Any) -> str:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        ok = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
        ok = ok and (parts is None or parts.port != 0)  # reading a port that is none raises
    except ValueError:
        ok = False
    shown = redact(str(url)) if url is not None else None
    require("url", shown, ok, "addresses such as http://localhost:8000/ask")
    return str(url)


def _checked_headers(headers: Any) -> dict[str, str]:
    """The headers as texts; an error names a header and never shows its value."""
    import httpx

    for name, value in _mapping("headers", headers).items():
        plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
        try:
            httpx.Headers({str(name): str(value)})
            ok = plain and not set("\r\n\0") & set(f"{name}{value}") and str(value).isascii()
        except ValueError:
            ok = False
        if not ok or not str(name).strip():
            raise ConfigError(f"headers.{name}: its value is not one line of ASCII text")
    return {str(name): str(value) for name, value in headers.items()}


def _checked_request(request: Any, method: str) -> dict[str, Any]:
    """The template as JSON values."""
    if isinstance(request, str):
        try:
            request = json.loads(request)
        except ValueError as error:
            raise ConfigError(f"request: a text must be JSON: {error}") from None
    _mapping("request", request)
    try:
        plain: dict[str, Any] = json.loads(canonical_json(request))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"request: only plain values are allowed ({error})") from None
    if not {"question", "messages", "qid"} & _placeholders(plain):
        unknown = sorted(_placeholders(plain) - set(PLACEHOLDERS))
        raise ConfigError(
            f"request: holds neither {{question}} nor {{messages}} nor {{qid}}, so that all topics would ask the same"
            f"{f' ({{{unknown[0]}}} is filled in with nothing)' if unknown else ''}; placeholders are "
            f"{', '.join(f'{{{name}}}' for name in PLACEHOLDERS)}"
        )
    if method == "GET" and any(isinstance(value, (dict, list)) for value in plain.values()):
        raise ConfigError("request: method=GET takes no lists and mappings within the request; use POST")
    if method == "GET" and {"history", "messages"} & _placeholders(plain):
        raise ConfigError("request: method=GET takes no lists, which {history} and {messages} are; use POST")
    if secret_in(plain, "request"):
        place = str(secret_in(plain, "request")).partition(":")[0]
        raise ConfigError(f"{place}: holds a key, and what is asked is kept: send keys in service.headers")
    return plain


def _placeholders(value: Any) -> set[str]:
    if isinstance(value, str):
        return set(_PLACEHOLDER.findall(value))
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return {name for item in inner for name in _placeholders(item)}


def _messages(history: Sequence[str]) -> list[dict[str, str]]:
    """Earlier turns as messages of OpenAI's form."""
    said = zip(("user", "assistant") * (len(history) // 2), history, strict=True)
    return [{"role": role, "content": text} for role, text in said if text]


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        whole = _PLACEHOLDER.fullmatch(value)
        if whole and whole[1] in values:
            return values[whole[1]]
        # One pass: what is filled in is never read as a template.
        return _PLACEHOLDER.sub(lambda m: str(values.get(m[1], m[0])), value)
    if isinstance(value, Mapping):
        return {key: _filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    return value


def _address(url: str) -> str:
    """The address without credentials, which do not identify the model."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2].lower()
    query = f"?{parts.query}" if parts.query else ""
    return redact(f"{parts.scheme}://{place}{parts.path.rstrip('/')}{query}")
