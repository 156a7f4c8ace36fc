"""The tokens of answers by name (of SQuAD, of MLQA, of ROUGE, plain words), and what two lists of tokens share."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial

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


Tokens = Callable[[str], list[str]]


def tokens_of(key: str, name: str, articles: Sequence[str] = _ENGLISH) -> Tokens:
    """The tokens named `name`; ConfigError with the config key if unknown."""
    known: dict[str, Tokens] = {
        "squad": _squad(articles),
        "mlqa": _mlqa(articles),
        "plain": plain,
        "words": unicode_words,
        "rouge_score": ascii_words,
    }
    require_choice(key, name, tuple(known))
    return known[name]


def _squad(articles: Sequence[str]) -> Tokens:
    without = _without(articles)
    return lambda text: without(text.lower().translate(_BARE_OF_ASCII)).split()


def _mlqa(articles: Sequence[str]) -> Tokens:
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


def ngrams(tokens: Sequence[Hashable], n: int) -> Counter[Hashable]:
    """How often each n-gram stands among the tokens, or the characters of a text."""
    if n == 1:
        return Counter(tokens)
    if isinstance(tokens, str):
        return Counter(tokens[at : at + n] for at in range(len(tokens) - n + 1))
    return Counter(zip(*(tokens[start:] for start in range(n)), strict=False))


def matched(tokens: Sequence[Hashable], others: Sequence[Sequence[Hashable]], n: int) -> int:
    """How many n-grams of the tokens stand in the others: each as often, at most, as the one that has it most.

    "a b a" has three words in common with "a a b" and "b b": a twice, b once.
    """
    most = ngrams(others[0], n) if others else Counter()
    for other in others[1:]:
        most |= ngrams(other, n)
    return sum(min(count, most[gram]) for gram, count in ngrams(tokens, n).items() if gram in most)


def place_of(part: list[str], tokens: list[str]) -> int:
    """The first place where the part stands in one piece among the tokens; -1 without one."""
    size = len(part)
    return next((at for at in range(len(tokens) - size + 1) if tokens[at : at + size] == part), -1)


def common_subsequence(tokens: Sequence[Hashable], others: Sequence[Hashable]) -> int:
    """Length of the longest common subsequence.

    A row of the usual table is one number, a bit for each of the others: 0 where the length grows there (Hyyrö,
    Bit-parallel LCS-length computation revisited, AWOCA 2004).
    """
    places: dict[Hashable, int] = {}
    for at, token in enumerate(others):
        places[token] = places.get(token, 0) | 1 << at
    every = (1 << len(others)) - 1
    row = every
    for token in tokens:
        grows = row & places.get(token, 0)
        row = (row + grows | row - grows) & every
    return len(others) - row.bit_count()


def code_points(text: str) -> np.ndarray:
    """Read-only code points, uint32 [len(text)]; lone surrogates are code points like others."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def offsets(lengths: Iterable[int]) -> np.ndarray:
    """Starts of consecutive items of these lengths, and the end of all, int64 [lengths + 1]."""
    sizes = lengths if isinstance(lengths, np.ndarray) else np.fromiter(lengths, dtype=np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])
