"""Components of variance against a nested analysis of variance and brute force, designs, entropy and agreement."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.protocols import Tools
from ragauge.plugins.planning.repeats import Prices, best_design, gains, variance_of_mean
from ragauge.plugins.repeats.components import components, moments, rank_correlation
from ragauge.plugins.repeats.entropy import SemanticEntropy
from ragauge.plugins.repeats.stability import stability


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


def test_what_was_not_repeated_is_unknown() -> None:
    x = np.array([[[1.0]], [[0.0]], [[1.0]]])
    alone = components(x, np.zeros((3, 1)), n_boot=10)
    assert math.isnan(alone.answer.value)
    assert math.isnan(alone.judge.value)
    assert alone.topic.value == pytest.approx(1 / 3)


def test_the_next_dollar() -> None:
    # Cochran: r = sqrt(answer / topic * price of a topic / price of an answer), by hand 4.
    assert best_design((0.1, 0.1, 0.0), Prices(16.0, 1.0, 0.0))[0] == pytest.approx(4)
    assert best_design((0.1, 0.1, 0.0), Prices(0.0, 1.0, 0.5)) == (1, 1)  # free topics: one answer to each
    r, k = best_design((0.1, 0.05, 0.2), Prices(10.0, 1.0, 0.25))
    assert k == pytest.approx(math.sqrt(0.2 / 0.05 / 0.25))

    def variance(r: float, k: float) -> float:
        """For a budget of 1,000 US dollars."""
        return variance_of_mean((0.1, 0.05, 0.2), 1000 / (10 + r * (1 + 0.25 * k)), r, k)

    at_best = variance(r, k)
    assert all(variance(r * a, k * b) >= at_best for a, b in ((0.9, 1), (1.1, 1), (1, 0.9), (1, 1.1)))
    by = gains((0.1, 0.05, 0.2), Prices(10.0, 1.0, 0.25), 100, r, k)
    assert by["topic"] == pytest.approx(by["answer"])
    assert by["answer"] == pytest.approx(by["judge"])
    assert best_design((0.0, 0.1, 0.0), Prices(1.0, 1.0, 0.0))[0] == math.inf


def test_agreement_and_right_once_and_always_by_hand() -> None:
    labels = {"a": (5, 5, 5), "b": (5, 4, 4), "c": (1, 4, 2), "d": (5, 5, None)}
    rows = [
        {"qid": qid, "sample": s, "repeat": 0, "answer": f"{label} ", "label": label, "judge_status": "ok", "em": 1.0}
        for qid, of in labels.items()
        for s, label in enumerate(of)
    ]
    frame = pd.DataFrame(rows).astype({"label": "Int8"})
    outcomes = pd.DataFrame({"qid": list(labels), "ir_score": [0.9, 0.2, 0.1, 0.3]})
    found = stability(frame, outcomes, ["em"], n_boot=50)
    assert found is not None
    assert found.right_once is not None
    assert found.right_always is not None
    assert found.agreement is not None
    assert found.same_answers is not None
    assert (found.right_once.value, found.right_always.value) == (0.75, 0.25)
    assert found.agreement.value == pytest.approx((1 + 1 / 3 + 0 + 1 / 3) / 4)
    assert found.same_answers.value == 0.25
    assert found.of["correct_share"].mean == pytest.approx((1 + 1 / 3 + 0 + 2 / 3) / 4)
    assert found.of["em"].answer.value == 0
    metrics = found.metrics()
    assert "repeat_variance_judge" not in metrics
    assert all(map(math.isfinite, metrics.values()))


def test_rank_correlation_of_a_constant_is_unknown_and_a_monotone_one_is_1() -> None:
    x = np.arange(8.0)
    assert rank_correlation(x, x**3, 20).value == pytest.approx(1)
    assert math.isnan(rank_correlation(x, np.zeros(8), 20).value)


def test_semantic_entropy_counts_meanings(tools: Tools) -> None:
    said = {"a": ["The Eiffel tower.", "eiffel tower", "Louvre"], "b": ["x", "x", "X!"], "c": ["one", "two", None]}
    frame = pd.DataFrame([{"qid": q, "sample": s, "answer": t} for q, of in said.items() for s, t in enumerate(of)])
    found = SemanticEntropy().measure_repeats(frame, tools)["semantic_entropy"]
    assert found["a"] == pytest.approx(-(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3)))
    assert found["b"] == 0
    assert found["c"] == pytest.approx(math.log(2))
    near = SemanticEntropy(by="cosine", threshold=-1.0).measure_repeats(frame, tools)["semantic_entropy"]
    assert near.tolist() == [0, 0, 0]
