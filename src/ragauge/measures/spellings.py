"""Finds evidence in contexts in other spellings, which measures of characters miss."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pandas as pd

from ragauge.texts.folding import FOLDS, checked_folds, fold_space, fold_text

TOPICS = 1_000  # that are looked at
_PARTS = 100  # for which it is found out which foldings are needed
_SPELLINGS = tuple(name for name in FOLDS if name != "case")  # foldings that leave words as they are
_PLAIN = re.compile(r"[\x00-%'-\x7f]*")  # ASCII without &


def respelled(
    parts: pd.DataFrame, contexts: Mapping[str, str], fold: tuple[str, ...] = ()
) -> tuple[int, tuple[str, ...]]:
    """The number of parts found whole in their context only with further foldings, and these added to `fold`.

    parts: [qid, text]. contexts: text by qid. White space is folded on both sides, and the spellings of `fold`. The
    topics are the first TOPICS, and the foldings those that the first parts need.
    """
    every = checked_folds("fold", {*fold, *_SPELLINGS})
    found: list[tuple[str, str]] = []
    looked_at = set(parts["qid"].drop_duplicates()[:TOPICS])
    for qid, texts in parts[parts["qid"].isin(looked_at)].groupby("qid", sort=False)["text"]:
        context = contexts.get(str(qid), "")
        if all(_has_one_spelling(text) for text in (context, *texts)):
            continue
        plain, folded = _folded(context, fold), _folded(context, every)
        found += [
            (text, context)
            for text in texts
            if _folded(text, fold) not in plain and _folded(text, every) and _folded(text, every) in folded
        ]
    needed: set[str] = set(fold)
    for text, context in found[:_PARTS]:
        names = every
        for name in (name for name in every if name not in needed):
            fewer = tuple(other for other in names if other != name)
            if _folded(text, fewer) in _folded(context, fewer):
                names = fewer
        needed |= {*names}
    return len(found), checked_folds("fold", needed)


def _folded(text: str, fold: tuple[str, ...]) -> str:
    return fold_space(fold_text(text, fold))


def _has_one_spelling(text: str) -> bool:
    """True if the text is ASCII without a character that any folding of `_SPELLINGS` changes."""
    return _PLAIN.fullmatch(text) is not None and "-" not in text and "`" not in text
