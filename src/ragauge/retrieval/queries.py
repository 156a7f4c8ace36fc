"""Several queries for one question, by rules or an LLM's reply; and `rewriter=none`, the question itself."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import pandas as pd

from ragauge.contract.component import ChatModel, Tools
from ragauge.contract.errors import MissingError
from ragauge.contract.retrieval import Rewriter
from ragauge.contract.workplace import Workplace
from ragauge.retrieval.searching import queries_frame
from ragauge.texts.words import FUNCTION_WORDS, has_words

_LINK_TEXT = "of the for de del della di da la le du von van der den al el bin y"
_NAME_LINKS = frozenset(_LINK_TEXT.split())
_WORD = re.compile(r"[^\W_]+(?:['’.&-][^\W_]+)*")
_QUOTED = re.compile(r"[\"“][^\"“”]+[\"”]")
_POSSESSIVE = re.compile(r"['’]s$")
_BETWEEN_ALTERNATIVES = re.compile(r",?\s+(?:or|and|than)\s+(?:the\s+)?", re.IGNORECASE)
# White space is looked at from its beginning alone, here and below, so that no text takes quadratic time.
_CLAUSE_BREAK = re.compile(
    r"[,;:()]\s+|(?<!\s)\s+(?:[–—-]\s+|(?=(?:who|whom|whose|which|that|where|when|while|because|before|after)\s)"
    r"|(?:and|but)\s+(?=[^\W\d_A-Z]))"
)
_MOST_PAIRS = 100  # of names next to each other: each pair gives two questions of the length of the whole
_EDGES = ' \t,;:.?!()[]"“”'
_LIST_MARK = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,2}[.):]\s|[Qq]uery\s*(?:\d+\s*)?:)\s*")


def question_parts(question: str) -> list[str]:
    """The distinct parts of a question as queries, without the question itself.

    In this order: the halves of a comparison (the question with one of two alternatives left out), its clauses (of at
    least two content words), the names in it, and its content words alone. Names are quoted, or runs of capitalised
    words. Rules for English; in a language without capitals there may be no part at all.
    """
    names = [_POSSESSIVE.sub("", question[start:end]) for start, end in _names(question)]
    content = " ".join(content_words(question))
    return distinct([*_sub_questions(question), *names, content], but=question)


def sub_questions(question: str) -> list[str]:
    """The standalone parts of a question: halves of a comparison, and clauses of `question_parts`."""
    return distinct(_sub_questions(question), but=question)


def _sub_questions(question: str) -> list[str]:
    halves: list[str] = []
    for (start, end), (next_start, next_end) in islice(pairwise(_names(question)), _MOST_PAIRS):
        if _BETWEEN_ALTERNATIVES.fullmatch(question[end:next_start]):
            halves += (question[:end] + question[next_end:], question[:start] + question[next_start:])
    return [*halves, *(part for part in _CLAUSE_BREAK.split(question) if len(content_words(part)) > 1)]


def distinct(queries: Iterable[str], but: str = "") -> list[str]:
    """The trimmed queries with words, distinct ignoring case, without `but`."""
    seen = {but.strip(_EDGES).casefold()}
    kept = []
    for query in (query.strip(_EDGES) for query in queries):
        if has_words(query) and query.casefold() not in seen:
            seen.add(query.casefold())
            kept.append(query)
    return kept


def parse_queries(reply: str) -> list[str]:
    """The queries of an LLM's reply, one per line without list marks; skips lines that end in a colon."""
    lines = [line for line in reply.splitlines() if not line.rstrip().endswith(":")]
    return distinct(_LIST_MARK.sub("", line) for line in lines)


def content_words(text: str) -> list[str]:
    """The words of a text in order, without English function words."""
    return [word for word in _WORD.findall(text) if word.casefold() not in FUNCTION_WORDS]


def _names(question: str) -> list[tuple[int, int]]:
    """Spans of names: quotations, and runs of capitalised words outside them."""
    quotations = [quotation.span() for quotation in _QUOTED.finditer(question)]
    runs = [
        (start, end)
        for start, end in _capitalised_runs(question)
        if not any(start < closing and opening < end for opening, closing in quotations)
    ]
    return sorted(quotations + runs)


def _capitalised_runs(question: str) -> list[tuple[int, int]]:
    """Runs of capitalised words, with small links between them (of, van) and numbers after them.

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


log = logging.getLogger(__name__)


def written_by_llm(
    chat: ChatModel,
    prompts: Sequence[str],
    parse: Callable[[str], list[str]],
    store: Workplace,
    who: str,
    what: str,
    noun: str = "queries",
) -> list[list[str]]:
    """The texts in the reply to each prompt, one request per topic; [] for a failed or empty reply.

    parse: the texts of a reply. what: the name under which the ledger counts the requests. A warning, which
    names `who`, says how many topics got no text; MissingError where none got any.
    """
    readers = [lambda reply: parse(reply.text or "") or None] * len(prompts)
    replies = chat.ask(prompts, store, what, readers=readers)
    found = [parse(reply.text or "") for reply in replies]
    failed = sum(not texts for texts in found)
    if failed:
        error = next((r.error for r in replies if r.error), f"no {noun} in the replies")
        if failed == len(found):
            raise MissingError(f"{who}: no {noun} from the LLM for {failed} of {failed} topics ({error})")
        log.warning("%s: for %d of %d topics the question alone is searched (%s)", who, failed, len(found), error)
    return found


def with_question(question: str, texts: list[str], at_most: int, question_first: bool) -> list[str]:
    """The searches: at most `at_most` texts, after the question if `question_first`.

    Where there are no texts it is the question.
    """
    if question_first or not texts:
        return [question, *distinct(texts[:at_most], but=question)]
    return texts[:at_most]


@dataclass(frozen=True)
class NoRewriter(Rewriter):
    """Leaves the questions as they are; the stage is left out."""

    component = "none"
    kind = "none"
    union = "rrf"
    rrf_constant = 60

    def rewrite(
        self, topics: pd.DataFrame, run: pd.DataFrame | None, chunks: pd.DataFrame | None, tools: Tools
    ) -> pd.DataFrame:
        """The questions, one search each."""
        return queries_frame(
            {"qid": qid, "query": query, "search": 0, "origin": "question"}
            for qid, query in zip(topics["qid"], topics["query"], strict=True)
        )
