"""BLEU and chrF: by hand, then equal to their libraries on random texts."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numbered_tokens import check_numbered
from overlap_inputs import ANY_TEXT, PAIRS, TEXTS, framed, values
from ragauge.contract.errors import ConfigError
from ragauge.measures.tokens import plain
from ragauge.plugins.overlap.bleu import OF_SACREBLEU, Bleu
from ragauge.plugins.overlap.chrf import ChrF


def test_bleu_by_hand() -> None:
    # the cat sat / the cat sat on the mat: all 3 and both bigrams stand there, and 3 of 6 words are too few.
    short = math.exp(1 - 6 / 3)
    # the cat ran / the cat sat: 2 of 3 words, 1 of 2 bigrams, no trigram: smoothed to 1 / (2 * 1).
    pairs = [("the cat sat", "the cat sat on the mat"), ("the cat ran", "the cat sat"), ("", "the")]
    found = values(Bleu(orders=[1, 2, 3]), pairs)
    assert found["bleu_1"] == pytest.approx([short, 2 / 3, 0])
    assert found["bleu_2"] == pytest.approx([short, math.sqrt(2 / 3 * 1 / 2), 0])
    assert found["bleu_3"] == pytest.approx([short, (2 / 3 * 1 / 2 * 1 / 2) ** (1 / 3), 0])
    # nltk's fourth: 1 / (2 * 5 / ln 3) trigrams of one.
    third = math.log(3) / 10
    nltk = values(Bleu(orders=[3], tokens="plain", smoothing="nltk_4"), pairs)["bleu_3"]
    assert nltk == pytest.approx([short, (2 / 3 * 1 / 2 * third) ** (1 / 3), 0])


def test_chrf_by_hand() -> None:
    # ab c / abd: a, b of 3; ab of 2; no trigram. Precision and recall are (2/3 + 1/2 + 0) / 3 alike.
    assert values(ChrF(), [("ab c", "abd"), ("", "a")])["chrf"] == pytest.approx([7 / 18, 0])


@settings(max_examples=60, deadline=None)
@given(PAIRS, st.sampled_from(["exp", "floor", "add-k", "none"]), st.sampled_from(["13a", "intl", "char"]))
def test_bleu_is_that_of_sacrebleu(pairs: list[tuple[str, str]], smoothing: str, tokens: str) -> None:
    from sacrebleu.metrics.bleu import BLEU

    found = values(Bleu(orders=[1, 2, 3, 4], smoothing=smoothing, tokens=tokens), pairs)
    for n in (1, 2, 3, 4):
        theirs = BLEU(smooth_method=smoothing, tokenize=tokens, effective_order=True, max_ngram_order=n)
        expected = [theirs.sentence_score(answer, [one]).score / 100 for answer, one in pairs]
        assert found[f"bleu_{n}"] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(PAIRS)
def test_bleu_with_the_fourth_smoothing_is_that_of_nltk(pairs: list[tuple[str, str]]) -> None:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    found = values(Bleu(orders=[1, 2, 3, 4], smoothing="nltk_4", tokens="plain"), pairs)
    fourth = SmoothingFunction().method4
    for n in (1, 2, 3, 4):
        expected = [
            sentence_bleu([plain(one)], plain(answer), weights=(1 / n,) * n, smoothing_function=fourth)
            if plain(answer)
            else 0.0
            for answer, one in pairs
        ]
        assert found[f"bleu_{n}"] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.one_of(PAIRS, ANY_TEXT), st.integers(1, 8), st.sampled_from([0.5, 1, 2, 3]), st.booleans())
def test_chrf_is_that_of_sacrebleu(pairs: list[tuple[str, str]], order: int, beta: float, lowercase: bool) -> None:
    from sacrebleu.metrics.chrf import CHRF

    theirs = CHRF(char_order=order, beta=beta, lowercase=lowercase)
    expected = [theirs.sentence_score(answer, [one]).score / 100 for answer, one in pairs]
    found = values(ChrF(order=order, beta=beta, lowercase=lowercase), pairs)["chrf"]
    assert found == pytest.approx(expected, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=4)), min_size=1, max_size=8))
def test_the_corpus_bleu_is_that_of_sacrebleu_over_all_references(rows: list[tuple[str, list[str]]]) -> None:
    from sacrebleu.metrics.bleu import BLEU

    topics = pd.DataFrame(
        {"qid": [str(i) for i in range(len(rows))], "answer": None, "answers": [many for _, many in rows]}
    )
    answers = pd.DataFrame({"qid": topics["qid"], "answer": [answer for answer, _ in rows]})
    streams = [[many[i] if i < len(many) else None for _, many in rows] for i in range(4)]
    expected = BLEU().corpus_score([answer for answer, _ in rows], streams).score / 100
    assert Bleu().of_job(topics, answers) == {"bleu_corpus": pytest.approx(expected, abs=1e-12)}


def test_no_answer_at_all_has_no_corpus_bleu() -> None:
    topics = pd.DataFrame({"qid": ["q"], "answer": ["a"]})
    assert Bleu().of_job(topics, pd.DataFrame({"qid": ["q"], "answer": [None]})) == {}


def test_the_best_reference_counts_in_each_value_by_itself() -> None:
    found = framed(Bleu(orders=[1, 2]), ["a b c"], [["c b a", "x a b"]])
    assert found["measure"].tolist() == ["bleu_1", "bleu_2"]
    # Against the first all words stand there; against the second a bigram does.
    second = math.sqrt(2 / 3 * 1 / 2)
    assert found["value"].tolist() == pytest.approx([1.0, second])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: Bleu(smoothing="method4"),
            "answers.bleu.smoothing='method4': allowed are exp, floor, add-k",
        ),
        (lambda: Bleu(tokens="spacy"), "answers.bleu.tokens='spacy': allowed are squad, plain"),
        (lambda: Bleu(orders=[]), "answers.bleu.orders=.*: allowed are lists of integers from 1 to 4"),
        (lambda: Bleu(orders=[0]), "answers.bleu.orders=.*: allowed are lists of integers from 1 to 4"),
        (lambda: Bleu(orders=3), "answers.bleu.orders=3: allowed are lists of integers from 1 to 4"),
        (lambda: ChrF(beta=0), "answers.chrf.beta=0: allowed are numbers above 0"),
    ],
    ids=["smoothing", "tokens", "no order", "order 0", "a number", "beta"],
)
def test_what_cannot_be_is_told_by_its_key(make: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


@pytest.mark.parametrize("name", OF_SACREBLEU)
def test_numbered_tokens_are_those_of_each_text_alone(name: str) -> None:
    check_numbered(Bleu(tokens=name)._tokens())
