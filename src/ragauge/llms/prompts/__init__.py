"""The prompts: texts with $placeholders, the shipped files or a user's own.

`Answer: <$mark>$answer</$mark>` frames the answer: `fill` chooses a mark that stands in no value, so that no
value can end its frame.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Self

from ragauge.contract.errors import ConfigError
from ragauge.texts.languages import AUTO, language_of

_MARK = "mark"
_DIGITS = 8  # of a mark, hexadecimal
_FRAME = re.compile(rf"<(/?)(material-[0-9a-f]{{{_DIGITS}}})>")
_QUESTION = re.compile(r"^Question\b[^\n:]*:\s*(?:<material-\w+>\s*)?(.+?)(?:</material-\w+>)?$", re.MULTILINE)
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
    return text.strip()


def _names_a_file(prompt: str) -> bool:
    """Whether a prompt is a file name, since no prompt is a single word without a placeholder."""
    if isinstance(prompt, NamedPrompt):
        return False
    if prompt.endswith(".txt"):
        return True
    return len(prompt.split()) == 1 and "$" not in prompt and ("/" in prompt or Path(prompt).is_file())


def fill(prompt: str, **values: str) -> str:
    """The prompt with every placeholder replaced; values are not searched for placeholders.

    `$mark` becomes a word such as material-3fa2c18b, the same for the same values and in none of them.
    """
    return Template(prompt).substitute(values, **{_MARK: _mark_of(values)})


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
    return prompt if language == "english" else _NAMED.replace("$language", language.capitalize()) + prompt


def _mark_of(values: Mapping[str, str]) -> str:
    """material- and the first digits of the values' SHA-256, hashed again while they stand in a value."""
    text = "\x1f".join(f"{name}\x1f{value}" for name, value in sorted(values.items()))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    while digest[:_DIGITS] in text.casefold():
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return f"material-{digest[:_DIGITS]}"
