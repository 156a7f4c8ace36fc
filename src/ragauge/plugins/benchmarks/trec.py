"""TREC's files: topics, qrels, and documents as SGML, JSON Lines or tab-separated lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from ragauge.contract.checks import require, require_flag, require_text
from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import later, runtime
from ragauge.contract.option import CONF, option
from ragauge.datasets.fields import BadRow, string
from ragauge.datasets.files import existing_file, first_character, is_encoding, json_rows, lines, parse_json, text_of
from ragauge.datasets.gather import Document, Gatherer, Rows, stream_documents
from ragauge.plugins.benchmarks.judged import (
    JudgedSource,
    Judgement,
    Query,
    grade_of,
    judged_dataset,
    searched_text,
)
from ragauge.plugins.benchmarks.sgml import blocks, document, topic

_DOCNO = ("docno", "id", "_id", "doc_id", "docid")
_TEXT = ("text", "contents", "segment")
_QID = ("qid", "id", "_id", "query_id")
_QUERY = ("query", "title", "narrative", "text")


@option("dataset/trec")
class Trec(JudgedSource):
    """A collection of documents (a file or a folder of files), topics and qrels as TREC publishes them.

    A file's first character decides its format: `<` SGML, `{` JSON Lines, else lines of two cells that a tab separates.
    query_field: the element of an SGML topic that is asked. There are no reference answers.
    docs, qrels: None of a system that was recorded: its texts, or what is relevant, are then not known.
    join_segments: makes one document of all segments `<document>#<segment>` that follow each other in the files, as
        MS MARCO v2.1 names them. Characters that two of them share, by `start_char` and `end_char`, stand once.
        Judgements of segments are then those of documents, the highest grade first.
    """

    component = "trec"
    version = 2

    name: str = runtime(CONF)
    docs: str | Path | None = runtime(CONF)
    topics: str | Path | None = runtime(CONF)
    qrels: str | Path | None = runtime(CONF)
    query_field: str = CONF
    encoding: str = CONF
    title_in_text: bool = CONF
    join_segments: bool = later(False)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_text("dataset.query_field", self.query_field, "names of elements of a topic, such as desc")
        require_flag("dataset.title_in_text", self.title_in_text)
        require_flag("dataset.join_segments", self.join_segments)
        require("dataset.encoding", self.encoding, is_encoding(self.encoding), "encodings that Python knows")

    def files(self) -> Mapping[str, Path]:
        """Every file of the documents, `topics` and `qrels`; ConfigError if one does not exist."""
        return {
            **({} if self.docs is None and self.qrels is None else self._documents()),
            "topics": existing_file("topics", self.topics),
            **({} if self.qrels is None else {"qrels": existing_file("qrels", self.qrels)}),
        }

    def load(self) -> Dataset:
        """The collection, its documents in batches; DataError names file, line, qid and error."""
        documents = {} if self.docs is None and self.qrels is None else self._documents()
        topics = existing_file("topics", self.topics)
        queries = Rows(str(topics), lambda: self._read_topics(topics), lambda read: read[0](read[1]))

        def corpus() -> Iterator[tuple[str, Any]]:
            rows = (row for file in documents.values() for row in self._read_documents(file))
            return joined(rows) if self.join_segments else rows

        docs = Rows(str(self.docs), corpus, self._document)
        if self.qrels is None:
            return self._unjudged(docs if documents else None, queries)
        qrels = existing_file("qrels", self.qrels)
        judged = Rows(str(qrels), lambda: lines(qrels), self._judgement)
        return judged_dataset(self, docs, queries, judged, highest=self.join_segments)

    def _unjudged(self, docs: Rows[Document] | None, queries: Rows[Query]) -> Dataset:
        """All queries, without evidence, and any documents."""
        gather = Gatherer(self)
        batches = None if docs is None else stream_documents(gather, docs)
        for where, row in queries.read():
            if gather.full:
                break
            with gather.row(where) as at:
                at.qid, text = queries.parse(row)
                gather.add_topic(at.qid, text, None, [])
        return gather.dataset(None if docs is None else docs.source, queries.source, batches)

    def _documents(self) -> dict[str, Path]:
        """The document files by role; skips hidden ones of a folder."""
        folder = None if self.docs is None else Path(self.docs).expanduser()
        if folder is None or not folder.is_dir():
            return {"docs": existing_file("docs", self.docs)}
        names = (file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
        seen = sorted(name.as_posix() for name in names if not any(p.startswith(".") for p in name.parts))
        if not seen:
            raise ConfigError(f"dataset.docs={self.docs}: the folder holds no file")
        return {f"docs/{name}": folder / name for name in seen}

    def _read_documents(self, file: Path) -> Iterator[tuple[str, Any]]:
        start = first_character(file)
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
        start = first_character(file)
        if start == "<":
            for where, block in blocks(file, "top|topic", self.encoding):
                yield where, (partial(topic, field=self.query_field), block)
        elif start in ("{", "["):
            for where, row in json_rows(file):
                yield where, (_json_topic, row)
        else:
            for where, line in lines(file):
                yield where, (partial(_cells, self.encoding), line)

    def _judgement(self, line: bytes) -> Judgement:
        cells = text_of(line, self.encoding).split()
        if len(cells) != 4:
            raise BadRow(f"{len(cells)} columns where four are expected: qid, iteration, docno and relevance")
        docno = cells[2].partition("#")[0] if self.join_segments else cells[2]
        return cells[0], docno, grade_of(cells[3])


def _json_document(read: Any) -> Document:
    row = parse_json(read)
    title = string(row, "title") if isinstance(row, Mapping) and row.get("title") is not None else ""
    return string(row, _key(row, _DOCNO)), title, string(row, _key(row, _TEXT))


def _json_topic(read: Any) -> Query:
    row = parse_json(read)
    key = _key(row, _QID)
    if isinstance(row, Mapping) and type(row.get(key)) is int:
        return str(row[key]), string(row, _key(row, _QUERY))
    return string(row, key), string(row, _key(row, _QUERY))


def joined(rows: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Rows of segments joined into rows of documents: consecutive segments of one document become one."""

    def document_of(row: tuple[str, Any]) -> str:
        try:
            return str(row[1][0](row[1][1])[0]).partition("#")[0]
        except BadRow:  # reported where it is read
            return row[0]

    for docno, segments in groupby(rows, document_of):
        own = list(segments)
        yield own[0][0], (partial(_join, docno), [row for _, row in own])


