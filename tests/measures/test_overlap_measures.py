"""ROUGE and similarity: by hand, then equal to their libraries on random texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overlap_inputs import ANY_TEXT, PAIRS, framed, values
from ragauge.contract.component import Embedder, Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.measures.answers import ExactMatch, RougeL, RougeN, Similarity, TokenF1, Usual


def test_rouge_by_hand() -> None:
    pairs = [("the cat the dog", "the cat sat"), ("b a", "a b"), ("", "a"), ("", "")]
    assert values(RougeN(n=1), pairs)["rouge_1"] == pytest.approx([2 * 2 / 7, 1, 0, 0])  # the, cat
    assert values(RougeN(n=2), pairs)["rouge_2"] == pytest.approx([2 * 1 / 5, 0, 0, 0])  # the cat
    assert values(RougeL(), pairs)["rouge_l"] == pytest.approx([2 * 2 / 7, 1 / 2, 0, 0])
    assert values(RougeL(value="recall"), pairs)["rouge_l"] == pytest.approx([2 / 3, 1 / 2, 0, 0])
    assert values(RougeL(value="precision"), pairs)["rouge_l"] == pytest.approx([2 / 4, 1 / 2, 0, 0])


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


def test_what_is_missing_is_missing_in_every_value() -> None:
    found = framed(Usual(), ["a", None, "a"], [["a"], ["a"], []])
    assert found["measure"].tolist() == [name for name in ("em", "f1", "contains", "rouge_l") for _ in range(3)]
    assert found["value"].isna().tolist() == [False, True, True] * 4
    assert found["status"].tolist() == ["ok", "no answer", "no reference"] * 4


def test_a_job_without_answers_may_name_the_usual_measures_alone() -> None:
    assert [measure.optional for measure in (Usual(), TokenF1())] == [True, False]


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
        (lambda: RougeL(value="f"), "answers.rouge_l.value='f': allowed are f1, precision, recall"),
        (lambda: RougeN(n=0), "answers.rouge_1.n=0: allowed are integers from 1"),
        (lambda: ExactMatch(tokens="13a"), "answers.em.tokens='13a': allowed are squad, mlqa, plain"),
        (lambda: TokenF1(articles="the"), "answers.f1.articles='the': allowed are lists of words"),
    ],
    ids=["value", "n", "em", "articles"],
)
def test_what_cannot_be_is_told_by_its_key(make: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


def test_similarity_is_the_cosine_and_embeds_every_text_once(hash_embedder: Embedder) -> None:
    seen: list[str] = []

    class Counting(Embedder):
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
