"""The tokens of answers by name (of SQuAD, of MLQA, of ROUGE, plain words), and texts as numbers of tokens."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import numpy as np

from ragauge.contract.checks import require_choice
from ragauge.contract.errors import ConfigError
from ragauge.texts.languages import AUTO, CODES, named_language
from ragauge.texts.words import ARTICLES, MARKS, WITHOUT_SPACES

NO_SYMBOL = 0xFFFFFFFF  # no code point, and no number of a word: more than memory holds
_ENGLISH = tuple(sorted(ARTICLES))
_OF_MLQA = {  # the articles that MLQA's script leaves out; Arabic's, which clings to its word, stays in here
    "english": "a an the", "auto": "a an the", "spanish": "un una unos unas el la los las",
    "german": "ein eine einen einem eines einer der die das den dem des", "vietnamese": "của là cái chiếc những",
}  # fmt: skip
_HAS_UNSPACED = re.compile(f"[{WITHOUT_SPACES}]")
_WORDS = re.compile(rf"(?:[^\W_][{MARKS}]*)+")
_ASCII_WORDS = re.compile(r"[a-z0-9]+")


def _is_punctuation(character: str) -> bool:
    """Whether a character is in Unicode's P categories or an ASCII sign, such as $ and +."""
    return character in string.punctuation or unicodedata.category(character).startswith("P")


class _Bare(dict[int, int | None]):
    """A table for str.translate that removes punctuation; characters are looked up once."""

    def __missing__(self, code: int) -> int | None:
        self[code] = found = None if _is_punctuation(chr(code)) else code
        return found


_FEW = 50_000  # symbols that Python counts in less time than importing numba takes
_BARE = _Bare()
_BARE_OF_ASCII = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> list[str]:
    """The tokens of a text of any language as in MLQA's script: lower case, without a, an, the.

    Punctuation is left out: what Unicode has in its P categories, and the signs of ASCII. Each character of a
    script without spaces is a token of its own, as in MLQA for Chinese. Beyond that script, letters with
    marks are composed (NFC), and the lower case of the Turkish İ is i.
    """
    return _mlqa(_ENGLISH)(text)


def plain(text: str) -> list[str]:
    """The lower-case words between white space, without the punctuation at their ends; 4.6 is not 46."""
    found = (_trimmed(word) for word in _spaced(_lower(text)).split())
    return [word for word in found if word]


def unicode_words(text: str) -> list[str]:
    """Lower-case runs of letters and digits of any script; of scripts without spaces, the characters.

    In ASCII these are the tokens of the package rouge-score.
    """
    return [word for run in _spaced(_lower(text)).split() for word in _WORDS.findall(run)]


def ascii_words(text: str) -> list[str]:
    """The tokens of the package rouge-score: lower-case runs of the ASCII letters and digits."""
    return _ASCII_WORDS.findall(text.lower())


class Tokens:
    """The tokens of a text: those of its words in sequence, except for texts with `across`."""

    def __init__(self, read: Callable[[str], list[str]], across: str | None = None) -> None:
        self._read, self._across = read, across

    def __call__(self, text: str) -> list[str]:
        return self._read(text)

    def as_a_whole(self, text: str) -> bool:
        """Whether the text's tokens differ from those of its words."""
        return self._across is not None and self._across in text


def tokens_of(key: str, name: str, articles: Sequence[str] = _ENGLISH) -> Tokens:
    """The tokens named `name`; ConfigError with the config key if unknown."""
    known: dict[str, Callable[[str], list[str]]] = {
        "squad": _squad(articles),
        "mlqa": _mlqa(articles),
        "plain": plain,
        "words": unicode_words,
        "rouge_score": ascii_words,
    }
    require_choice(key, name, tuple(known))
    return Tokens(known[name])


def _squad(articles: Sequence[str]) -> Callable[[str], list[str]]:
    without = _without(articles)
    return lambda text: without(text.lower().translate(_BARE_OF_ASCII)).split()


def _mlqa(articles: Sequence[str]) -> Callable[[str], list[str]]:
    without = _without(articles)
    return lambda text: _spaced(without(_lower(text).translate(_BARE))).split()


def _without(articles: Sequence[str]) -> Callable[[str], str]:
    """A function that replaces each of the words by a space."""
    if not articles:
        return str
    return partial(re.compile(rf"\b({'|'.join(map(re.escape, articles))})\b").sub, " ")


def of_language(key: str, tokens: str | None, articles: object, language: str) -> tuple[str, tuple[str, ...]]:
    """Tokens and articles, by default the language's: SQuAD's for English, MLQA's for others."""
    name = named_language("language", language, (*CODES.values(), AUTO))
    articles = _OF_MLQA.get(name, "").split() if articles is None else articles
    return tokens or ("squad" if name == "english" else "mlqa"), check_articles(f"{key}.articles", articles)


def check_articles(key: str, articles: object) -> tuple[str, ...]:
    """The articles in lower case; ConfigError unless they are a list of words."""
    if not isinstance(articles, (list, tuple)) or not all(isinstance(a, str) and a.strip() for a in articles):
        raise ConfigError(f"{key}={articles!r}: allowed are lists of words, such as [a, an, the], and []")
    return tuple(_lower(word.strip()) for word in articles)


