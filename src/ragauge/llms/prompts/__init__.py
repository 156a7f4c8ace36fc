"""The prompts: texts with $placeholders, the shipped files or a user's own.

`Answer: <$mark>$answer</$mark>` frames the answer: `fill` chooses a mark that stands in no value, so that no
value can end its frame. The mark is the same in all prompts whose values do not hold it. The parts that differ between
prompts stand last. So a server that keeps the beginning of a prompt computes it once.

A reply may repeat the prompt in place of an answer. A `Filled` prompt knows its own words, by which `echo_in` tells.
A prompt of a user's own may ask for a reply word by word, so that one line of it may be an answer.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Self

from ragauge.contract.errors import ConfigError
from ragauge.texts.languages import AUTO, language_of

_MARK = "mark"
_WORD = "quoted-material"  # the mark where no value holds anything like it
_LETTERS = _WORD.replace("-", "")
_DIGITS = 8  # behind the word where one does, hexadecimal
_FRAME = re.compile(rf"<(/?)({_WORD}(?:-[0-9a-f]{{{_DIGITS}}})?)>")
_QUESTION = re.compile(rf"^Question\b[^\n:]*:\s*(?:<{_WORD}[-\w]*>\s*)?(.+?)(?:</{_WORD}[-\w]*>)?$", re.MULTILINE)
_PLACE = re.compile(r"<[a-z][^<>$\n ]* [^<>$\n]*>")  # in the form of a reply: what stands for a value
_WORDS = re.compile(r"[^\W\d_]+")
_LEAST_WORDS = 5  # of a line that no reply has by chance
_COMPLAINT = "Your last reply to this could not be read: $why. Reply again, in the form that is asked for above: $form"
_NO_FORM = "it does not have the form that is asked for"
_NAMED = """\
The material below is in $language. Write all text of your own in $language: questions, answers, claims, facts, \
reasons. Read answers as a speaker of $language does. Keys, labels and fixed words of the reply stay exactly as they \
are given below.

"""


class NamedPrompt(str):
    """A prompt's text with a `name` for errors, such as a URI; never read as the name of a file."""

    def __new__(cls, text: str, name: str) -> Self:
        made = super().__new__(cls, text)
        made.name = name
        return made

    name: str


class Shipped(str):
    """The text of a shipped prompt: no line of it is a reply."""

    def __str__(self) -> Self:
        return self  # `str(prompt)` keeps the class


class Filled(str):
    """A prompt with its values filled in.

    own: the text with its numbers alone.   shipped: whether it was filled from a `Shipped` text.
    """

    def __new__(cls, text: str, own: str = "", shipped: bool = False) -> Self:
        made = super().__new__(cls, text)
        made.own, made.shipped = own, shipped
        return made

    own: str
    shipped: bool


def load_prompt(
    prompt: str | None,
    shipped: str,
    placeholders: tuple[str, ...],
    optional: tuple[str, ...] = (),
    key: str = "prompt",
    package: str = __name__,
) -> str:
    """The prompt's text: `prompt` itself, the content of the file it names, or the file shipped in `package`.

    A file is what ends in .txt, and any single word that is the path of a file.

    Raises ConfigError, which names the config key, if a file cannot be read, or if the text lacks a placeholder or has
    one that is neither required, nor optional, nor `$mark`. A dollar sign that is meant is written `$$`.
    """
    try:
        if prompt is None:
            text = (files(package) / shipped).read_text(encoding="utf-8")
        else:
            text = Path(prompt).expanduser().read_text(encoding="utf-8-sig") if _names_a_file(prompt) else prompt
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or f"not UTF-8: {error}"
        raise ConfigError(f"{key}={prompt}: the file cannot be read: {why}") from None
    template = Template(text)
    found = set(template.get_identifiers())
    if not template.is_valid() or not set(placeholders) <= found <= {*placeholders, *optional, _MARK}:
        needed = ", ".join(f"${name}" for name in placeholders)
        also = "".join(f", may hold ${name}" for name in (*optional, _MARK))
        named = prompt.name if isinstance(prompt, NamedPrompt) else repr(prompt or shipped)
        raise ConfigError(f"{key}={named}: must hold {needed}{also} and no other $placeholder")
    is_shipped = prompt is None or isinstance(prompt, Shipped)
    return Shipped(text.strip()) if is_shipped else text.strip()


def _names_a_file(prompt: str) -> bool:
    """Whether a prompt is a file name, since no prompt is a single word without a placeholder."""
    if isinstance(prompt, NamedPrompt):
        return False
    if prompt.endswith(".txt"):
        return True
    return len(prompt.split()) == 1 and "$" not in prompt and ("/" in prompt or Path(prompt).is_file())


