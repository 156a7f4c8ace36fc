"""Passages in place of a question, as the rows of one search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragauge.texts.words import has_words


def passage_rows(
    qid: str, question: str, passages: Sequence[str], origin: str, with_question: bool
) -> list[dict[str, Any]]:
    """The rows of one search, all of weight 1: the question first if it is wanted, then the passages.

    Without a passage it is the question alone, as one whose rewrite failed (unless it has no words anyway).
    """
    row = {"qid": qid, "search": 0, "query": question}
    if not passages:
        return [{**row, "origin": "failed" if has_words(question) else "question"}]
    first = [{**row, "origin": "question"}] if with_question else []
    return [*first, *({**row, "query": text, "role": "passage", "origin": origin} for text in passages)]
