"""SQuAD's JSON (1.1, 2.0, and XQuAD in other languages): the sentence of an answer is the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ragauge.contract.checks import require_choice
from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import DataError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.datasets.fields import BadRow, flag, listed, listed_or_none, string
from ragauge.datasets.files import json_value, parsed, rows
from ragauge.datasets.gather import Gatherer, OneFile, Paragraphs
from ragauge.datasets.packing import kind
from ragauge.texts.sentences import sentence_spans


@dataclass(frozen=True)
class Question:
    """A question of the file: its place, its paragraph's docno and text, and its other fields."""

    where: str
    docno: str
    context: str
    row: Mapping[str, Any]


@option("dataset/squad")
class SQuAD(OneFile):
    """SQuAD (Rajpurkar et al., 2016 and 2018) from `path`, whose paragraphs are the documents.

    evidence: `first`, the sentences of the first annotator's answer; `all`, those of all answers. An answer
    that reaches over the end of a sentence has both sentences as evidence.
    """

    component = "squad"
    version = 2

    name: str = runtime(CONF)
    evidence: str = CONF

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("dataset.evidence", self.evidence, ("first", "all"))

    def load(self) -> Dataset:
        """The collection; DataError names file, article, paragraph, question (from 0) and the error."""
        file = self.files()["path"]
        gather = Gatherer(self)
        flat = kind(file) in (".parquet", ".jsonl")
        read = _flat_questions if flat else _nested_questions
        for question in list(read(gather, Paragraphs(gather), file)):  # all documents come first
            if gather.full:
                break
            with gather.row(question.where) as at:
                at.qid = qid = string(question.row, "id")
                answers = [_answer(n, one) for n, one in enumerate(listed_or_none(question.row, "answers"))]
                marked = flag(question.row, "is_impossible")
                if not answers and not marked:
                    raise BadRow("key 'answers' is empty, and 'is_impossible' is not true")
                placed = answers if self.evidence == "all" else answers[:1]
                parts = [
                    (question.docno, sentence)
                    for number, (text, start) in enumerate(placed)
                    for sentence in _sentences(question.context, number, text, start)
                ]
                references = [text for text, _ in answers]
                gather.add_topic(qid, string(question.row, "question"), references, parts, unanswerable=marked)
        return gather.dataset(file, file)


def _nested_questions(gather: Gatherer, corpus: Paragraphs, file: Path) -> Iterator[Question]:
    """The questions of the published JSON: articles of paragraphs of questions."""
    whole = json_value(file)
    if not isinstance(whole, Mapping) or not isinstance(whole.get("data"), list):
        raise DataError(f"{file}: expected a JSON object with the list 'data' of articles")
    for number, article in enumerate(whole["data"]):
        where = f"{file}, article {number}"
        paragraphs: list[Any] = []
        with gather.row(where):
            title, paragraphs = _title(string(article, "title")), listed(article, "paragraphs")
        for of, paragraph in enumerate(paragraphs):
            at, questions = f"{where}, paragraph {of}", []
            with gather.row(at):
                context, rows_of = string(paragraph, "context"), listed(paragraph, "qas")
                docno = corpus.add(title, context)
                questions = [Question(f"{at}, question {n}", docno, context, row) for n, row in enumerate(rows_of)]
            yield from questions


def _flat_questions(gather: Gatherer, corpus: Paragraphs, file: Path) -> Iterator[Question]:
    """The questions of a table {id, title, context, question, answers: {text: [], answer_start: []}}.

    In this form a question that the paragraph does not answer has no answers, and no other mark.
    """
    for where, line in rows(file):
        found = []
        with gather.row(where):
            row = parsed(line)
            context, title, unfolded = string(row, "context"), _title(string(row, "title")), _unfolded(row)
            found = [Question(where, corpus.add(title, context), context, {**row, **unfolded})]
        yield from found


def _unfolded(row: Mapping[str, Any]) -> dict[str, Any]:
    answers = row.get("answers")
    if not isinstance(answers, Mapping):
        raise BadRow(f"key 'answers' {'is no object' if 'answers' in row else 'is missing'}")
    texts, starts = listed(answers, "text"), listed(answers, "answer_start")
    if len(texts) != len(starts):
        raise BadRow(f"'answers' has {len(texts)} entries in 'text' and {len(starts)} in 'answer_start'")
    unfolded = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
    return {"answers": unfolded, "is_impossible": not texts}


def _title(published: str) -> str:
    """The readable title: published files hold that of an address, `Fr%C3%A9d%C3%A9ric_Chopin`."""
    return unquote(published).replace("_", " ").strip()


def _answer(number: int, answer: Any) -> tuple[str, int]:
    """Text and first character of an answer, without white space around it."""
    text = string(answer, "text")
    start = answer.get("answer_start")
    if type(start) is not int or start < 0:
        raise BadRow(f"'answer_start' of answer {number} is no whole number from 0: {start!r}")
    return text.strip(), start + len(text) - len(text.lstrip())


def _sentences(context: str, number: int, text: str, start: int) -> list[str]:
    """The sentences of a context that contain an answer, in order."""
    if not text:
        raise BadRow(f"'text' of answer {number} is empty")
    first = _place(context, number, text, start)
    last = first + len(text)
    return [context[a:b] for a, b in _spans(context) if a < last and first < b]


def _place(context: str, number: int, text: str, start: int) -> int:
    """The start of an answer: answer_start, or the only position that fits.

    Some files count bytes in place of characters, and translated ones are off by a few: an answer that
    stands in its paragraph once cannot be mistaken. BadRow where it could be another one.
    """
    if context.startswith(text, start):
        return start
    before = context.encode()[:start]
    if context.encode().startswith(text.encode(), start):
        return len(before.decode(errors="ignore"))
    times = context.count(text)
    if times != 1:
        found = "does not stand" if times == 0 else f"stands {times} times"
        raise BadRow(f"'answer_start' {start} of answer {number} is not where {text!r} stands: it {found} in "
                     f"the paragraph")  # fmt: skip
    return context.index(text)


@lru_cache(maxsize=1)  # the questions of a paragraph follow one another
def _spans(context: str) -> list[tuple[int, int]]:
    return sentence_spans(context)
