"""What every source shares: rows are checked one by one and gathered into the three frames.

A source says what stands in a row; here it is decided whether that can be evaluated, and a bad row is named
and raised, or dropped and described.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import runtime
from ragauge.contract.protocols import Dataset

PASSAGE_MARK = "%p"  # PyTerrier's passage convention: what follows it in a docno numbers a chunk
_EXTRA = ("type", "level")  # columns of topics where the source has them


class BadRow(Exception):
    """What is wrong with the row at hand."""


@dataclass
class Row:
    """Where the row at hand stands (file and line), and the qid as soon as it is known."""

    where: str
    qid: str | None = None


@dataclass(frozen=True)
class FileSource:
    """What all sources have in common."""

    name: str = runtime("dataset")
    on_error: str = "raise"
    limit: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ConfigError(f"dataset.name={self.name!r}: expected a name")
        if self.on_error not in ("raise", "skip"):
            raise ConfigError(f"dataset.on_error={self.on_error!r}: allowed are raise, skip")
        if self.limit is not None and (type(self.limit) is not int or self.limit < 1):
            raise ConfigError(
                f"dataset.limit={self.limit!r}: allowed are null (all topics) and integers from 1"
            )


def existing_file(key: str, value: str | Path | None) -> Path:
    """The path of a file that is there; ConfigError names the config key otherwise."""
    if value is None or not str(value).strip():
        raise ConfigError(f"dataset.{key} is not set: give the path of a file")
    path = Path(value).expanduser()
    if not path.is_file():
        raise ConfigError(f"dataset.{key}={value}: there is no such file")
    return path


def string(row: Any, key: str) -> str:
    """The string under `key` of a JSON object; BadRow where it is absent, no string or no valid Unicode."""
    if not isinstance(row, Mapping):
        raise BadRow(f"expected a JSON object with the key {key!r}, found {_short(row)}")
    if key not in row:
        raise BadRow(f"key {key!r} is missing; the row has {', '.join(map(repr, row)) or 'no keys'}")
    return valid_string(row[key], repr(key))


def valid_string(value: Any, what: str) -> str:
    """The value itself if it is a string that can be written as UTF-8; `what` names it in the error."""
    if not isinstance(value, str):
        raise BadRow(f"{what} is not a string: {_short(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadRow(f"{what} is not valid Unicode: {error}") from None
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class Gatherer:
    """Takes documents first, then topics with their evidence, and makes a Dataset of them."""

    def __init__(self, source: FileSource) -> None:
        self._skip = source.on_error == "skip"
        self._limit = source.limit
        self._docs: dict[str, tuple[str, str]] = {}
        self._topics: dict[str, tuple[str, str, Mapping[str, str]]] = {}
        self._evidence: list[tuple[str, int, str | None, str]] = []
        self._skipped: list[str] = []

    @contextmanager
    def row(self, where: str) -> Iterator[Row]:
        """A block that reads one row; `where` says which (file and line). A bad one is raised or dropped."""
        row = Row(where)
        try:
            yield row
        except BadRow as bad:
            qid = "" if row.qid is None else f", qid {row.qid!r}"
            message = f"{where}{qid}: {bad}"
            if not self._skip:
                raise DataError(f"{message} (dataset.on_error=skip drops such rows)") from None
            self._skipped.append(message)

    @property
    def full(self) -> bool:
        """Whether there are as many topics as asked for."""
        return self._limit is not None and len(self._topics) >= self._limit

    def has_document(self, docno: str) -> bool:
        return docno in self._docs

    def document_text(self, docno: str) -> str:
        """The text of a document; BadRow if there is none of that docno."""
        if docno not in self._docs:
            raise BadRow(f"evidence names docno {docno!r}, which is no document of the corpus")
        return self._docs[docno][1]

    def add_document(self, docno: str, title: str, text: str) -> None:
        _check_identifier("docno", docno)
        if PASSAGE_MARK in docno:
            raise BadRow(f"docno {docno!r} holds {PASSAGE_MARK!r}, which marks the chunks of a document")
        if docno in self._docs:
            raise BadRow(f"docno {docno!r} stands twice in the corpus")
        self._docs[docno] = (title, text)

    def add_topic(
        self,
        qid: str,
        query: str,
        answer: str,
        evidence: Iterable[tuple[str | None, str]],
        extra: Mapping[str, str] | None = None,
    ) -> None:
        """One topic; `evidence` is pairs of docno (or None) and text, of which repeated ones count once."""
        _check_identifier("qid", qid)
        if qid in self._topics:
            raise BadRow("this qid stands twice")
        if not query.strip():
            raise BadRow("the query is empty")
        if not answer.strip():
            raise BadRow("the reference answer is empty")
        parts = list(dict.fromkeys((docno, text.strip()) for docno, text in evidence))
        if not parts:
            raise BadRow("the topic has no evidence")
        for part, (docno, text) in enumerate(parts):
            if not text:
                of = "" if docno is None else f" (docno {docno!r})"
                raise BadRow(f"evidence part {part}{of} is empty")
            if docno is not None:
                self.document_text(docno)
        self._topics[qid] = (query, answer, extra or {})
        self._evidence.extend((qid, part, docno, text) for part, (docno, text) in enumerate(parts))

    def dataset(self, docs_file: Path, topics_file: Path) -> Dataset:
        """What was gathered; DataError where no document or no topic is left."""
        for what, rows, file in (("document", self._docs, docs_file), ("topic", self._topics, topics_file)):
            if not rows:
                dropped = f"; {len(self._skipped)} bad rows were dropped" if self._skipped else ""
                raise DataError(f"{file}: no {what} in it{dropped}")
        docs = pd.DataFrame(
            {
                "docno": list(self._docs),
                "title": [title for title, _ in self._docs.values()],
                "text": [text for _, text in self._docs.values()],
            },
            dtype="str",
        )
        topics = pd.DataFrame(
            {
                "qid": list(self._topics),
                "query": [query for query, _, _ in self._topics.values()],
                "answer": [answer for _, answer, _ in self._topics.values()],
            },
            dtype="str",
        )
        for column in _EXTRA:
            values = [extra.get(column) for _, _, extra in self._topics.values()]
            if any(value is not None for value in values):
                topics[column] = pd.Series(values, dtype="str")
        qids, parts, docnos, texts = zip(*self._evidence, strict=True)
        evidence = pd.DataFrame(
            {
                "qid": pd.Series(qids, dtype="str"),
                "part": pd.Series(parts, dtype="int64"),
                "docno": pd.Series(docnos, dtype="str"),
                "text": pd.Series(texts, dtype="str"),
            }
        )
        return Dataset(docs, topics, evidence, tuple(self._skipped))


def optional_columns(row: Mapping[str, Any]) -> dict[str, str]:
    """Those of `type` and `level` that a JSON object holds as something else than null."""
    return {key: string(row, key) for key in _EXTRA if row.get(key) is not None}


def _check_identifier(what: str, value: str) -> None:
    # A run file separates its columns by white space, and PISA cuts a docno there.
    if not value or value.split() != [value] or "\0" in value:
        raise BadRow(f"{what} {value!r} is empty or holds white space")
