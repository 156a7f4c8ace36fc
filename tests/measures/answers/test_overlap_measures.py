"""BLEU, ROUGE, chrF and similarity: by hand, then equal to their libraries on random texts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.protocols import Embedder, Tools
from ragauge.measures.answers import Bleu, ChrF, ExactMatch, RougeL, RougeN, Similarity, TokenF1, Usual
from ragauge.measures.answers._tokens import plain

WORDS = ["the", "The", "cat", "cat,", "sat.", "on", "a", "mat", "x-ray", "4.6", "U.S.", "é", "北京", "$5", ""]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=12)
ANY_TEXT = st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), min_size=1, max_size=6)


def values(measure: Any, pairs: list[tuple[str, str]]) -> dict[str, np.ndarray]:
    none: Any = None
    answers, references = zip(*pairs, strict=True)
    return dict(measure.compared(list(answers), list(references), none))


def framed(measure: Any, answers: list[Any], references: list[list[str]], tools: Any = None) -> pd.DataFrame:
    qids = [str(i) for i in range(len(answers))]
    topics = pd.DataFrame({"qid": qids, "query": "?", "answer": [r[0] if r else None for r in references]})
    topics["answers"] = references
    given_answers = pd.DataFrame({"qid": qids, "n_tokens": 8, "answer": pd.Series(answers, dtype=object)})
    none: Any = None
    return frames.check("answer_values", measure.measure(topics, none, none, given_answers, tools))


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


def test_rouge_by_hand() -> None:
    pairs = [("the cat the dog", "the cat sat"), ("b a", "a b"), ("", "a"), ("", "")]
    assert values(RougeN(n=1), pairs)["rouge_1"] == pytest.approx([2 * 2 / 7, 1, 0, 0])  # the, cat
    assert values(RougeN(n=2), pairs)["rouge_2"] == pytest.approx([2 * 1 / 5, 0, 0, 0])  # the cat
    assert values(RougeL(), pairs)["rouge_l"] == pytest.approx([2 * 2 / 7, 1 / 2, 0, 0])
    assert values(RougeL(value="recall"), pairs)["rouge_l"] == pytest.approx([2 / 3, 1 / 2, 0, 0])
    assert values(RougeL(value="precision"), pairs)["rouge_l"] == pytest.approx([2 / 4, 1 / 2, 0, 0])


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
@given(st.one_of(PAIRS, ANY_TEXT))
def test_rouge_is_that_of_rouge_score(pairs: list[tuple[str, str]]) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"])
    theirs = [scorer.score(one, answer) for answer, one in pairs]
    for measure, name in (
        (RougeN(n=1, tokens="rouge_score"), "rouge1"),
        (RougeN(n=2, tokens="rouge_score"), "rouge2"),
        (RougeL(tokens="rouge_score"), "rougeL"),
    ):
        expected = [score[name].fmeasure for score in theirs]
        assert values(measure, pairs)[measure.info.name] == pytest.approx(expected, abs=1e-12)
    ascii_pairs = [pair for pair in pairs if all(text.isascii() for text in pair)]
    if ascii_pairs:  # of ASCII the usual tokens are the same
        usual, own = (values(RougeL(tokens=t), ascii_pairs)["rouge_l"] for t in ("words", "rouge_score"))
        assert usual == pytest.approx(own)


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


def test_what_is_missing_is_missing_in_every_value() -> None:
    found = framed(Usual(), ["a", None, "a"], [["a"], ["a"], []])
    assert found["measure"].tolist() == [name for name in ("em", "f1", "contains", "rouge_l") for _ in range(3)]
    assert found["value"].isna().tolist() == [False, True, True] * 4
    assert found["status"].tolist() == ["ok", "no answer", "no reference"] * 4


def test_an_answer_that_is_no_text_is_told_with_its_qid() -> None:
    with pytest.raises(DataError, match=r"the answer to qid '1' is no text: 5"):
        framed(TokenF1(), ["a", 5], [["a"], ["a"]])


def test_an_empty_reference_is_met_by_an_empty_answer_alone() -> None:
    found = framed(Usual(), ["", "word"], [[""], ["!"]]).pivot(index="qid", columns="measure", values="value")
    assert found.loc["0", ["em", "f1", "contains", "rouge_l"]].tolist() == [1, 1, 1, 0]
    assert found.loc["1", ["em", "f1", "contains", "rouge_l"]].tolist() == [0, 0, 0, 0]


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
        (lambda: RougeL(value="f"), "answers.rouge_l.value='f': allowed are f1, precision, recall"),
        (lambda: RougeN(n=0), "answers.rouge_1.n=0: allowed are integers from 1"),
        (lambda: ChrF(beta=0), "answers.chrf.beta=0: allowed are numbers above 0"),
        (lambda: ExactMatch(tokens="13a"), "answers.em.tokens='13a': allowed are squad, mlqa, plain"),
        (lambda: TokenF1(articles="the"), "answers.f1.articles='the': allowed are lists of words"),
    ],
    ids=["smoothing", "tokens", "no order", "order 0", "a number", "value", "n", "beta", "em", "articles"],
)
def test_what_cannot_be_is_told_by_its_key(make: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


def test_similarity_is_the_cosine_and_embeds_every_text_once(hash_embedder: Embedder) -> None:
    seen: list[str] = []

    class Counting:
        def embed(self, texts: Any, role: Any = "passage", scratch: Path | None = None) -> np.ndarray:
            seen.extend(texts)
            return hash_embedder.embed(texts, role, scratch)

    class Here:
        root = Path()

    none: Any = None
    tools = Tools(Here(), Counting(), none).limited_to(frozenset({"embedder"}), "similarity")
    found = framed(Similarity(), ["red tower", "blue"], [["red tower", "x"], ["red tower"]], tools)
    vectors = hash_embedder.embed(["blue", "red tower"])
    assert found["value"].tolist() == pytest.approx([1.0, float(vectors[0] @ vectors[1])], abs=1e-6)
    assert sorted(seen) == ["blue", "red tower", "x"]
