"""A folder in BEIR's format: corpus.jsonl, queries.jsonl and qrels/<split>.tsv."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragauge.contract.checks import require_flag, require_text
from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.datasets.fields import BadRow, string
from ragauge.datasets.files import existing_folder, json_rows, lines, parse_json, text_of
from ragauge.datasets.gather import Document, Rows
from ragauge.datasets.packing import PACKED
from ragauge.plugins.benchmarks.judged import (
    JudgedSource,
    Judgement,
    Query,
    grade_of,
    judged_dataset,
    searched_text,
)

_GRADES = ("score", "relevance", "rel", "label", "grade")  # what a header calls the third column


@option("dataset/beir")
class Beir(JudgedSource):
    """BEIR (Thakur et al., 2021): the queries that `split` judges, and all documents of the corpus.

    title_in_text: a document's text is its title, a space and its text, as BEIR's own models read it. There
    are no reference answers.
    """

    component = "beir"
    version = 1

    name: str = runtime(CONF)
    path: str | Path | None = runtime(CONF)
    split: str = CONF
    title_in_text: bool = CONF

    def __post_init__(self) -> None:
        super().__post_init__()
        require_text("dataset.split", self.split, "names of files in qrels/")
        require_flag("dataset.title_in_text", self.title_in_text)

    def files(self) -> Mapping[str, Path]:
        """The three files, packed or not; ConfigError if one does not exist."""
        folder = existing_folder("path", self.path)
        return {
            "corpus": self._file(folder, "corpus.jsonl"),
            "queries": self._file(folder, "queries.jsonl"),
            "qrels": self._file(folder, f"qrels/{self.split}.tsv"),
        }

    def load(self) -> Dataset:
        """The collection, its documents in batches; DataError names file, line, qid and error."""
        files = self.files()
        corpus, queries, qrels = (files[role] for role in ("corpus", "queries", "qrels"))
        return judged_dataset(
            self,
            Rows(str(corpus), lambda: json_rows(corpus), self._document, {"docno": "_id"}),
            Rows(str(queries), lambda: json_rows(queries), _query, {"qid": "_id", "query": "text"}),
            Rows(str(qrels), lambda: _without_header(qrels), _judgement),
        )

    def _file(self, folder: Path, name: str) -> Path:
        for suffix in ("", *PACKED):
            if (file := folder / f"{name}{suffix}").is_file():
                return file
        there = ", ".join(sorted(p.name.split(".")[0] for p in folder.glob("qrels/*.tsv*")))
        hint = f"; dataset.split may be {there}" if name.startswith("qrels/") and there else ""
        raise ConfigError(f"dataset.path={self.path}: there is no {name} or {name}{PACKED[0]}{hint}")

    def _document(self, read: Any) -> Document:
        row = parse_json(read)
        docno, text = string(row, "_id"), string(row, "text")
        title = string(row, "title") if row.get("title") is not None else ""
        return docno, title, searched_text(title, text, self.title_in_text)


def _query(read: Any) -> Query:
    row = parse_json(read)
    return string(row, "_id"), string(row, "text")


def _without_header(file: Path) -> Iterator[tuple[str, bytes]]:
    """The lines without a header of column names."""
    for number, (where, line) in enumerate(lines(file)):
        if number == 0:
            cells = line.decode("utf-8", "replace").strip().split("\t")
            if len(cells) == 3 and cells[2].strip().lower() in _GRADES:
                continue
        yield where, line


def _judgement(line: bytes) -> Judgement:
    # Published files are written by csv, which puts quotes around an id that holds one.
    (cells,) = csv.reader([text_of(line)], delimiter="\t")
    if len(cells) != 3:
        raise BadRow(f"{len(cells)} cells where three, separated by tabs, are expected: query-id, corpus-id and score")
    return cells[0], cells[1], grade_of(cells[2])
