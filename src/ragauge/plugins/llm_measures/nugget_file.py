"""Nuggets: facts that a good answer states, as given by people or a model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from ragauge.contract.errors import ConfigError, DataError
from ragauge.datasets.fields import BadRow
from ragauge.datasets.files import json_rows, parse_json

log = logging.getLogger(__name__)

IMPORTANCES = ("vital", "okay")
ASSIGNMENTS = ("support", "partial_support", "not_support")
_SHOWN = 3  # qids in a message


class Nugget(NamedTuple):
    """One fact, and whether a good answer may omit it (`okay`) or not (`vital`)."""

    text: str
    importance: str


class Assigned(NamedTuple):
    """The nuggets of a topic, whether an answer supports each, and the answer, if the file has it."""

    nuggets: tuple[Nugget, ...]
    support: tuple[str, ...]
    answer: str | None


def nugget_path(path: str | Path, key: str = "path") -> Path:
    """The file of `answers.nuggets.path`, or of another key; ConfigError if it does not exist."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise ConfigError(f"answers.nuggets.{key}={path}: there is no such file")
    return file


def read_nuggets(file: Path) -> dict[str, tuple[Nugget, ...]]:
    """The nuggets of every topic in the file, from lines {qid, nuggets: [{text, importance}]}.

    Further keys are passed over. So is a line without `nuggets`, such as that of a topic in a file of topics. DataError
    names file and line of an error: no JSON object, no qid, a nugget without a text or with another importance than
    vital and okay, a qid or a nugget of a topic that is there twice.
    """
    return {qid: _nuggets(row["nuggets"]) for qid, row in _rows(file, _nuggets)}


def read_assignments(file: Path) -> dict[str, Assigned]:
    """The assignments of one system, as nuggetizer writes them: a nugget has `assignment`, a row `answer_text`.

    DataError as in `read_nuggets`, and for another assignment than support, partial_support and not_support.
    """

    def assigned(given: Any) -> tuple[Nugget, ...]:
        nuggets = _nuggets(given)
        for number, one in enumerate(given, start=1):
            if one.get("assignment") not in ASSIGNMENTS:
                said = f"{one.get('assignment')!r:.80}: allowed are {', '.join(ASSIGNMENTS)}"
                raise BadRow(f"nugget {number} has the assignment {said}")
        return nuggets

    return {
        qid: Assigned(_nuggets(given), tuple(one["assignment"] for one in given), row.get("answer_text"))
        for qid, row in _rows(file, assigned)
        for given in [row["nuggets"]]
    }


def _rows(file: Path, check: Callable[[Any], object]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """qid and row of every line with nuggets that `check` accepts."""
    places: dict[str, str] = {}
    for where, line in json_rows(file):
        try:
            row = parse_json(line)
            if not isinstance(row, Mapping):
                raise BadRow(f"expected a JSON object, found {type(row).__name__}")
            if row.get("nuggets") is None:
                continue
            qid = _qid(row)
            if qid in places:
                raise BadRow(f"qid {qid!r} stands there again, after {places[qid].rpartition(', ')[2]}")
            check(row["nuggets"])
        except BadRow as bad:
            raise DataError(f"{where}: {bad}") from None
        places[qid] = where
        yield qid, row


def _qid(row: Mapping[str, Any]) -> str:
    qid = row.get("qid")
    if isinstance(qid, bool) or not isinstance(qid, (str, int)):
        raise BadRow(f"'qid' is neither a text nor a whole number: {qid!r}")
    return str(qid)


def _nuggets(given: Any) -> tuple[Nugget, ...]:
    if not isinstance(given, list):
        raise BadRow(f"'nuggets' is no list of objects: {given!r:.80}")
    found: dict[str, Nugget] = {}
    for number, one in enumerate(given, start=1):
        if not isinstance(one, Mapping):
            raise BadRow(f"nugget {number} is no object with text and importance: {one!r:.80}")
        text, importance = one.get("text"), one.get("importance")
        if not is_text(text):
            raise BadRow(f"nugget {number} has no text: {text!r:.80}")
        if importance not in IMPORTANCES:
            raise BadRow(f"nugget {number} has the importance {importance!r:.80}: allowed are vital, okay")
        if folded(text) in found:
            raise BadRow(f"nugget {number} is there twice: {text!r:.80}")
        found[folded(text)] = Nugget(text.strip(), importance)
    return tuple(found.values())


def is_text(value: Any) -> TypeGuard[str]:
    """Whether it is a nonempty text that can be written to a file."""
    if not isinstance(value, str) or not value.strip():
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def folded(text: str) -> str:
    """The text with case and white space folded, which identifies equal nuggets."""
    return " ".join(text.casefold().split())


def check_nuggets(file: Path, qids: Sequence[str]) -> None:
    """One line that counts the topics without nuggets, and the qids that are no topic.

    DataError for a file that cannot be read, or has none of the topics.
    """
    found = read_nuggets(file)
    unknown = [qid for qid in found if qid not in set(qids)]
    if len(unknown) == len(found):
        more = f"; it has {_few(unknown)}" if unknown else "; it has no nuggets at all"
        raise DataError(f"{file}: no topic of the dataset has nuggets in it{more}")
    lacking = [qid for qid in qids if qid not in found]
    told = [
        f"{len(listed):,} {text} ({_few(listed)})"
        for listed, text in (
            (lacking, f"of {len(qids):,} topics have no nuggets in it"),
            (unknown, "qids in it are no topic of the dataset"),
        )
        if listed
    ]
    if told:
        (log.warning if lacking else log.info)("%s: %s", file, "; ".join(told))


def _few(qids: Sequence[str]) -> str:
    return ", ".join(map(repr, qids[:_SHOWN])) + (", …" if len(qids) > _SHOWN else "")
