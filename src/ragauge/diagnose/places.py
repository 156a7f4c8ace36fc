"""Locates evidence in a context, and checks whether an answer uses the context's words alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pandas as pd

from ragauge.texts.words import FUNCTION_WORDS, UNSPACED, words

BEGINNING, MIDDLE, END, SPREAD = "beginning", "middle", "end", "spread"
PLACES = (BEGINNING, MIDDLE, END, SPREAD)
_MARGIN = 0.1  # of a part at both ends that need not stand in the context


def place_of(part: str, context: str) -> float | None:
    """Relative position in [0, 1] of the middle of an evidence part in a context; None if it is not found.

    The first place counts. White space is folded where the part does not stand there as it is, and a tenth
    of the part at both ends may be missing.
    """
    if not context:
        return None
    at = context.find(part)
    if at >= 0:
        return (at + len(part) / 2) / len(context)
    folded, text = " ".join(part.split()), " ".join(context.split())
    margin = int(_MARGIN * len(folded)) + 1
    core = folded[margin : len(folded) - margin] if len(folded) > 4 * margin else folded
    at = text.find(core) if core else -1
    return (at + len(core) / 2) / len(text) if at >= 0 else None


def evidence_places(evidence: pd.DataFrame, contexts: Mapping[str, str], qids: Iterable[str]) -> dict[str, str]:
    """By qid, the third of the context that holds the topic's evidence: beginning, middle or end.

    "spread" where its parts stand in several thirds. Topics with a part that is not found are left out; so are those
    that are not among `qids`.
    """
    wanted = set(qids)
    found: dict[str, set[str]] = {}
    lost: set[str] = set()
    for qid, text in zip(evidence["qid"], evidence["text"], strict=True):
        if qid not in wanted:
            continue
        place = place_of(text, contexts[qid])
        if place is None:
            lost.add(qid)
        else:
            third = BEGINNING if place < 1 / 3 else MIDDLE if place <= 2 / 3 else END
            found.setdefault(qid, set()).add(third)
    return {
        qid: thirds.copy().pop() if len(thirds) == 1 else SPREAD for qid, thirds in found.items() if qid not in lost
    }


def from_context(answer: str, query: str, context: str) -> bool:
    """Whether every content word of the answer stands in the context or in the question.

    Words without function words, case folded; an answer without content words is made of nothing else.
    """
    said = set(words(answer)) - FUNCTION_WORDS
    there = f"{query}\n{context}".casefold()
    return all(_stands(word, there) for word in said)


def _stands(word: str, text: str) -> bool:
    """Whether the word stands in the text, touched by no letter or digit (where a script has spaces)."""
    inside = re.search(f"[{UNSPACED}]", word) is not None
    at = text.find(word)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(word) : at + len(word) + 1]
        if inside or not (before.isalnum() or after.isalnum()):
            return True
        at = text.find(word, at + 1)
    return False
