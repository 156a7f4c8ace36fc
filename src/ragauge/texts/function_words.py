"""English words that carry grammar instead of a subject: articles, pronouns, auxiliaries, prepositions.

The lexical judge leaves out GRAMMAR_WORDS only, since before, more or one can be what an answer is about; the
rules that write search queries leave out FUNCTION_WORDS. Three lists elsewhere mean something else and stay
apart: the words that open a sentence and the abbreviations in ragauge.texts.sentences, the small words inside
names (van, of) in ragauge.retrieval.queries, and the stop words of the BM25 engines, which are
their own.
"""

from __future__ import annotations

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
