"""A draft: a question with its source, each filter's result, and the filter that rejected it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ragauge.plugins.synthesis.settings import UNANSWERABLE
from ragauge.plugins.synthesis.units import Unit
from ragauge.texts.quotes import find_sentence

PASSED, FAILED_FILTER, NOT_ASKED, NOT_APPLICABLE = "passed", "rejected", "not asked", "not applicable"
UNREADABLE, FAILED, NO_SENTENCE, LANGUAGE = "unreadable", "failed", "no_sentence", "language"
# What a draft can be rejected by, in the order in which it is looked at: `failed` is a request without a
# reply, `unreadable` a reply that is not the JSON that was asked for, `no_sentence` a document without a
# further sentence that rules can make a question of, `language` a question in another one than its documents.
REASONS = (
    FAILED, UNREADABLE, NO_SENTENCE,
    LANGUAGE, "evidence", "duplicate", "round_trip", "follows", "answerable", "closed_book",
)  # fmt: skip


@dataclass(frozen=True)
class Written:
    """The output of a writer: the answer is None if there is none.

    evidence: (which document of the unit, sentence).
    """

    question: str
    answer: str | None = None
    evidence: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Span:
    """The position of an evidence sentence: text is the document's [start:end]."""

    docno: str
    start: int
    end: int
    text: str


@dataclass
class Draft:
    """A question on its way through the filters.

    shown: the part of each document that the writer saw.   prompt: the writer's prompt; None for rules.
    results: by filter what came out, and further numbers.
    rejected_by: one of REASONS; None: nothing struck.   raw: a reply that could not be read, or the error.
    """

    number: int
    unit: Unit
    shown: tuple[str, ...]
    prompt: str | None = None
    written: Written | None = None
    spans: tuple[Span, ...] = ()
    results: dict[str, Any] = field(default_factory=dict)
    rejected_by: str | None = None
    raw: str | None = None

    @property
    def unanswerable(self) -> bool:
        return self.unit.kind == UNANSWERABLE

    @property
    def question(self) -> str:
        """The question of a written draft."""
        assert self.written is not None
        return self.written.question

    @property
    def qid(self) -> str:
        """The kind, and a digest that separates the question from others, also of other runs."""
        text = "\n".join((*self.unit.docnos, self.written.question if self.written else str(self.number)))
        return f"{self.unit.kind}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"

    def reject(self, reason: str, result: str = FAILED_FILTER) -> None:
        """Marks the draft as rejected; `result` is the outcome of the filter of that name."""
        self.rejected_by = reason
        self.results[reason] = result


def locate_evidence(draft: Draft, text_of: Callable[[str], str]) -> None:
    """Fills in the spans; rejects a draft whose evidence is missing or not in its documents.

    White space aside, every sentence has to stand in its document as it is, and every document of the unit
    has to hold one. An unanswerable question has no evidence.
    """
    assert draft.written is not None
    if draft.unanswerable:
        draft.results["evidence"] = NOT_APPLICABLE
        return
    spans: list[Span] = []
    for which, sentence in draft.written.evidence:
        docno = draft.unit.docnos[which]
        text = text_of(docno)
        found = find_sentence(sentence, text)
        if found is None:
            draft.reject("evidence")
            draft.results["evidence_not_found"] = sentence
            return
        start, end = found
        span = Span(docno, start, end, text[start:end])
        if span not in spans:
            spans.append(span)
    if {span.docno for span in spans} != set(draft.unit.docnos):
        draft.reject("evidence")
        return
    draft.spans = tuple(spans)
    draft.results["evidence"] = PASSED
