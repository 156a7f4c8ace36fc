"""BLEU and chrF: by hand, then equal to their libraries on random texts."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overlap_inputs import ANY_TEXT, PAIRS, TEXTS, framed, values
from ragauge.contract.errors import ConfigError
from ragauge.measures.tokens import plain
from ragauge.plugins.overlap.bleu import OF_SACREBLEU, Bleu
from ragauge.plugins.overlap.chrf import ChrF

# Lines that end with a hyphen, which 13a joins, and other scripts.
_PIECES = [
    "", "a", "the", "The cat's", "4.6", "é", "İi", "中文 你好", "ไทย", "$5", "U.S.", "well-", "well-\nknown",
    "end-\n of", "x\u00a0y", "\u202f", "!", "&amp;", "<skipped>",
]  # fmt: skip
_PIECED = st.lists(st.sampled_from(_PIECES), max_size=6).map(" ".join)
PIECED = st.lists(st.tuples(_PIECED, _PIECED), min_size=1, max_size=8)


def test_a_world_by_hand() -> None:
    world: list[tuple[Any, list[str]]] = [
        ("the cat sat", ["the cat sat on the mat"]),  # 3 of 6 words are too few: exp(1 - 6 / 3)
        ("the cat ran", ["the cat sat"]),  # 2 of 3 words, 1 of 2 bigrams, no trigram: half of one
        ("a b c", ["c b a x", "a b"]),  # words against the first, which is longer; a bigram against the second
        (None, ["x"]),
        ("x", []),
        ("", ["the"]),
        ("The CAT", ["the cat"]),
    ]
    answers, references = [answer for answer, _ in world], [many for _, many in world]
    few, one, none = math.exp(-1), math.exp(1 - 4 / 3), math.nan
    measure = Bleu(orders=[3, 2, 1, 2])
    found = framed(measure, answers, references)
    assert found["status"].tolist() == ["ok", "ok", "ok", "no answer", "no reference", "ok", "ok"] * 3
    assert [found[found["measure"] == f"bleu_{n}"]["value"].tolist() for n in (1, 2, 3)] == [
        pytest.approx([few, 2 / 3, one, none, none, 0, 0], nan_ok=True),
        pytest.approx([few, math.sqrt(1 / 3), math.sqrt(1 / 3), none, none, 0, 0], nan_ok=True),
        pytest.approx([few, (1 / 6) ** (1 / 3), (1 / 6) ** (1 / 3), none, none, 0, 0], nan_ok=True),
    ]
    # 13a alone joins what a hyphen divides at the end of a line.
    divided = [("well-\nknown", "wellknown")]
    assert [values(Bleu(orders=[1], tokens=name), divided)["bleu_1"][0] for name in ("13a", "none")] == pytest.approx(
        [1, 0]
    )
    found = framed(Bleu(orders=[1], lowercase=True), answers, references)
    assert found["value"].tolist()[-1] == pytest.approx(1)
    # nltk's fourth: 1 / (2 * 5 / ln 3) trigrams of one.
    found = framed(Bleu(orders=[3], tokens="plain", smoothing="nltk_4"), answers, references)
    assert found["value"].tolist()[1] == pytest.approx((1 / 3 * math.log(3) / 10) ** (1 / 3))
    # The corpus: 3 + 2 + 3 of 11 words, 2 + 1 + 1 of 7 bigrams; references nearest in length are 6 + 3 + 2 + 1 + 2.
    topics = pd.DataFrame({"qid": [str(i) for i in range(7)], "answer": None, "answers": references})
    given_answers = pd.DataFrame({"qid": topics["qid"], "answer": answers})
    corpus = math.exp(1 - 14 / 11) * math.sqrt(8 / 11 * 4 / 7)
    assert Bleu(orders=[1, 2]).of_job(topics, given_answers) == {"bleu_corpus": pytest.approx(corpus)}
    assert Bleu().of_job(topics, given_answers.iloc[3:5]) == {}


@pytest.mark.parametrize(("smoothing", "bigrams"), [("exp", 1 / 2), ("nltk_4", 1 / 2), ("floor", 0.1), ("none", 0)])
def test_a_corpus_without_a_bigram_is_smoothed(smoothing: str, bigrams: float) -> None:
    topics = pd.DataFrame({"qid": ["q"], "answer": ["a b"]})
    answers = pd.DataFrame({"qid": ["q"], "answer": ["b a"]})
    found = Bleu(orders=[2], smoothing=smoothing).of_job(topics, answers)
    assert found == {"bleu_corpus": pytest.approx(math.sqrt(bigrams))}


def test_chrf_by_hand() -> None:
    # ab c / abd: a, b of 3; ab of 2; no trigram. Precision and recall are (2/3 + 1/2 + 0) / 3 alike.
    # Of seven letters and one more, recall is 1 and counts twice; six orders.
    precise = sum((8 - n) / (9 - n) for n in range(1, 7)) / 6
    pairs = [("ab c", "abd"), ("", "a"), ("abcdefgh", "abcdefg"), ("AB", "ab")]
    assert values(ChrF(), pairs)["chrf"] == pytest.approx([7 / 18, 0, 5 * precise / (4 * precise + 1), 0])


@settings(max_examples=60, deadline=None)
@given(st.one_of(PAIRS, PIECED), st.sampled_from(["exp", "floor", "add-k", "none"]), st.sampled_from(OF_SACREBLEU))
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


def test_what_cannot_be_is_told_by_its_key() -> None:
    orders = "allowed are lists of integers from 1 to 4"
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (Bleu, {"smoothing": "method4"}, "answers.bleu.smoothing='method4': allowed are exp, floor, add-k"),
        (Bleu, {"tokens": "spacy"}, "answers.bleu.tokens='spacy': allowed are squad, plain"),
        (Bleu, {"lowercase": "no"}, "answers.bleu.lowercase='no'"),
        *[(Bleu, {"orders": of}, rf"answers.bleu.orders=.*: {orders}") for of in ([], [0], [5], [1.5], ["1"], 3)],
        (ChrF, {"beta": 0}, "answers.chrf.beta=0: allowed are numbers above 0"),
        (ChrF, {"order": 0}, "answers.chrf.order=0"),
        (ChrF, {"order": 21}, "answers.chrf.order=21"),
        (ChrF, {"lowercase": "no"}, "answers.chrf.lowercase='no'"),
    ]
    for measure, options, says in refused:
        with pytest.raises(ConfigError, match=says):
            measure(**options)
    assert (Bleu(orders=[4]).orders, ChrF(order=20).order) == ((4,), 20)
