"""The identity of the model that a server serves under a name, as far as it reports it, so that different weights of
one name are noticed.

OpenAI-compatible servers are asked GET {base_url}/models, Ollama GET /api/tags and then POST /api/show. Only fields
that identify weights are taken, so that a restarted server gives the same: not `created` (vLLM's is the time of the
request), not `max_model_len` and other settings, not the software's name.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import itertools
import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ragauge.contract.errors import ConfigError
from ragauge.contract.redact import redact
from ragauge.llms.addresses import is_own
from ragauge.llms.clients import BadResponse, Redirected, hooks, run_batch
from ragauge.llms.ledger import Ledger
from ragauge.llms.patience import LOADING
from ragauge.store import canonical_json

log = logging.getLogger(__name__)

_SECONDS = 5.0  # of one question in all
_ATTEMPTS = 2
_SECONDS_BETWEEN = 2.0  # two questions to a server that loads its model
_MOST_NAMES = 5  # of a server's models, in a message
# Of an entry of /models: vLLM (the path or repository, and a LoRA's base), and names of digests.
_FIELDS = ("root", "parent", "digest", "sha", "sha256", "revision", "model_sha", "hash", "fingerprint")
_META = ("n_params", "size", "n_vocab", "n_embd")  # llama.cpp
_PUBLIC = "api.openai.com"


class _Untold(Exception):
    """The server gave no usable answer about its model."""


_REMEMBER = """INSERT INTO served (address, model, identity, budget) VALUES (?, ?, ?, ?) ON CONFLICT (address, model)
               DO UPDATE SET identity = excluded.identity, budget = excluded.budget"""


@dataclass(frozen=True)
class Served:
    """A server's last report on a model: JSON, {} without an identification of the weights.

    `budget` is the name under which calls were last made there.
    """

    address: str
    model: str
    identity: str
    budget: str


def remembered_by(ledger: Ledger, model: str) -> list[Served]:
    """The ledger's reports of the servers on the model, a row per address."""
    query = "SELECT address, model, identity, budget FROM served WHERE model = ?"
    return [Served(*row) for row in ledger.transact(lambda db: db.execute(query, [model]).fetchall(), write=False)]


def remember(ledger: Ledger, served: Served) -> None:
    """Stores a server's report in place of its earlier one."""
    values = (served.address, served.model, served.identity, served.budget)
    ledger.transact(lambda db: db.execute(_REMEMBER, values))


class _Unlisted(_Untold):
    """The server lists other models."""

    def __init__(self, names: list[str]) -> None:
        self.names = _in_words(names)
        super().__init__(f"it does not list the model, but {self.names or 'none'}")


def served_identity(
    chat: Mapping[str, Any], model: str, api_key: str | None, budget: str, ledger: Ledger, most_wait: float
) -> dict[str, Any]:
    """The server's identification of the weights of `chat`'s model; {} if it has none.

    It is asked once per process and address. Where it does not answer, what it said last is taken, which the
    ledger remembers: a finished sweep needs no server. Warns where another address of the same budget (a
    sweep's id) has a model of this name and nothing tells the two apart. A server that loads its model (status 503)
    is waited for, `most_wait` seconds at most. Never raises for an error of the server, but ConfigError where a server
    of one's own lists other models, and was never seen with this one.
    """
    asked = _what_to_ask(chat)
    if asked is None:
        return {}
    kind, address = asked
    headers = _headers(chat, api_key)
    told = _asked_once(kind, address, model, canonical_json(headers), budget, ledger, most_wait, os.getpid())
    found: dict[str, Any] = json.loads(told)
    return found


def models_at(chat: Mapping[str, Any], api_key: str | None) -> str:
    """The models that the server of `chat` lists, in words; "" where it lists none or cannot be asked."""
    asked = _what_to_ask(chat)
    if asked is None:
        return ""
    kind, address = asked
    path, under, key = ("/api/tags", "models", "name") if kind == "ollama" else ("/models", "data", "id")
    try:
        answer = _fetch("GET", address.rstrip("/") + path, _headers(chat, api_key), 0.0)
    except _Untold:
        return ""
    return _in_words(_named(_entries(answer, under), key))


