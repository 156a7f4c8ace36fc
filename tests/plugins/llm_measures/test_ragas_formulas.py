"""The measures on given verdicts beside RAGAS's formulas, written anew from its paper and documentation.

RAGAS: Es et al., EACL 2024, and the pages of its metrics (answer correctness, noise sensitivity).
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.plugins.llm_measures.answer_correctness import claims_f1
from ragauge.plugins.llm_measures.claims import ClaimVerdict, Match
from ragauge.plugins.llm_measures.noise_sensitivity import noise_sensitivity


def ragas_f1(tp: int, fp: int, fn: int) -> float:
    """The F1 of answer correctness, from precision and recall."""
    precision = tp / (tp + fp) if tp + fp else float(fn == 0)
    recall = tp / (tp + fn) if tp + fn else float(fp == 0)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def ragas_noise(in_reference: np.ndarray, of_claims: np.ndarray, of_statements: np.ndarray, mode: str) -> float:
    """Noise sensitivity of claims [n] over passages [n, k] and of the reference's statements [m, k]."""
    relevant = of_statements.any(axis=0)
    from_relevant = (of_claims & relevant).any(axis=1)
    from_irrelevant = (of_claims & ~relevant).any(axis=1) & ~from_relevant
    faithful = from_relevant if mode == "relevant" else from_irrelevant
    return float(np.mean(faithful & ~in_reference))


@given(st.lists(st.booleans(), min_size=1, max_size=20), st.lists(st.booleans(), min_size=1, max_size=20))
def test_the_f1_of_claims_equals_ragas_where_both_texts_have_statements(
    claims: list[bool], statements: list[bool]
) -> None:
    theirs = ragas_f1(sum(claims), claims.count(False), statements.count(False))
    assert claims_f1(Match(tuple(claims), tuple(statements))) == pytest.approx(theirs)


@settings(max_examples=200)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 5), st.integers(0, 10_000))
def test_noise_sensitivity_equals_ragas_where_each_passage_is_judged_alone(
    n_claims: int, n_statements: int, n_passages: int, seed: int
) -> None:
    dice = np.random.default_rng(seed)
    of_claims = dice.random((n_claims, n_passages)) < 0.4
    of_statements = dice.random((n_statements, n_passages)) < 0.3
    right = dice.random(n_claims) < 0.5

    def verdicts(rows: np.ndarray) -> list[ClaimVerdict]:
        return [
            ClaimVerdict("supported", tuple(map(int, np.flatnonzero(row)))) if row.any() else ClaimVerdict("absent")
            for row in rows
        ]

    ours = noise_sensitivity(right.tolist(), verdicts(of_claims), verdicts(of_statements))
    theirs = [ragas_noise(right, of_claims, of_statements, mode) for mode in ("relevant", "irrelevant")]
    assert ours == pytest.approx(theirs)
