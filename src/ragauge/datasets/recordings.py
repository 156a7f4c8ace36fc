"""Reads recorded questions, contexts, answers or labels from files, row by row.

JSON Lines, a JSON list, CSV, TSV or Parquet, packed or not. Keys are known by the names that this project, RAGAS,
DeepEval, FlashRAG and AutoRAG give them (`NAMES`); objects of other tools' rows are opened (`_exports`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ragauge.contract.checks import require, require_choice
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.loading import loaded, points_of
from ragauge.contract.topics import HISTORY, TURN
from ragauge.datasets._exports import docnos_of, opened, rows_within, text_of
from ragauge.datasets.fields import BadRow, is_attribute, short, strings, valid_string
from ragauge.datasets.files import parsed, table_rows
from ragauge.datasets.lists import all_texts, as_text, flat, is_null, printed_list
from ragauge.datasets.packing import kind
from ragauge.texts.surrogates import without_surrogates

log = logging.getLogger(__name__)

# The first name that a row has counts.
NAMES: Mapping[str, tuple[str, ...]] = {
    "qid": ("qid", "id", "_id"),
    "question": ("question", "query", "user_input", "input"),
    "answer": (
        "response", "actual_output", "actualOutput", "answer", "pred", "prediction", "generated_texts", "output",
    ),
    "reference": ("reference", "ground_truth", "expected_output", "expectedOutput", "expected", "target"),
    "references": (
        "references", "ground_truths", "golden_answers", "gold_answers", "possible_answers", "generation_gt", "answers",
    ),
    "evidence": ("reference_contexts", "context"),
    "contexts": (
        "contexts", "retrieved_contexts", "retrieval_context", "retrievalContext", "retrieval_result",
        "retrieved_contents", "source_documents",
    ),
    "docnos": ("docnos", "retrieved_ids"),
    "error": ("error",),
    "prompt_tokens": ("prompt_tokens",),
    "completion_tokens": ("completion_tokens",),
    "cost_usd": ("cost_usd", "cost", "token_cost", "tokenCost"),
    "seconds": ("seconds", "completion_time", "completionTime"),
    "sample": ("sample",),
    "label": ("label",),
    "system": ("system",),
    "unanswerable": ("unanswerable",),
}  # fmt: skip
ON_MISSING = ("raise", "missing")

_KNOWN = frozenset(name for names in NAMES.values() for name in names)
_LISTS = ("contexts", "docnos", "evidence")
# What a system has of its own. An object under any other key is a system's where it has one of these, or is empty.
_OF_SYSTEM = frozenset(name for key in ("answer", "contexts", "docnos", "label", "error") for name in NAMES[key])
_NO_SYSTEMS = ("metadata",)
_PIPED = ("context", "retrieval_context", "retrievalContext")  # lists that DeepEval writes as a|b in CSV
_SHOWN = 3  # qids that a message lists

Value = TypeVar("Value")


def _said(value: Any) -> Any:
    """A recorded answer as a text: numbers are written out, and half surrogates become U+FFFD."""
    value = as_text(value)
    return without_surrogates(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Recorded:
    """One row: its place, its qid, its non-null values by the keys of NAMES, and the rest.

    `extra` holds the other keys with a text, a number or true and false, `named` the file's names of keys, `history`
    the earlier turns of its conversation.
    """

    where: str
    qid: str
    values: Mapping[str, Any]
    extra: Mapping[str, Any]
    named: Mapping[str, str]
    history: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """File, line or row, and qid."""
        return f"{self.where} (qid={self.qid!r})"

    def text(self, key: str) -> str | None:
        """The text under a key; None where there is none; BadRow for anything else."""
        value = self.values.get(key)
        return None if value is None else valid_string(_said(value), repr(self.named[key]))

    def references(self) -> tuple[str, ...]:
        """The reference answers under both keys, without empty ones; BadRow for any value but texts."""
        keys = [key for key in ("reference", "references") if key in self.values]
        given = [one for key in keys for one in all_texts(self.values[key], repr(self.named[key]))]
        return tuple(one for one in given if one.strip())

    def texts(self, key: str) -> list[str] | None:
        """The list of texts under a key; None where there is none; BadRow for any other value."""
        value = self.values.get(key)
        if value is None:
            return None
        name = self.named[key]
        if not isinstance(value, list):
            raise BadRow(f"{name!r} is no list of texts: {short(value)}")
        return [valid_string(_said(text_of(one)), f"entry {i} of {name!r}") for i, one in enumerate(value, 1)]

    def number(self, key: str) -> float:
        """The number from 0 under a key; 0 where there is none."""
        value = self.values.get(key)
        try:
            found = 0.0 if value is None else math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            found = math.nan
        if not (math.isfinite(found) and found >= 0):
            raise BadRow(f"{self.named[key]!r} is no number from 0: {short(value)}")
        return found

    def count(self, key: str) -> int:
        """The whole number from 0 under a key; 0 where there is none."""
        found = self.number(key)
        if found != int(found):
            raise BadRow(f"{self.named[key]!r} is no whole number: {found!r}")
        return int(found)


@dataclass(frozen=True)
class Entry:
    """An unparsed row: its place, and a function that reads it or raises BadRow."""

    where: str
    read: Callable[[], Mapping[str, Any]]


def recorded_file(key: str, value: str | Path | None) -> Path:
    """The path of a file that is there; ConfigError names the config key otherwise."""
    if value is None or not str(value).strip():
        raise ConfigError(f"{key} is not set: give the path of a file (with recorded.path for all at once)")
    path = Path(value).expanduser()
    if not path.is_file():
        raise ConfigError(f"{key}={value}: there is no such file")
    return path


def check_picking(group: str, system: object, on_missing: object, choices: Sequence[str] = ON_MISSING) -> None:
    """ConfigError for wrong values of settings that every recorded component has."""
    ok = system is None or (isinstance(system, str) and bool(system.strip()))
    require(f"{group}.system", system, ok, "names of a file's systems, and null")
    require_choice(f"{group}.on_missing", on_missing, choices)


def entries(file: Path) -> Iterator[Entry]:
    """The rows of a file in order; DataError for an unreadable file.

    Lines and rows are counted from 1, a CSV file's without its header. The functions of the entry points `ragauge.rows`
    make several rows of one: a list of them, or None for any other row.
    """
    divided_by = [loaded(point) for point in points_of("ragauge.rows")]
    number = Numbers()
    for entry in _rows(file):
        try:
            row = opened_row(entry.read())
            place = number.of(row)
            parts = next((rows for divide in divided_by if (rows := divide(row, place)) is not None), [row])
        except BadRow as bad:
            yield Entry(entry.where, partial(_bad, bad))
            continue
        for part in parts:
            yield Entry(entry.where if part is row else f"{entry.where}, turn {part[TURN]}", partial(dict, part))


def opened_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row of another tool with the contents of its nested objects (`_exports`); others unchanged."""
    return opened(row, NAMES)


