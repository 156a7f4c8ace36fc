"""Finds facts in answers (numbers, names, yes and no), and changes one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from ragauge.texts.words import FUNCTION_WORDS

Kind = Literal["yes or no", "number", "name", "text"]

_NUMBER = re.compile(r"\d(?:[\d.,:]*\d)?")
_NAME = re.compile(r"\b[^\W\d_a-z][\w'’-]*(?: (?:of |the |de |van |von )?[^\W\d_a-z][\w'’-]*)*")
_YES_NO = {"yes": "no", "no": "yes"}
_SHORT = 6  # words of an answer that is a name and no sentence


def kind_of(answer: str) -> Kind:
    """The kind of an answer: a number if nearly all digits, a name if short with a capital."""
    first = re.sub(r"\W", "", answer.split()[0]).casefold() if answer.split() else ""
    if first in _YES_NO:
        return "yes or no"
    rest = _NUMBER.sub("", answer)
    if rest != answer and len(re.findall(r"\w+", rest)) <= 2:
        return "number"
    return "name" if len(answer.split()) <= _SHORT and _NAME.search(answer) else "text"


class Facts:
    """The facts of many answers, to draw replacements of a kind from."""

    def __init__(self, answers: Iterable[str]) -> None:
        self._known: dict[Kind, list[str]] = {"number": [], "name": []}
        for answer in dict.fromkeys(answers):
            kind = kind_of(answer)
            if kind in self._known:
                self._known[kind].append(answer)

    def changed(
        self,
        answer: str,
        right: Sequence[str],
        wrong: Sequence[str],
        passage: str,
        rng: np.random.Generator,
    ) -> str | None:
        """The answer with its fact replaced by one not in `right`; None if there is none.

        A right answer within it is replaced, else the answer's number, else its name. Its replacement is a known
        `wrong` answer, if there is one, or another answer of the kind, half the time one that stands in the passage
        where one does.
        """
        if kind_of(answer) == "yes or no":
            word = answer.split()[0]
            flipped = _YES_NO[re.sub(r"\W", "", word).casefold()]
            return answer.replace(word, flipped.capitalize() if word[0].isupper() else flipped, 1)
        fact = self._fact(answer, right)
        if fact is None:
            return None
        kind = kind_of(fact)
        accepted = {one.casefold() for one in (*right, fact)}
        others = [one for one in wrong if one.casefold() not in accepted]
        if not others:
            others = [one for one in self._known.get(kind, ()) if one.casefold() not in accepted]
            there = [one for one in others if one in passage]
            if there and rng.random() < 0.5:
                others = there
        if kind == "number" and not others:
            others = [str(int(rng.integers(2, 2000)))]
        if not others:
            return None
        return answer.replace(fact, others[int(rng.integers(len(others)))], 1)

    @staticmethod
    def _fact(answer: str, right: Sequence[str]) -> str | None:
        """The fact in the answer, as it is spelt there."""
        for one in sorted(right, key=lambda text: -len(text)):
            at = answer.casefold().find(one.casefold())
            if one.strip() and at >= 0 and len(answer.casefold()) == len(answer):
                return answer[at : at + len(one)]
        number = _NUMBER.search(answer)
        if number:
            return number.group()
        names = [name for name in _NAME.findall(answer) if name.casefold() not in FUNCTION_WORDS]
        return max(names, key=len) if names else None
