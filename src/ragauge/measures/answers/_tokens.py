"""What the tokens of an answer are, by name: of SQuAD and MLQA, plain words, those of ROUGE and BLEU."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ragauge.contract.checks import require_choice
from ragauge.contract.errors import ConfigError
from ragauge.texts.function_words import ARTICLES
from ragauge.texts.words import WITHOUT_SPACES

Tokens = Callable[[str], list[str]]

# sacrebleu's tokenizers that read no model and no dictionary.
OF_SACREBLEU = ("13a", "intl", "zh", "char", "none")

_ENGLISH = tuple(sorted(ARTICLES))
_HAS_UNSPACED = re.compile(f"[{WITHOUT_SPACES}]")
_WORDS = re.compile(r"[^\W_]+")
_ASCII_WORDS = re.compile(r"[a-z0-9]+")


def _is_punctuation(character: str) -> bool:
    """Unicode's P categories, and the signs of ASCII, $ and + among them."""
    return character in string.punctuation or unicodedata.category(character).startswith("P")


class _Bare(dict[int, int | None]):
    """A table for str.translate that removes punctuation; characters are looked up once."""

    def __missing__(self, code: int) -> int | None:
        self[code] = found = None if _is_punctuation(chr(code)) else code
        return found


_BARE = _Bare()
_BARE_OF_ASCII = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> list[str]:
    """The tokens of a text of any language, as MLQA's script has them: lower case, without a, an, the.

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

    Of ASCII these are the tokens of the package rouge-score.
    """
    return [word for run in _spaced(_lower(text)).split() for word in _WORDS.findall(run)]


def ascii_words(text: str) -> list[str]:
    """The tokens of the package rouge-score: lower-case runs of the ASCII letters and digits."""
    return _ASCII_WORDS.findall(text.lower())


def tokens_of(key: str, name: str, articles: Sequence[str] = _ENGLISH, lowercase: bool = False) -> Tokens:
    """The tokens called `name`; ConfigError, which names the config key, if there are none.

    lowercase: of sacrebleu's, whether the text is put in lower case first; the others always do.
    """
    own: dict[str, Tokens] = {
        "squad": _squad(articles),
        "mlqa": _mlqa(articles),
        "plain": plain,
        "words": unicode_words,
        "rouge_score": ascii_words,
    }
    if name in own:
        return WordByWord(own[name])
    require_choice(key, name, (*own, *OF_SACREBLEU))
    from sacrebleu.metrics.bleu import BLEU

    tokenize = BLEU(tokenize=name, lowercase=lowercase)._preprocess_segment

    def whole(text: str) -> list[str]:
        return tokenize(text).split()

    # 13a joins words that a hyphen divides at the end of a line.
    return WordByWord(whole, across="\n") if name == "13a" else whole


def _squad(articles: Sequence[str]) -> Tokens:
    without = _without(articles)
    return lambda text: without(text.lower().translate(_BARE_OF_ASCII)).split()


def _mlqa(articles: Sequence[str]) -> Tokens:
    without = _without(articles)
    return lambda text: _spaced(without(_lower(text).translate(_BARE))).split()


def _without(articles: Sequence[str]) -> Callable[[str], str]:
    """A function that puts a space in the place of each of the words."""
    if not articles:
        return str
    return partial(re.compile(rf"\b({'|'.join(map(re.escape, articles))})\b").sub, " ")


class WordByWord:
    """Tokens of which none depends on what stands beyond white space, but in a text that holds `across`."""

    def __init__(self, tokens: Tokens, across: str | None = None) -> None:
        self._tokens, self._across = tokens, across

    def __call__(self, text: str) -> list[str]:
        return self._tokens(text)

    def as_a_whole(self, text: str) -> bool:
        """Whether the text's tokens are not those of its words, one after the other."""
        return self._across is not None and self._across in text


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
    """The text with white space around the characters of scripts that are written without."""
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
