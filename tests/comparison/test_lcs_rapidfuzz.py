"""Subsequences against rapidfuzz's, on sentences of real size."""

from __future__ import annotations

import random

import numpy as np
from rapidfuzz.distance import LCSseq

from ragauge.measures import Subsequence, Words


def sentences(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    words = ["".join(rng.choices("etaoinshrdlcumwfgypbvk", k=rng.randint(1, 9))) for _ in range(150)]
    return [" ".join(rng.choices(words, k=rng.randint(5, 40))).capitalize() + "." for _ in range(count)]


def test_subsequence_of_characters() -> None:
    context = " ".join(sentences(30, 0))
    evidence = sentences(10, 1)
    ends = np.linspace(0, len(context), 11).astype(int)
    found = Subsequence().score(evidence, context, ends)
    for text, row in zip(evidence, found, strict=True):
        expected = [LCSseq.similarity(text, context[:end].strip()) / len(text) for end in ends]
        assert row.tolist() == expected


def test_subsequence_of_words() -> None:
    context = " ".join(sentences(30, 2))
    evidence = sentences(10, 3)
    ends = np.linspace(0, len(context), 11).astype(int)
    found = Words().score(evidence, context, ends)
    for text, row in zip(evidence, found, strict=True):
        words = text.lower().rstrip(".").split()
        prefixes = [context[:end].lower().replace(".", "").split() for end in ends]
        assert row.tolist() == [LCSseq.similarity(words, prefix) / len(words) for prefix in prefixes]
