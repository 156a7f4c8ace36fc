"""DPR's files of Natural Questions, TriviaQA and others: passages with and without the answer."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragauge.contract.checks import require_choice
from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import DataError
from ragauge.contract.identity import runtime
from ragauge.datasets.fields import BadRow, listed, listed_or_none, string, strings, valid_string
from ragauge.datasets.files import existing_file, parsed, rows
from ragauge.datasets.gather import FileSource, Gatherer, Paragraphs
from ragauge.datasets.packing import every_line

_POOLS = ("positive_ctxs", "negative_ctxs", "hard_negative_ctxs")
_IDS = ("passage_id", "psg_id", "id")  # what Natural Questions, TriviaQA and retrieval results call it


@dataclass(frozen=True)
class _Question:
    """A question of the file, its answers, and (docno, text) of its positive passages."""

    text: str
    answers: list[str]
    positives: list[tuple[str, str]]


@dataclass(frozen=True)
class DPR(FileSource):
    """Questions and passages in the format of Karpukhin et al. (2020) from `path`.

    The documents are the passages of `corpus` (their psgs_w100.tsv), where it is set, and the distinct ones
    of all questions. evidence: `first`, the first positive passage; `all`, every one.
    """

    component = "dpr"
    version = 1

    name: str = runtime("dpr")
    path: str | Path | None = runtime(None)
    corpus: str | Path | None = runtime(None)
    evidence: str = "first"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("dataset.evidence", self.evidence, ("first", "all"))

    def files(self) -> Mapping[str, Path]:
        """The files `path` and, if set, `corpus`; ConfigError if one does not exist."""
        files = {"path": existing_file("path", self.path)}
        if self.corpus is not None:
            files["corpus"] = existing_file("corpus", self.corpus)
        return files

    def load(self) -> Dataset:
        """The collection; DataError names file, row and error. The qid is the row, from 0."""
        files = self.files()
        gather = Gatherer(self)
        passages = Paragraphs(gather)
        if "corpus" in files:
            for where, cells in _table(files["corpus"]):
                with gather.row(where):
                    docno, text, title = _cells(cells)
                    passages.add(title, text, docno)
        questions: list[tuple[str, str, _Question]] = []
        for number, (where, line) in enumerate(rows(files["path"])):
            with gather.row(where) as at:
                row = parsed(line)
                string(row, "question")
                at.qid = qid = str(number)
                listed(row, "answers")
                answers = strings(row, "answers")
                found = {pool: _passages(row, pool) for pool in _POOLS}
                docnos = {pool: [passages.add(*one) for one in several] for pool, several in found.items()}
                texts = [text for _, text, _ in found["positive_ctxs"]]
                positives = list(zip(docnos["positive_ctxs"], texts, strict=True))
                # Without its other passages: those of all questions are gigabytes.
                questions.append((where, qid, _Question(row["question"], answers, positives)))
        for where, qid, question in questions:
            if gather.full:
                break
            with gather.row(where) as at:
                at.qid = qid
                parts = question.positives if self.evidence == "all" else question.positives[:1]
                gather.add_topic(qid, question.text, question.answers, parts)
        return gather.dataset(files.get("corpus", files["path"]), files["path"])


def _passages(row: Mapping[str, Any], pool: str) -> list[tuple[str, str, str | None]]:
    """Title, text and id of the passages of a pool; only the positive list is required."""
    entries = listed(row, pool) if pool == _POOLS[0] else listed_or_none(row, pool)
    found = []
    for number, entry in enumerate(entries):
        try:
            text = string(entry, "text")
            if not text.strip():
                raise BadRow("'text' is empty")
            title = "" if entry.get("title") is None else string(entry, "title")
            given = next((entry[key] for key in _IDS if entry.get(key) is not None), None)
            if type(given) is int:
                given = str(given)
            named = None if given is None else valid_string(given, "the passage's id")
        except BadRow as bad:
            raise BadRow(f"entry {number} of {pool!r}: {bad}") from None
        found.append((title, text, named or None))
    return found


def _table(file: Path) -> Iterator[tuple[str, list[str]]]:
    """The place and cells of each line of a passage table, without the header id, text, title."""
    text = codecs.iterdecode(every_line(file), "utf-8-sig")
    reader = csv.reader(text, delimiter="\t")
    try:
        for cells in reader:
            if cells and cells[0] != "id":
                yield f"{file}, line {reader.line_num}", cells
    except (csv.Error, ValueError) as error:
        raise DataError(f"{file}, line {reader.line_num + 1}: {error}") from None


def _cells(cells: list[str]) -> tuple[str, str, str]:
    if len(cells) != 3:
        raise BadRow(f"{len(cells)} columns in place of id, text, title, separated by tabs")
    return cells[0], cells[1], cells[2]
