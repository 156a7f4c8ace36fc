"""Exact match, token F1 and containment: by hand, then against an implementation written here."""

from __future__ import annotations

import random
import re
import string
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.identity import identity
from ragauge.contract.topics import references
from ragauge.measures.answers import Contains, ExactMatch, TokenF1, Usual
from ragauge.measures.tokens import plain, tokens_of, unicode_words

MEASURES: list[Any] = [ExactMatch(), TokenF1(), Contains()]


def values(measure: Any, answer: str | None, *expected: str) -> float:
    topics = pd.DataFrame({"qid": ["q"], "query": ["?"], "answer": [expected[0]]})
    if len(expected) > 1:
        topics["answers"] = [np.array(expected, dtype=object)]
    answers = pd.DataFrame({"qid": ["q"], "n_tokens": [8], "answer": pd.array([answer], "str")})
    none: Any = None
    found = frames.check("answer_values", measure.measure(topics, none, none, answers, tools()))
    assert found["measure"].tolist() == [measure.info.name]
    return float(found["value"].iloc[0])


def tools() -> Tools:
    class Here:
        root = Path()

    none: Any = None
    return Tools(Here(), none, none).limited_to(frozenset(), "the measure")


@pytest.mark.parametrize(
    ("answer", "reference", "em", "f1", "contains"),
    [
        ("The Rhine.", "the Rhine", 1, 1, 1),
        ("It joins the Rhine", "Rhine", 0, 0.5, 1),  # it, joins, rhine: 2·1/(3+1)
        ("red red blue", "red blue blue", 0, 2 / 3, 0),  # red and blue once each: 2·2/(3+3)
        ("(288 km) - long", "288 km", 0, 0.8, 1),  # 288, km, long: 2·2/(3+2)
        ("«288 km» – long", "288 km", 0, 0, 0),  # SQuAD's script knows ASCII's punctuation alone
        ("the 1914–18 war", "1914-18 war", 0, 0.5, 0),
        ("don't", "dont", 1, 1, 1),
        ("$5", "5", 1, 1, 1),
        ("an apple a day", "apple day", 1, 1, 1),
        ("theme", "me", 0, 0, 0),
        ("new old york", "new york", 0, 0.8, 0),
        ("", "the", 1, 1, 1),
        ("word", "the", 0, 0, 0),
        ("the", "word", 0, 0, 0),
        # The answers on the first page of SQuAD's paper, and partly right ones beside them.
        ("under gravity", "gravity", 0, 2 / 3, 1), ("within a cloud", "within the cloud", 1, 1, 1),
        ("in a cloud", "within a cloud", 0, 0.5, 0), ("graupel and hail", "graupel", 0, 0.5, 1),
    ],
)  # fmt: skip
def test_values_by_hand(answer: str, reference: str, em: float, f1: float, contains: float) -> None:
    found = [values(measure, answer, reference) for measure in MEASURES]
    assert found == pytest.approx([em, f1, contains])


def test_the_best_reference_counts_where_there_are_several() -> None:
    assert [values(m, "the big apple", "New York", "Big Apple!") for m in MEASURES] == [1, 1, 1]


def test_no_answer_has_no_value() -> None:
    assert all(np.isnan(values(measure, None, "Rhine")) for measure in MEASURES)


def test_references_that_are_one_text_are_an_error_and_none_fall_back_to_the_answer() -> None:
    topics = pd.DataFrame({"qid": ["q", "r"], "answer": ["a", "b"], "answers": [["x", "y"], None]})
    assert references(topics) == {"q": ("x", "y"), "r": ("b",)}
    with pytest.raises(DataError, match=r"qid='q'.*'xy' is a text"):
        references(topics.assign(answers=["xy", "z"]))


