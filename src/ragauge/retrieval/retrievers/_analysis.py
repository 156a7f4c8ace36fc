"""Text in any script to ASCII text with the same words, for engines that only know ASCII letters.

PISA and Terrier split words at every other byte, and drop it: café becomes caf, 北京 nothing at all.
Documents and queries go through the same `fold`, so what is the same word stays the same word.
English is left to the engine, which stems and stops by itself. For other languages (`Analysis`) stop words are left out
and words stemmed here, alike for documents and queries; the engine sees the result.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import version
from typing import Any

from ragauge.texts.languages import AUTO, CODES
from ragauge.texts.words import MARKS, STOP_WORDS, UNSPACED

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
# Accents of Latin, Greek and Cyrillic; Hebrew points; Arabic vowels and tatweel. Marks of other scripts
# (Indic vowels, Thai tones, kana voicing) tell words apart and stay.
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]+")
# Letters that Unicode does not decompose, and the apostrophes that mean '.
_LETTERS = str.maketrans(
    {"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
    | dict.fromkeys("‘’ʼ", "'")
)
_SYMBOL = re.compile(r"[^\w\x00-\x7f]")
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_SCRIPTS = re.compile(f"([{UNSPACED}]+)|([^{UNSPACED}]+)")
_CODE_LENGTH = 14  # 13 ** 14 codes: among a million words a collision has odds of about 1 in 8,000
_CODE_LETTERS = ("bdfhjlnprtvxz", "acegikmoqsuwy")


def fold(text: str) -> str:
    """ASCII text whose words match where the words of the text match, whatever their script.

    Compatibility forms, case and accents are folded (Café, CAFE and ｃａｆé are cafe). Words that still hold no ASCII
    letter become code words. Each word gets a code; in scripts written without spaces, each pair of neighbouring
    characters does (as Lucene's CJK analyser pairs them). Everything else is a space.
    """
    return _CONTROL.sub(" ", text if text.isascii() else _to_ascii(text))


def _to_ascii(text: str) -> str:
    text = unicodedata.normalize("NFKD", text).casefold()
    text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    text = unicodedata.normalize("NFC", text).translate(_LETTERS)
    return _FOREIGN.sub(_code_words, _SYMBOL.sub(_keep_mark, text))


def _keep_mark(symbol: re.Match[str]) -> str:
    """A mark stays with its letter, an invisible character vanishes, any other symbol separates."""
    category = unicodedata.category(symbol[0])
    return symbol[0] if category[0] == "M" else "" if category == "Cf" else " "


def _code_words(run: re.Match[str]) -> str:
    words: list[str] = []
    for unspaced, spaced in _SCRIPTS.findall(run[0]):
        if spaced or len(unspaced) == 1:
            words.append(spaced or unspaced)
        else:
            words += (unspaced[i : i + 2] for i in range(len(unspaced) - 1))
    return f" {' '.join(map(_code, words))} "


@lru_cache(maxsize=1 << 16)
def _code(word: str) -> str:
    """A code word of 15 letters that engines leave as it is.

    It ends with q, which no English suffix does, so that no stemmer touches it. It never repeats a letter three times
    and holds no digit, since Terrier would discard it.
    """
    number = int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest())
    letters = []
    for place in range(_CODE_LENGTH):
        number, letter = divmod(number, len(_CODE_LETTERS[0]))
        letters.append(_CODE_LETTERS[place % 2][letter])
    return "".join(letters) + "q"


# `other` is any language without a stemmer here; `auto` that of most documents, which the index names.
LANGUAGES = (*CODES.values(), "other", AUTO)
_STEMMED = frozenset(STOP_WORDS) - {"vietnamese"}  # its words have no endings

_WORD = re.compile(rf"(?:[^\W\d_][{MARKS}]*)+")
_APOSTROPHES = re.compile("['‘’ʼ]")
_TURKISH = str.maketrans("İI", "iı")  # its capitals


@dataclass(frozen=True)
class Analysis:
    """How texts of a language are made into ASCII text whose words match where the texts' words match.

    language: one of LANGUAGES. stems: whether words are reduced to their stems by the language's Snowball
    stemmer; stops: whether STOP_WORDS are left out of queries. Both have no effect on English, which the
    engine stems and stops, and on languages without a stemmer and without a list.
    """

    language: str = "english"
    stems: bool = True
    stops: bool = True

    @property
    def by_engine(self) -> bool:
        """Whether the engine is to stem and stop."""
        return self.language == "english"

    def identity(self) -> dict[str, Any]:
        """Its part that is written into an index; {} for English, whose indexes do not name it."""
        if self.by_engine:
            return {}
        stemmed = self.stems and self.language in (*_STEMMED, AUTO)
        return {"language": self.language, "snowball": version("snowballstemmer") if stemmed else None}

    def document(self, text: str) -> str:
        """The text as the engine is given it; stop words stay in."""
        return fold(self._stemmed(text, frozenset()))

    def query(self, text: str) -> str:
        """The query as the engine is given it."""
        return fold(self._stemmed(text, STOP_WORDS.get(self.language, frozenset()) if self.stops else frozenset()))

    def _stemmed(self, text: str, without: frozenset[str]) -> str:
        if self.language not in STOP_WORDS:
            return text
        if self.language == "turkish":
            text = text.translate(_TURKISH)
        text = unicodedata.normalize("NFKC", text).lower().replace("\u00ad", "").replace("ё", "е")

        def word(match: re.Match[str]) -> str:
            if match[0] in without:
                return " "
            return _stem(self.language, match[0]) if self.stems and self.language in _STEMMED else match[0]

        # An elided article is a word of its own: l'homme, dell'arte.
        return _WORD.sub(word, _APOSTROPHES.sub(" ", text))


@lru_cache(maxsize=1 << 18)
def _stem(language: str, word: str) -> str:
    return str(_stemmer(language).stemWord(word))


@lru_cache(maxsize=len(STOP_WORDS))
def _stemmer(language: str) -> Any:
    # Not by snowballstemmer.stemmer(), which gives another package's stemmers where that is installed.
    module = import_module(f"snowballstemmer.{language}_stemmer")
    return getattr(module, f"{language.capitalize()}Stemmer")()
