"""A data set of the Hugging Face Hub, or local files in its form, with columns named by the config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragauge.contract.checks import require, require_text
from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.datasets.fields import BadRow, valid_string
from ragauge.datasets.files import parsed
from ragauge.datasets.gather import Document, FileSource, Gatherer, Part, Rows, stream_documents
from ragauge.datasets.lists import all_texts, printed_list
from ragauge.plugins.benchmarks.hub import Table

_COLUMNS = ("qid_column", "answer_column", "contexts_column", "evidence_column", "relevant_column",
            "unanswerable_column", "title_column")  # fmt: skip


@option("dataset/huggingface")
class HuggingFace(FileSource):
    """Questions from one table, and documents from another or from the questions' own contexts.

    path: a file or folder of Parquet, JSON, JSON Lines or CSV, or a name on the hub, which `subset`, `split` and
    `revision` complete. `docs`, `docs_subset` and `docs_split` are the same for the documents. All columns of questions
    but `question_column` may be None. contexts_column: texts; the distinct ones are the documents where no table of
    documents is given. evidence_column: texts.
    relevant_column: docnos of the documents that these texts stand in, or, without texts, whose whole texts
    are the evidence. No code of a data set is ever run.
    """

    component = "huggingface"
    version = 3

    name: str = runtime(CONF)
    path: str | Path | None = runtime(CONF)
    subset: str | None = CONF
    split: str | None = CONF
    revision: str | None = runtime(CONF)
    docs: str | Path | None = runtime(CONF)
    docs_subset: str | None = CONF
    docs_split: str | None = CONF
    qid_column: str | None = CONF
    question_column: str = CONF
    answer_column: str | None = CONF
    contexts_column: str | None = CONF
    evidence_column: str | None = CONF
    relevant_column: str | None = CONF
    unanswerable_column: str | None = CONF
    attribute_columns: Sequence[str] = CONF
    docno_column: str = CONF
    title_column: str | None = CONF
    text_column: str = CONF

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("question_column", "docno_column", "text_column", *_COLUMNS):
            if key not in _COLUMNS or getattr(self, key) is not None:
                require_text(f"dataset.{key}", getattr(self, key), "names of columns")
        many = isinstance(self.attribute_columns, Sequence) and not isinstance(self.attribute_columns, str)
        require("dataset.attribute_columns", self.attribute_columns, many, "lists of names of columns")

    def files(self) -> Mapping[str, Path]:
        """Every file of questions and documents; ConfigError if there is none."""
        topics, docs = self._tables()
        found = {f"topics/{number}": file for number, file in enumerate(topics.files())}
        if docs is not None:
            found |= {f"docs/{number}": file for number, file in enumerate(docs.files())}
        return found

    def load(self) -> Dataset:
        """The collection; DataError names file, row (from 1) or line, qid and error."""
        topics, docs = self._tables()
        gather = Gatherer(self)
        questions = list(self._questions(gather, topics))
        batches = None
        if docs is not None:
            relevant = {docno for question in questions for docno in question.relevant}
            batches = stream_documents(
                gather, Rows(docs.path, docs.rows, self._document, {"docno": self.docno_column}), relevant
            )
        contexts: dict[str, str] = {}
        if docs is None:
            for text in (text for question in questions for text in question.contexts):
                if text.strip() and text not in contexts:
                    contexts[text] = f"context-{len(contexts) + 1}"
                    gather.add_document(contexts[text], "", text)
        columns = {
            "qid": self.qid_column,
            "query": self.question_column,
            "answer": self.answer_column,
            "evidence": self.evidence_column or self.relevant_column,
        }
        for question in questions:
            if gather.full:
                break
            with gather.row(question.where, columns) as at:
                row = question.row
                at.qid = qid = self._qid(question)
                queries = _texts(row, self.question_column, printed=False)
                if len(queries) != 1:
                    raise BadRow(f"column {self.question_column!r} holds {len(queries)} texts, not one")
                gather.add_topic(
                    qid,
                    queries[0],
                    [] if self.answer_column is None else _texts(row, self.answer_column),
                    self._evidence(gather, question, contexts),
                    {name: _attribute(row, name) for name in self.attribute_columns},
                    unanswerable=_flag(row, self.unanswerable_column),
                    numbered=self.qid_column is None,
                )
        no_documents = docs is None and self.contexts_column is None
        return gather.dataset(None if no_documents else (docs or topics).path, topics.path, batches)

    def _tables(self) -> tuple[Table, Table | None]:
        """The tables of the questions and of the documents."""
        if self.path is None or not str(self.path).strip():
            raise ConfigError("dataset.path is not set: give a file, a folder or a name on the hub")
        topics = Table("path", str(self.path), self.subset, self.split, self.revision)
        if self.docs is None and self.docs_subset is None and self.docs_split is None:
            return topics, None
        where = ("path", self.path) if self.docs is None else ("docs", self.docs)
        revision = self.revision if self.docs is None else None
        return topics, Table(where[0], str(where[1]), self.docs_subset, self.docs_split, revision)

    def _questions(self, gather: Gatherer, table: Table) -> Iterator[_Question]:
        for number, (where, raw) in enumerate(table.rows(), start=1):
            found = []
            with gather.row(where):
                row = parsed(raw)
                contexts = [] if self.contexts_column is None else _texts(row, self.contexts_column)
                relevant = [] if self.relevant_column is None else _docnos(row, self.relevant_column)
                found.append(_Question(where, number, row, contexts, relevant))
            yield from found

    def _document(self, raw: Any) -> Document:
        row = parsed(raw)
        title = "" if self.title_column is None else " ".join(_texts(row, self.title_column, printed=False))
        return _identifier(row, self.docno_column), title, "\n".join(_texts(row, self.text_column, printed=False))

    def _qid(self, question: _Question) -> str:
        return str(question.number) if self.qid_column is None else _identifier(question.row, self.qid_column)

    def _evidence(self, gather: Gatherer, question: _Question, contexts: Mapping[str, str]) -> list[Part]:
        if self.evidence_column is None:
            texts = [(docno, gather.document_text(docno)) for docno in question.relevant]
            return [(docno, text if text.strip() else None) for docno, text in texts]
        texts_of_row = _texts(question.row, self.evidence_column)
        if self.relevant_column is None:
            return [(_holder(text, question.contexts, contexts), text) for text in texts_of_row]
        if len(texts_of_row) != len(question.relevant):
            raise BadRow(
                f"{len(texts_of_row)} texts in column {self.evidence_column!r}, and {len(question.relevant)} "
                f"documents that they stand in in column {self.relevant_column!r}"
            )
        return list(zip(question.relevant, texts_of_row, strict=True))


@dataclass(frozen=True)
class _Question:
    where: str
    number: int
    row: dict[str, Any]
    contexts: list[str]
    relevant: list[str]


def _holder(text: str, candidates: Sequence[str], docnos: Mapping[str, str]) -> str | None:
    """The docno of the row's first context that contains the text."""
    found = (docnos[context] for context in candidates if text.strip() in context and context in docnos)
    return next(found, None)


