"""Substrings against difflib's longest match, which is exact without its junk heuristic."""

from __future__ import annotations

import json
import random
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ragauge.measures import Substring

HOTPOT = Path(__file__).resolve().parents[2] / "../shared/data/hotpot_train_100.json"


def fold(text: str) -> str:
    return " ".join(text.split())


def longest_match(a: str, b: str) -> int:
    return SequenceMatcher(None, b, a, autojunk=False).find_longest_match().size


def assert_equal_to_difflib(evidence: list[str], context: str, ends: np.ndarray) -> None:
    found = Substring().score(evidence, context, ends)
    for text, row in zip(evidence, found, strict=True):
        folded = fold(text)
        assert row.tolist() == [longest_match(folded, fold(context[:end])) / len(folded) for end in ends]


@pytest.mark.parametrize("letters", ["ab", "abcdefgh ", "日本語 \n"])
def test_random_texts(letters: str) -> None:
    rng = random.Random(letters)
    for _ in range(20):
        evidence = ["".join(rng.choices(letters, k=rng.randint(1, 300))) + "x" for _ in range(3)]
        context = "".join(rng.choices(letters, k=1000)) + rng.choice(evidence)[5:40] + "b a"
        assert_equal_to_difflib(evidence, context, np.array([0, 10, 333, 990, len(context)]))


@pytest.mark.skipif(not HOTPOT.exists(), reason="needs ../shared/data")
def test_questions_of_hotpotqa() -> None:
    questions = json.loads(HOTPOT.read_text(encoding="utf-8"))
    for question, other in list(pairwise(questions))[::10]:
        paragraphs = dict(question["context"])
        evidence = [paragraphs[title][i] for title, i in question["supporting_facts"]]
        for source in (question, other):
            context = " ".join("".join(sentences) for _, sentences in source["context"])[:5000]
            assert_equal_to_difflib(evidence, context, np.linspace(0, len(context), 6).astype(int))
