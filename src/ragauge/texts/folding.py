"""Folds spellings of a text, and maps ends of its prefixes to the folded text."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from ragauge.contract.checks import require

FOLDS = ("entities", "line_hyphens", "soft_hyphens", "quotes", "dashes", "nfkc", "case")
"""The foldings, in the order in which they are done, whatever order was asked for.

entities: `&amp;`, `&#39;` and the other character references of HTML are the characters that they name.
line_hyphens: a hyphen at the end of a line is removed with the line's end where a small letter follows.
soft_hyphens: U+00AD and the zero-width space, word joiner and byte order mark are removed.
quotes: curly, low, angle and prime quotation marks, and the backtick, are `'` or `"`.
dashes: every hyphen, dash and minus sign is `-`.
nfkc: Unicode's normal form NFKC: ligatures, full-width letters, composed and decomposed accents.
case: Python's `str.casefold`.
"""

_INVISIBLE = "\u00ad\u200b\u2060\ufeff"
_SINGLE = "`\u00b4\u02b9\u02bb\u02bc\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a\uff07"
_DOUBLE = "\u00ab\u00bb\u02ba\u201c\u201d\u201e\u201f\u2033\u2036\u301d\u301e\u301f\uff02"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u2e3a\u2e3b\ufe31\ufe32\ufe58\ufe63\uff0d"
_REPLACED = {
    "soft_hyphens": dict.fromkeys(_INVISIBLE, ""),
    "quotes": {**dict.fromkeys(_SINGLE, "'"), **dict.fromkeys(_DOUBLE, '"')},
    "dashes": dict.fromkeys(_DASHES, "-"),
}
_ANY_OF = {name: re.compile(f"[{''.join(table)}]") for name, table in _REPLACED.items()}
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_LINE_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010][ \t]*\r?\n[ \t]*(?=[^\W\d_])")
# No character below joins, or changes places with, one that stands before it: the text before such a
# character and the text from it on have their normal forms by themselves.
_MAY_JOIN = 0x300


def checked_folds(key: str, names: object) -> tuple[str, ...]:
    """The distinct names in the order of FOLDS; ConfigError for another name, and for anything but a list."""
    listed = not isinstance(names, str) and isinstance(names, Iterable)
    given = list(names) if isinstance(names, Iterable) and listed else []
    ok = listed and all(name in FOLDS for name in given)
    require(key, given if listed else names, ok, f"lists of {', '.join(FOLDS)}, such as [] and [quotes,dashes]")
    return tuple(name for name in FOLDS if name in given)


def fold_space(text: str) -> str:
    """The text with runs of white space as one space, stripped."""
    return " ".join(text.split())


def fold_text(text: str, folds: tuple[str, ...]) -> str:
    """The text with these spellings folded (`FOLDS`)."""
    for name in _SPANS:
        if name in folds:
            text = _without_spans(text, _SPANS[name](text))
    for name, table in _REPLACED.items():
        if name in folds:
            text = _ANY_OF[name].sub(lambda found, table=table: table[found[0]], text)  # type: ignore[misc]
    return _normal(text, folds)


def fold_prefixes(text: str, ends: np.ndarray, folds: tuple[str, ...]) -> tuple[str, np.ndarray, dict[int, str]]:
    """A folded text, the ends of prefixes in it, and folded prefixes that are not prefixes of it.

    `ends` rise from 0 to len(text). For every j, `fold_text(text[: ends[j]])` is `folded[: found[j]]`, or stands by j
    in the third value. The latter happens where an end stands between a letter and its accent: the folded prefix has
    the letter alone and is no prefix of the folded text. `found` rises.
    """
    text = text[: int(ends[-1]) if len(ends) else 0]
    if "entities" not in folds and "line_hyphens" not in folds:
        return _fold_prefixes(text, ends, folds)
    whole, inside = text, np.zeros(len(ends), dtype=bool)
    first = ends
    for name in _SPANS:
        if name in folds and (spans := _SPANS[name](text)):
            ends, cut = _behind(spans, ends)
            inside |= cut
            text = _without_spans(text, spans)
    folded, found, own = _fold_prefixes(text, ends, folds)
    return folded, found, own | {j: fold_text(whole[: first[j]], folds) for j in np.flatnonzero(inside).tolist()}


def _fold_prefixes(text: str, ends: np.ndarray, folds: tuple[str, ...]) -> tuple[str, np.ndarray, dict[int, str]]:
    """`fold_prefixes` by the foldings of single characters and Unicode's."""
    for name, table in _REPLACED.items():
        if name in folds and (at := [found.start() for found in _ANY_OF[name].finditer(text)]):
            if name == "soft_hyphens":
                ends = ends - np.searchsorted(at, ends, side="left")
            text = _ANY_OF[name].sub(lambda found, table=table: table[found[0]], text)  # type: ignore[misc]
    if text.isascii():  # is in its normal form, and its case folds letter by letter
        return _normal(text, folds), np.array(ends, dtype=np.int64), {}
    starts = _safe_starts(text, ends) if "nfkc" in folds else ends
    pieces = [_normal(text[a:b], folds) for a, b in pairwise([0, *starts.tolist(), len(text)])]
    folded = "".join(pieces)
    found = np.cumsum([len(piece) for piece in pieces[:-1]], dtype=np.int64)
    own: dict[int, str] = {}
    for j in np.flatnonzero(starts < ends).tolist():
        rest = _normal(text[starts[j] : ends[j]], folds)
        if folded.startswith(rest, int(found[j])):
            found[j] += len(rest)
        else:
            own[j] = folded[: found[j]] + rest
    rising = np.maximum.accumulate(found)
    own |= {j: folded[: found[j]] for j in np.flatnonzero(rising > found).tolist() if j not in own}
    return folded, rising, own


