"""Context precision, nugget and citation scores on given verdicts, beside the published scripts' rules.

Each twin follows the arithmetic of the script (RAGAS, TREC RAG's nuggetizer, ALCE), written anew; where a
measure differs on purpose, the test says in what.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from ragauge.plugins.llm_measures.citations import Cited, citation_scores
from ragauge.plugins.llm_measures.context_precision import average_precision
from ragauge.plugins.llm_measures.nuggets import nugget_scores

DICE = random.Random(16)


def of_ragas(useful: list[int]) -> float:
    """Precision at every rank times its verdict, over the number of useful passages."""
    numerator = sum((sum(useful[: i + 1]) / (i + 1)) * useful[i] for i in range(len(useful)))
    return numerator / (sum(useful) + 1e-10)


def of_trec(nuggets: list[tuple[str, str]]) -> dict[str, float]:
    """By nugget (importance, assignment); 0 where there is nothing to divide by."""
    points = np.array([{"support": 1.0, "partial_support": 0.5}.get(said, 0.0) for _, said in nuggets])
    strict = np.array([said == "support" for _, said in nuggets], dtype=float)
    vital = np.array([importance == "vital" for importance, _ in nuggets], dtype=bool)
    weight = np.where(vital, 1.0, 0.5)
    return {
        "strict_vital": float(strict[vital].mean()) if vital.any() else 0.0,
        "strict_all": float(strict.mean()) if len(nuggets) else 0.0,
        "vital": float(points[vital].mean()) if vital.any() else 0.0,
        "all": float(points.mean()) if len(nuggets) else 0.0,
        "weighted": float((weight * points).sum() / weight.sum()) if len(nuggets) else 0.0,
    }


def of_alce(sentences: list[Cited]) -> tuple[float, float]:
    """Recall and precision of an answer (recall over sentences, precision over the citations that count)."""
    entailed = precise = total = 0
    for one in sentences:
        if not one.passages or one.n_invented:  # no citation, or one out of range: rejected as a whole
            continue
        total += len(one.passages)
        entailed += one.supported
        if one.supported:
            precise += len(one.passages) - len(one.irrelevant)
    return entailed / len(sentences), precise / total if total else 0.0


def test_context_precision_is_that_of_ragas() -> None:
    for _ in range(300):
        useful = [DICE.randint(0, 1) for _ in range(DICE.randint(1, 12))]
        assert average_precision([bool(v) for v in useful]) == pytest.approx(of_ragas(useful), abs=1e-9)


def test_nugget_scores_are_those_of_trec_wherever_there_is_a_nugget() -> None:
    for _ in range(300):
        nuggets = [
            (DICE.choice(["vital", "okay"]), DICE.choice(["support", "partial_support", "not_support"]))
            for _ in range(DICE.randint(0, 8))
        ]
        found = nugget_scores([kind for kind, _ in nuggets], [said for _, said in nuggets])
        theirs = of_trec(nuggets)
        assert found == {name: pytest.approx(theirs[name]) for name in found}
        # Theirs is 0 where there is no nugget of the kind; here there is no value.
        has_vital = any(kind == "vital" for kind, _ in nuggets)
        assert ("vital" in found) == ("strict_vital" in found) == has_vital
        assert ("all" in found) == bool(nuggets)


def cited(invented: bool) -> Cited:
    passages = tuple(sorted(DICE.sample(range(1, 6), DICE.randint(0, 3))))
    supported = bool(passages) and DICE.random() < 0.7
    n_irrelevant = DICE.randint(0, len(passages) - 1) if supported else 0
    irrelevant = tuple(sorted(DICE.sample(passages, n_irrelevant)))
    return Cited("x", passages, DICE.randint(0, 2) if invented else 0, supported, irrelevant)


def test_citation_scores_are_those_of_alce_without_invented_numbers() -> None:
    for _ in range(300):
        sentences = [cited(invented=False) for _ in range(DICE.randint(1, 5))]
        recall, precision = of_alce(sentences)
        found = citation_scores(sentences)
        assert found["citation_recall"] == pytest.approx(recall)
        if any(one.passages for one in sentences):
            assert found["citation_precision"] == pytest.approx(precision)
        else:  # theirs is 0, and here there is none
            assert "citation_precision" not in found


def test_an_invented_number_counts_here_and_hides_its_sentence_there() -> None:
    good, invented = Cited("a", (1,), 0, True, ()), Cited("b", (2,), 1, True, ())
    assert of_alce([good, invented]) == (1 / 2, 1.0)
    assert citation_scores([good, invented]) == {
        "citation_recall": 1.0, "citation_precision": pytest.approx(2 / 3),
    }  # fmt: skip