def _cell(row: Mapping[str, Any], column: str) -> Any:
    if column not in row:
        raise BadRow(f"column {column!r} is missing; the row has {', '.join(map(repr, row)) or 'none'}")
    return row[column]


def _texts(row: Mapping[str, Any], column: str, printed: bool = True) -> list[str]:
    """The texts of a cell: a text, a list of texts, or the entry `text` of an object; [] for none.

    printed: a text that is a printed list of texts is these; the text of a document is one whatever it says.
    """
    value = _cell(row, column)
    if value is None:
        return []
    what = f"column {column!r}: what should be a text or a list of texts"
    return all_texts(value, what) if printed or not isinstance(value, str) else [valid_string(value, what)]


def _docnos(row: Mapping[str, Any], column: str) -> list[str]:
    """The docnos of a cell: like `_texts`, but a printed list of numbers gives several."""
    value = _cell(row, column)
    listed = printed_list(value) if isinstance(value, str) else None
    return _texts({column: value if listed is None else listed}, column)


def _identifier(row: Mapping[str, Any], column: str) -> str:
    values = _texts(row, column, printed=False)
    if len(values) != 1:
        raise BadRow(f"column {column!r} holds {len(values)} ids, not one")
    return values[0]


def _attribute(row: Mapping[str, Any], column: str) -> Any:
    value = _cell(row, column)
    return None if value != value else value  # NaN is how some tables say that nothing is there


def _flag(row: Mapping[str, Any], column: str | None) -> bool:
    value = None if column is None else _cell(row, column)
    known = {None: False, True: True, False: False, "true": True, "false": False}
    value = value.lower() if isinstance(value, str) else value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, (list, dict)) or value not in known:
        raise BadRow(f"column {column!r} is neither true nor false: {value!r}")
    return known[value]
