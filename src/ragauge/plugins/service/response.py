"""Paths of a service's response: answer, contexts, usage and cost, read from JSON by JMESPath."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragauge.contract.errors import ConfigError
from ragauge.contract.redact import redacted_beginning
from ragauge.contract.usage import TOKENS, Usage
from ragauge.contract.visible import is_blank
from ragauge.llms.replies import Received
from ragauge.llms.usage import token_counts, with_cache
from ragauge.store import canonical_json
from ragauge.texts.surrogates import without_surrogates

DEFAULT_PATHS: Mapping[str, str | None] = {
    "answer": "answer", "contexts": "contexts", "text": "text", "docno": None, "score": None, "scores": None,
    **dict.fromkeys(TOKENS), "cost_usd": None, "error": None,
}  # fmt: skip
_SHOWN = 120  # characters of what came that an error shows
_LOOKED_AT = 8_192  # bytes of it, which may begin with white space, and hold a key
_MOST_COST = 10_000.0  # US dollars: above this a number is no cost of one request


class Unusable(Exception):
    """A response without a usable answer, and the reason."""


@dataclass(frozen=True)
class Context:
    """A context that a service used: its text or its name, or both, and its score if it has one."""

    text: str | None
    docno: str | None
    score: float | None


@dataclass(frozen=True)
class Response:
    """A service's answer; None for values without a path."""

    answer: str | None
    contexts: list[Context] | None


def check_paths(paths: Mapping[str, Any]) -> dict[str, str | None]:
    """All paths by name; given ones replace the defaults.

    ConfigError for an unknown name, for a path that is no JMESPath, and where neither answer nor contexts are read.
    """
    import jmespath
    from jmespath.exceptions import JMESPathError

    for name, path in paths.items():
        if name not in DEFAULT_PATHS:
            raise ConfigError(f"response.{name}: unknown; allowed are {', '.join(DEFAULT_PATHS)}")
        if path is None:
            continue
        if not isinstance(path, str) or not path.strip():
            raise ConfigError(f"response.{name}={path!r}: allowed are JMESPath expressions, and null")
        try:
            jmespath.compile(path)
        except JMESPathError as error:
            why = " ".join(str(error).split())
            raise ConfigError(f"response.{name}={path!r}: no JMESPath: {why}") from None
    found = {**DEFAULT_PATHS, **paths}
    if found["answer"] is None and found["contexts"] is None:
        raise ConfigError("response: neither answer nor contexts is read; give the path of one of them")
    if found["contexts"] is not None and found["text"] is None and found["docno"] is None:
        raise ConfigError("response: contexts need text or docno, and both are null")
    if found["score"] is not None and found["scores"] is not None:
        raise ConfigError("response: scores come from score or from scores; one of them has to be null")
    return found


def read_response(paths: Mapping[str, str | None], data: bytes, content_type: str = "") -> Received:
    """The response in the ledger's form: canonical JSON of the answer and the contexts alone.

    `refused` says why it is no answer, naming the path that found nothing and how the response begins.
    """
    usage, cost = Usage(), None
    try:
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            kind = f" but {content_type}" if content_type else ""
            raise Unusable(f"the response is no JSON{kind}; it begins {_beginning(data)}") from None
        try:
            prompt, completion, cached, written = (_search(paths, name, body) for name in TOKENS)
            usage = with_cache(Usage(*token_counts(prompt, completion)), cached, written)
            cost = _cost(paths, body)
            told = _search(paths, "error", body)
            if told:
                raise Unusable(f"the response tells an error: {_shown(told)}")
            kept = {"answer": _answer(paths, body), "contexts": _contexts(paths, body)}
        except RecursionError:
            raise Unusable(f"the response is nested too deeply; it begins {_beginning(data)}") from None
    except Unusable as error:
        return Received("", "", usage, str(error), cost)
    return Received(canonical_json(kept), "stop", usage, None, cost)


def kept_response(text: str) -> Response:
    """Parses a response written by `read_response`."""
    kept = json.loads(text)
    contexts = kept["contexts"]
    return Response(kept["answer"], None if contexts is None else [Context(*parts) for parts in contexts])


def _answer(paths: Mapping[str, str | None], body: Any) -> str | None:
    if paths["answer"] is None:
        return None
    found = _needed(paths, "answer", body)
    if not isinstance(found, str):
        raise Unusable(f"{_named(paths, 'answer')} is no text: {_shown(found)}")
    if is_blank(found):
        raise Unusable(f"{_named(paths, 'answer')} is an empty text")
    return without_surrogates(found)


