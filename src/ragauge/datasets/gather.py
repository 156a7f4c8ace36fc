"""Shared by all loaders: checks rows one by one and gathers them into the three frames.

A source reads the row; this module checks that it can be evaluated. A bad row is named and raised, or dropped and
described.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import pandas as pd

from ragauge.contract.checks import require_choice, require_count, require_text
from ragauge.contract.datasets import Dataset, Source
from ragauge.contract.errors import DataError
from ragauge.contract.frames import Batches
from ragauge.contract.identity import runtime
from ragauge.contract.outcomes import RESERVED
from ragauge.contract.topics import HISTORY, SAME_QUESTION
from ragauge.datasets.fields import Attribute, BadRow, is_attribute, short, valid_string
from ragauge.datasets.files import existing_file

log = logging.getLogger(__name__)

T = TypeVar("T")
Document = tuple[str, str, str]  # docno, title, text
_BATCH_CHARACTERS = 8_000_000
_BATCH_ROWS = 50_000
PASSAGE_MARK = "%p"  # PyTerrier's passage convention: what follows it in a docno numbers a chunk
Part = tuple[str | None, str | None] | tuple[str | None, str | None, int]  # docno, text, relevance (1)


@dataclass
class Row:
    """Place of the current row (file and line), and its qid once known."""

    where: str
    qid: str | None = None


@dataclass(frozen=True)
class FileSource(Source):
    """The parameters that all datasets have."""

    name: str = runtime("dataset")
    on_error: str = "raise"
    limit: int | None = None

    def __post_init__(self) -> None:
        require_text("dataset.name", self.name, "names")
        require_choice("dataset.on_error", self.on_error, ("raise", "skip"))
        require_count("dataset.limit", self.limit, null="all topics")


@dataclass(frozen=True)
class OneFile(FileSource):
    """A source that is one file, `path`."""

    path: str | Path | None = runtime(None)

    def files(self) -> Mapping[str, Path]:
        """The file `path`; ConfigError if it is not there."""
        return {"path": existing_file("path", self.path)}


class Gatherer:
    """Gathers documents, then topics with their evidence, into a Dataset."""

    def __init__(self, source: FileSource) -> None:
        self._skip = source.on_error == "skip"
        self._limit = source.limit
        self._docs: dict[str, tuple[str, str] | None] = {}  # None: neither title nor text are kept
        self._without_text: list[str] = []
        self._topics: dict[str, _Topic] = {}
        self._evidence: list[tuple[str, int, str | None, str | None, int]] = []
        self._skipped: list[str] = []

    @contextmanager
    def row(self, where: str, columns: Mapping[str, str | None] | None = None) -> Iterator[Row]:
        """Context for reading one row at `where` (file and line); raises or drops a bad one.

        columns: the file's own names of docno, qid, query, answer and evidence, for errors.
        """
        row = Row(where)
        try:
            yield row
        except BadRow as bad:
            qid = "" if row.qid is None else f", qid {row.qid!r}"
            column = (columns or {}).get(bad.of or "") or bad.of
            message = f"{where}{qid}: {bad}{'' if column == bad.of else f' (column {column!r})'}"
            if not self._skip:
                raise DataError(f"{message} (dataset.on_error=skip drops such rows)") from None
            self._skipped.append(message)

    @property
    def full(self) -> bool:
        """True if `limit` topics were taken."""
        return self._limit is not None and len(self._topics) >= self._limit

    def has_document(self, docno: str) -> bool:
        return docno in self._docs

    def document_text(self, docno: str) -> str:
        """The text of a document; BadRow if there is none of that docno."""
        if docno not in self._docs:
            raise BadRow(f"evidence names docno {docno!r}, which is no document of the corpus", "evidence")
        return (self._docs[docno] or ("", ""))[1]

    def end_of_documents(self, source: Path | str) -> None:
        """To be called before topics are added; DataError without a document, or without a text in any.

        Evidence in a document that is not there would otherwise be reported as a fault of the question.
        """
        self._require_any(self._docs, "document", source)
        if len(self._without_text) == (n := len(self._docs)):
            of = "its document has no text" if n == 1 else f"none of its {n:,} documents has a text"
            raise DataError(f"{source}: {of}; without one nothing can be retrieved")

    def _warn_of_empty(self, source: Path | str) -> None:
        if empty := self._without_text:
            few = ", ".join(map(repr, empty[:3])) + (", …" if len(empty) > 3 else "")
            have = "documents has no text and is" if len(empty) == 1 else "documents have no text and are"
            of = f"{len(empty):,} of {len(self._docs):,}"
            log.warning("%s: %s %s never retrieved: %s", source, of, have, few)

    def _require_any(self, found: Mapping[str, Any], what: str, source: Path | str) -> None:
        if not found:
            n = len(self._skipped)
            dropped = f"; of {n} things left out the first: {self._skipped[0]}" if n else ""
            raise DataError(f"{source}: no {what} in it{dropped}")

    def note(self, what: str) -> None:
        """Counts and reports an omitted part, independent of `on_error`."""
        self._skipped.append(what)

    def add_document(self, docno: str, title: str, text: str, *, keep: bool = True) -> None:
        """Adds a document; with `keep=False` only its docno, since its text comes in batches."""
        _check_identifier("docno", docno)
        if PASSAGE_MARK in docno:
            raise BadRow(f"docno {docno!r} holds {PASSAGE_MARK!r}, which marks the chunks of a document", "docno")
        if docno in self._docs:
            raise BadRow(f"docno {docno!r} stands twice in the corpus", "docno")
        self._docs[docno] = (title, text) if keep else None
        if not text.strip():
            self._without_text.append(docno)

    def add_topic(
        self,
        qid: str,
        query: str,
        answer: str | Sequence[str] | None,
        evidence: Iterable[Part],
        attributes: Mapping[str, Attribute] | None = None,
        *,
        unanswerable: bool = False,
        wrong_answers: Sequence[str] = (),
        history: Sequence[str] = (),
        numbered: bool = False,
    ) -> None:
        """Adds one topic; repeated evidence parts count once.

        answer: the reference answer, or all of them, the one to be shown first; None or [] where none is
            known. evidence: docno (or None), text (or None where the document alone is known) and relevance
            (1 where it is left out, above 0). A part of a text names a document of the corpus or none.
            unanswerable: the documents do not answer the question; such a topic has no reference answer.
            wrong_answers: the answers that a document with a changed fact leads to (`ragauge.contract.changed`).
            history: the earlier turns, question and answer in turn. numbered: the qid is the number of the row, which
            has none of its own. Such topics of one question have the attribute SAME_QUESTION, and are one cluster.
        """
        _check_identifier("qid", qid)
        if qid in self._topics:
            raise BadRow("this qid stands twice", "qid")
        if not query.strip():
            raise BadRow("the query is empty", "query")
        answers = (answer,) if isinstance(answer, str) else tuple(dict.fromkeys(answer or ()))
        if any(not one.strip() for one in answers):
            raise BadRow("the reference answer is empty", "answer")
        if unanswerable and answers:
            raise BadRow(f"the topic is unanswerable, and has the reference answer {answers[0]!r}", "answer")
        if any(not one.strip() for one in wrong_answers):
            raise BadRow("a wrong answer is empty")
        if both := sorted(set(answers) & set(wrong_answers)):
            raise BadRow(f"{both[0]!r} is both a reference answer and a wrong one")
        if len(history) % 2:
            raise BadRow(f"'history' has {len(history)} texts: each turn has two, question and answer")
        parts = self._parts(evidence)
        for name, value in (attributes or {}).items():
            _check_attribute(name, value)
        wrong = tuple(dict.fromkeys(wrong_answers))
        self._topics[qid] = _Topic(query, answers, attributes or {}, unanswerable, wrong, tuple(history), numbered)
        self._evidence.extend((qid, number, *part) for number, part in enumerate(parts))

    def _parts(self, evidence: Iterable[Part]) -> list[tuple[str | None, str | None, int]]:
        found: dict[tuple[str | None, str | None], int] = {}
        for number, (docno, text, *relevance) in enumerate(evidence):
            of = "" if docno is None else f" (docno {docno!r})"
            text = None if text is None else text.strip()
            if text == "":
                raise BadRow(f"evidence part {number}{of} is empty", "evidence")
            if docno is None and text is None:
                raise BadRow(f"evidence part {number} has neither a text nor a docno")
            if docno is not None:
                self.document_text(docno)
            grade = relevance[0] if relevance else 1
            if type(grade) is not int or grade < 1:
                raise BadRow(f"evidence part {number}{of}: relevance {grade!r} is no whole number from 1")
            found[docno, text] = max(grade, found.get((docno, text), 0))
        return [(docno, text, grade) for (docno, text), grade in found.items()]

    def dataset(self, docs_file: Path | str | None, topics_file: Path | str, docs: Batches | None = None) -> Dataset:
        """The gathered dataset; DataError without a topic or a document.

        docs_file is None of a collection that need not have documents: texts come with what was retrieved.
        docs: the documents in batches, where not all of their texts were kept.
        """
        if docs_file is not None:
            self.end_of_documents(docs_file)
            self._warn_of_empty(docs_file)
        self._require_any(self._topics, "topic", topics_file)
        found = self._document_frame() if docs is None else docs
        return Dataset(found, self._topic_frame(), self._evidence_frame(), tuple(self._skipped))

    def documents(self, file: Path | str) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Frame `docs` and the skipped rows, without topics; DataError if no document is left."""
        self.end_of_documents(file)
        self._warn_of_empty(file)
        return self._document_frame(), tuple(self._skipped)

    def _document_frame(self) -> pd.DataFrame:
        return document_frame([(docno, *kept) for docno, kept in self._docs.items() if kept is not None])

    def _topic_frame(self) -> pd.DataFrame:
        topics = list(self._topics.values())
        frame = pd.DataFrame(
            {
                "qid": list(self._topics),
                "query": [topic.query for topic in topics],
                "answer": [topic.answers[0] if topic.answers else None for topic in topics],
            },
            dtype="str",
        )
        if any(len(topic.answers) > 1 for topic in topics):
            frame["answers"] = pd.Series([list(topic.answers) for topic in topics], dtype=object)
        if any(topic.unanswerable for topic in topics):
            frame["unanswerable"] = [topic.unanswerable for topic in topics]
        if any(topic.wrong_answers for topic in topics):
            frame["wrong_answers"] = pd.Series([list(topic.wrong_answers) for topic in topics], dtype=object)
        if any(topic.history for topic in topics):
            frame[HISTORY] = pd.Series([list(topic.history) for topic in topics], dtype=object)
        if any(same := self._same_questions()):
            frame[SAME_QUESTION] = pd.Series(same, dtype="str")
        for name in dict.fromkeys(name for topic in topics for name in topic.attributes):
            values = [topic.attributes.get(name) for topic in topics]
            given = [value for value in values if value is not None]
            if not given:
                continue
            if all(type(value) in (int, float) for value in given):
                frame[name] = pd.Series(values, dtype="float64")
            else:
                frame[name] = pd.Series([_shown(value) for value in values], dtype="str")
        return frame

    def _same_questions(self) -> list[str | None]:
        """For each topic without an id, the qid of the first topic with the same question; None if it is unique."""
        asked: dict[Any, list[str]] = {}
        for qid, topic in self._topics.items():
            if topic.numbered:
                asked.setdefault((" ".join(topic.query.split()).casefold(), topic.history), []).append(qid)
        first = {qid: qids[0] for qids in asked.values() if len(qids) > 1 for qid in qids}
        return [first.get(qid) for qid in self._topics]

    def _evidence_frame(self) -> pd.DataFrame:
        columns = list(zip(*self._evidence, strict=True)) or [()] * 5
        qids, parts, docnos, texts, grades = columns
        frame = pd.DataFrame(
            {
                "qid": pd.Series(qids, dtype="str"),
                "part": pd.Series(parts, dtype="int64"),
                "docno": pd.Series(docnos, dtype="str"),
                "text": pd.Series(texts, dtype="str"),
            }
        )
        return frame if set(grades) <= {1} else frame.assign(relevance=pd.Series(grades, dtype="int64"))


