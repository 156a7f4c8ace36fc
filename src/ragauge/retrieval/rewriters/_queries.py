"""Several queries for one question: by rules, or read from an LLM's reply."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from ragauge.texts.words import FUNCTION_WORDS, has_words

_LINK_TEXT = "of the for de del della di da la le du von van der den al el bin y"
_NAME_LINKS = frozenset(_LINK_TEXT.split())
_WORD = re.compile(r"[^\W_]+(?:['’.&-][^\W_]+)*")
_QUOTED = re.compile(r"[\"“][^\"“”]+[\"”]")
_POSSESSIVE = re.compile(r"['’]s$")
_BETWEEN_ALTERNATIVES = re.compile(r",?\s+(?:or|and|than)\s+(?:the\s+)?", re.IGNORECASE)
_CLAUSE_BREAK = re.compile(
    r"[,;:()]\s+|\s+[–—-]\s+|\s+(?=(?:who|whom|whose|which|that|where|when|while|because|before|after)\s)"
    r"|\s+(?:and|but)\s+(?=[^\W\d_A-Z])"
)
_EDGES = ' \t,;:.?!()[]"“”'
_LIST_MARK = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,2}[.):]\s|[Qq]uery\s*\d*\s*:)\s*")


def question_parts(question: str) -> list[str]:
    """The parts of a question, each a query of its own, without repeats and without the question itself.

    In this order: the halves of a comparison (the question with one of two alternatives left out), its
    clauses (of at least two content words), the names in it (quoted, or runs of capitalised words), and its
    content words alone. Rules for English; in a language without capitals there may be no part at all.
    """
    names = [_POSSESSIVE.sub("", question[start:end]) for start, end in _names(question)]
    content = " ".join(content_words(question))
    return distinct([*_sub_questions(question), *names, content], but=question)


def sub_questions(question: str) -> list[str]:
    """The halves of a comparison and the clauses of `question_parts`: what can be asked by itself."""
    return distinct(_sub_questions(question), but=question)


def _sub_questions(question: str) -> list[str]:
    halves: list[str] = []
    for (start, end), (next_start, next_end) in pairwise(_names(question)):
        if _BETWEEN_ALTERNATIVES.fullmatch(question[end:next_start]):
            halves += (question[:end] + question[next_end:], question[:start] + question[next_start:])
    return [*halves, *(part for part in _CLAUSE_BREAK.split(question) if len(content_words(part)) > 1)]


def distinct(queries: Iterable[str], but: str = "") -> list[str]:
    """The queries that hold words, trimmed, each once whatever its case, and none equal to `but`."""
    seen = {but.strip(_EDGES).casefold()}
    kept = []
    for query in (query.strip(_EDGES) for query in queries):
        if has_words(query) and query.casefold() not in seen:
            seen.add(query.casefold())
            kept.append(query)
    return kept


def parse_queries(reply: str) -> list[str]:
    """The queries of an LLM's reply: one a line, list marks removed; a line that ends in a colon is none."""
    lines = [line for line in reply.splitlines() if not line.rstrip().endswith(":")]
    return distinct(_LIST_MARK.sub("", line) for line in lines)


def content_words(text: str) -> list[str]:
    """The words of a text that are no English function words, in order."""
    return [word for word in _WORD.findall(text) if word.casefold() not in FUNCTION_WORDS]


def _names(question: str) -> list[tuple[int, int]]:
    """First and past-the-last character of the names: quotations, and runs of capitals outside them."""
    quotations = [quotation.span() for quotation in _QUOTED.finditer(question)]
    runs = [
        (start, end)
        for start, end in _capitalised_runs(question)
        if not any(start < closing and opening < end for opening, closing in quotations)
    ]
    return sorted(quotations + runs)


def _capitalised_runs(question: str) -> list[tuple[int, int]]:
    """Runs of capitalised words, small links between them (of, van) and numbers after them included.

    Function words neither begin nor end a run, so that the question word that opens a sentence is none.
    """
    spans: list[tuple[int, int]] = []
    run_end = -1  # where the words end that follow the last run without a gap; -1: none do
    for word in _WORD.finditer(question):
        small = word[0].casefold()
        adjacent = bool(spans) and question[run_end : word.start()] in (" ", ". ")
        if small not in FUNCTION_WORDS and (word[0][0].isupper() or (adjacent and word[0].isdigit())):
            start = spans.pop()[0] if adjacent else word.start()
            spans.append((start, word.end()))
            run_end = word.end()
        else:
            run_end = word.end() if adjacent and small in _NAME_LINKS else -1
    return spans