def _contexts(paths: Mapping[str, str | None], body: Any) -> list[list[Any]] | None:
    """[text, docno, score] of every context."""
    if paths["contexts"] is None:
        return None
    found = _needed(paths, "contexts", body)
    if not isinstance(found, list):
        raise Unusable(f"{_named(paths, 'contexts')} is no list: {_shown(found)}")
    scores: list[Any] = [None] * len(found)
    if paths["scores"] is not None:
        scores = _needed(paths, "scores", body)
        if not isinstance(scores, list) or len(scores) != len(found):
            raise Unusable(
                f"{_named(paths, 'scores')} is no list of {len(found)}, as many as there are contexts: {_shown(scores)}"
            )
    return [_context(paths, i, item, score) for i, (item, score) in enumerate(zip(found, scores, strict=True))]


def _context(paths: Mapping[str, str | None], number: int, item: Any, score: Any) -> list[Any]:
    where = f"contexts[{number}]"
    if isinstance(item, str):
        text: Any = item
        docno = None
    elif isinstance(item, Mapping):
        docno = _search(paths, "docno", item)
        if paths["docno"] is not None and docno is None:
            raise Unusable(f"{_named(paths, 'docno')} finds nothing in {where}, {_shown(item)}")
        text = _search(paths, "text", item)
        if text is None and docno is None:
            raise Unusable(f"{_named(paths, 'text')} finds nothing in {where}, {_shown(item)}")
        if paths["score"] is not None:
            score = _search(paths, "score", item)
            if score is None:
                raise Unusable(f"{_named(paths, 'score')} finds nothing in {where}, {_shown(item)}")
    else:
        raise Unusable(f"{where} is neither a text nor an object: {_shown(item)}")
    if text is not None and not isinstance(text, str):
        raise Unusable(f"{_named(paths, 'text')} of {where} is no text: {_shown(text)}")
    if isinstance(docno, int) and not isinstance(docno, bool):
        docno = str(docno)
    if docno is not None and (not isinstance(docno, str) or not docno.strip()):
        raise Unusable(f"{_named(paths, 'docno')} of {where} is no name: {_shown(docno)}")
    if score is not None or paths["scores"] is not None:
        name = "scores" if paths["scores"] is not None else "score"
        if not _is_number(score):
            raise Unusable(f"{_named(paths, name)} of {where} is no finite number: {_shown(score)}")
        score = float(score)
    return [
        None if text is None else without_surrogates(text),
        None if docno is None else without_surrogates(docno),
        score,
    ]


def _cost(paths: Mapping[str, str | None], body: Any) -> float | None:
    found = _search(paths, "cost_usd", body)
    if found is None:
        return None
    if not _is_number(found) or not 0 <= found <= _MOST_COST:
        raise Unusable(
            f"{_named(paths, 'cost_usd')} is no cost of one request, 0 to {_MOST_COST:g} US dollars: {_shown(found)}"
        )
    return float(found)


def _needed(paths: Mapping[str, str | None], name: str, body: Any) -> Any:
    found = _search(paths, name, body)
    if found is None:
        raise Unusable(f"{_named(paths, name)} finds nothing in {_shown(body)}")
    return found


def _search(paths: Mapping[str, str | None], name: str, body: Any) -> Any:
    """The value at the path, None if there is none or it is null."""
    import jmespath
    from jmespath.exceptions import JMESPathError

    path = paths[name]
    if path is None:
        return None
    try:
        return jmespath.search(path, body)
    except (JMESPathError, TypeError, ValueError, AttributeError) as error:  # a function of another type
        why = redacted_beginning(" ".join(str(error).split()), _SHOWN)
        raise Unusable(f"{_named(paths, name)} cannot be used on {_shown(body)}: {why}") from None


def _named(paths: Mapping[str, str | None], name: str) -> str:
    return f"service.response.{name}={paths[name]!r}"


def _is_number(value: Any) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # an integer of a thousand digits
        return False


def _shown(value: Any) -> str:
    """The first characters of a JSON value, on one line."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        text = type(value).__name__
    return redacted_beginning(text, _SHOWN)


def _beginning(data: bytes) -> str:
    text = " ".join(data[:_LOOKED_AT].decode("utf-8", "replace").split())
    return f"'{redacted_beginning(text, _SHOWN)}'" if text else "with nothing"
