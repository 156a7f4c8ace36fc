"""Two CSV files, documents and topics, whose columns are named in the config."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from ragauge.contract.checks import require, require_text
from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import DataError
from ragauge.contract.identity import later, runtime
from ragauge.contract.option import CONF, option
from ragauge.datasets.fields import BadRow, string
from ragauge.datasets.files import csv_rows, existing_file, is_encoding, named_cells
from ragauge.datasets.gather import FileSource, Gatherer
from ragauge.datasets.lists import all_texts, flat

_OPTIONAL = ("qid_column", "answer_column", "evidence_column")
_OPTIONAL_TITLE = "title"
_LIST_ITEM = re.compile(r""""([^"]*)"|'([^']*)'|([^\s,'"\[\](){}]+)""")
_SHAPE = re.compile(r"[i\s,]*|[\s,]*(?:\[[i\s,]*\][\s,]*)+")  # of a list, and of one of lists: i is an item


@option("dataset/csv")
class CsvDataset(FileSource):
    """A collection from two CSV files with a header; evidence is the whole text of the relevant documents.

    `evidence_column` holds a printed list of ids, as JSON, Python or numpy print one. `title_column` may be
    absent as long as it has its default name; without `qid_column` a topic's qid is its row number, from 1.
    `answer_column` and `evidence_column` may be None, and their cells empty: such topics have no reference
    answer, or no evidence. A printed list of texts in `answer_column` is several references. `separator` stands
    between cells; `encoding` is that of both files.
    `attribute_columns` are the columns by which topics can be grouped.
    """

    component = "csv"
    version = 4

    name: str = runtime(CONF)
    docs: str | Path | None = runtime(CONF)
    topics: str | Path | None = runtime(CONF)
    docno_column: str = CONF
    title_column: str = CONF
    text_column: str = CONF
    qid_column: str | None = CONF
    query_column: str = CONF
    answer_column: str | None = CONF
    evidence_column: str | None = CONF
    attribute_columns: Sequence[str] = CONF
    separator: str = later(",")
    encoding: str = later("utf-8")

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, value in vars(self).items():
            if not key.endswith("_column") or (key in _OPTIONAL and value is None):
                continue
            require_text(f"dataset.{key}", value, "names of columns")
        one = isinstance(self.separator, str) and len(self.separator) == 1 and self.separator not in '"\r\n'
        require("dataset.separator", self.separator, one, "one character, such as , and ;")
        require("dataset.encoding", self.encoding, is_encoding(self.encoding), "utf-8, latin-1, cp1252 and such")

    def files(self) -> Mapping[str, Path]:
        """The files `docs` and `topics`; ConfigError if one is not there."""
        return {**self.document_files(), "topics": existing_file("topics", self.topics)}

    def document_files(self) -> Mapping[str, Path]:
        """The file `docs`; ConfigError if it is not there."""
        return {"docs": existing_file("docs", self.docs)}

    def load(self) -> Dataset:
        """The collection; DataError names file, row (from 1, without the header), qid and what is wrong."""
        files = self.files()
        gather = Gatherer(self)
        self._add_documents(gather, files["docs"])
        gather.end_of_documents(files["docs"])
        needed = ["query_column", *(key for key in _OPTIONAL if getattr(self, key) is not None)]
        columns = {
            "qid": self.qid_column,
            "query": self.query_column,
            "answer": self.answer_column,
            "evidence": self.evidence_column,
        }
        for number, *row in self._rows(files["topics"], needed):
            if gather.full:
                break
            with gather.row(f"{files['topics']}, row {number}", columns) as at:
                cells = named_cells(*row)
                qid = str(number) if self.qid_column is None else string(cells, self.qid_column).strip()
                at.qid = qid
                parts = [(docno, gather.document_text(docno)) for docno in self._docnos(cells)]
                attributes = {name: string(cells, name) or None for name in self.attribute_columns}
                query, numbered = string(cells, self.query_column), self.qid_column is None
                gather.add_topic(qid, query, self._answers(cells), parts, attributes, numbered=numbered)
        return gather.dataset(files["docs"], files["topics"])

    def documents(self) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Frame `docs` without a file of topics, and which rows were dropped."""
        file = self.document_files()["docs"]
        gather = Gatherer(self)
        self._add_documents(gather, file)
        return gather.documents(file)

    def _add_documents(self, gather: Gatherer, file: Path) -> None:
        needed = ["docno_column", "text_column"]
        if self.title_column != _OPTIONAL_TITLE:
            needed.append("title_column")
        for number, *row in self._rows(file, needed):
            with gather.row(f"{file}, row {number}", {"docno": self.docno_column}):
                cells = named_cells(*row)
                title = string(cells, self.title_column) if self.title_column in cells else ""
                docno = string(cells, self.docno_column).strip()
                gather.add_document(docno, title, string(cells, self.text_column))

    def _answers(self, cells: Mapping[str, str]) -> list[str]:
        """The reference answers; [] without the column, and of an empty cell."""
        if self.answer_column is None:
            return []
        cell = string(cells, self.answer_column)
        return all_texts(cell, f"column {self.answer_column!r}") if cell.strip() else []

    def _docnos(self, cells: Mapping[str, str]) -> list[str]:
        """The ids of the relevant documents; [] without the column, and of an empty cell."""
        if self.evidence_column is None:
            return []
        cell = string(cells, self.evidence_column)
        return _printed_list(cell, self.evidence_column) if cell.strip() else []

    def _rows(self, file: Path, needed: Iterable[str]) -> Iterator[tuple[int, list[str], list[str]]]:
        """Number, header and cells of each row; DataError where a needed column is absent."""

        def check(header: list[str]) -> None:
            for key in needed:
                column = getattr(self, key)
                if header.count(column) != 1:
                    found = "stands twice" if column in header else "is missing"
                    raise DataError(
                        f"{file}: column {column!r} (dataset.{key}) {found}; "
                        f"it has {', '.join(map(repr, header)) or 'no columns'}"
                    )

        advice = "dataset.separator says which separates them"
        return csv_rows(file, check, self.separator, self.encoding, advice)


def _printed_list(text: str, column: str) -> list[str]:
    """The ids in a list as JSON, Python or numpy print it: ["a", "b"], ['a', 'b'], [1, 2], [1 2] or [['a'], ['b']]."""
    no_list = BadRow(f"column {column!r} holds no list of ids such as [12, 7]: {text[:80]!r}")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        pass
    else:
        ids = flat(values) if isinstance(values, list) else [None]
        if not all(type(value) in (int, str) for value in ids):
            raise no_list
        return [str(value) for value in ids]
    text = text.strip()
    if len(text) < 2 or text[0] + text[-1] != "[]":
        raise no_list
    inner = text[1:-1]
    if not _SHAPE.fullmatch(_LIST_ITEM.sub("i", inner)):
        raise no_list
    return [next(group for group in match.groups() if group is not None) for match in _LIST_ITEM.finditer(inner)]