def _join(docno: str, segments: Sequence[tuple[Callable[[Any], Any], Any]]) -> Document:
    """One document from its segments, by `start_char`, else in the given order."""
    title, text, end = "", "", 0
    parts = [(parse(row), _place(row)) for parse, row in segments]
    for (_, own_title, *rest), (start, own_end) in sorted(parts, key=lambda part: part[1][0]):
        own = rest[0] if rest else own_title  # lines of two cells have no title
        title = title or (own_title if rest else "")
        shared = max(0, min(end - start, len(own))) if own_end else 0
        text += own[shared:] if shared else f"{' ' if text else ''}{own}"
        end = max(end, own_end)
    return docno, title, text


def _place(row: Any) -> tuple[int, int]:
    """The first and the past-the-end character of a segment in its document; 0, 0 if not given."""
    is_json = isinstance(row, Mapping) or (isinstance(row, bytes) and row.lstrip().startswith(b"{"))
    start, end = (parse_json(row).get(name) if is_json else None for name in ("start_char", "end_char"))
    return (start, end) if type(start) is int and type(end) is int else (0, 0)


def _key(row: Any, names: tuple[str, ...]) -> str:
    """The first of the names that the row has, else the first name."""
    return next((name for name in names if isinstance(row, Mapping) and name in row), names[0])


def _cells(encoding: str, line: bytes) -> tuple[str, str]:
    cells = text_of(line, encoding).split("\t")
    if len(cells) != 2:
        raise BadRow(f"{len(cells)} cells where two, separated by a tab, are expected: an id and a text")
    return cells[0].strip(), cells[1].strip()
