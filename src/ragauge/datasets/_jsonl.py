"""Two JSON Lines files, a corpus and its questions; and the sample that is shipped in that format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from ragauge.contract.identity import runtime
from ragauge.contract.protocols import Dataset
from ragauge.contract.topics import HISTORY
from ragauge.datasets._fields import flag, is_attribute, listed_or_none, string, strings, valid_string
from ragauge.datasets._files import csv_rows, existing_file, json_rows, named_cells, parse_json
from ragauge.datasets._gather import FileSource, Gatherer, Part

_KEYS = ("qid", "query", "answer", "answers", "unanswerable", "evidence", "wrong_answers", HISTORY)
_FLAGS = {"true": True, "false": False}  # cells of `unanswerable`
_SAMPLE = Path(__file__).parent / "sample"


@dataclass(frozen=True)
class JsonlDataset(FileSource):
    """A collection from a corpus in JSON Lines (`docs`) and questions in JSON Lines or CSV (`topics`)."""

    component: ClassVar[str] = "jsonl"
    version: ClassVar[int] = 2

    name: str = runtime("jsonl")
    docs: str | Path | None = runtime(None)
    topics: str | Path | None = runtime(None)

    def files(self) -> Mapping[str, Path]:
        """The files `docs` and `topics`; ConfigError if one is not there."""
        return {**self.document_files(), "topics": existing_file("topics", self.topics)}

    def document_files(self) -> Mapping[str, Path]:
        """The file `docs`; ConfigError if it is not there."""
        return {"docs": existing_file("docs", self.docs)}

    def load(self) -> Dataset:
        """The collection; DataError names file, line, qid and what is wrong."""
        return _read(self, self.files())

    def documents(self) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Frame `docs` without a file of topics, and which rows were dropped."""
        file = self.document_files()["docs"]
        gather = Gatherer(self)
        _add_documents(gather, file)
        return gather.documents(file)


@dataclass(frozen=True)
class SampleDataset(FileSource):
    """The shipped collection: short encyclopedic paragraphs, bridge and comparison questions."""

    component: ClassVar[str] = "sample"
    version: ClassVar[int] = 1

    name: str = runtime("sample")

    def files(self) -> Mapping[str, Path]:
        """The files `docs` and `topics` inside the installed package."""
        return {"docs": _SAMPLE / "corpus.jsonl", "topics": _SAMPLE / "questions.jsonl"}

    def load(self) -> Dataset:
        """The collection."""
        return _read(self, self.files())


def _read(source: FileSource, files: Mapping[str, Path]) -> Dataset:
    gather = Gatherer(source)
    _add_documents(gather, files["docs"])
    gather.end_of_documents(files["docs"])
    add_topics(gather, files["topics"])
    return gather.dataset(files["docs"], files["topics"])


def _add_documents(gather: Gatherer, file: Path) -> None:
    for where, line in json_rows(file):
        with gather.row(where):
            row = parse_json(line)
            gather.add_document(string(row, "docno"), string(row, "title"), string(row, "text"))


def add_topics(gather: Gatherer, file: Path) -> None:
    """Adds the topics of a question file, JSON Lines or CSV, up to the limit."""
    for where, line in _table(file) if file.suffix.lower() == ".csv" else json_rows(file):
        if gather.full:
            break
        with gather.row(where) as at:
            row = line() if callable(line) else parse_json(line)
            at.qid = string(row, "qid")
            add_topic(gather, row)


def add_topic(gather: Gatherer, row: Mapping[str, Any]) -> None:
    """Adds the topic of a row of a question file."""
    gather.add_topic(
        string(row, "qid"),
        string(row, "query"),
        _answers(row),
        [_evidence_part(part) for part in listed_or_none(row, "evidence")],
        {key: row[key] for key in row if key not in _KEYS and is_attribute(row[key])},
        unanswerable=flag(row, "unanswerable"),
        wrong_answers=[
            valid_string(one, "an answer in 'wrong_answers'") for one in listed_or_none(row, "wrong_answers")
        ],
        history=strings(row, HISTORY),
    )


def _table(file: Path) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Where each row of a CSV file of topics stands, and what reads it; an empty cell is absent."""
    for number, header, cells in csv_rows(file):
        yield f"{file}, row {number}", partial(_table_row, header, cells, number)


def _table_row(header: Sequence[str], cells: Sequence[str], number: int) -> dict[str, Any]:
    row: dict[str, Any] = {name: cell for name, cell in named_cells(header, cells).items() if cell.strip()}
    row = {"qid": str(number), "query": row.pop("question", None), **row}
    lists: dict[str, Any] = {
        key: row[key].split(" | ") for key in ("evidence", "answers", "wrong_answers") if key in row
    }
    marks: dict[str, Any] = {key: _FLAGS.get(row[key].lower(), row[key]) for key in ("unanswerable",) if key in row}
    return {**row, **lists, **marks}


def _answers(row: Mapping[str, Any]) -> list[str]:
    """The reference answers: `answer`, then those of `answers`."""
    first = [string(row, "answer")] if row.get("answer") is not None else []
    return first + [valid_string(one, "an answer in 'answers'") for one in listed_or_none(row, "answers")]


def _evidence_part(part: Any) -> Part:
    """A text, or an object with docno, text or both, and optionally relevance."""
    if isinstance(part, str):
        return None, valid_string(part, "an evidence text")
    docno, text = (
        string(part, key) if isinstance(part, Mapping) and part.get(key) is not None else None
        for key in ("docno", "text")
    )
    if docno is None:
        text = string(part, "text")
    return (docno, text) if "relevance" not in part else (docno, text, part["relevance"])