def slots_of(chat: Mapping[str, Any], api_key: str | None) -> int | None:
    """The number of prompts whose computed beginnings the server of `chat`'s model keeps; None if it does not say.

    llama.cpp tells its slots at GET /props. Ollama tells nothing, and has one by default.
    """
    if (asked := _what_to_ask(chat)) is not None and asked[0] == "ollama":
        return 1
    told = _told(chat, api_key, "/../props")
    slots = told.get("total_slots") if isinstance(told, Mapping) else None
    return slots if isinstance(slots, int) and slots > 0 else None


def _told(chat: Mapping[str, Any], api_key: str | None, path: str) -> Any:
    """The JSON at a path behind the address of an OpenAI-compatible server; None without it. Asked once per process."""
    asked = _what_to_ask(chat)
    if asked is None or asked[0] != "openai":
        return None
    return json.loads(_fetched_once(asked[1].rstrip("/") + path, canonical_json(_headers(chat, api_key)), os.getpid()))


@functools.lru_cache(maxsize=64)
def _fetched_once(url: str, headers: str, pid: int) -> str:
    try:
        return json.dumps(_fetch("GET", url, json.loads(headers), 0.0))
    except Exception as error:
        log.debug("%s: %s", redact(url), redact(str(error)))
        return "null"


def takes_cache_salt(chat: Mapping[str, Any], api_key: str | None) -> bool:
    """Whether a request's `cache_salt` keeps the server of `chat`'s model from what it computed before: vLLM's does."""
    told = _told(chat, api_key, "/models")
    listed = told.get("data") if isinstance(told, Mapping) else None
    entries = listed if isinstance(listed, list) else []
    return any(isinstance(entry, Mapping) and entry.get("owned_by") == "vllm" for entry in entries)


def serves_else(chat: Mapping[str, Any], model: str, api_key: str | None, served: Mapping[str, Any]) -> str | None:
    """The server's present model in words, if it differs from `served`; None where the server does not tell."""
    asked = _what_to_ask(chat)
    if asked is None:
        return None
    kind, address = asked
    try:
        now = _ASKING[kind](address.rstrip("/"), model, _headers(chat, api_key), 0.0)
    except _Untold:
        return None
    return None if now == served else f"it serves {canonical_json(now)}, before it said {canonical_json(served)}"


def _what_to_ask(chat: Mapping[str, Any]) -> tuple[str, str] | None:
    """Protocol and address of a self-hosted server; None for services and other clients."""
    target, env = str(chat["_target_"]), os.environ.get
    if target.startswith("langchain_ollama."):
        address = str(chat.get("base_url") or env("OLLAMA_HOST") or "http://127.0.0.1:11434")
        if "://" not in address:  # as Ollama's client reads it
            address = f"http://{address}" if ":" in address else f"http://{address}:11434"
        _host(address)
        return "ollama", address
    given = (chat.get("base_url"), chat.get("openai_api_base"), env("OPENAI_API_BASE"), env("OPENAI_BASE_URL"))
    address = str(next((value for value in given if value), ""))
    by_langchain = target.startswith("langchain_openai.") and target.endswith(".ChatOpenAI")
    by_ragauge = target.startswith("ragauge.") and bool(chat.get("base_url"))  # its clients speak the same protocol
    if not (by_langchain or by_ragauge) or not address:
        return None
    return None if _host(address) == _PUBLIC else ("openai", address)


def _host(address: str) -> str | None:
    """The host of an address; ConfigError, without the address, if it is unreadable."""
    try:
        parts = urlsplit(address)
        return parts.hostname if parts.port != 0 else None  # reading a port that is none raises
    except ValueError:
        raise ConfigError(
            "chat.base_url: cannot be read as an address; allowed are those such as http://localhost:8000/v1 "
            "(signs such as / and @ in a password are written %2F and %40)"
        ) from None


