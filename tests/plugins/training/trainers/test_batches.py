"""Batches that hold no false negative."""

from __future__ import annotations

import numpy as np

from ragauge.plugins.training.trainers._batches import Row, batches


def row(question: str, passages: str, relevant: str) -> Row:
    return Row(question, frozenset(passages.split()), frozenset(relevant.split()))


def test_no_passage_of_a_batch_is_relevant_to_another_of_its_questions() -> None:
    generator = np.random.default_rng(0)
    docs = [f"d{i}" for i in range(60)]
    rows = []
    for topic in range(40):
        relevant = generator.choice(docs, 3, replace=False).tolist()
        rows += [
            Row(f"q{topic}", frozenset([one, docs[int(generator.integers(60))]]), frozenset(relevant))
            for one in relevant
        ]
    found = batches(rows, 8, 15, np.random.default_rng(1))
    assert len(found) == 15
    assert all(1 <= len(batch) <= 8 for batch in found)
    for batch in found:
        for a in batch:
            for b in batch:
                if a != b:
                    assert rows[a].question != rows[b].question
                    assert rows[a].relevant.isdisjoint(rows[b].passages)
    placed = [at for batch in found for at in batch]
    assert len(placed) == len(set(placed)) >= 110


def test_rows_of_one_question_are_spread_and_no_batch_is_empty() -> None:
    rows = [row("q", f"a{i}", "a0 a1 a2") for i in range(3)] + [row("r", "b", "b")]
    found = batches(rows, 32, 3, np.random.default_rng(0))
    assert sorted(at for batch in found for at in batch) == [0, 1, 2, 3]
    alone = batches([row("q", "a", "a b"), row("r", "b", "b")], 2, 2, np.random.default_rng(0))
    assert sorted(alone) == [[0], [1]]


def test_a_hard_negative_that_answers_another_question_is_in_another_batch() -> None:
    rows = [row("q", "a x", "a"), row("r", "x", "x"), row("s", "c", "c")]
    for seed in range(10):
        found = batches(rows, 3, 2, np.random.default_rng(seed))
        assert not any({0, 1} <= set(batch) for batch in found)
