"""`judge=lexical`: classes by rules over words, a stand-in for a judge."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from ragauge.answering.judges.frame import NO_ANSWER, SAYS_NOTHING, Truth, Verdict, truths, verdict_frame
from ragauge.contract.answering import Judge
from ragauge.contract.checks import require_number
from ragauge.contract.component import Tools
from ragauge.contract.option import CONF, option
from ragauge.texts.refusals import says_it_lacks
from ragauge.texts.words import ARTICLES, GRAMMAR_WORDS, WORD

_WORD = re.compile(rf"(?:{WORD})(?:['’]\w+)*")
_NUMBER_COMMA = re.compile(r"(?<=\d),(?=\d{3})")
_KINDEST = (5, 3, 2, 1, 4)  # classes, for answers that several references give different ones
_OPPOSITE: dict[tuple[str, ...], str] = {("yes",): "no", ("no",): "yes"}


@option("judge/lexical")
class LexicalJudge(Judge):
    """Classes by the words that an answer shares with the reference answer and the evidence.

    A stand-in to see the whole flow: it compares words, it understands nothing. Content words are words
    (case folded, compatibility forms, without articles) that are no function words; of Chinese, Japanese and Thai they
    are characters. An answer
    - *covers* an evidence part if it has at least `cover` of the part's content words,
    - is *supported* if at least `support` of its content words are in the evidence, the reference or the
      question, or if no evidence is known,
    - *holds* the reference if they are equal, or if the reference's words stand in it in a row. Where the reference is
      yes or no, or stands in the question already (a choice), naming it is not enough. Then the answer must begin with
      the yes or no, or cover every part of the evidence.
    Rules, the first that fits:
    1. no words, or it says that information is lacking and does not hold the reference: class 1
    2. it begins with no where the reference is yes, or with yes where it is no: 4
    3. it holds the reference: 5 if supported, else 2
    4. it covers a part of the evidence or has more than half of the reference's content words (two or more;
       not for a choice): 3 if supported, else 2
    5. anything else: 4
    Of several references the one that is kindest to the answer counts. In an unanswerable topic there is
    nothing to hold or to cover: 1 or 4.
    """

    component = "lexical"
    kind = "embedded"
    version = 5

    support: float = CONF
    cover: float = CONF

    def __post_init__(self) -> None:
        for name in ("support", "cover"):
            require_number(f"judge.{name}", getattr(self, name), 0, 1, above=True)

    def judge(self, topics: pd.DataFrame, evidence: pd.DataFrame, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `verdicts`, the deciding rule in `reason`; no tokens and no cost."""
        found = truths(topics, evidence, answers["qid"])
        known = {qid: _words_of_references(truth) for qid, truth in found.items()}
        decide = functools.cache(lambda qid, answer: self._best(known[qid], answer))
        nothing = Verdict(None, NO_ANSWER)
        verdicts = [
            nothing if pd.isna(answer) else decide(qid, answer)
            for qid, answer in zip(answers["qid"], answers["answer"], strict=True)
        ]
        return verdict_frame(answers[["qid", "n_tokens"]], verdicts)

    def _best(self, references: Sequence[_Words], answer: str) -> Verdict:
        """The best verdict over all references."""
        verdicts = [self._verdict(truth, answer) for truth in references]
        return min(verdicts, key=lambda verdict: _KINDEST.index(verdict.label or 0))

    def _verdict(self, truth: _Words, answer: str) -> Verdict:
        words = words_of(answer)
        content = set(words) - GRAMMAR_WORDS
        covered = [bool(part) and len(part & content) >= self.cover * len(part) for part in truth.parts]
        supported = not truth.parts or len(content & truth.supporting) >= self.support * len(content)
        holds = _holds(truth, words, bool(covered) and all(covered))
        if not words or (not holds and says_it_lacks(answer)):
            return Verdict(1, reason="says that information is lacking" if words else SAYS_NOTHING)
        if words[0] == _OPPOSITE.get(tuple(truth.reference)):
            return Verdict(4, reason="begins with the opposite of the reference answer")
        so = "supported by the evidence" if supported else "mostly not in the evidence"
        if holds:
            return Verdict(5 if supported else 2, reason=f"holds the reference answer, {so}")
        if any(covered):
            return Verdict(3 if supported else 2, reason=f"covers a part of the evidence, {so}")
        if self._has_most(truth, content):
            return Verdict(3 if supported else 2, reason=f"has most words of the reference answer, {so}")
        return Verdict(4, reason="holds neither the reference answer nor a part of the evidence")

    @staticmethod
    def _has_most(truth: _Words, content: set[str]) -> bool:
        reference = set(truth.reference) - GRAMMAR_WORDS
        return not truth.is_choice and len(reference) > 1 and 2 * len(reference & content) > len(reference)


@dataclass(frozen=True)
class _Words:
    """The words of a topic's question, reference and evidence."""

    reference: list[str]
    parts: tuple[frozenset[str], ...]  # content words of every evidence part
    supporting: frozenset[str]  # all words of evidence, reference and question
    is_choice: bool

    @classmethod
    def of(cls, truth: Truth, reference_text: str) -> _Words:
        reference, question = words_of(reference_text), words_of(truth.query)
        parts = [frozenset(words_of(part)) for part in truth.evidence if truth.references]
        return cls(
            reference,
            tuple(part - GRAMMAR_WORDS for part in parts),
            frozenset(reference).union(question, *parts),
            tuple(reference) in _OPPOSITE or _in_a_row(reference, question),
        )


def _words_of_references(truth: Truth) -> list[_Words]:
    """A topic's words once per reference, or once without one if no answer is right."""
    return [_Words.of(truth, reference) for reference in truth.references or ("",)]


def _holds(truth: _Words, words: list[str], covers_all: bool) -> bool:
    if tuple(truth.reference) in _OPPOSITE:
        return words[:1] == truth.reference or covers_all
    if truth.is_choice:
        return words == truth.reference or (covers_all and _in_a_row(truth.reference, words))
    return _in_a_row(truth.reference, words)


def _in_a_row(few: list[str], many: list[str]) -> bool:
    """Whether the words `few` stand in `many` as whole words, next to each other."""
    return bool(few) and f" {' '.join(few)} " in f" {' '.join(many)} "


def words_of(text: str) -> list[str]:
    """The words of a text, case folded and in compatibility forms, without punctuation and articles."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    found = (word.replace("’", "'") for word in _WORD.findall(_NUMBER_COMMA.sub("", folded)))
    return [word.removesuffix("'s") for word in found if word not in ARTICLES]
