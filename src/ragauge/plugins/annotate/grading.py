"""The evaluator's grade of every pooled passage, its quotes checked against the passage, and evidence parts.

The grades are those of UMBRELA (Upadhyay et al. 2024, arXiv:2406.06519), 0 to 3, one request a passage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragauge.contract.replies import Structured
from ragauge.contract.workplace import Workplace
from ragauge.llms.json_replies import OK, ask_each, json_of, quoted, whole_number
from ragauge.llms.prompts import fill, load_prompt
from ragauge.llms.structured import TEXT, fields, list_of, number_in
from ragauge.plugins.annotate.pool import PooledPassage
from ragauge.texts.quotes import find_sentence

PROMPTS = f"{__package__}.prompts"
WHO = "annotation"  # in the counts of requests
GRADES = (0, 1, 2, 3)
_MOST_QUOTES = 50


@dataclass(frozen=True)
class ReadGrade:
    """The evaluator's reply on a passage: its grade, and its quoted sentences."""

    grade: int
    quotes: tuple[str, ...]


@dataclass(frozen=True)
class Graded:
    """A passage with its verdict.

    grade: None where the reply is missing (`status` unreadable or failed). spans: where the quotes that stand in the
    passage begin and end there; unverified: those that do not stand in it, which count for nothing.
    """

    passage: PooledPassage
    grade: int | None
    spans: tuple[tuple[int, int], ...]
    unverified: tuple[str, ...]
    status: str
    prompt: str

    @property
    def quotes(self) -> list[str]:
        """The verified quotes, in the passage's wording."""
        return [self.passage.text[start:end] for start, end in self.spans]


@dataclass(frozen=True)
class Part:
    """A quoted text, its place in its document, and the passages that contain it.

    rank: the best rank at which a retriever found one of them; grade: their highest.
    """

    docno: str
    text: str
    start: int
    grade: int
    rank: int
    passages: tuple[str, ...]
    ranks: Mapping[str, int]
    prompts: tuple[str, ...]


def template() -> str:
    """The prompt with its placeholders."""
    return load_prompt(None, "grade.txt", ("question", "passage"), package=PROMPTS)


def grade(
    pools: Mapping[str, Sequence[PooledPassage]],
    questions: Mapping[str, str],
    chat: Any,
    store: Workplace,
    min_grade: int,
) -> dict[str, list[Graded]]:
    """{qid: its graded passages}; equal passages of a topic share one request.

    Quotes count from `min_grade` on. chat: as `ragauge.llms.json_replies.ask_each` takes it. Unverified quotes are
    kept by name.
    """
    prompt = template()
    prompts = {
        (qid, one.passage): fill(prompt, question=quoted(questions[qid]), passage=quoted(one.text))
        for qid, pool in pools.items()
        for one in pool
    }
    found = ask_each(chat, dict.fromkeys(prompts.values(), Structured(read_verdict, _REPLY)), store, "graded passages")
    graded: dict[str, list[Graded]] = {}
    for qid, pool in pools.items():
        graded[qid] = []
        for one in pool:
            asked = prompts[qid, one.passage]
            reply = found[asked]
            if reply.status != OK or reply.value is None:
                graded[qid].append(Graded(one, None, (), (), reply.status, asked))
                continue
            quotes = reply.value.quotes if reply.value.grade >= min_grade else ()
            spans = {quote: find_sentence(quote, one.text) for quote in quotes}
            graded[qid].append(
                Graded(
                    one,
                    reply.value.grade,
                    tuple(dict.fromkeys(span for span in spans.values() if span is not None)),
                    tuple(quote for quote, span in spans.items() if span is None),
                    OK,
                    asked,
                )
            )
    return graded


_REPLY = fields(grade=number_in(range(min(GRADES), max(GRADES) + 1)), quotes=list_of(TEXT))


def read_verdict(reply: str) -> ReadGrade | None:
    """The verdict of a reply; None for another form."""
    said = json_of(reply)
    if not isinstance(said, dict):
        return None
    number, quotes = whole_number(said.get("grade")), said.get("quotes")
    if number is None or number not in GRADES or not isinstance(quotes, list):
        return None
    if len(quotes) > _MOST_QUOTES or not all(isinstance(quote, str) for quote in quotes):
        return None
    return ReadGrade(number, tuple(dict.fromkeys(quotes)))


def parts_of(graded: Iterable[Graded]) -> list[Part]:
    """The evidence parts of one topic, by rank; passages with the same text share one part.

    The part is that of the passage that ranks first. A quote that stands inside a longer one is no part of its own.
    """
    found: dict[str, Part] = {}
    for one in sorted(graded, key=lambda one: (one.passage.rank, one.passage.passage)):
        for (start, _), text in zip(one.spans, one.quotes, strict=True):
            key, assigned = " ".join(text.split()), one.grade or 0
            at = one.passage
            if (known := found.get(key)) is None:
                found[key] = Part(
                    at.docno, text, at.start + start, assigned, at.rank, (at.passage,), dict(at.ranks), (one.prompt,)
                )
                continue
            ranks = {
                name: min(rank for rank in (known.ranks.get(name), at.ranks.get(name)) if rank is not None)
                for name in (*known.ranks, *(name for name in at.ranks if name not in known.ranks))
            }
            found[key] = replace(
                known,
                grade=max(known.grade, assigned),
                passages=tuple(dict.fromkeys((*known.passages, at.passage))),
                ranks=ranks,
                prompts=tuple(dict.fromkeys((*known.prompts, one.prompt))),
            )
    longer = sorted(found, key=len, reverse=True)
    return [part for key, part in found.items() if not any(key in other for other in longer if len(other) > len(key))]
