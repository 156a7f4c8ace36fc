"""Generates sentences by rules: `[this|that]` is a choice, `{slot}` a given value or another rule.

The choice depends on the dice alone, never on a value: the same dice with one value changed give the same sentence with
that value changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ragauge.plugins.fictional.dice import Dice

# A compiled template: pieces of text, slots (a tuple of one name), and choices (a list of templates).
Piece: TypeAlias = "str | tuple[str] | list[Template]"
Template: TypeAlias = "tuple[Piece, ...]"
_TOKEN = re.compile(r"[\[\]|]|\{[a-z_A-Z0-9]+\}|[^\[\]|{}]+")
_ARTICLE = re.compile(r"\b([Aa])\(n\)(?= ([A-Za-z]))")
# Where "an" follows the sound and not the letter.
_VOWEL = frozenset("aeiouAEIOU")


def compile_template(text: str) -> Template:
    """The template of a text; ValueError if brackets do not match."""
    pieces, rest = _sequence(_TOKEN.findall(text), 0, text)
    if rest != len(_TOKEN.findall(text)):
        raise ValueError(f"a bracket too many in {text!r}")
    return pieces


def _sequence(tokens: Sequence[str], at: int, text: str) -> tuple[Template, int]:
    pieces: list[Piece] = []
    while at < len(tokens) and tokens[at] not in "|]":
        token = tokens[at]
        if token == "[":
            options = []
            while token != "]":
                option, at = _sequence(tokens, at + 1, text)
                if at >= len(tokens):
                    raise ValueError(f"a bracket is not closed in {text!r}")
                options.append(option)
                token = tokens[at]
            pieces.append(options)
        elif token[0] == "{":
            pieces.append((token[1:-1],))
        else:
            pieces.append(token)
        at += 1
    return tuple(pieces), at


def compile_rules(rules: Mapping[str, Sequence[str]]) -> dict[str, tuple[Template, ...]]:
    """Every rule's alternatives as templates."""
    return {name: tuple(map(compile_template, options)) for name, options in rules.items()}


def slots_of(template: Template) -> set[str]:
    """The names of its slots, those in choices included."""
    found: set[str] = set()
    for piece in template:
        if isinstance(piece, tuple):
            found.add(piece[0])
        elif isinstance(piece, list):
            found = found.union(*map(slots_of, piece))
    return found


class Writer:
    """Expands templates with one stream of dice; `rules` fill the slots that `values` lacks."""

    def __init__(self, rules: Mapping[str, tuple[Template, ...]], dice: Dice) -> None:
        self._rules = rules
        self._random = dice.random

    def write(self, template: Template, values: Mapping[str, str]) -> str:
        """The text, with a(n) spelt to fit the next word, and a capital at the start."""
        out: list[str] = []
        self._expand(template, values, out)
        text = "".join(out)
        if "(n)" in text:
            text = _ARTICLE.sub(lambda m: m[1] + ("n" if m[2] in _VOWEL else ""), text)
        return text[:1].upper() + text[1:]

    def _expand(self, template: Template, values: Mapping[str, str], out: list[str]) -> None:
        for piece in template:
            if type(piece) is str:
                out.append(piece)
            elif type(piece) is list:
                self._expand(piece[int(self._random() * len(piece))], values, out)
            else:
                name = piece[0]  # type: ignore[index]
                value = values.get(name)  # type: ignore[arg-type]
                if value is not None:
                    out.append(value)
                else:
                    options = self._rules[name]  # type: ignore[index]
                    self._expand(options[int(self._random() * len(options))], values, out)