def _headers(chat: Mapping[str, Any], api_key: str | None) -> dict[str, str]:
    """The headers of calls."""
    of_client = chat.get("client_kwargs") or {}
    headers = {**(chat.get("default_headers") or {}), **(of_client.get("headers") or {})}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    return {str(name): str(value) for name, value in headers.items()}


@functools.lru_cache(maxsize=64)
def _asked_once(
    kind: str, address: str, model: str, headers: str, budget: str, ledger: Ledger, most_wait: float, pid: int
) -> str:
    """The server's answer as JSON, cached by process id, since a fork is another process."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    place = redact(f"{parts.scheme}://{host}{parts.path.rstrip('/')}")  # no name, password or query
    try:
        remembered = {row.address: row for row in remembered_by(ledger, model)}
    except Exception as error:  # the calls will say what is wrong with the ledger
        log.debug("ledger: %s", redact(str(error)))
        remembered = {}
    last = remembered.get(place)
    try:
        told = canonical_json(_ASKING[kind](address.rstrip("/"), model, json.loads(headers), most_wait))
        log.log(
            logging.INFO if told == "{}" else logging.DEBUG,
            "model %s at %s: %s",
            model,
            place,
            "the server tells nothing of its weights: the name alone identifies them"
            if told == "{}"
            else f"serves {told}",
        )
    except Exception as error:  # mostly _Untold; whatever a server does, calls go on
        if isinstance(error, _Unlisted) and error.names and last is None and is_own(address):
            raise ConfigError(f"chat.model: {model} is none of the models at {place}: {error.names}") from None
        told = last.identity if last else "{}"
        log.info(
            "model %s at %s: asked what it serves: %s; %s",
            model,
            place,
            redact(str(error)),
            "its name alone identifies it" if told == "{}" else f"it last said {told}",
        )
    if last and last.identity != told:
        log.warning(
            "model %s at %s says that it serves %s, before it said %s: replies from before are not taken",
            *(model, place, told, last.identity),
        )
    now = Served(place, model, told, budget)
    if now != last:
        try:
            remember(ledger, now)
        except Exception as error:
            log.debug("ledger: %s", redact(str(error)))
    for other in remembered.values():
        if other.address != place and (other.budget, other.identity) == (budget, told):
            log.warning(
                "model %s is asked at %s and at %s, and nothing tells apart what they serve (%s): "
                "they share replies; give models with other weights other names",
                model,
                other.address,
                place,
                "both say nothing of it" if told == "{}" else f"both say {told}",
            )
    return told


def _ask_openai(address: str, model: str, headers: Mapping[str, str], most_wait: float) -> dict[str, Any]:
    # Ollama's names have a tag there, too.
    answer = _fetch("GET", f"{address}/models", headers, most_wait)
    entry = _entry(answer, "data", ("id",), {model, f"{model}:latest"})
    meta = entry.get("meta")
    return _plain(entry, _FIELDS) | (_plain(meta, _META) if isinstance(meta, Mapping) else {})


def _ask_ollama(address: str, model: str, headers: Mapping[str, str], most_wait: float) -> dict[str, Any]:
    names = {model} if ":" in model.rpartition("/")[2] else {model, f"{model}:latest"}
    try:
        answer = _fetch("GET", f"{address}/api/tags", headers, most_wait)
        listed = _entry(answer, "models", ("name", "model"), names)
    except _Untold:
        listed = {}
    if found := _plain(listed, ("digest",)):
        return found
    shown = _fetch("POST", f"{address}/api/show", headers, 0.0, {"model": model})
    if not isinstance(shown, Mapping):
        raise _Untold("its answer has another form")
    # The digest where it is given, else all that describes the weights.
    told = {key: shown[key] for key in ("details", "model_info") if isinstance(shown.get(key), Mapping)}
    digest = hashlib.sha256(canonical_json(told).encode("utf-8", "replace")).hexdigest()
    return _plain(shown, ("digest",)) or ({"shown": digest} if any(told.values()) else {})


_ASKING = {"ollama": _ask_ollama, "openai": _ask_openai}


def _entry(answer: Any, under: str, keys: tuple[str, ...], names: set[str]) -> Mapping[str, Any]:
    """The entry with one of the names in a list of models; _Unlisted without one."""
    entries = _entries(answer, under)
    for entry in entries:
        if any(str(entry.get(key)) in names for key in keys):
            return entry
    others = _named(entries, keys[0])
    # A gateway that hands on whatever it is asked for says so by a name with a star.
    raise _Unlisted([] if any("*" in name for name in others) else others)


def _entries(answer: Any, under: str) -> list[Mapping[str, Any]]:
    """The entries of a list of models; _Untold for an answer of another form."""
    entries = answer.get(under) if isinstance(answer, Mapping) else None
    if not isinstance(entries, list):
        raise _Untold("its answer has another form")
    return [entry for entry in entries if isinstance(entry, Mapping)]


def _named(entries: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    return [str(entry[key]) for entry in entries if entry.get(key)]


def _in_words(names: Sequence[str]) -> str:
    more = ", ..." if len(names) > _MOST_NAMES else ""
    return ", ".join(redact(name) for name in names[:_MOST_NAMES]) + more


def _plain(entry: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """The fields with a text or number; long texts as digests."""
    found: dict[str, Any] = {}
    for name in fields:
        value = entry.get(name)
        if isinstance(value, str) and value:
            text = redact(value).encode("utf-8", "replace")  # a server may repeat the key
            found[name] = hashlib.sha256(text).hexdigest() if len(text) > 200 else text.decode()
        elif isinstance(value, int) and not isinstance(value, bool):
            found[name] = value
    return found


def _fetch(method: str, url: str, headers: Mapping[str, str], most_wait: float, body: Any = None) -> Any:
    """The JSON of an answer; _Untold for any other answer, or none within a few seconds.

    most_wait: seconds at most while the server says that it loads.
    """
    until = time.monotonic() + most_wait
    for looked in itertools.count():
        status, answer = run_batch(_asked(method, url, headers, body))
        if status != LOADING:
            return answer
        if time.monotonic() + _SECONDS_BETWEEN > until:
            raise _Untold(f"it answers {LOADING}")
        if not looked:
            place = redact(urlsplit(url).netloc.rpartition("@")[2])
            log.warning("the server at %s loads its model (%d); waited for, %g s at most", place, LOADING, most_wait)
        time.sleep(_SECONDS_BETWEEN)
    raise AssertionError


async def _asked(method: str, url: str, headers: Mapping[str, str], body: Any) -> tuple[int, Any]:
    """Status and JSON of an answer; the JSON is None while the server loads."""
    import httpx

    why = "no answer"
    try:
        async with asyncio.timeout(_SECONDS), httpx.AsyncClient(timeout=_SECONDS / 2, event_hooks=hooks()) as client:
            for _ in range(_ATTEMPTS):
                try:
                    answer = await client.request(method, url, headers=dict(headers), json=body)
                except (httpx.HTTPError, OSError) as error:
                    why = f"{type(error).__name__}: {error}"
                    continue
                if answer.status_code == 200:
                    return 200, json.loads(answer.content)
                if answer.status_code == LOADING:
                    return LOADING, None
                why = f"it answers {answer.status_code}"
                if answer.status_code < 500:
                    break
    except TimeoutError:
        why = f"no whole answer within {_SECONDS:g} s"
    except Redirected as error:
        why = f"it {error}"
    except (BadResponse, httpx.InvalidURL) as error:
        why = str(error)
    except (ValueError, RecursionError):
        why = "its answer is no JSON"
    raise _Untold(why)
