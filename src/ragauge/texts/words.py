"""The words of a text in any script, as searching sees them."""

from __future__ import annotations

import re

# Scripts written without spaces between words, as the inside of a character class: Thai, Lao, Myanmar, Khmer,
# kana, Han.
WITHOUT_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
UNSPACED = f"{WITHOUT_SPACES}\u1100-\u11ff\uac00-\ud7a3"  # and Korean, whose particles cling to the words
_POSSESSIVE = re.compile(r"['’]s\b")
_RUNS = re.compile(f"([{UNSPACED}]+)|((?:(?![{UNSPACED}])[^\\W_])+)")


def has_words(query: object) -> bool:
    """Whether a query holds a letter or digit of any script; one that does not has no hits."""
    return isinstance(query, str) and any(map(str.isalnum, query))


def words(text: str) -> list[str]:
    """The words of a text in order, case folded, without the possessive 's.

    In scripts written without spaces each pair of neighbouring characters is one; a single one is itself.
    """
    found: list[str] = []
    for unspaced, spaced in _RUNS.findall(_POSSESSIVE.sub("", text.casefold())):
        if spaced or len(unspaced) == 1:
            found.append(spaced or unspaced)
        else:
            found += (unspaced[i : i + 2] for i in range(len(unspaced) - 1))
    return found
