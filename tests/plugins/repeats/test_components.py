"""Components of variance against a nested analysis of variance and brute force, designs, entropy and agreement."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.protocols import Tools
from ragauge.plugins.repeats.components import components, moments
from ragauge.plugins.repeats.entropy import SemanticEntropy


def test_distinct_answers_give_the_nested_analysis_of_variance() -> None:
    rng = np.random.default_rng(0)
    n, r, k = 7, 3, 4
    x = rng.normal(size=(n, 1, 1)) + rng.normal(size=(n, r, 1)) + rng.normal(size=(n, r, k))
    of_answers, of_topics = x.mean(axis=2), x.mean(axis=(1, 2))
    ms_judge = ((x - of_answers[:, :, None]) ** 2).sum() / (n * r * (k - 1))
    ms_answer = k * ((of_answers - of_topics[:, None]) ** 2).sum() / (n * (r - 1))
    ms_topic = r * k * ((of_topics - x.mean()) ** 2).sum() / (n - 1)
    found = components(x, np.tile(np.arange(r), (n, 1)), n_boot=10)
    assert found.judge.value == pytest.approx(ms_judge)
    assert found.answer.value == pytest.approx((ms_answer - ms_judge) / k)
    assert found.topic.value == pytest.approx((ms_topic - ms_answer) / (r * k))
    assert sum(found.of_error) == pytest.approx(1)
    assert found.error == pytest.approx(of_topics.var(ddof=1) / n)


def test_equal_answers_share_their_verdicts_as_brute_force_over_pairs_says() -> None:
    rng = np.random.default_rng(1)
    r, k = 4, 3
    texts = np.array([[0, 0, 1, 2], [0, 0, 0, 0], [0, 1, 0, 1]])
    by_text = rng.normal(size=(3, 3, k))
    x = np.array([[by_text[topic, text] for text in row] for topic, row in enumerate(texts)])
    found = moments(x, texts)
    for topic, row in enumerate(texts):
        means, spread = x[topic].mean(axis=1), x[topic].var(axis=1, ddof=1)
        pairs = [
            ((means[s] - means[t]) ** 2 - (spread[s] + spread[t]) / k) / 2 if row[s] != row[t] else 0.0
            for s, t in itertools.combinations(range(r), 2)
        ]
        assert found.answer[topic] == pytest.approx(np.mean(pairs))
        shared = sum(spread[s] for s, t in itertools.product(range(r), range(r)) if row[s] == row[t]) / (r * r * k)
        assert found.within[topic] == pytest.approx(np.mean(pairs) / r + shared)
    assert found.answer[1] == 0


def test_semantic_entropy_counts_meanings(tools: Tools) -> None:
    said = {"a": ["The Eiffel tower.", "eiffel tower", "Louvre"], "b": ["x", "x", "X!"], "c": ["one", "two", None]}
    frame = pd.DataFrame([{"qid": q, "sample": s, "answer": t} for q, of in said.items() for s, t in enumerate(of)])
    found = SemanticEntropy().measure_repeats(frame, tools)["semantic_entropy"]
    assert found["a"] == pytest.approx(-(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3)))
    assert found["b"] == 0
    assert found["c"] == pytest.approx(math.log(2))
    near = SemanticEntropy(by="cosine", threshold=-1.0).measure_repeats(frame, tools)["semantic_entropy"]
    assert near.tolist() == [0, 0, 0]
