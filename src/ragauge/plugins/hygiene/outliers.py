"""Texts in another language than most, and texts of unusual length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from ragauge.plugins.hygiene.found import Found, Item
from ragauge.texts.languages import language_of
from ragauge.texts.words import FUNCTION_WORDS, STOP_WORDS, words

_FEWEST = 10  # texts, for a median of their lengths
_Z = 3.5  # the modified z-score of an outlier: Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993
_SIGMA = 1.4826  # of a normal distribution, in units of its MAD
_TIMES = 3  # as many function words of its own language as of the main one, at least, has a text in another


def in_another_language(named: Iterable[tuple[str, str]]) -> Found:
    """Texts in another language than more than half of those whose language is recognised; named: id and text."""
    found = [(name, text, language) for name, text in named if (language := language_of(text))]
    counts = Counter(language for *_, language in found)
    main, n = counts.most_common(1)[0] if counts else ("", 0)
    if 2 * n <= len(found):
        return Found(None, len(found), "no language has more than half" if found else "no language is recognised")
    strays = [Item(name, (), language) for name, text, language in found if _is_stray(text, language, main)]
    return Found(strays, len(found), f"most are in {main.capitalize()}")


def _is_stray(text: str, language: str, main: str) -> bool:
    """Whether a text is in `language` and not in `main`: a few foreign names make a short text look like it."""
    if language == main:
        return False
    found, own, of_main = words(text), _function_words(language), _function_words(main)
    n_own, n_main = (sum(word in of for word in found) for of in (own - of_main, of_main - own))
    return not own or n_own > _TIMES * n_main


def _function_words(language: str) -> frozenset[str]:
    return FUNCTION_WORDS if language == "english" else STOP_WORDS.get(language, frozenset())


def of_unusual_length(named: Iterable[tuple[str, str]]) -> Found:
    """Texts whose length is beyond median · exp(±3.5 · 1.4826 · MAD), MAD being that of the logarithms of lengths."""
    sized = [(name, len(text)) for name, text in named if text.strip()]
    if len(sized) < _FEWEST:
        return Found(None, len(sized), f"there are fewer than {_FEWEST}")
    logs = np.log([size for _, size in sized])
    median = np.median(logs)
    spread = _Z * _SIGMA * np.median(np.abs(logs - median))
    if not spread:
        return Found(None, len(sized), "more than half have the same length")
    low, high = np.exp(median - spread), np.exp(median + spread)
    items = [Item(name, (), f"{size:,} characters") for name, size in sized if not low <= size <= high]
    return Found(items, len(sized), f"usual are {low:,.0f} to {high:,.0f} characters")
