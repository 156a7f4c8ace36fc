"""The terms of a lexical index: a text's words in any script, folded and stemmed.

Texts and queries go through the same steps, so equal words become equal terms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from ragauge.texts.languages import AUTO, CODES
from ragauge.texts.words import ENGLISH_STOP_WORDS, MARKS, STOP_WORDS, cut_words

LANGUAGES = (*CODES.values(), "other", AUTO)
"""`other` is any language without a stemmer here; `auto` is for the caller to replace by the language of the texts."""

# Accents of Latin, Greek and Cyrillic; Hebrew points; Arabic vowels and tatweel. Marks of other scripts
# (Indic vowels, Thai tones, kana voicing) tell words apart and stay.
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]+")
# Letters that Unicode does not decompose, and the apostrophes that mean '.
_LETTERS = str.maketrans(
    {"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
    | dict.fromkeys("‘’ʼ", "'")
)
_SYMBOL = re.compile(rf"[^\w\x00-\x7f{MARKS}]")
_POSSESSIVE = re.compile(r"'s\b")
_APOSTROPHES = re.compile("['‘’ʼ]")
_TURKISH = str.maketrans("İI", "iı")  # its capitals
_STEMMED = frozenset(STOP_WORDS) - {"vietnamese"}  # its words have no endings


def fold(text: str) -> str:
    """The text without case, accents and compatibility forms.

    Café, CAFE and ｃａｆé are cafe. Invisible characters vanish, other symbols beyond ASCII are spaces.
    """
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKD", text).casefold()
    text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return _without_symbols(unicodedata.normalize("NFC", text).translate(_LETTERS))


def _without_symbols(text: str) -> str:
    return _SYMBOL.sub(lambda symbol: "" if unicodedata.category(symbol[0]) == "Cf" else " ", text)


@dataclass(frozen=True)
class Analysis:
    """How texts of a language become terms.

    language: one of LANGUAGES. stems: whether words are reduced to their stems, by the language's Snowball stemmer.
    stops: whether the language's stop words are left out of queries; a text keeps them. Both do nothing for languages
    without a stemmer and without a list. English is folded before it is stemmed, other stemmed languages
    afterwards, since their stemmers read accents.
    """

    language: str = "english"
    stems: bool = True
    stops: bool = True

    @property
    def identity(self) -> dict[str, Any]:
        """The settings that determine a text's terms: the language, and the stemmers' version if it stems."""
        stemmed = self.stems and self.language in (*_STEMMED, "english", AUTO)
        return {"language": self.language, "snowball": version("snowballstemmer") if stemmed else None}

    @property
    def _stop_words(self) -> frozenset[str]:
        if not self.stops:
            return frozenset()
        return ENGLISH_STOP_WORDS if self.language == "english" else STOP_WORDS.get(self.language, frozenset())

    def words(self, text: str) -> list[str]:
        """The lower-case words of a text in order, the input of `terms`."""
        if self.language not in STOP_WORDS:
            text = fold(text)
            if self.language == "english" and "'s" in text:
                text = _POSSESSIVE.sub("", text)
            return cut_words(text)
        if self.language == "turkish":
            text = text.translate(_TURKISH)
        if not text.isascii():
            text = unicodedata.normalize("NFKC", text)
        # An elided article is a word of its own: l'homme, dell'arte.
        text = _APOSTROPHES.sub(" ", text.lower())
        return cut_words(text if text.isascii() else _without_symbols(text.replace("ё", "е")))

    def terms(self, words: Sequence[str]) -> list[str]:
        """The term of each word."""
        stemmed = list(words)
        if self.stems and self.language in (*_STEMMED, "english"):
            import snowballstemmer  # by PyStemmer where that is installed: the same stems, 14 times as fast

            stemmed = snowballstemmer.stemmer(self.language).stemWords(stemmed)
        return stemmed if self.language not in STOP_WORDS else [fold(word) for word in stemmed]

    def of_text(self, text: str) -> list[str]:
        """The terms of a text in order, with stop words."""
        return self.terms(self.words(text))

    def of_query(self, text: str) -> list[str]:
        """The terms of a query in order, without stop words."""
        without = self._stop_words
        return self.terms([word for word in self.words(text) if word not in without])
