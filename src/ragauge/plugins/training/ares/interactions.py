"""Word overlaps of question, passage and answer: features beside those of a network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ragauge.contract.topics import ANSWER_FAITHFULNESS, ANSWER_RELEVANCE, CONTEXT_RELEVANCE
from ragauge.texts.sentences import sentence_spans
from ragauge.texts.words import FUNCTION_WORDS, words


class Triple(NamedTuple):
    """The judged texts: question, passage and answer; "" for a text that the judged question does not need."""

    question: str
    passage: str = ""
    answer: str = ""


INTERACTIONS = (
    "question_in_passage", "question_in_sentence", "answer_in_passage", "answer_in_sentence",
    "question_beside_answer", "question_near_answer", "numbers_in_passage", "answer_stands_in_passage",
    "answer_in_question", "answer_length", "answer_has_number",
)  # fmt: skip
"""Columns of `interactions`, in [0, 1] but for the length: shares of content words.

The share of the question's words in the passage and in its best sentence; the answer's in both; the question's in the
sentences that hold most of the answer, and in these with their neighbours. The answer's numbers in the passage; whether
all of the answer stands there in one piece; the answer's words in the question. log(1 + words) of the answer, and
whether it has a number. 0 where there is no such text.
"""


def sides(question: str, triple: Triple) -> tuple[str, str]:
    """The two texts that the network reads for one of the three questions."""
    return {
        CONTEXT_RELEVANCE: (triple.question, triple.passage),
        ANSWER_FAITHFULNESS: (f"{triple.question} {triple.answer}", triple.passage),
        ANSWER_RELEVANCE: (triple.question, triple.answer),
    }[question]


def interactions(triples: Sequence[Triple]) -> np.ndarray:
    """float64 [triples, len(INTERACTIONS)]."""
    found = [_of(triple) for triple in triples]
    return np.array(found, dtype=float).reshape(len(triples), len(INTERACTIONS))


def _of(triple: Triple) -> list[float]:
    asked, said = _content(triple.question), _content(triple.answer)
    own = asked - said
    in_order = tuple(words(triple.answer))
    numbers = {word for word in in_order if any(map(str.isdigit, word))}
    sentences, there, running = _passage(triple.passage)
    in_sentences = [_share(asked, sentence) for sentence in sentences]
    held = [_share(said, sentence) for sentence in sentences]
    best = max(held, default=0.0)
    holding = [i for i, share in enumerate(held) if share == best > 0]
    near = [frozenset().union(*sentences[max(i - 1, 0) : i + 2]) for i in holding]
    return [
        _share(asked, there),
        max(in_sentences, default=0.0),
        _share(said, there),
        best,
        max((_share(own, sentences[i]) for i in holding), default=0.0),
        max((_share(own, around) for around in near), default=0.0),
        _share(numbers, there),
        float(bool(in_order) and f" {' '.join(in_order)} " in running),
        _share(said, asked),
        float(np.log1p(len(in_order))),
        float(bool(numbers)),
    ]


@lru_cache(maxsize=65_536)
def _content(text: str) -> frozenset[str]:
    """The content words of a text; all its words if it has only function words."""
    every = frozenset(words(text))
    return every - FUNCTION_WORDS or every


@lru_cache(maxsize=16_384)
def _passage(text: str) -> tuple[tuple[frozenset[str], ...], frozenset[str], str]:
    """The words of every sentence, of all sentences, and the passage's words in order with spaces around."""
    sentences = tuple(frozenset(words(text[start:end])) for start, end in sentence_spans(text))
    return sentences, frozenset().union(*sentences), f" {' '.join(words(text))} "


def _share(wanted: frozenset[str] | set[str], there: frozenset[str]) -> float:
    return len(wanted & there) / len(wanted) if wanted else 0.0