def document_frame(rows: Sequence[tuple[str, str, str]]) -> pd.DataFrame:
    """Frame `docs` of docno, title and text."""
    return pd.DataFrame(rows, columns=["docno", "title", "text"], dtype="str")


@dataclass(frozen=True)
class _Topic:
    query: str
    answers: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    unanswerable: bool
    wrong_answers: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    numbered: bool = False


def _shown(value: Attribute) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def _check_attribute(name: str, value: Attribute) -> None:
    if name in RESERVED:
        raise BadRow(f"attribute {name!r}: the name is taken; rename it")
    if not is_attribute(value):
        raise BadRow(f"attribute {name!r} is neither a text nor a number: {short(value)}")
    if isinstance(value, str):
        valid_string(value, f"attribute {name!r}")
    if isinstance(value, (int, float)) and not abs(value) <= sys.float_info.max:
        raise BadRow(f"attribute {name!r}: {short(value)} is no finite number")


def _check_identifier(what: str, value: str) -> None:
    # A run file separates its columns by white space.
    if not value or value.split() != [value] or "\0" in value:
        raise BadRow(f"{what} {value!r} is empty or holds white space", what)


class Paragraphs:
    """Adds distinct paragraphs to the gatherer, each with a readable docno.

    Docnos depend on the paragraphs alone, in their order: not on `limit`, nor on which topics are dropped.
    """

    def __init__(self, gather: Gatherer) -> None:
        self._gather = gather
        self._docnos: dict[tuple[str, str], str] = {}
        self._named: dict[str, int] = {}  # how many paragraphs a name has had so far

    def known(self, title: str, text: str) -> str | None:
        """The docno of a paragraph; None if it was not added."""
        return self._docnos.get((title, text))

    def add(self, title: str, text: str, name: str | None = None) -> str:
        """The docno of the paragraph, added as a document unless one has the same title and text.

        It is the name (the title where none is given) with underscores for white space; a further paragraph
        of the same name has ~2, ~3 … behind it.
        """
        known = self.known(title, text)
        if known is not None:
            return known
        slug = identifier(title if name is None else name)
        docno = slug
        while self._gather.has_document(docno):
            self._named[slug] = self._named.get(slug, 1) + 1
            docno = f"{slug}~{self._named[slug]}"
        self._gather.add_document(docno, title, text)
        self._docnos[title, text] = docno
        return docno


