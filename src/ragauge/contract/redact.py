"""Keeps API keys and passwords out of configs, records, tags, addresses, logs and errors.

A secret is known in three ways: by its name, by its form (`ragauge.contract.secret_patterns`), and by its value. A
value is known if it is in the environment under a secret name, or was remembered from the job's config. Measured texts
(corpora, questions, contexts, answers, verdicts) never pass through here, except for `mask_echo` of a server's answer.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from string import ascii_letters, digits
from traceback import format_exception
from types import TracebackType
from typing import Any
from urllib.parse import quote

from ragauge.contract.secret_patterns import (
    MASK,
    generated_in,
    is_about_a_secret,
    is_scheme,
    is_secret_name,
    is_secret_variable,
    looks_random,
    mask_forms,
    may_be_secret_name,
)

_SHORTEST = 8  # characters of a value that is masked wherever it stands; a shorter one may be a word
_LONG = 20  # characters of a value that is no word
_LONGEST_KEY = 4_096  # characters
_HOLDS_NONE = frozenset({"", "null", "none", "''", '""', "EMPTY", "???", MASK})
_INTERPOLATION = re.compile(r"\$\{(?:[^{}]|\{[^{}]*\})*\}")
_DEFAULT = re.compile(r"\$\{\s*oc\.\w+\s*:[^,{}]+,(?P<default>[^{}]*)\}")
_OVERRIDE = re.compile(r"(?P<key>[+~]{0,2}[A-Za-z_][\w@:$.-]*)=(?P<value>.*)", re.S)
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_NAME = re.compile(r"(?P<quote>[\"']?)(?<![\w.-])(?P<name>[A-Za-z_][\w.-]*)(?P=quote)\s*(?P<sign>[=:])\s*")
_BARE = r"[^\s\"',;&)}\]<>]"
_VALUE = re.compile(rf"{_QUOTED}|{_BARE}+")
# By its beginning a bare value is judged: one that is no secret is looked at again from the next name in it.
_VALUE_BEGINS = re.compile(rf"{_QUOTED}|{_BARE}{{1,1024}}")
# A header with all that belongs to it: a scheme and a token, several cookies.
_HEADER = re.compile(
    r"(?P<head>\b(?:(?:proxy-)?authorization|(?:set-)?cookie)[\"']?\s*[:=]\s*[\"']?)"
    r"(?P<value>(?:[A-Za-z-]+ )?[^\s\"',}]+(?:;\s*[^\s\"',;}]+)*)",
    re.I,
)

_ADDRESS_NAME = re.compile(r"ur[li]$|host|endpoint|api_base|proxy", re.I)

_OF_KEYS = frozenset(f"{ascii_letters}{digits}_-")

_remembered: set[str] = set()


def redact(text: str, sure: bool = False) -> str:
    """The text with every secret replaced by ***; interpolations `${...}` stay as they are.

    `sure` leaves out known values that may be words: passwords such as postgres.
    """
    return _redacted(text, _known_values(sure))


def _redacted(text: str, known: Iterable[str]) -> str:
    for value in known:
        # Where a password is a word, it is not the same letters within another word.
        text = re.sub(rf"\b{value}\b", MASK, text) if value.isalpha() else _mask_word(text, value)
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(_mask_default(match.group(), secret=False))
        return f"\x00{len(kept) - 1}\x00"

    text = mask_forms(_INTERPOLATION.sub(keep, text))
    text = _HEADER.sub(_mask_header, text)
    text = _mask_pairs(text)
    return re.sub(r"\x00(\d+)\x00", lambda match: kept[int(match[1])], text) if kept else text


_PLACE = r"[^\s\"'<>?#]{0,2048}"
_QUERY = re.compile(
    rf"((?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://{_PLACE}|\bur[il]={_PLACE})\?([^\s\"'<>#]*[^\s\"'<>#:.,;)])", re.I
)
_QUERY_VALUE = re.compile(r"(?<==)[^&;]+")


def without_queries(text: str) -> str:
    """The text with *** for every value in the query of an address: a key may have any name there."""

    def masked(match: re.Match[str]) -> str:
        query = match[2]
        return f"{match[1]}?{_QUERY_VALUE.sub(MASK, query) if '=' in query else MASK}"

    return _QUERY.sub(masked, text)


def _mask_word(text: str, value: str) -> str:
    """The text with the value masked, and adjacent letters and digits, which may belong to a longer key."""
    done, at = [], 0
    while (start := text.find(value, at)) >= 0:
        end = start + len(value)
        while start > at and value[0].isalnum() and text[start - 1] in _OF_KEYS:
            start -= 1
        while end < len(text) and value[-1].isalnum() and text[end] in _OF_KEYS:
            end += 1
        done += [text[at:start], MASK]
        at = end
    return "".join([*done, text[at:]])


def redacted_beginning(text: str, most: int) -> str:
    """The first `most` characters of the redacted text; a key cut in half would not be recognised."""
    text = redact(text[: most + _LONGEST_KEY])
    return text if len(text) <= most else f"{text[:most]}…"


def mask_echo(text: str) -> str:
    """A server's answer with every repeated secret of this process's configs replaced by ***.

    It masks exact values only, and no words, so that measured texts stay unchanged.
    """
    exact = {value for value in _remembered if not value.isalpha() or len(value) >= _LONG}
    for value in _as_written(exact):
        text = text.replace(value, MASK)
    return text


def redact_tree(value: Any, name: str = "", secret: bool = False, sure: bool = False) -> Any:
    """Nested mappings and lists with every secret replaced by ***; numbers only under a secret name.

    `name` is what the value stands under; `secret` says that something above it is a secret; `sure` is as
    in `redact`.
    """
    return _redacted_tree(value, name, secret, _known_values(sure))


def _redacted_tree(value: Any, name: str, secret: bool, known: Sequence[str]) -> Any:
    own = is_secret_name(name)
    secret = own or (secret and not is_about_a_secret(name))
    if isinstance(value, Mapping):
        return {key: _redacted_tree(item, under, secret, known) for key, under, item in _named(value)}
    if _is_list(value):
        if _is_header(value) and isinstance(value[1], str):
            return [value[0], _redacted_tree(value[1], value[0], False, known)]
        return [_redacted_tree(item, name, secret, known) for item in value]
    if isinstance(value, str):
        return _redact_value(value, name, secret, known)
    return MASK if own and value is not None and not isinstance(value, bool) else value


def redact_config(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys and values with every secret replaced by ***."""
    known = _known_values(sure=False)
    return {
        key: _redacted_tree(value, parts[-1], any(map(is_secret_name, parts[:-1])), known)
        for key, value in flat.items()
        for parts in [key.split(".")]
    }