def _bad(error: BadRow) -> Mapping[str, Any]:
    raise error


def _rows(file: Path) -> Iterator[Entry]:
    """The rows of a file as written, or those within a file that is one object."""
    for where, read in table_rows(file):
        try:
            row = parsed(read)
        except BadRow as bad:
            yield Entry(where, partial(_bad, bad))
            continue
        within = rows_within(row)
        if within is None and kind(file) == ".json":
            within = _predictions(row)
        if within is None:
            yield Entry(where, partial(dict, row))
        else:
            yield from (Entry(f"{file}, result {i}", partial(dict, one)) for i, one in enumerate(within, 1))


def _predictions(row: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """The rows of a prediction file {qid: answer} of SQuAD's and HotpotQA's scripts; None for any other."""
    given = row["answer"] if isinstance(row.get("answer"), Mapping) and row.keys() <= {"answer", "sp"} else row
    if not given or not _KNOWN.isdisjoint(given) or not all(is_null(v) or isinstance(v, str) for v in given.values()):
        return None
    return [{"qid": qid, "answer": answer} for qid, answer in given.items()]


def read_rows(file: Path, system: str | None, key: str) -> list[Recorded]:
    """The rows of one system, or of a file without systems; `key` is the config key of `system`.

    A file has systems where its rows have a key `system`, or a key of a system's name that holds an object
    with what is that system's own. Rows without a qid are known by their number within their system, from 1.
    DataError names file, line or row of one that cannot be read, and the systems where the choice fits none.
    """
    found: list[Recorded] = []
    listed: dict[str, None] = {}
    number = Numbers()
    for entry in entries(file):
        try:
            row = entry.read()
            names = systems_in(row)
            listed |= dict.fromkeys(names)
            place = number.of(row)
            if system is None:
                found.append(recorded_row(row, entry.where, place))
            elif system in names:
                own = row[system] if isinstance(row.get(system), Mapping) else {}
                found.append(recorded_row({**row, **own}, entry.where, place))
        except BadRow as bad:
            raise DataError(f"{entry.where}: {bad}") from None
    if system is not None and not found:
        have = f"it has {', '.join(list(listed)[:20])}" if listed else "none of its rows names one"
        raise DataError(f"{file}: {key}={system!r} is no system of it: {have}")
    if system is None and _are_several(listed, found):
        names = ", ".join(list(listed)[:20])
        raise DataError(f"{file}: it holds several systems, choose one: {key}={names} (or -m for all of them)")
    return found


def systems_of(file: Path) -> list[str]:
    """The systems of a file, in its order; [] where it holds one, or a row cannot be read."""
    listed: dict[str, None] = {}
    found = []
    try:
        for entry in entries(file):
            row = entry.read()
            listed |= dict.fromkeys(systems_in(row))
            found.append(recorded_row(row, entry.where, "1"))
    except (BadRow, DataError):  # the job says which
        return []
    return [*listed] if _are_several(listed, found) else []


def _are_several(listed: Mapping[str, None], rows: Sequence[Recorded]) -> bool:
    """Whether rows that no system was chosen for are of several: by their key `system`, or by objects of systems."""
    alone = any(row.values.keys() & {"answer", "contexts", "docnos", "label"} for row in rows)
    by_key = len({str(row.values["system"]) for row in rows if "system" in row.values})
    return by_key > 1 or (bool(listed) and not alone)


class Numbers:
    """Numbers the rows of each system from 1, as qids of rows without one."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def of(self, row: Mapping[str, Any]) -> str:
        """The number of the next row."""
        system = str(row.get("system"))
        self._seen[system] = self._seen.get(system, 0) + 1
        return str(self._seen[system])


def systems_in(row: Mapping[str, Any]) -> list[str]:
    """The systems in a row: the value of its key `system`, and keys with an object."""
    named = row.get("system")
    own = [] if named is None else [str(named)]
    objects = {name: value for name, value in row.items() if isinstance(value, Mapping)}
    for name in (*_KNOWN, *_NO_SYSTEMS):
        objects.pop(name, None)
    return own + [name for name, value in objects.items() if not value or _OF_SYSTEM.intersection(value)]


def recorded_row(row: Mapping[str, Any], where: str, number: str) -> Recorded:
    """A row under this project's names; its number is the default qid."""
    values, named = {}, {}
    for key, names in NAMES.items():
        name = next((n for n in names if not is_null(row.get(n))), None)
        if name is not None:
            values[key] = _as_list(row[name], key, name) if key in _LISTS else row[name]
            named[key] = name
    contexts = values.get("contexts")
    if "docnos" not in values and isinstance(contexts, list) and (docnos := docnos_of(contexts)) is not None:
        values["docnos"], named["docnos"] = docnos, named["contexts"]
    qid = values.get("qid", number)
    if isinstance(qid, float) and qid.is_integer():  # a column of a frame in which one is not known
        qid = int(qid)
    if not isinstance(qid, (str, int)) or isinstance(qid, bool):
        raise BadRow(f"{named['qid']!r} is neither a text nor a whole number: {short(qid)}")
    extra = {
        str(name): value
        for name, value in row.items()
        if name not in _KNOWN and not is_null(value) and is_attribute(value)
    }
    history = strings(row, HISTORY) if isinstance(row.get(HISTORY), list) else ()
    return Recorded(where, str(qid), values, extra, named, tuple(history))


def by_topic(
    file: Path, found: Iterable[tuple[str, Value]], qids: Sequence[str], what: str, on_missing: str, advice: str = ""
) -> dict[str, Value]:
    """The record of each qid with a single record; equal repetitions count once.

    `what` names it in the message, one line that counts and lists qids that are missing, that stand with two
    different values and that are no topic's; `advice` ends it. DataError with on_missing="raise" where any is missing
    or repeated, and always where no topic is in the file.
    """
    wanted = set(qids)
    known: dict[str, Value] = {}
    unknown: dict[str, None] = {}
    repeated: dict[str, None] = {}
    for qid, value in found:
        if qid not in wanted:
            unknown[qid] = None
        elif qid in known and known[qid] != value:
            repeated[qid] = None
        else:
            known.setdefault(qid, value)
    missing = [qid for qid in qids if qid not in known]
    told = [
        f"{len(listed):,} {text} ({_few(list(listed))})"
        for listed, text in (
            (missing, f"of {len(qids):,} topics have no {what} in it"),
            (repeated, f"qids stand there with two different ones of the {what}"),
            (unknown, "qids in it are no topic of the dataset"),
        )
        if listed
    ]
    line = f"{file}: {'; '.join(told)}"
    if len(missing) == len(qids) and qids:
        raise DataError(line)
    if (missing or repeated) and on_missing == "raise":
        raise DataError(f"{line}; recorded.on_missing=missing counts these topics as missing{advice}")
    if told:
        (log.warning if missing or repeated else log.info)("%s", line)
    return {qid: value for qid, value in known.items() if qid not in repeated}


def _few(qids: Sequence[str]) -> str:
    """The first few of a list."""
    return ", ".join(map(repr, qids[:_SHOWN])) + (", …" if len(qids) > _SHOWN else "")


def _as_list(value: Any, key: str, name: str) -> Any:
    """A list, printed or not, as a list of its entries; any other value unchanged."""
    if isinstance(value, str):
        listed = printed_list(value)
        if listed is None:
            return value.split("|") if name in _PIPED else value
        value = listed
    if not isinstance(value, (list, tuple)):
        return value
    # The result of one search comes as a list of one list; a pair of texts within is none of ours to divide.
    nested = key != "contexts" or (len(value) == 1 and isinstance(value[0], list))
    return flat(list(value)) if nested else list(value)
