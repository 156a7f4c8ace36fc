"""Two JSON Lines files, a corpus and its questions; and the sample that is shipped in that format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ragauge.contract.identity import runtime
from ragauge.contract.protocols import Dataset
from ragauge.datasets._gather import (
    BadRow,
    FileSource,
    Gatherer,
    Part,
    existing_file,
    is_attribute,
    string,
    valid_string,
)

_KEYS = ("qid", "query", "answer", "answers", "unanswerable", "evidence")
_SAMPLE = Path(__file__).parent / "sample"


@dataclass(frozen=True)
class JsonlDataset(FileSource):
    """A collection from a corpus file (`docs`) and a question file (`topics`), one JSON object a line."""

    component: ClassVar[str] = "jsonl"
    version: ClassVar[int] = 2

    name: str = runtime("jsonl")
    docs: str | Path | None = runtime(None)
    topics: str | Path | None = runtime(None)

    def files(self) -> Mapping[str, Path]:
        """The files `docs` and `topics`; ConfigError if one is not there."""
        return {"docs": existing_file("docs", self.docs), "topics": existing_file("topics", self.topics)}

    def load(self) -> Dataset:
        """The collection; DataError names file, line, qid and what is wrong."""
        return _read(self, self.files())


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
    for where, line in _lines(files["docs"]):
        with gather.row(where):
            row = _parse(line)
            gather.add_document(string(row, "docno"), string(row, "title"), string(row, "text"))
    for where, line in _lines(files["topics"]):
        if gather.full:
            break
        with gather.row(where) as at:
            row = _parse(line)
            at.qid = qid = string(row, "qid")
            parts = [_evidence_part(part) for part in _listed(row, "evidence")]
            gather.add_topic(
                qid,
                string(row, "query"),
                _answers(row),
                parts,
                {key: row[key] for key in row if key not in _KEYS and is_attribute(row[key])},
                unanswerable=_marked(row),
            )
    return gather.dataset(files["docs"], files["topics"])


def _lines(file: Path) -> Iterator[tuple[str, bytes]]:
    """Where each line stands, and its bytes: a line that is no UTF-8 is one bad row, not the file's end."""
    with file.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield f"{file}, line {number}", line


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except ValueError as error:  # no JSON, or no UTF-8
        raise BadRow(f"not a line of JSON: {error}") from None


def _listed(row: Mapping[str, Any], key: str) -> list[Any]:
    """The list under a key; [] where it is absent or null."""
    values = row.get(key)
    if values is None:
        return []
    if not isinstance(values, list):
        raise BadRow(f"key {key!r} is not a list")
    return values


def _answers(row: Mapping[str, Any]) -> list[str]:
    """The reference answers: `answer`, then those of `answers`."""
    first = [string(row, "answer")] if row.get("answer") is not None else []
    return first + [valid_string(one, "an answer in 'answers'") for one in _listed(row, "answers")]


def _marked(row: Mapping[str, Any]) -> bool:
    marked = row.get("unanswerable", False)
    if type(marked) is not bool:
        raise BadRow(f"key 'unanswerable' is neither true nor false: {marked!r}")
    return marked


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