def secret_in(value: Any, where: str) -> str | None:
    """The error message on the first plain-text secret of a config; None without any."""
    if not isinstance(value, Mapping):
        if _is_same(redact_tree(value, sure=True), value):
            return None
        items = value if _is_list(value) else ()
        return next(filter(None, (secret_in(item, where) for item in items)), _told(where))
    for key, name, item in _named(value):
        place = f"{where}.{key}" if where else str(key)
        if isinstance(item, (Mapping, list)) and not is_secret_name(name):
            told = secret_in(item, place)
        elif _is_same(redact_tree(item, name, sure=True), item):
            told = None
        elif is_secret_name(name) or may_be_secret_name(name):
            told = (
                f"{place}: keys are not allowed in the config, which is logged and shared; name an "
                f"environment variable instead: {place}='${{oc.env:NAME}}'"
            )
        else:
            told = _told(place)
        if told:
            return told
    return None


def _is_same(redacted: Any, value: Any) -> bool:
    """Whether nothing was redacted; NaN is equal to nothing, itself included."""
    return redacted is value or redacted == value


def remember(config: Any, name: str = "", secret: bool = False) -> None:
    """Makes this process mask the secrets of a resolved config in all that it writes.

    Those are what stands under a secret name or has a secret form, and the variables that `*_env` names.
    """
    secret = is_secret_name(name) or (secret and not is_about_a_secret(name))
    if isinstance(config, Mapping):
        for _, under, item in _named(config):
            remember(item, under, secret)
    elif _is_list(config):
        for item in config[1:] if _is_header(config) else config:
            remember(item, config[0] if _is_header(config) else name, secret)
    elif config is not None and not isinstance(config, bool):
        text = str(config)
        pieces: Iterable[str] = ()
        if name.endswith("_env") and is_secret_name(name.removesuffix("_env")):
            pieces = [os.environ.get(text, "")]
        elif secret and isinstance(config, (str, int)) and not is_scheme(name, text):
            pieces = [text, *text.split(" ")[1:]]
        elif isinstance(config, str):
            pieces = [*_masked_pieces(text), *generated_in(text), *_before_host(name, text)]
        _remembered.update(p for p in pieces if len(p) >= _SHORTEST and p not in _HOLDS_NONE and "${" not in p)


