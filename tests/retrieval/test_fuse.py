"""Fusion of several lists: by hand, and against a plain Python twin."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.retrieval.fusion import FUSIONS, NORMALISATIONS, Scored, fuse


def lists_of(*lists: dict[int, list[tuple[int, float]]]) -> list[Scored]:
    """Of every list {topic: [(document, score), …]} the triple that `fuse` takes."""
    return [
        (
            np.array([t for t, hits in one.items() for _ in hits], dtype=np.int64),
            np.array([d for hits in one.values() for d, _ in hits], dtype=np.int64),
            np.array([s for hits in one.values() for _, s in hits], dtype=float),
        )
        for one in lists
    ]


def found(triple: Scored) -> list[tuple[int, int, float]]:
    return [(int(t), int(d), float(s)) for t, d, s in zip(*triple, strict=True)]


# Two lists of topic 0: 5, 7, 9 and 7, 4; of topic 1 only the second has one.
TWO = lists_of({0: [(5, 4.0), (7, 3.0), (9, 0.0)]}, {0: [(7, 0.9), (4, 0.5)], 1: [(4, 0.7)]})
ORDER = np.arange(10)


def test_reciprocal_ranks_by_hand() -> None:
    assert found(fuse(TWO, ORDER, 2, 10, "rrf", constant=60)) == [
        (0, 7, pytest.approx(1 / 62 + 1 / 61, abs=1e-12)),
        (0, 5, pytest.approx(1 / 61, abs=1e-12)),
        (0, 4, pytest.approx(1 / 62, abs=1e-12)),
        (0, 9, pytest.approx(1 / 63, abs=1e-12)),
        (1, 4, pytest.approx(1 / 61, abs=1e-12)),
    ]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        # In the first list 5, 7, 9 are 1, 3/4, 0; in the second 7, 4 are 1, 0, and alone 4 is 1.
        ({"fusion": "weighted"}, [(0, 7, 1.75), (0, 5, 1.0), (0, 4, 0.0), (0, 9, 0.0), (1, 4, 1.0)]),
        (
            {"fusion": "weighted", "weights": [0.2, 0.8]},
            [(0, 7, 0.95), (0, 5, 0.2), (0, 4, 0.0), (0, 9, 0.0), (1, 4, 0.8)],
        ),
        ({"fusion": "mnz"}, [(0, 7, 3.5), (0, 5, 1.0), (0, 4, 0.0), (0, 9, 0.0), (1, 4, 1.0)]),
        ({"fusion": "max"}, [(0, 5, 1.0), (0, 7, 1.0), (0, 4, 0.0), (0, 9, 0.0), (1, 4, 1.0)]),
        ({"fusion": "isr"}, [(0, 7, 2.5), (0, 5, 1.0), (0, 4, 1 / 4), (0, 9, 1 / 9), (1, 4, 1.0)]),
    ],
    ids=str,
)
def test_every_other_fusion_by_hand(how: dict, expected: list[tuple[int, int, float]]) -> None:
    told = found(fuse(TWO, ORDER, 2, 10, **how))
    assert [row[:2] for row in told] == [row[:2] for row in expected]
    assert [row[2] for row in told] == pytest.approx([row[2] for row in expected], abs=1e-11)


def test_z_scores_by_hand_count_from_the_lowest() -> None:
    # 4, 3, 0: standard deviation sqrt(26 / 9); 0.9, 0.5: 0.2.
    told = {d: s for t, d, s in found(fuse(TWO, ORDER, 2, 10, "weighted", "z_score")) if t == 0}
    sd = (26 / 9) ** 0.5
    assert told == pytest.approx({7: 3 / sd + 2, 5: 4 / sd, 4: 0, 9: 0}, abs=1e-11)


def test_ties_fall_to_the_order_given_and_the_cut_keeps_it() -> None:
    lists = lists_of({0: [(d, 1.0) for d in range(100)]})
    order = np.arange(100)[::-1]
    assert [d for _, d, _ in found(fuse(lists, order, 1, 5, "weighted"))] == [99, 98, 97, 96, 95]


def test_no_topics_and_no_hits() -> None:
    for lists, n in ((TWO, 0), (lists_of({}, {}), 3), ([], 2)):
        assert [len(part) for part in fuse(lists, ORDER, n, 10)] == [0, 0, 0]


def twin(
    lists: list[Scored],
    order: np.ndarray,
    n_topics: int,
    top_k: int,
    fusion: str,
    normalise: str,
    weights: list[float],
    constant: float,
) -> list[tuple[int, int, float]]:
    told = []
    for topic in range(n_topics):
        terms = defaultdict(list)
        for (topics, items, scores), weight in zip(lists, weights, strict=True):
            hits = [(int(d), float(s)) for t, d, s in zip(topics, items, scores, strict=True) if t == topic]
            values = [score for _, score in hits]
            for rank, (doc, score) in enumerate(hits, 1):
                if fusion == "rrf":
                    term = 1 / (constant + rank)
                elif fusion == "isr":
                    term = 1 / rank**2
                elif max(values) == min(values):
                    term = 1.0
                elif normalise == "min_max":
                    term = (score - min(values)) / (max(values) - min(values))
                else:
                    mean = fmean(values)
                    sd = fmean([(value - mean) ** 2 for value in values]) ** 0.5
                    term = (score - min(values)) / sd
                terms[doc].append(weight * term)
        scored = {
            doc: max(of_doc) if fusion == "max" else sum(of_doc) * (len(of_doc) if fusion in ("mnz", "isr") else 1)
            for doc, of_doc in terms.items()
        }
        best = sorted(scored, key=lambda doc: (-round(scored[doc], 9), order[doc]))[:top_k]
        told += [(topic, doc, scored[doc]) for doc in best]
    return told


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(FUSIONS), st.sampled_from(NORMALISATIONS), st.integers(1, 3), st.integers(0, 4),
    st.integers(1, 70), st.integers(0, 10_000),
)  # fmt: skip
def test_against_a_plain_twin(fusion: str, normalise: str, n_lists: int, n_topics: int, top_k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_docs = 80
    lists = lists_of(
        *(
            {
                topic: list(
                    zip(
                        rng.choice(n_docs, n, replace=False).tolist(),
                        # Few values, so that equal ones are common.
                        sorted((rng.integers(0, 9, n) / 4 - 1).tolist(), reverse=True),
                        strict=True,
                    )
                )
                for topic in range(n_topics)
                if (n := int(rng.integers(0, 60)))
            }
            for _ in range(n_lists)
        )
    )
    order, weights = rng.permutation(n_docs), (rng.integers(0, 4, n_lists) / 2).tolist()
    expected = twin(lists, order, n_topics, top_k, fusion, normalise, weights, 10.0)
    told = found(fuse(lists, order, n_topics, top_k, fusion, normalise, weights, 10.0))
    assert [row[0] for row in told] == [row[0] for row in expected]
    np.testing.assert_allclose([row[2] for row in told], [row[2] for row in expected], atol=1e-9)
    assert [row[1] for row in told] == [row[1] for row in expected]
