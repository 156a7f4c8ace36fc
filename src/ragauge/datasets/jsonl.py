"""Two JSON Lines files, a corpus and its questions, and the shipped sample in that format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract.datasets import Dataset
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.topics import HISTORY
from ragauge.datasets._near_names import warn_of_near_names
from ragauge.datasets.fields import (
    BadRow,
    flag,
    is_attribute,
    listed_or_none,
    string,
    strings,
    title_of,
    valid_string,
)
from ragauge.datasets.files import Cells, existing_file, json_rows, parse_json, parsed, table_rows
from ragauge.datasets.gather import FileSource, Gatherer, Part
from ragauge.datasets.lists import all_texts, as_text, flat, is_null, listed_texts
from ragauge.datasets.recordings import NAMES

_KEYS = ("qid", "query", "answer", "answers", "unanswerable", "evidence", "wrong_answers", HISTORY)
# What a file of questions may call them, the first that a row has: as files of recorded systems do, too.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "qid": NAMES["qid"],
    "query": ("query", *(name for name in NAMES["question"] if name != "query")),
    "answer": ("answer", *NAMES["reference"]),
    "answers": ("answers", *(name for name in NAMES["references"] if name != "answers")),
    "evidence": ("evidence", *NAMES["evidence"]),
    "unanswerable": ("unanswerable",),
}
_PARTS = {"reference": ("answer", "answers"), "evidence": ("evidence",)}  # keys of what topics may lack
_TAKEN = ("query", "answer", "answers", "evidence")  # whose other names are then no attributes
_ONLY_LISTS = ("context",)  # DeepEval's evidence; a text of this name is whatever its file says
_FLAGS = {"true": True, "false": False}  # cells of `unanswerable`
_SAMPLE = Path(__file__).parent / "sample"


@option("dataset/jsonl")
class JsonlDataset(FileSource):
    """A collection from a corpus in JSON Lines (`docs`) and questions in JSON Lines, CSV, TSV or Parquet (`topics`)."""

    component = "jsonl"
    version = 4

    name: str = runtime(CONF)
    docs: str | Path | None = runtime(CONF)
    topics: str | Path | None = runtime(CONF)

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


@option("dataset/sample")
class SampleDataset(FileSource):
    """The shipped collection: short encyclopedic paragraphs, bridge and comparison questions."""

    component = "sample"
    version = 1

    name: str = runtime(CONF)

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
            gather.add_document(string(row, "docno"), title_of(row), string(row, "text"))


def add_topics(gather: Gatherer, file: Path) -> None:
    """Adds the topics of a question file up to the limit; warns of columns with misspelled names."""
    unread: dict[str, None] = {}
    found: set[str] = set()
    for number, (where, read) in enumerate(table_rows(file), start=1):
        if gather.full:
            break
        with gather.row(where) as at:
            given = parsed(read)
            row = _named(given, number)
            row = _divided(row) if isinstance(read, Cells) else row
            at.qid = string(row, "qid")
            add_topic(gather, row, numbered=all(is_null(given.get(name)) for name in _NAMES["qid"]))
            unread |= dict.fromkeys(row)
            found |= {what for what, keys in _PARTS.items() if any(row.get(key) for key in keys)}
    lacking = [what for what in _PARTS if what not in found]
    warn_of_near_names(file, unread, {**_NAMES, "reference": NAMES["reference"]}, lacking)


def add_topic(gather: Gatherer, row: Mapping[str, Any], numbered: bool = False) -> None:
    """Adds the topic in a row under this project's names; `numbered` as in `Gatherer.add_topic`."""
    gather.add_topic(
        string(row, "qid"),
        string(row, "query"),
        _answers(row),
        [_evidence_part(part) for part in flat(listed_or_none(row, "evidence"))],
        {key: row[key] for key in row if key not in _KEYS and is_attribute(row[key])},
        unanswerable=flag(row, "unanswerable"),
        wrong_answers=[
            valid_string(one, "an answer in 'wrong_answers'") for one in listed_or_none(row, "wrong_answers")
        ],
        history=strings(row, HISTORY),
        numbered=numbered,
    )


def _named(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The row under this project's names without nulls; its number is the default qid.

    BadRow if two keys hold different reference answers.
    """
    found = {key: value for key, value in row.items() if not is_null(value)}
    for key, names in _NAMES.items():
        there = [name for name in names if name in found and (name not in _ONLY_LISTS or isinstance(found[name], list))]
        if key == "answer" and len({json.dumps(found[name]) for name in there}) > 1:
            raise BadRow(
                f"{there[0]!r} and {there[1]!r} differ, and both are names of the reference answer; if one is a "
                "system's answer, the file is one of samples: dataset=samples"
            )
        for name in there[:1]:
            found[key] = found[name]
        if key in _TAKEN:
            for name in {*there} - {key}:
                del found[name]
    qid = as_text(found.get("qid", number))
    return {**found, "qid": qid, **({"query": as_text(found["query"])} if "query" in found else {})}


def _divided(row: Mapping[str, Any]) -> dict[str, Any]:
    """A table's row with cells split into texts at ` | `, or as a printed list."""
    found: dict[str, Any] = dict(row)
    for key in ("evidence", "answers", "wrong_answers"):
        if isinstance(found.get(key), str):
            listed = listed_texts(found[key])
            found[key] = found[key].split(" | ") if listed is None else listed
    if isinstance(found.get("unanswerable"), str):
        found["unanswerable"] = _FLAGS.get(found["unanswerable"].lower(), found["unanswerable"])
    return found


def _answers(row: Mapping[str, Any]) -> list[str]:
    """The reference answers: `answer`, then those of `answers`."""
    return [one for key in ("answer", "answers") if row.get(key) is not None for one in all_texts(row[key], repr(key))]


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