def guard_output() -> None:
    """Makes log records with tracebacks, warnings and uncaught errors redacted."""
    made = logging.getLogRecordFactory()
    if getattr(made, "redacts", False):
        return

    def record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        found = made(*args, **kwargs)
        try:
            found.msg, found.args = redact(found.getMessage()), ()
        except Exception:  # a message that does not fit its arguments is for logging itself to tell
            return found
        if found.exc_info and found.exc_info[0] is not None:
            found.exc_text = redact(logging.Formatter().formatException(found.exc_info))
        return found

    record.redacts = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(record)
    shown = warnings.formatwarning

    def warning(*args: Any, **kwargs: Any) -> str:
        return redact(shown(*args, **kwargs))

    def uncaught(kind: Any, error: BaseException, trace: TracebackType | None) -> None:
        print(redact("".join(format_exception(kind, error, trace))), end="", file=sys.stderr)

    warnings.formatwarning, sys.excepthook = warning, uncaught


def _known_values(sure: bool) -> list[str]:
    """Secret values of the environment and of the config, as they may be written, the longest first."""
    # As bytes where the system has them: to decode every variable would take most of the time of a redaction.
    environment: Any = os.environb if os.supports_bytes_environ else os.environ
    return _listed(tuple(environment.items()), frozenset(_remembered), sure)


@lru_cache(maxsize=8)
def _listed(environment: tuple[tuple[bytes, bytes], ...], remembered: frozenset[str], sure: bool) -> list[str]:
    found = set(remembered)
    for name, value in (map(os.fsdecode, variable) for variable in environment):
        if len(value) < _SHORTEST or not is_secret_variable(name):
            continue
        if not (value.startswith(("/", "~", ".")) and os.path.exists(os.path.expanduser(value))):
            found.add(value)
    if sure:
        found = {value for value in found if len(value) >= _LONG or looks_random(value)}
    return _as_written(found)


def _as_written(values: set[str]) -> list[str]:
    """The values as an address, JSON and Python write them, the longest first."""
    found = set(values)
    for value in values:
        if not value.isalnum():
            found |= {quote(value, safe=""), json.dumps(value)[1:-1], repr(value)[1:-1]}
    return sorted(found, key=len, reverse=True)


def _masked_pieces(text: str) -> list[str]:
    """The pieces of a text that redaction removes."""
    masked = redact(text)
    if masked == text:
        return []
    pattern = "(.+?)".join(map(re.escape, masked.split(MASK)))
    match = re.fullmatch(pattern, text, re.S)
    found = list(match.groups()) if match else []
    passwords = [password for piece in found if (password := piece.partition(":")[2])]
    # Of an address that cannot be parsed an error names what it took for the port.
    return [*found, *passwords, *(part for password in passwords for part in re.split("[/?#]", password))]


def _before_host(name: str, text: str) -> list[str]:
    """User and password, together and in parts, of an address without a scheme, such as http//me:pass@host."""
    if "://" in text or "@" not in text or not _ADDRESS_NAME.search(name):
        return []
    user = text.rpartition("@")[0].rpartition("//")[2]
    return [user.partition(":")[2], *(part for part in re.split("[:/?#]", user) if not part.isalpha())]


