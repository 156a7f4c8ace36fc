"""The words of a text in any script, as search compares them, and function words.

Two other lists have other purposes and stay apart. ragauge.texts.sentences has the words that open a sentence and the
abbreviations, and ragauge.retrieval.queries the small words inside names (van, of).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path

# Scripts written without spaces between words, as the inside of a character class: Thai, Lao, Myanmar, Khmer,
# kana, Han.
WITHOUT_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
UNSPACED = f"{WITHOUT_SPACES}\u1100-\u11ff\uac00-\ud7a3"  # and Korean, whose particles cling to the words
# Vowel signs and points of Hebrew, Arabic and the scripts of India and its east: re takes them for no part of a word.
MARKS = "".join(char for char in map(chr, range(0x591, 0x1800)) if unicodedata.category(char).startswith("M"))
# A word that has spaces around it, or a character of a script without them.
WORD = rf"(?=\w)[{WITHOUT_SPACES}][{MARKS}]*|(?:(?![{WITHOUT_SPACES}])\w[{MARKS}]*)+"
_POSSESSIVE = re.compile(r"['’]s\b")
_ASCII_WORD = re.compile("[0-9A-Za-z]+")
_RUNS = re.compile(f"([{UNSPACED}]+)|((?:(?![{UNSPACED}])[^\\W_][{MARKS}]*)+)")


def has_words(query: object) -> bool:
    """Whether a query holds a letter or digit of any script; one without has no hits."""
    return isinstance(query, str) and any(map(str.isalnum, query))


def words(text: str) -> list[str]:
    """The words of a text in order, case folded, without the possessive 's.

    In scripts written without spaces each pair of neighbouring characters is one; a single one is itself.
    """
    return cut_words(_POSSESSIVE.sub("", text.casefold()))


def cut_words(text: str) -> list[str]:
    """`words` of a text whose case and possessives are folded already."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    found: list[str] = []
    for unspaced, spaced in _RUNS.findall(text):
        if spaced or len(unspaced) == 1:
            found.append(spaced or unspaced)
        else:
            found += (unspaced[i : i + 2] for i in range(len(unspaced) - 1))
    return found


# Of English: articles, pronouns, auxiliaries, prepositions. The lexical judge leaves out GRAMMAR_WORDS only, since
# before, more or one can be what an answer is about; the rules that write search queries leave out FUNCTION_WORDS.
ARTICLES = frozenset({"a", "an", "the"})

_GRAMMAR_TEXT = """
    also and are as at be been being both but by did do does for from had has have he her him his in
    into is it its no nor not of on or she than that their them there these they this those to was were
    what which who whom whose with yes
"""
GRAMMAR_WORDS = ARTICLES | frozenset(_GRAMMAR_TEXT.split())

# Function words that an answer may still turn on: time, place, amount, condition.
_FURTHER_TEXT = """
    about after all am any because before between can could during each either else having here how i if
    itself many may me more most much must my neither one only other our out over own same shall should
    since so some such then through under until up upon us we when where whether while why will within
    without would you your
"""
FUNCTION_WORDS = GRAMMAR_WORDS | frozenset(_FURTHER_TEXT.split())

# What questions and search queries hold besides: BM25 leaves these out of English queries, with FUNCTION_WORDS.
# A change of this list changes what BM25 finds: raise BM25's version (retrieval/retrievers/bm25.py).
_QUERIES_TEXT = """
    above across actually afterwards again against almost along already although always amid among amongst another
    anybody anyone anything anywhere around aside became become becomes becoming behind below beneath beside besides
    beyond called cannot certain come comes could describe described describes describing despite different does doing
    don didn doesn done during eight elsewhere enough especially etc even ever every everybody everyone everything
    everywhere except few fewer find five four further gave generally get gets getting give given gives go goes got
    hasn haven hence hers herself himself hadn however indeed instead isn just know known knows least less let likely
    ll lot main mainly make makes making maybe mean means meant meanwhile mine mostly myself namely near nearly
    necessary never nevertheless nine nobody none nothing nowhere off often onto others otherwise ought ours ourselves
    particular particularly per perhaps please possibly probably provide provided provides quite rather re really
    regarding related relatively said say says seem seemed seems seven several shouldn six someone something sometimes
    somewhere still t tell ten thereby therefore three though throughout thus together too toward towards two typically
    unless unlike use used uses using usually various ve versus very via vs want wasn well went weren whatever whenever
    wherever whereas whichever whoever wouldn yet yours yourself s
"""
ENGLISH_STOP_WORDS = FUNCTION_WORDS | frozenset(_QUERIES_TEXT.split())

# Of other languages: BM25 leaves these out of queries, and they tell Latin languages apart (ragauge.texts.languages).
_FILE = Path(__file__).with_name("function_words.txt")
_LISTS = re.findall(r"^(\w+):\n((?: .*\n)+)", _FILE.read_text(encoding="utf-8"), re.MULTILINE)
STOP_WORDS: Mapping[str, frozenset[str]] = {language: frozenset(text.split()) for language, text in _LISTS}
