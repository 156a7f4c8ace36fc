"""What BM25's engine is given of a text, by language: stop words left out, words stemmed, any script folded.

English is left to the engine, which stems and stops by itself. Of other languages the engine sees what is
made here, alike for documents and queries.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

from ragauge.retrieval.retrievers._analysis import fold
from ragauge.texts.words import STOP_WORDS

# Scripts whose words have neither endings to take off nor spaces around them: `fold` pairs their characters.
# `other` is any language without a stemmer here.
_UNSTEMMED = ("chinese", "japanese", "korean", "other")
LANGUAGES = ("english", *STOP_WORDS, *_UNSTEMMED)

_LETTERS = re.compile(r"[^\W\d_]+")
_APOSTROPHES = re.compile("['‘’ʼ]")


@dataclass(frozen=True)
class Analysis:
    """How texts of a language are made into ASCII text whose words match where the texts' words match.

    language: one of LANGUAGES. stems: whether words are reduced to their stems by the language's Snowball
    stemmer; stops: whether STOP_WORDS are left out of queries. Both have no effect on English, which the
    engine stems and stops, and on languages without a stemmer.
    """

    language: str = "english"
    stems: bool = True
    stops: bool = True

    @property
    def by_engine(self) -> bool:
        """Whether the engine is to stem and stop."""
        return self.language == "english"

    def identity(self) -> dict[str, Any]:
        """What of it is written into an index; {} of English, whose indexes do not name it."""
        if self.by_engine:
            return {}
        stemmed = self.stems and self.language in STOP_WORDS
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
        text = unicodedata.normalize("NFKC", text).lower().replace("\u00ad", "").replace("ё", "е")

        def word(match: re.Match[str]) -> str:
            if match[0] in without:
                return " "
            return _stem(self.language, match[0]) if self.stems else match[0]

        # An elided article is a word of its own: l'homme, dell'arte.
        return _LETTERS.sub(word, _APOSTROPHES.sub(" ", text))


@lru_cache(maxsize=1 << 18)
def _stem(language: str, word: str) -> str:
    return str(_stemmer(language).stemWord(word))


@lru_cache(maxsize=len(STOP_WORDS))
def _stemmer(language: str) -> Any:
    # Not by snowballstemmer.stemmer(), which gives another package's stemmers where that is installed.
    module = import_module(f"snowballstemmer.{language}_stemmer")
    return getattr(module, f"{language.capitalize()}Stemmer")()