Span = tuple[int, int, str]  # start and end in a text, and what takes its place


def _entities(text: str) -> list[Span]:
    found = [(one.start(), one.end(), html.unescape(one[0])) for one in _ENTITY.finditer(text)] if "&" in text else []
    return [span for span in found if span[2] != text[span[0] : span[1]]]


def _line_hyphens(text: str) -> list[Span]:
    # A prefix that ends with the span has no letter behind it, and keeps it.
    return [(one.start(), one.end(), "") for one in _LINE_HYPHEN.finditer(text) if text[one.end()].islower()]


_SPANS = {"entities": _entities, "line_hyphens": _line_hyphens}


def _without_spans(text: str, spans: Sequence[Span]) -> str:
    """The text with each span replaced."""
    pieces, at = [], 0
    for start, end, new in spans:
        pieces += [text[at:start], new]
        at = end
    return "".join([*pieces, text[at:]])


def _behind(spans: Sequence[Span], ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ends after the spans are replaced, and which of them cut a span: these move to its start.

    An end right behind a removed span cuts it, too, since the text after it decides whether it is one.
    """
    start, stop = (np.array([span[i] for span in spans], dtype=np.int64) for i in (0, 1))
    removed = np.array([not span[2] for span in spans])
    less = np.array([span[1] - span[0] - len(span[2]) for span in spans], dtype=np.int64)
    at = np.searchsorted(start, ends, side="left") - 1  # the last span that begins before the end
    before = np.maximum(at, 0)
    cut = (at >= 0) & ((ends < stop[before]) | (removed[before] & (ends == stop[before])))
    whole = np.concatenate([[0], np.cumsum(less)])[np.where(cut, at, at + 1)]  # characters less, of the spans behind
    return np.where(cut, start[before], ends) - whole, cut


def _normal(text: str, folds: tuple[str, ...]) -> str:
    if "nfkc" in folds:
        text = unicodedata.normalize("NFKC", text)
    return text.casefold() if "case" in folds else text


def _safe_starts(text: str, ends: np.ndarray) -> np.ndarray:
    """For every end, the last place before it at which a cut leaves the text's normal form unchanged."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    safe = np.concatenate([[0], np.flatnonzero(codes < _MAY_JOIN), [len(text)]])
    starts: np.ndarray = safe[np.searchsorted(safe, ends, side="right") - 1]
    return starts
