"""Citations in a text: numbers in brackets, such as [2], [1][3], [1, 3] and [2-4], sentence by sentence."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from ragauge.texts.sentences import sentence_spans
from ragauge.texts.words import has_words

# At most three digits: [1999] is a year.
_MARK = re.compile(r"\[\s*\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\s*\]")
_NUMBERS = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
_GIVEN = re.compile(r"(.*?)\u2028((?:\[\d+\])*)(?:\n\n|\Z)", re.DOTALL)


class Statement(NamedTuple):
    """A sentence without its marks, and the distinct numbers that it cites, in order."""

    text: str
    cited: tuple[int, ...]


def without_marks(text: str) -> str:
    """The text without citations and the white space before each."""
    return _parted(text)[0].strip() if _MARK.search(text) else text


def statements_of(text: str) -> list[Statement]:
    """The sentences with words, in order, each with the numbers that it cites.

    A mark belongs to the sentence that it stands in, or directly behind ("It is so. [1] More."); before the
    first sentence, to that. Where U+2028 ends each sentence (`given_sentences`), there are no others.
    """
    if (given := given_sentences(text)) is not None:
        return [one._replace(cited=tuple(dict.fromkeys(one.cited))) for one in given if has_words(one.text)]
    plain, marks = _parted(text)
    spans = [(start, end) for start, end in sentence_spans(plain) if has_words(plain[start:end])]
    cited: list[dict[int, None]] = [{} for _ in spans]
    starts = [start for start, _ in spans]
    for at, numbers in marks:
        # What stands before the mark decides, the white space between them left out.
        before = len(plain[:at].rstrip()) - 1
        if spans:
            cited[max(0, bisect_right(starts, before) - 1)].update(dict.fromkeys(numbers))
    return [Statement(plain[start:end], tuple(numbers)) for (start, end), numbers in zip(spans, cited, strict=True)]


def given_sentences(text: str) -> list[Statement] | None:
    """Sentences of a text that ends each with U+2028 and marks such as [1][3], an empty line between two.

    None for any other text. The numbers stay as given.
    """
    found, at = [], 0
    while match := _GIVEN.match(text, at):
        found.append(Statement(match[1], tuple(_numbers(match[2]))))
        at = match.end()
        if at == len(text):
            return found
    return None


def _parted(text: str) -> tuple[str, list[tuple[int, list[int]]]]:
    """The text without marks, and each mark's offset in that text with its numbers."""
    plain, marks, done = "", [], 0
    for match in _MARK.finditer(text):
        plain += text[done : match.start()].rstrip()
        marks.append((len(plain), _numbers(match.group())))
        done = match.end()
        if plain[-1:].isalnum() and text[done : done + 1].isalnum():
            plain += " "
    return plain + text[done:], marks


def _numbers(mark: str) -> list[int]:
    found: list[int] = []
    for first, last in _NUMBERS.findall(mark):
        found += range(int(first), int(last) + 1) if last and int(last) >= int(first) else [int(first)]
        if last and int(last) < int(first):
            found.append(int(last))
    return found