def _lower(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", text).lower().replace("i\u0307", "i")


def _trimmed(word: str) -> str:
    first, last = 0, len(word)
    while first < last and _is_punctuation(word[first]):
        first += 1
    while last > first and _is_punctuation(word[last - 1]):
        last -= 1
    return word[first:last]


def _spaced(text: str) -> str:
    """The text with spaces around characters of scripts without spaces."""
    if text.isascii() or not _HAS_UNSPACED.search(text):
        return text
    return "".join(_apart(text))


def _apart(text: str) -> Iterator[str]:
    inside = False  # a mark on such a character (a vowel sign of Thai) is no token of its own
    for character in text:
        mark = unicodedata.category(character).startswith("M")
        if mark and inside:
            yield character
        elif _HAS_UNSPACED.match(character):
            yield f" {character}"
            inside = True
        else:
            yield f" {character}" if inside else character
            inside = False


@dataclass(frozen=True)
class LaidOut:
    """Texts as numbers in one array: text i is symbols[at[i] : at[i + 1]]; int64, equal symbols are equal tokens."""

    symbols: np.ndarray
    at: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Number of symbols of each text, int64 [texts]."""
        return np.diff(self.at)

    def ngrams(self, order: int) -> np.ndarray:
        """Numbers of 1- to n-grams of each text, int64 [texts, order]."""
        return np.maximum(self.sizes[:, None] - np.arange(order), 0)

    def matches(self, others: LaidOut, order: int, first: np.ndarray | None = None) -> np.ndarray:
        """Numbers of 1- to n-grams of each text matched in the other text of the same index, int64 [texts, order].

        first: those from first[i] to before first[i + 1] are the others of text i; an n-gram counts as often
        as the one of them has it that has it most.
        """
        first = np.arange(len(self.at)) if first is None else first
        if len(self.symbols) + len(others.symbols) <= _FEW:
            return _counted(self, others, order, first)
        from ragauge.measures._answer_kernels import ngram_matches  # here, since numba takes its time

        found: np.ndarray = ngram_matches(self.symbols, self.at, others.symbols, others.at, first, order)
        return found


def _counted(texts: LaidOut, others: LaidOut, order: int, first: np.ndarray) -> np.ndarray:
    """`LaidOut.matches` by Python's counters."""
    found = np.zeros((len(texts.at) - 1, order), dtype=np.int64)
    every, of_others = ([one.tolist() for one in np.split(part.symbols, part.at[1:-1])] for part in (texts, others))
    for i in range(len(found)):
        for n in range(1, order + 1):
            most: Counter[tuple[int, ...]] = Counter()
            for other in of_others[first[i] : first[i + 1]]:
                most |= _ngrams(other, n)
            found[i, n - 1] = (_ngrams(every[i], n) & most).total()
    return found


def _ngrams(symbols: list[int], n: int) -> Counter[tuple[int, ...]]:
    return Counter(zip(*(symbols[start:] for start in range(n)), strict=False))


class _Numbers(dict[Any, int]):
    """Numbers keys from 0 in order of first use."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


def by_tokens(tokens: Tokens, *groups: Sequence[str]) -> list[LaidOut]:
    """The texts of each group as token numbers, common to all groups; reads each distinct word once."""
    texts = tuple(chain.from_iterable(groups))
    words, flat, at = _words_of(texts)
    numbers = _Numbers()
    of_words = [[numbers[token] for token in tokens(word)] for word in words]
    if whole := {i: text for i, text in enumerate(texts) if tokens.as_a_whole(text)}:
        # Each distinct one is a word more.
        number = {text: len(words) + i for i, text in enumerate(dict.fromkeys(whole.values()))}
        of_words += [[numbers[token] for token in tokens(text)] for text in number]
        each = np.split(flat, at[1:-1])
        for i, text in whole.items():
            each[i] = np.array([number[text]])
        flat, at = np.concatenate(each), offsets(map(len, each))
    symbols = np.fromiter(chain.from_iterable(of_words), dtype=np.int64)
    first = offsets(map(len, of_words))
    sizes = np.diff(first)[flat]
    ends = offsets(sizes)
    every = symbols[np.repeat(first[flat] - ends[:-1], sizes) + np.arange(ends[-1])]
    bounds = ends[at]
    laid_out, start = [], 0
    for group in groups:
        own = bounds[start : start + len(group) + 1]
        laid_out.append(LaidOut(every[own[0] : own[-1]], own - own[0]))
        start += len(group)
    return laid_out


@lru_cache(maxsize=1)  # several measures read the same texts one after the other
def _words_of(texts: tuple[str, ...]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The distinct words, their numbers over consecutive texts, and each text's start."""
    words = _Numbers()
    distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    read = [[words[word] for word in text.split()] for text in distinct]
    of_texts = [read[distinct[text]] for text in texts]
    return list(words), np.fromiter(chain.from_iterable(of_texts), dtype=np.int64), offsets(map(len, of_texts))


def places(texts: LaidOut, others: LaidOut) -> np.ndarray:
    """First position of each pair's other text, as a whole, in the first one, int64 [pairs]; -1 without any."""
    found = np.full(len(texts.sizes), -1, dtype=np.int64)
    own, other = texts.symbols.tolist(), others.symbols.tolist()
    at, other_at = texts.at.tolist(), others.at.tolist()
    for pair in np.flatnonzero(others.sizes <= texts.sizes).tolist():
        start, size = at[pair], other_at[pair + 1] - other_at[pair]
        wanted = other[other_at[pair] : other_at[pair + 1]]
        for place in range(at[pair + 1] - start - size + 1):
            if own[start + place : start + place + size] == wanted:
                found[pair] = place
                break
    return found


def code_points(text: str) -> np.ndarray:
    """Read-only code points, uint32 [len(text)]; lone surrogates are code points like others."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def offsets(lengths: Iterable[int]) -> np.ndarray:
    """Starts of consecutive items of these lengths, and the end of all, int64 [lengths + 1]."""
    sizes = lengths if isinstance(lengths, np.ndarray) else np.fromiter(lengths, dtype=np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])
