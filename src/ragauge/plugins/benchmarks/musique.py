"""MuSiQue's JSON Lines: paragraphs that support a question of two to four hops."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragauge.contract.checks import require_choice
from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import DataError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.datasets.fields import Attribute, BadRow, flag, listed, string, strings
from ragauge.datasets.files import parsed, rows
from ragauge.datasets.gather import Gatherer, OneFile, Paragraphs

_SHAPE = re.compile(r"((\d)hop\d*)__")  # of an id: 2hop__460946_294723, 3hop1__…, 4hop3__…


Paragraph = tuple[str, str]  # title and text


@dataclass(frozen=True)
class Question:
    """A question in use: its place, its row without paragraphs, and their docnos."""

    where: str
    qid: str
    row: Mapping[str, Any]
    answerable: bool
    docnos: frozenset[str]
    supporting: tuple[str, ...]


@option("dataset/musique")
class MuSiQue(OneFile):
    """MuSiQue (Trivedi et al., 2022), MuSiQue-Ans or MuSiQue-Full, from `path`.

    The documents are the distinct paragraphs of the questions that are taken; the evidence is the whole
    paragraphs that support one. questions: `answerable` or `unanswerable` takes these alone; null takes all
    of a file that does not hold one question in both forms.
    """

    component = "musique"
    version = 1

    name: str = runtime(CONF)
    questions: str | None = CONF

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.questions is not None:
            require_choice("dataset.questions", self.questions, ("answerable", "unanswerable"))

    def load(self) -> Dataset:
        """The collection; DataError names file, line, qid and error."""
        file = self.files()["path"]
        gather = Gatherer(self)
        corpus = Paragraphs(gather)
        taken: list[Question] = []
        forms: dict[str, set[bool]] = {}
        needed: dict[str, list[Paragraph]] = {}  # what supports the answerable form of a question
        for where, line in rows(file):
            with gather.row(where) as at:
                row = parsed(line)
                at.qid = qid = string(row, "id")
                answerable = flag(row, "answerable", default=True)
                paragraphs, supporting = _paragraphs(row, answerable)
                forms.setdefault(qid, set()).add(answerable)
                if answerable and self.questions != "answerable":
                    needed[qid] = supporting
                if self.questions in (None, "answerable" if answerable else "unanswerable"):
                    docnos = {one: corpus.add(*one) for one in paragraphs}
                    supports = tuple(docnos[one] for one in supporting)
                    # All rows with their paragraphs would be many times the corpus.
                    kept = {key: row.get(key) for key in ("question", "answer", "answer_aliases")}
                    of = frozenset(docnos.values())
                    taken.append(Question(where, qid, kept, answerable, of, supports))
        if self.questions is None:
            _refuse_pairs(file, forms)
        for question in taken:
            if gather.full:
                break
            with gather.row(question.where) as at:
                at.qid = question.qid
                if not question.answerable:
                    _check_withheld(corpus, question, needed.get(question.qid, []))
                _add(gather, question)
        return gather.dataset(file, file)


def _refuse_pairs(file: Path, forms: Mapping[str, set[bool]]) -> None:
    both = [qid for qid, found in forms.items() if len(found) > 1]
    if both:
        raise DataError(
            f"{file}: {len(both)} questions stand in it answerable and not ({both[0]!r}): over "
            f"the paragraphs of both every one can be answered. Set dataset.questions to answerable or "
            f"unanswerable"
        )


def _check_withheld(corpus: Paragraphs, question: Question, needed: Sequence[Paragraph]) -> None:
    """BadRow if other questions bring the paragraphs withheld from an unanswerable one."""
    withheld = [one for one in needed if corpus.known(*one) not in question.docnos]
    if withheld and all(corpus.known(*one) is not None for one in withheld):
        raise BadRow(f"not unanswerable: another question brings the paragraph {withheld[0][0]!r}")


def _add(gather: Gatherer, question: Question) -> None:
    row = question.row
    known = question.answerable and row["answer"] is not None
    references = [string(row, "answer"), *strings(row, "answer_aliases")] if known else []
    supporting = question.supporting if question.answerable else ()
    parts = [(docno, gather.document_text(docno)) for docno in supporting]
    shape = _SHAPE.match(question.qid)
    attributes: dict[str, Attribute] = {} if shape is None else {"type": shape[1], "hops": int(shape[2])}
    gather.add_topic(
        question.qid,
        string(row, "question"),
        references,
        parts,
        attributes,
        unanswerable=not question.answerable,
    )


def _paragraphs(row: Mapping[str, Any], answerable: bool) -> tuple[list[Paragraph], list[Paragraph]]:
    """All paragraphs of a row, and those that support its question: [] if none is marked."""
    found, supporting, told = [], [], set()
    for number, entry in enumerate(listed(row, "paragraphs")):
        try:
            found.append((string(entry, "title"), string(entry, "paragraph_text")))
            told.add(entry.get("is_supporting") is not None)
            if flag(entry, "is_supporting"):
                supporting.append(found[-1])
        except BadRow as bad:
            raise BadRow(f"entry {number} of 'paragraphs': {bad}") from None
    if len(told) > 1 or (answerable and told == {True} and not supporting):
        raise BadRow("'is_supporting' is missing in a part of 'paragraphs', or true in none of them")
    return found, supporting