def _redact_value(value: str, name: str, secret: bool, known: Sequence[str]) -> str:
    """A config's value under its name."""
    override = _OVERRIDE.fullmatch(value)
    if override and not secret and "://" not in override["key"]:
        key, given = override["key"], override["value"]
        *above, own = key.split("@")[0].lstrip("+~").split(".")
        within = is_secret_name(own) or (any(map(is_secret_name, above)) and not is_about_a_secret(own))
        return f"{key}={_redact_value(given, own, within, known)}"
    if secret:
        return value if value in _HOLDS_NONE or is_scheme(name, value) else _mask_all(value)
    if may_be_secret_name(name) and looks_random(value):
        return MASK
    value = _redacted(value, known)
    for word in generated_in(value):
        value = value.replace(word, MASK)
    if value[:1] in "{[":  # a mapping or list in an override: every name in it stands before a colon
        value = _mask_pairs(value, certain=True)
    return value


def _mask_all(value: str) -> str:
    """*** for a secret; of pure interpolations only the defaults are masked."""
    if "${" not in value:
        return MASK
    rest = _INTERPOLATION.sub("", value)
    rest = re.sub(r"(?i)\b(bearer|basic|token|apikey|api-key)\b", "", rest)
    if len(rest.strip(" :'\"[],{}")) >= _SHORTEST:
        return MASK
    return _INTERPOLATION.sub(lambda match: _mask_default(match.group(), secret=True), value)


def _mask_default(interpolation: str, secret: bool) -> str:
    """An interpolation whose default is no secret in clear."""
    match = _DEFAULT.fullmatch(interpolation)
    if match is None or match["default"].strip() in _HOLDS_NONE:
        return interpolation
    default = MASK if secret else mask_forms(match["default"])
    return interpolation[: match.start("default")] + default + interpolation[match.end("default") :]


def _mask_header(match: re.Match[str]) -> str:
    value = match["value"]
    told = MASK in value or "\x00" in value or not re.search(r"[\d=]", value)
    return match.group() if told else match["head"] + MASK


def _mask_pairs(text: str, certain: bool = False) -> str:
    """The text with name=value and "name": value masked for secret names.

    Leaves prose such as "token: it", unless it is `certain` that a colon separates name and value.
    """
    done, at = [], 0
    while name := _NAME.search(text, at):
        own = name["name"].rpartition(".")[2]
        value = _VALUE_BEGINS.match(text, name.end()) if is_secret_name(own) or may_be_secret_name(own) else None
        done.append(text[at : name.end()])
        at = name.end()  # what is no secret may hold further pairs, as an address does
        if value and _is_secret_pair(name, value.group(), certain):
            whole = _VALUE.match(text, name.end()) or value
            done.append(_masked(whole.group()))
            at = whole.end()
    return "".join([*done, text[at:]])


def _is_secret_pair(match: re.Match[str], value: str, certain: bool) -> bool:
    name, bare = match["name"].rpartition(".")[2], value.strip("\"'")
    if bare in _HOLDS_NONE or bare.lower() in ("true", "false") or "\x00" in bare or "${" in bare:
        return False
    rest = bare.replace(MASK, "")  # more of a secret than was known
    if not any(map(str.isalnum, rest)) or bare.startswith("=") or is_scheme(name, bare):
        return False
    in_path = match.string[match.start() - 1 : match.start()] == "/"  # a folder such as token=1
    if in_path or not is_secret_name(name):
        return looks_random(bare)
    quoted = bool(match["quote"]) or value != bare
    return certain or quoted or match["sign"] == "=" or (len(bare) >= 8 and any(map(str.isdigit, bare)))


def _masked(value: str) -> str:
    """*** in the quotes of the value."""
    quote = value[0] if value[0] in "\"'" and value[-1] == value[0] else ""
    return f"{quote}{MASK}{quote}"


def _named(value: Mapping[Any, Any]) -> Iterator[tuple[Any, str, Any]]:
    """(key, name, item) of a mapping, where {name: X-Api-Key, value: ...} holds its value under X-Api-Key."""
    names = (value[key] for key in ("name", "key", "header") if isinstance(value.get(key), str))
    named = next(filter(is_secret_name, names), None)
    for key, item in value.items():
        yield key, str(named if named and key == "value" else key), item


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _is_header(value: Sequence[Any]) -> bool:
    """Whether a list is a secret name and its value."""
    return len(value) == 2 and isinstance(value[0], str) and is_secret_name(value[0])


def _told(where: str) -> str:
    return (
        f"{where}: holds what looks like a key or password; they belong in the environment "
        "('${oc.env:NAME}' reads a variable)"
    )