def fill(prompt: str, **values: str) -> str:
    """The prompt as `Filled`, with every placeholder replaced; values are not searched for placeholders.

    `$mark` becomes the word quoted-material. Where a value holds it, in whatever spelling, digits that follow from all
    values stand behind it, and are in none of them.
    """
    template = Template(prompt)
    numbers = {name: value for name, value in values.items() if value.isdecimal()}  # three queries, five passages
    text, own = template.substitute(values, **{_MARK: _mark_of(values)}), template.safe_substitute(numbers)
    return Filled(text, own, isinstance(prompt, Shipped))


def complained(prompt: str, why: str, form: str) -> Filled:
    """The prompt with a last line that says why its reply could not be read, and which form is asked for.

    The line holds nothing of that reply, which may repeat instructions of the material.   why: "" where only the form
    is wrong.   form: "" where the prompt shows none.
    """
    line = _COMPLAINT.replace("$why", why or _NO_FORM).replace("$form", form).removesuffix(": ") + ("" if form else ".")
    text = f"{prompt}\n\n{line}"
    return Filled(text, f"{prompt.own}\n\n{line}", prompt.shipped) if isinstance(prompt, Filled) else Filled(text)


def echo_in(reply: str, prompt: str) -> str:
    """The first of the prompt's own words that a reply repeats; "" for none, and for a prompt that is not `Filled`.

    That is a mark, a place such as `<one short sentence>` in the form of a reply, or a whole line of five words or
    more. A reply with a JSON object may show such a line on its way, unless the line is its object. A prompt of a
    user's own may ask for a fixed reply: two of its lines are an echo, or one that is an object.
    """
    if not isinstance(prompt, Filled) or not prompt.own:
        return ""
    places, lines = _own_words(prompt.own)
    marks = [mark[0] for mark in _FRAME.finditer(reply)] if f"${_MARK}" in prompt.own else []
    if repeated := [*(place for place in places if place in reply), *(mark for mark in marks if mark in prompt)]:
        return repeated[0]
    said = list(dict.fromkeys(line for raw in reply.splitlines() if (line := " ".join(raw.split())) in lines))
    objects = [line for line in said if line.startswith("{")]
    if "{" in reply or not (prompt.shipped or len(said) > 1):
        said = objects
    return said[0] if said else ""


@lru_cache(maxsize=256)
def _own_words(own: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """The places for values in a prompt, in order, and its lines that hold nothing filled in."""
    lines = {" ".join(line.split()) for line in own.splitlines() if "$" not in line}
    return tuple(_PLACE.findall(own)), frozenset(x for x in lines if len(_WORDS.findall(x)) >= _LEAST_WORDS)


def _framed(prompt: str) -> Iterator[str]:
    """The texts between the pairs of marks, in order."""
    ends: dict[str, list[int]] = {}
    for mark in _FRAME.finditer(prompt):
        if mark[1]:
            ends.setdefault(mark[2], []).append(mark.start())
    at = 0
    for mark in _FRAME.finditer(prompt):
        closing = ends.get(mark[2], [])
        number = bisect_left(closing, mark.end())
        if not mark[1] and mark.start() >= at and number < len(closing):
            yield prompt[mark.end() : closing[number]]
            at = closing[number] + len(mark.group()) + 1


def in_language(prompt: str, language: str) -> str:
    """The prompt after a paragraph naming the language of its material; unchanged for English.

    auto: that of the prompt's question, else of all that stands within its marks. Where neither is recognised the
    prompt stays as it is.
    """
    if language == AUTO:
        asked = _QUESTION.search(prompt)
        material = " ".join(_framed(prompt))
        language = (asked and language_of(asked[1])) or language_of(material) or "english"
    if language == "english":
        return prompt
    return after(_NAMED.replace("$language", language.capitalize()), prompt)


def after(text: str, prompt: str) -> str:
    """The prompt after a text of ragauge's own."""
    return Filled(text + prompt, text + prompt.own, prompt.shipped) if isinstance(prompt, Filled) else text + prompt


def _mark_of(values: Mapping[str, str]) -> str:
    """The word of all frames, or with the first digits of the values' SHA-256 where a value imitates it.

    An imitation has the word's letters in order, whatever stands between them: `</Quoted\u2011Material>`, say. The
    digits are hashed again while a value holds them.
    """
    if not any(_imitates(value) for value in values.values()):
        return _WORD
    text = "\x1f".join(f"{name}\x1f{value}" for name, value in sorted(values.items()))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    while digest[:_DIGITS] in text.casefold():
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return f"{_WORD}-{digest[:_DIGITS]}"


def _imitates(value: str) -> bool:
    folded = value if value.isascii() else unicodedata.normalize("NFKD", value)
    return _LETTERS in "".join(filter(str.isalpha, folded)).casefold()