def identifier(name: str) -> str:
    """The name without characters that a docno or qid may not hold; `untitled` if none are left."""
    return re.sub(r"[\s\0]+", "_", name.strip()).replace(PASSAGE_MARK, "%25p") or "untitled"


@dataclass(frozen=True)
class Rows(Generic[T]):
    """The rows of one source, such as a file.

    source: its name in errors about all rows. read: where each row stands and the row as it is, from the first at every
        call. parse: the value of a row, or BadRow. columns: as in `Gatherer.row`.
    """

    source: str
    read: Callable[[], Iterator[tuple[str, Any]]]
    parse: Callable[[Any], T]
    columns: Mapping[str, str | None] = field(default_factory=dict)


def stream_documents(gather: Gatherer, rows: Rows[Document], texts_of: Collection[str] = ()) -> Batches:
    """Adds all documents to the gatherer, which keeps only some texts; returns all of them in batches.

    Reads the rows once, raising or dropping bad ones, and again for each reading of the batches. DataError if they
    have changed by then.
    """
    dropped: set[int] = set()
    n_good = 0
    for number, (where, row) in enumerate(rows.read()):
        dropped.add(number)
        with gather.row(where, rows.columns):
            docno, title, text = rows.parse(row)
            gather.add_document(docno, title, text, keep=docno in texts_of)
            dropped.discard(number)
            n_good += 1

    def batches() -> Iterator[pd.DataFrame]:
        batch: list[Document] = []
        n_read = characters = 0
        changed = DataError(f"{rows.source}: it changed while it was read; run it again")
        for number, (_, row) in enumerate(rows.read()):
            if number in dropped:
                continue
            try:
                batch.append(rows.parse(row))
            except BadRow:
                raise changed from None
            n_read += 1
            characters += len(batch[-1][2])
            if characters >= _BATCH_CHARACTERS or len(batch) >= _BATCH_ROWS:
                yield document_frame(batch)
                batch, characters = [], 0
        if n_read != n_good:
            raise changed
        if batch:
            yield document_frame(batch)

    return Batches(batches)