def by_script(text: str) -> list[str]:
    """normalize_answer(s).split() of SQuAD's evaluation script."""
    bare = "".join(ch for ch in text.lower() if ch not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", bare).split()


def f1_by_removal(one: list[str], other: list[str]) -> float:
    left = list(other)
    common = 0
    for token in one:
        if token in left:
            left.remove(token)
            common += 1
    if not common:
        return 0.0
    precision, recall = common / len(one), common / len(other)
    return 2 * precision * recall / (precision + recall)


def test_random_texts_agree_with_precision_and_recall_counted_by_removal() -> None:
    rng = random.Random(0)
    words = ["The", "a", "cat,", "Cat", "(dog)", "an", "x-ray", "dog's", "7", "$7", "ananas"]
    words += ["“the", "theÉ", "–", "a…", "I\u0307", "cafe\u0301", "长城，", "d’a", "x\u00a0a", "ΟΔΟΣ"]
    for _ in range(120):
        one, other = (" ".join(rng.choices(words, k=rng.randint(1, 6))) + " end" for _ in range(2))
        tokens = [by_script(text) for text in (one, other)]
        assert [tokens_of("tokens", "squad")(text) for text in (one, other)] == tokens
        assert values(TokenF1(), one, other) == pytest.approx(f1_by_removal(*tokens))
        assert values(ExactMatch(), one, other) == float(" ".join(tokens[0]) == " ".join(tokens[1]))
        joined = f" {' '.join(tokens[0])} "
        assert values(Contains(), one, other) == float(f" {' '.join(tokens[1])} " in joined)


@pytest.mark.parametrize(
    ("answer", "reference", "em", "f1"),
    [
        ("北京市。", "北京 市", 1, 1),  # MLQA and CMRC 2018: characters
        ("在北京", "北京市", 0, 2 / 3),
        ("東京タワー", "タワー", 0, 0.75),  # 3 of 5 and 3 of 3
        ("กรุงเทพ", "กรุง", 0, 2 / 3),  # ก รุ ง เ ท พ: 3 of 6 and 3 of 3; a vowel sign stays on its letter
        ("서울 시", "서울시", 0, 0),  # Korean has spaces
        ("القاهرة؟", "القاهرة", 1, 1),
        ("दिल्ली।", "दिल्ली", 1, 1),
        ("İstanbul", "istanbul", 1, 1),
        ("cafe\u0301", "caf\u00e9", 1, 1),
    ],
    ids=["zh", "zh part", "ja", "th", "ko", "ar", "hi", "tr", "composed"],
)
def test_other_scripts(answer: str, reference: str, em: float, f1: float) -> None:
    found = [values(measure, answer, reference) for measure in (ExactMatch("mlqa"), TokenF1("mlqa"))]
    assert found == pytest.approx([em, f1])


def test_runs_of_letters_keep_the_marks_of_hindi() -> None:
    assert unicode_words("हिन्दी, भाषा। 在A1") == ["हिन्दी", "भाषा", "在", "a1"]


def test_plain_tokens_keep_what_stands_inside_of_a_word() -> None:
    assert plain("«The 4.6 x-rays,» (he said) — 3,000!") == ["the", "4.6", "x-rays", "he", "said", "3,000"]
    assert values(ExactMatch(tokens="plain"), "46 years.", "4.6 years") == 0
    assert values(ExactMatch(), "46 years.", "4.6 years") == 1


def test_the_articles_of_another_language_are_left_out_and_english_ones_stay() -> None:
    german = ExactMatch(articles=["der", "die", "das", "ein", "eine"])
    assert values(german, "Der Rhein", "rhein") == 1
    assert values(german, "the Rhine", "Rhine") == 0
    assert values(ExactMatch(articles=[]), "the Rhine", "Rhine") == 0


@pytest.mark.parametrize(
    ("language", "answer", "reference", "em"),
    [
        ("english", "the Rhine", "Rhine", 1),
        ("english", "der Rhein", "Rhein", 0),
        ("de", "Der Rhein", "rhein", 1),
        ("german", "an der Elbe", "Elbe", 0),  # an is no article in German
        ("es", "los Alpes", "Alpes", 1),
        ("auto", "the Rhine", "Rhine", 1),
        ("fi", "a", "b", 0),
    ],
)
def test_a_language_has_its_own_tokens_and_articles(language: str, answer: str, reference: str, em: int) -> None:
    assert values(ExactMatch(language=language), answer, reference) == em
    usual = Usual(language=language).compared([answer, "在北京"], [reference, "北京市"], tools())
    assert usual["em"].tolist() == [em, 0]
    assert usual["f1"][1] == pytest.approx(0 if language == "english" else 2 / 3)
    assert (identity(Usual(language=language)) == identity(Usual())) == (language == "english")
    assert identity(ExactMatch(language="zh")) == identity(ExactMatch("mlqa", []))
