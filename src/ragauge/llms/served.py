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
import json
import logging
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ragauge.contract.errors import ConfigError
from ragauge.contract.redact import redact
from ragauge.llms.clients import BadResponse, Redirected, hooks, run_batch
from ragauge.llms.ledger import Ledger, Served
from ragauge.store import canonical_json

log = logging.getLogger(__name__)

_SECONDS = 5.0  # of one question in all
_ATTEMPTS = 2
# Of an entry of /models: vLLM (the path or repository, and a LoRA's base), and names of digests.
_FIELDS = ("root", "parent", "digest", "sha", "sha256", "revision", "model_sha", "hash", "fingerprint")
_META = ("n_params", "size", "n_vocab", "n_embd")  # llama.cpp
_PUBLIC = "api.openai.com"


class _Untold(Exception):
    """The server gave no usable answer about its model."""


def served_identity(
    chat: Mapping[str, Any], model: str, api_key: str | None, budget: str, ledger: Ledger
) -> dict[str, Any]:
    """The server's identification of the weights of `chat`'s model; {} if it has none.

    It is asked once per process and address. Where it does not answer, what it said last is taken, which the
    ledger remembers: a finished sweep needs no server. Warns where another address of the same budget (a
    sweep's id) has a model of this name and nothing tells the two apart. Never raises for an error of the server.
    """
    asked = _what_to_ask(chat)
    if asked is None:
        return {}
    kind, address = asked
    headers = _headers(chat, api_key)
    told = _asked_once(kind, address, model, canonical_json(headers), budget, ledger, os.getpid())
    found: dict[str, Any] = json.loads(told)
    return found


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
    if not (target.startswith("langchain_openai.") and target.endswith(".ChatOpenAI")) or not address:
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
def _asked_once(kind: str, address: str, model: str, headers: str, budget: str, ledger: Ledger, pid: int) -> str:
    """The server's answer as JSON, cached by process id, since a fork is another process."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    place = redact(f"{parts.scheme}://{host}{parts.path.rstrip('/')}")  # no name, password or query
    try:
        remembered = {row.address: row for row in ledger.served(model)}
    except Exception as error:  # the calls will say what is wrong with the ledger
        log.debug("ledger: %s", redact(str(error)))
        remembered = {}
    last = remembered.get(place)
    try:
        ask = _ask_ollama if kind == "ollama" else _ask_openai
        told = canonical_json(ask(address.rstrip("/"), model, json.loads(headers)))
        log.log(
            logging.INFO if told == "{}" else logging.DEBUG,
            "model %s at %s: %s",
            model,
            place,
            "the server does not say what identifies its weights" if told == "{}" else f"serves {told}",
        )
    except Exception as error:  # mostly _Untold; whatever a server does, calls go on
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
            ledger.remember_served(now)
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


def _ask_openai(address: str, model: str, headers: Mapping[str, str]) -> dict[str, Any]:
    entry = _entry(_fetch("GET", f"{address}/models", headers), "data", ("id",), {model})
    meta = entry.get("meta")
    return _plain(entry, _FIELDS) | (_plain(meta, _META) if isinstance(meta, Mapping) else {})


def _ask_ollama(address: str, model: str, headers: Mapping[str, str]) -> dict[str, Any]:
    names = {model} if ":" in model.rpartition("/")[2] else {model, f"{model}:latest"}
    try:
        listed = _entry(_fetch("GET", f"{address}/api/tags", headers), "models", ("name", "model"), names)
    except _Untold:
        listed = {}
    if found := _plain(listed, ("digest",)):
        return found
    shown = _fetch("POST", f"{address}/api/show", headers, {"model": model})
    if not isinstance(shown, Mapping):
        raise _Untold("its answer has another form")
    # The digest where it is given, else all that describes the weights.
    told = {key: shown[key] for key in ("details", "model_info") if isinstance(shown.get(key), Mapping)}
    digest = hashlib.sha256(canonical_json(told).encode("utf-8", "replace")).hexdigest()
    return _plain(shown, ("digest",)) or ({"shown": digest} if any(told.values()) else {})


def _entry(answer: Any, under: str, keys: tuple[str, ...], names: set[str]) -> Mapping[str, Any]:
    """The entry with one of the names in a list of models; _Untold without one."""
    entries = answer.get(under) if isinstance(answer, Mapping) else None
    if not isinstance(entries, list):
        raise _Untold("its answer has another form")
    for entry in entries:
        if isinstance(entry, Mapping) and any(str(entry.get(key)) in names for key in keys):
            return entry
    raise _Untold("it does not list the model")


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


def _fetch(method: str, url: str, headers: Mapping[str, str], body: Any = None) -> Any:
    """The JSON of an answer; _Untold for any other answer, or none within a few seconds."""
    return run_batch(_asked(method, url, headers, body))


async def _asked(method: str, url: str, headers: Mapping[str, str], body: Any) -> Any:
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
                    return json.loads(answer.content)
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
