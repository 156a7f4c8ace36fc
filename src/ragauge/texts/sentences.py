"""Splits a text into sentences by punctuation and a short list of abbreviations.

Returns offsets, not strings, so that each piece's origin stays known.
"""

from __future__ import annotations

import re

from ragauge.texts.languages import language_of
from ragauge.texts.words import MARKS, STOP_WORDS

# Marks that end a sentence with or without white space behind them: of Chinese and Japanese, of Arabic and Urdu, the
# dandas of India, of Burmese and Khmer.
_MARKS = "。！？｡؟۔।॥။។"
# Thai has no mark: a space between two words ends a sentence there, unless the next one links what follows to it.
_THAI = (
    "(?<=[\u0e01-\u0e2e\u0e30-\u0e45\u0e47-\u0e4e])(?= +(?!และ|หรือ|ที่|ซึ่ง|โดย|ของ|เพื่อ|จาก)[\u0e01-\u0e2e\u0e40-\u0e44])"
)
# End punctuation with what closes behind it, where white space follows (`_MARKS` and ! between Chinese characters need
# none), a space of Thai, or an empty line. A French » has a space before it.
# Possessive and anchored to the first mark of a row, so that no text takes quadratic time.
_HAN = "[\u3040-\u30ff\u3400-\u9fff]"
_CANDIDATE = re.compile(
    rf"""(?<![.!?…])[.!?…]++["'“”‘’«»‹›)\]}}]*+(?:[ \xa0\u202f]»(?=\s))?+(?=\s)|(?<={_HAN})[!?]++(?={_HAN})"""
    rf"""|(?:[{_MARKS}]++["'”’»」』）)\]]*+)++|{_THAI}|(?=\n[^\S\n]*+\n)"""
)
_LEAST_OF_THAI = 60  # characters of a sentence: a space in a shorter one parts names, items and clauses
_SPACE = re.compile(r"\s*")
_LAST_WORD = re.compile(rf"[\w{MARKS}.&'’-]*\Z")
_LETTER_BEFORE = re.compile(r"(?<!\w)\w\. ?\Z")  # u. a.
_LETTER_BEHIND = re.compile(r"\w\.")
_AROUND = 200  # characters before and behind a sentence by which German is recognised
_FIRST_WORD = re.compile(r"\w+")
_OPENING = "\"'“‘«([{¿¡"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Never the end of a sentence: a name, a number or more of the sentence follows.
_TITLES = _words(
    "mr mrs ms mx dr prof st ste gen col maj capt cmdr lt sgt cpl pvt adm rev fr hon pres gov sen rep supt "
    "mt ft messrs mme mlle e.g i.e cf viz vs ca approx "
    "bzw vgl ggf evtl inkl bspw sog geb gest hrsg esim ks vrt nk डॉ श्री श्रीमती प्रो पं ดร นพ พญ ผศ รศ"
)
# An abbreviation where a number follows, an ordinary word otherwise ("No. 5", "No. He left.").
_BEFORE_NUMBER = _words(
    "no nos fig figs vol vols p pp ch sec art op eq ed b d c r jan feb mar apr jun jul aug sep sept oct nov dec "
    "nr abb kap abs klo n s"
)
# May end a sentence: it does where the next word usually opens one.
_EITHER = _words(
    "inc ltd co corp bros llc plc jr sr esq etc al dept univ assn est ave blvd rd u.s u.s.a u.k u.n e.u d.c "
    "l.a n.y a.m p.m a.d b.c c.e b.c.e ph.d m.d b.a m.a b.s m.s d.phil mm ns"
)
# Behind a number of German: an ordinal, whatever the text around it is taken for.
_OF_DATES = _words("januar februar märz mai juni juli oktober dezember jahrhundert jahrhunderts")
_OPENERS = _words(
    "the a an it its he she they we you i his her their our this that these those there here in on at by "
    "for from with after before during since while when where although though however but and so as if "
    "because both each many most some one two several all no not then today who what which how why"
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """First and past-the-last character of every sentence, in order.

    The spans do not overlap and cover every character but the white space between them. A sentence ends at
    . ! ? … (and the quotes or brackets that close behind it) before white space and anything but a lowercase
    letter, at the marks of other scripts (。！？ ؟ ।), or at an empty line. Titles, initials and common abbreviations
    do not end one, nor do German ordinals (7. Februar). In Thai a space after 60 characters or more does.
    """
    spans: list[tuple[int, int]] = []
    start = _skip_space(text, 0)
    for match in _CANDIDATE.finditer(text):
        if match.end() <= start:
            continue
        following = _skip_space(text, match.end())
        if following == len(text):
            break
        if _is_end(text, start, match, following):
            # An empty line may have white space before it.
            spans.append((start, start + len(text[start : match.end()].rstrip())))
            start = following
    end = len(text.rstrip())
    if start < end:
        spans.append((start, end))
    return spans


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _is_end(text: str, start: int, match: re.Match[str], following: int) -> bool:
    """Whether the candidate ends the sentence that began at `start`, given what follows it."""
    mark = match.group()
    if not mark and text[match.end()] == " " and text.count("\n", match.end(), following) == 0:
        return match.end() - start >= _LEAST_OF_THAI
    if not mark or mark[0] in _MARKS or text.count("\n", match.end(), following) > 1:
        return mark[-1:] not in ("」", "』") or text[match.end()] not in "とっ"  # 「はい。」と言った
    if text[following].islower():
        return False
    if mark != ".":
        # "U.S." in quotes or "etc.)" are rare; marks other than a bare full stop end the sentence.
        return True
    # 40 characters hold any abbreviation; a longer look back would be quadratic in long "words".
    word_match = _LAST_WORD.search(text, max(start, match.start() - 40), match.start())
    word = word_match.group() if word_match else ""
    if match.start() - len(word) == start and word.isdigit() and len(word) <= 3:
        return False  # the number of a list item
    if word.isdigit() and len(word) <= 2:
        next_word = _FIRST_WORD.match(text, following)
        if next_word is None or next_word[0].casefold() in _OF_DATES:
            return next_word is None
        if language_of(text[max(0, start - _AROUND) : following + _AROUND]) == "german":
            return next_word[0].casefold() in STOP_WORDS["german"]
    return not _continues(word, text, match.start() - len(word), following)


def _continues(word: str, text: str, at: int, following: int) -> bool:
    """Whether the full stop after `word` ends an abbreviation and not the sentence."""
    folded = word.casefold()
    if folded in _TITLES:
        return True
    if text[following].isdigit() and (folded in _BEFORE_NUMBER or folded.endswith("str")):
        return True
    is_initial = len(word) == 1 and (
        word.isupper()
        or "\u0590" <= word <= "\u0e2e"  # of a script without capitals
        or _LETTER_BEHIND.match(text, following) is not None
        or _LETTER_BEFORE.search(text, max(0, at - 4), at) is not None
    )
    is_initials = "." in word and all(len(piece) == 1 for piece in word.split("."))  # "J.S", "U.S"
    if not (is_initial or is_initials or folded in _EITHER):
        return False
    at = following
    while at < len(text) and text[at] in _OPENING:
        at += 1
    next_word = re.match(r"\w*", text[at : at + 40])
    return next_word is None or next_word.group().casefold() not in _OPENERS
