"""Pairs that a reranker learns from: labels, ratio, where negatives come from, and what is counted."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.training.contract import TrainingData
from ragauge.plugins.training.trainers.pairs import COLUMNS, PairSource, training_pairs

# Every topic's evidence is one whole chunk or two; texts share no words but where it says so.
TEXTS = {
    "a": "the tower of Arles was built by Anna in the spring",
    "b": "bridges over the Rhine carry trains and people alike",
    "c": "mountains rise where plates of rock meet slowly",
    "d": "ducks swim on lakes and dive for weeds",
    "e": "engines burn fuel and turn heat to motion",
    "f": "flour and water make bread in an oven",
    "g": "the tower of Arles was built by Anna in the spring again",  # nearly a
}


def data(**changed: Any) -> TrainingData:
    chunks = pd.DataFrame(
        [(docno, text, docno, 0, len(text)) for docno, text in TEXTS.items()],
        columns=["docno", "text", "parent", "start", "end"],
    )
    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["who built it?", "where?"]})
    parts = [("q1", 0, "a"), ("q1", 1, "b"), ("q2", 0, "c")]
    evidence = pd.DataFrame(
        [(qid, part, docno, TEXTS[docno]) for qid, part, docno in parts],
        columns=["qid", "part", "docno", "text"],
    )
    hits = [("q1", docno) for docno in "adegf"] + [("q2", docno) for docno in "cda"]
    run = pd.DataFrame(hits, columns=["qid", "docno"])
    run["rank"] = run.groupby("qid").cumcount()
    run["score"] = 10.0 - run["rank"]
    return TrainingData(**{"topics": topics, "evidence": evidence, "chunks": chunks, "run": run, **changed})


def of(pairs: pd.DataFrame, qid: str, label: int) -> list[str]:
    return sorted(pairs[(pairs["qid"] == qid) & (pairs["label"] == label)]["docno"])


def test_hard_negatives_are_the_window_s_hits_that_are_no_evidence_and_no_copy_of_it() -> None:
    made = training_pairs(data(), PairSource(neg_ratio=1, first=2, last=5), seed=0)
    assert list(made.table.columns) == COLUMNS
    assert of(made.table, "q1", 1) == ["a", "b"]
    assert len(of(made.table, "q1", 0)) == 2
    assert set(of(made.table, "q1", 0)) <= {"d", "e", "f"}  # g has nearly a's words
    assert of(made.table, "q2", 1) == ["c"]
    assert set(of(made.table, "q2", 0)) <= {"d", "a"}
    positive = made.table[(made.table["qid"] == "q1") & (made.table["docno"] == "a")].iloc[0]
    assert (positive["rank"], positive["score"], positive["query"]) == (1, 10.0, "who built it?")
    assert made.counts == {
        "topics_learnt_from": 2, "positives": 3, "negatives": 3, "positives_not_found": 1,
        "candidates": 6, "excluded_as_evidence": 0, "excluded_as_copies": 1, "excluded_by_margin": 0,
        "excluded_by_ceiling": 0, "negatives_drawn_at_random": 0,
    }  # fmt: skip


def test_where_the_window_holds_too_few_others_are_drawn_and_counted() -> None:
    made = training_pairs(data(), PairSource(neg_ratio=2, first=1, last=3), seed=0)
    # q1 needs 4: its first three hits hold d and e. q2 needs 2: d and a.
    assert {"d", "e"} < set(of(made.table, "q1", 0)) == {"d", "e", "c", "f"}
    assert of(made.table, "q2", 0) == ["a", "d"]
    assert made.counts["negatives_drawn_at_random"] == 2
    assert not made.table.duplicated(["qid", "docno"]).any()
    assert made.table["qid"].tolist() == ["q1"] * 6 + ["q2"] * 3
    assert made.table["label"].tolist() == [1, 1, 0, 0, 0, 0, 1, 0, 0]
    drawn = made.table[made.table["docno"] == "f"].iloc[0]
    assert (drawn["label"], drawn["rank"]) == (0, 5)  # the run holds it, below the window


def test_every_rank_of_the_window_gives_a_negative() -> None:
    made = training_pairs(data(), PairSource(neg_ratio=2, first=2, last=3), seed=0)
    assert {"d", "e"} < set(of(made.table, "q1", 0))
    assert of(made.table, "q2", 0) == ["a", "d"]
    assert made.counts["negatives_drawn_at_random"] == 2


def test_random_negatives_are_any_passages_that_are_not_relevant() -> None:
    made = training_pairs(data(), PairSource(neg_ratio=2, negatives="random"), seed=3)
    assert len(of(made.table, "q1", 0)) == 4
    assert set(of(made.table, "q1", 0)) <= set("cdefg")
    assert len(of(made.table, "q2", 0)) == 2
    assert "c" not in of(made.table, "q2", 0)
    assert made.table["rank"].isna().sum() > 1
    assert made.counts["positives_not_found"] == 1  # b, whatever the negatives are
    found = {tuple(of(training_pairs(data(), PairSource(1, "random"), s).table, "q2", 0)) for s in range(20)}
    assert len(found) > 3


def test_pairs_follow_from_the_seed_alone() -> None:
    source = PairSource(neg_ratio=1)
    first, again = (training_pairs(data(), source, 5).table for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    others = [of(training_pairs(data(), source, seed).table, "q1", 0) for seed in range(10)]
    assert len({tuple(found) for found in others}) > 1


def test_one_positive_of_a_topic_has_as_many_negatives_as_asked() -> None:
    made = training_pairs(data(), PairSource(neg_ratio=2, positives_per_topic=1), seed=0)
    assert made.table.groupby(["qid", "label"]).size().to_dict() == {
        ("q1", 0): 2, ("q1", 1): 1, ("q2", 0): 2, ("q2", 1): 1,
    }  # fmt: skip
    # The positive that was not drawn is no negative.
    assert not {"a", "b", "g"} & set(of(made.table, "q1", 0))


def test_a_margin_leaves_out_what_scores_almost_as_the_positive() -> None:
    made = training_pairs(data(), PairSource(neg_ratio=1, margin=0.15), seed=0)
    # q2: its positive c has 10, so 8.5 is the most: d (9) is out, a (8) is in.
    assert of(made.table, "q2", 0) == ["a"]


def test_one_class_is_an_error() -> None:
    given = data()
    few = given.chunks[given.chunks["docno"].isin(["a", "c"])]
    evidence = pd.DataFrame(
        [(qid, i, d, TEXTS[d]) for qid in ("q1", "q2") for i, d in enumerate("ac")],
        columns=["qid", "part", "docno", "text"],
    )
    run = given.run[given.run["docno"].isin(["a", "c"])]
    with pytest.raises(DataError, match=r"^trainer\.negatives: .* all 4 pairs have the label 1") as caught:
        training_pairs(data(chunks=few, evidence=evidence, run=run), PairSource(), seed=0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("topics", [1, 0])
def test_one_topic_and_none_are_an_error(topics: int) -> None:
    given = data()
    kept = given.evidence[given.evidence["qid"] == "q1"] if topics else given.evidence.iloc[:0]
    with pytest.raises(DataError, match=rf"^training: {topics} of 2 topics have evidence"):
        training_pairs(data(evidence=kept), PairSource(), seed=0)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"neg_ratio": 0}, r"trainer\.neg_ratio=0: allowed are integers from 1"),
        ({"negatives": "soft"}, r"trainer\.negatives='soft': allowed are hard, random"),
        ({"first": 5, "last": 4}, r"trainer\.last=4: allowed are ranks from trainer\.first=5"),
        ({"margin": 2}, r"trainer\.margin=2: allowed are numbers from 0 to 1"),
        ({"positives_per_topic": 0}, r"trainer\.positives_per_topic=0"),
    ],
)
def test_values_out_of_range_are_one_line(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=f"^{told}"):
        PairSource(**given).check("trainer")


def test_batches_hold_every_pair_once_and_pairs_of_about_one_length() -> None:
    from ragauge.plugins.training.trainers._pair_batches import batches

    lengths = np.random.default_rng(0).integers(1, 500, 333)
    made = batches(lengths, 8, (0, 0))
    assert sorted(row for batch in made for row in batch) == list(range(333))
    assert len(made) == -(-333 // 8)
    spread = np.mean([np.ptp(lengths[batch]) for batch in made])
    assert spread < 60  # 8 of 333 at random would spread over about 390
    assert made == batches(lengths, 8, (0, 0))
    assert made != batches(lengths, 8, (0, 1)) != batches(lengths, 8, (1, 0))
    means = [lengths[batch].mean() for batch in made]
    rises = sum(later > earlier for earlier, later in pairwise(means))
    assert 12 < rises < 29  # in random order: half of the time; in that of their lengths nearly always


def test_an_epoch_s_batches_are_by_the_length_of_both_texts_and_its_number() -> None:
    from ragauge.plugins.training.trainers._pair_batches import ByLength, batches

    query, text = ["q" * n for n in (40, 30, 20, 10, 5, 1)], ["t" * n for n in (1, 12, 25, 34, 80, 70)]
    sampler = ByLength({"query": query, "text": text}, 2, drop_last=False, seed=3)
    assert len(sampler) == 3
    assert sampler.lengths.tolist() == [41, 42, 45, 44, 85, 71]
    for epoch in (0, 1):
        sampler.set_epoch(epoch)
        found = list(sampler)
        assert found == batches(sampler.lengths, 2, (3, epoch))
        assert sorted(sorted(batch) for batch in found) == [[0, 1], [2, 3], [4, 5]]
