"""The writer by a chat model: its prompt for each kind, and the parsing of its replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ragauge.contract.replies import Structured
from ragauge.llms.json_replies import json_of, quoted
from ragauge.llms.prompts import fill, load_prompt
from ragauge.llms.structured import TEXT, fields, list_of
from ragauge.plugins.synthesis.asking import PROMPTS, Asker
from ragauge.plugins.synthesis.documents import Documents, window
from ragauge.plugins.synthesis.drafts import Draft, Written
from ragauge.plugins.synthesis.settings import COMPARISON, ONE_HOP, TWO_HOP, UNANSWERABLE, Settings
from ragauge.plugins.synthesis.units import Unit
from ragauge.texts.sentences import sentence_spans

_OF_ONE = ("title", "document", "before")
_OF_TWO = ("first_title", "first", "second_title", "second")
_PLACEHOLDERS = {
    ONE_HOP: _OF_ONE, TWO_HOP: ("shared", *_OF_TWO), COMPARISON: _OF_TWO, UNANSWERABLE: _OF_ONE,
}  # fmt: skip
_EVIDENCE_OF_TWO = ("evidence_first", "evidence_second")
_EVIDENCE: Mapping[str, Sequence[str]] = {
    ONE_HOP: ("evidence",), UNANSWERABLE: (), TWO_HOP: _EVIDENCE_OF_TWO, COMPARISON: _EVIDENCE_OF_TWO,
}  # fmt: skip
_MOST_CHARS = 2000  # of a question, an answer or a sentence
_GUESSED_WORDS = 15  # of a question that a dry run stands in for


def shown_of(unit: Unit, documents: Documents, settings: Settings) -> tuple[str, ...]:
    """The part of each document of a unit that the writer sees."""
    of = documents.in_order
    return tuple(window(of[docno], settings.max_chars, settings.seed, unit.use) for docno in unit.docnos)


def write(drafts: Sequence[Draft], documents: Documents, before: Mapping[str, list[str]], ask: Asker) -> None:
    """Fills in the chat model's question for every draft; rejects drafts without a readable reply.

    before: the questions that were written from a document for the draft's kind, by `<kind>/<docno>`.
    """
    prompts = {kind: load_prompt(None, f"{kind}.txt", _PLACEHOLDERS[kind], package=PROMPTS) for kind in _PLACEHOLDERS}
    readers: dict[str, Callable[[str], Written | None]] = {}
    guesses: dict[str, Written] = {}
    for draft in drafts:
        unit = draft.unit
        prompt = fill(prompts[unit.kind], **_values(draft, documents, before))
        draft.prompt = prompt
        readers[prompt] = _reader(unit.kind)
        guesses[prompt] = guess_of(draft)
    found = ask("questions", readers, guesses)
    for draft in drafts:
        reply = found[str(draft.prompt)]
        draft.written, draft.raw = reply.value, reply.raw
        if reply.value is None:
            draft.rejected_by = reply.status


def _values(draft: Draft, documents: Documents, before: Mapping[str, list[str]]) -> dict[str, str]:
    unit, of = draft.unit, documents.in_order
    if len(unit.docnos) == 1:
        asked = before.get(f"{unit.kind}/{unit.docnos[0]}", [])
        return {
            "title": quoted(of[unit.docnos[0]].title),
            "document": quoted(draft.shown[0]),
            "before": json.dumps(asked, ensure_ascii=False),
        }
    first, second = (of[docno] for docno in unit.docnos)
    values = {
        "first_title": quoted(first.title), "first": quoted(draft.shown[0]),
        "second_title": quoted(second.title), "second": quoted(draft.shown[1]),
    }  # fmt: skip
    return {**values, "shared": quoted(unit.about)} if unit.kind == TWO_HOP else values


def _reader(kind: str) -> Callable[[str], Written | None]:
    def read(reply: str) -> Written | None:
        said = json_of(reply)
        question = _text(said.get("question")) if isinstance(said, dict) else None
        if question is None:
            return None
        if kind == UNANSWERABLE:
            return Written(question)
        answer = _text(said.get("answer"))
        lists = [said.get(key) for key in _EVIDENCE[kind]]
        if answer is None or not all(isinstance(one, list) for one in lists):
            return None
        parts = [(which, _text(sentence)) for which, one in enumerate(lists) for sentence in one]
        sentences = tuple((which, sentence) for which, sentence in parts if sentence is not None)
        return Written(question, answer, sentences) if len(sentences) == len(parts) else None

    sentences = dict.fromkeys(_EVIDENCE[kind], list_of(TEXT))
    answer = {} if kind == UNANSWERABLE else {"answer": TEXT}
    return Structured(read, fields(question=TEXT, **answer, **sentences))


def _text(value: Any) -> str | None:
    """A text or number as one line of text; None for other types and empty, overlong or non-Unicode values."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = json.dumps(value)
    if not isinstance(value, str) or not value.strip() or len(value) > _MOST_CHARS:
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return " ".join(value.split()).replace("\0", "") or None


def guess_of(draft: Draft) -> Written:
    """A stand-in, in a dry run, for an unwritten question."""
    sentences = []
    for which, text in enumerate(draft.shown):
        start, end = sentence_spans(text)[0]
        sentences.append((which, text[start:end]))
    question = f"{'word ' * (_GUESSED_WORDS - 1)}{draft.number}"
    return Written(question) if draft.unanswerable else Written(question, "word word", tuple(sentences))
