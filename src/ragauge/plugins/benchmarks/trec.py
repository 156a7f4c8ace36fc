"""TREC's files: topics, qrels, and documents as SGML, JSON Lines or tab-separated lines."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ragauge.contract.checks import require, require_flag, require_text
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import runtime
from ragauge.contract.protocols import Dataset
from ragauge.datasets._fields import BadRow, string
from ragauge.datasets._files import every_line, existing_file, is_encoding, json_rows, lines, parse_json, text_of
from ragauge.datasets._gather import Document, Rows
from ragauge.plugins.benchmarks.judged import (
    JudgedSource,
    Judgement,
    Query,
    grade_of,
    judged_dataset,
    searched_text,
)
from ragauge.plugins.benchmarks.sgml import blocks, document, topic

_DOCNO = ("docno", "id", "_id", "doc_id")
_TEXT = ("text", "contents")
Line = tuple[str, Any]


@dataclass(frozen=True)
class Trec(JudgedSource):
    """A collection of documents (a file or a folder of files), topics and qrels as TREC publishes them.

    A file's first character decides its format: `<` SGML, `{` JSON Lines, else lines of two cells that a tab separates.
    query_field: the element of an SGML topic that is asked. There are no reference answers.
    """

    component: ClassVar[str] = "trec"
    version: ClassVar[int] = 2

    name: str = runtime("trec")
    docs: str | Path | None = runtime(None)
    topics: str | Path | None = runtime(None)
    qrels: str | Path | None = runtime(None)
    query_field: str = "title"
    encoding: str = "utf-8"
    title_in_text: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_text("dataset.query_field", self.query_field, "names of elements of a topic, such as desc")
        require_flag("dataset.title_in_text", self.title_in_text)
        require("dataset.encoding", self.encoding, is_encoding(self.encoding), "encodings that Python knows")

    def files(self) -> Mapping[str, Path]:
        """Every file of the documents, `topics` and `qrels`; ConfigError if one is not there."""
        return {
            **self._documents(),
            "topics": existing_file("topics", self.topics),
            "qrels": existing_file("qrels", self.qrels),
        }

    def load(self) -> Dataset:
        """The collection, its documents in batches; DataError names file, line, qid and what is wrong."""
        documents = self._documents()
        topics, qrels = existing_file("topics", self.topics), existing_file("qrels", self.qrels)

        def corpus() -> Iterator[tuple[str, Line]]:
            for file in documents.values():
                yield from self._read_documents(file)

        return judged_dataset(
            self,
            Rows(str(self.docs), corpus, self._document),
            Rows(str(topics), lambda: self._read_topics(topics), lambda read: read[0](read[1])),
            Rows(str(qrels), lambda: lines(qrels), self._judgement),
        )

    def _documents(self) -> dict[str, Path]:
        """The files of the documents by role; hidden ones of a folder are passed over."""
        folder = None if self.docs is None else Path(self.docs).expanduser()
        if folder is None or not folder.is_dir():
            return {"docs": existing_file("docs", self.docs)}
        names = (file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
        seen = sorted(name.as_posix() for name in names if not any(p.startswith(".") for p in name.parts))
        if not seen:
            raise ConfigError(f"dataset.docs={self.docs}: the folder holds no file")
        return {f"docs/{name}": folder / name for name in seen}

    def _read_documents(self, file: Path) -> Iterator[tuple[str, Any]]:
        start = _start(file)
        if start == "<":
            for where, block in blocks(file, "DOC", self.encoding):
                yield where, (document, block)
        else:
            is_json = start in ("{", "[")
            parse = _json_document if is_json else partial(_cells, self.encoding)
            for where, row in json_rows(file) if is_json else lines(file):
                yield where, (parse, row)

    def _document(self, read: tuple[Callable[[Any], Any], Any]) -> Document:
        found = read[0](read[1])
        docno, title, text = found if len(found) == 3 else (found[0], "", found[1])
        return docno, title, searched_text(title, text, self.title_in_text)

    def _read_topics(self, file: Path) -> Iterator[tuple[str, tuple[Callable[[Any], Query], Any]]]:
        if _start(file) == "<":
            for where, block in blocks(file, "top|topic", self.encoding):
                yield where, (partial(topic, field=self.query_field), block)
        else:
            for where, line in lines(file):
                yield where, (partial(_cells, self.encoding), line)

    def _judgement(self, line: bytes) -> Judgement:
        cells = text_of(line, self.encoding).split()
        if len(cells) != 4:
            raise BadRow(f"{len(cells)} columns where four are expected: qid, iteration, docno and relevance")
        return cells[0], cells[2], grade_of(cells[3])


def _start(file: Path) -> str:
    """The first character that is no white space; "" of an empty file."""
    for line in every_line(file):
        text = line.removeprefix(codecs.BOM_UTF8).strip()
        if text:
            return chr(text[0])
    return ""


def _json_document(read: Any) -> Document:
    row = parse_json(read)
    title = string(row, "title") if isinstance(row, Mapping) and row.get("title") is not None else ""
    return string(row, _key(row, _DOCNO)), title, string(row, _key(row, _TEXT))


def _key(row: Any, names: tuple[str, ...]) -> str:
    """The first of the names that the row has, else the first of them."""
    return next((name for name in names if isinstance(row, Mapping) and name in row), names[0])


def _cells(encoding: str, line: bytes) -> tuple[str, str]:
    cells = text_of(line, encoding).split("\t")
    if len(cells) != 2:
        raise BadRow(f"{len(cells)} cells where two, separated by a tab, are expected: an id and a text")
    return cells[0].strip(), cells[1].strip()
