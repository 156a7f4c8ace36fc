"""Hard negatives by hand: what the window, the margin, the ceiling and the evidence leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.training.contract import TrainingData
from ragauge.plugins.training.trainers.mining import Window, mine, relevant_chunks, similar

TEXTS = {
    "d1": "the rhine rises in the swiss alps and flows to the north sea through several countries of europe",
    "d2": "the danube rises in the black forest",
    "d3": "the rhine rises in the swiss alps and flows to the north sea through several countries of asia",
    "d4": "huygens wrote a treatise on light in the hague",
    "d5": "newton wrote opticks about colours",
    "d6": "cheese is made of milk",
    "d7": "bread is made of flour",
}


def data(run: list[tuple[str, str, float]], evidence: list[tuple[str, str, str | None]]) -> TrainingData:
    docnos = list(TEXTS)
    chunks = pd.DataFrame({"docno": docnos, "text": list(TEXTS.values()), "parent": docnos})
    chunks = chunks.assign(start=0, end=chunks["text"].str.len())
    topics = pd.DataFrame({"qid": ["a", "b"], "query": ["where does the rhine rise", "who wrote on light"]})
    of = pd.DataFrame(evidence, columns=["qid", "docno", "text"])
    of.insert(1, "part", of.groupby("qid").cumcount())
    hits = pd.DataFrame(run, columns=["qid", "docno", "score"])
    hits["rank"] = hits.groupby("qid").cumcount()
    return TrainingData(topics, of, chunks, hits)


EVIDENCE = [("a", "d1", TEXTS["d1"]), ("b", "d4", None)]
RUN = [
    ("a", "d1", 10.0), ("a", "d3", 9.9), ("a", "d2", 9.6), ("a", "d5", 8.0), ("a", "d6", 1.0),
    ("b", "d5", 6.0), ("b", "d4", 5.0), ("b", "d2", 4.9), ("b", "d7", 4.0),
]  # fmt: skip


def negatives(found: Any) -> dict[str, list[str]]:
    return {qid: rows["negative"].tolist() for qid, rows in found.negatives.groupby("qid")}


def test_evidence_and_its_copies_are_no_negatives_and_the_first_are_taken_by_rank() -> None:
    found = mine(data(RUN, EVIDENCE), Window(count=2, last=4, sampling="top"), 0)
    assert found.positives.to_numpy().tolist() == [
        ["a", "where does the rhine rise", "d1"],
        ["b", "who wrote on light", "d4"],
    ]
    assert negatives(found) == {"a": ["d2", "d5"], "b": ["d5", "d2"]}
    assert found.negatives["rank"].tolist() == [3, 4, 1, 3]
    assert found.negatives["score"].tolist() == [9.6, 8.0, 6.0, 4.9]
    assert list(found.negatives) == ["qid", "query", "positive", "negative", "rank", "score"]
    assert found.counts == {
        "topics_learnt_from": 2,
        "positives": 2,
        "candidates": 8,
        "excluded_as_evidence": 2,
        "excluded_as_copies": 1,
        "excluded_by_margin": 0,
        "excluded_by_ceiling": 0,
        "filled_from_other_topics": 0,
    }
    assert found.relevant[found.relevant["copy"]].to_numpy().tolist() == [["a", "d3", True]]


def test_the_window_counts_ranks_from_one_and_gaps_are_filled_from_other_topics() -> None:
    found = mine(data(RUN, EVIDENCE), Window(count=1, first=5, last=5), 0)
    assert negatives(found) == {"a": ["d6"], "b": ["d1"]} or negatives(found) == {"a": ["d6"], "b": ["d3"]}
    assert found.counts["filled_from_other_topics"] == 1
    assert found.negatives["rank"].isna().tolist() == [False, True]
    assert found.negatives["score"].isna().tolist() == [False, True]


def test_a_margin_is_relative_to_the_positive_and_a_ceiling_is_not() -> None:
    window = Window(count=2, last=5, margin=0.05, sampling="top")
    found = mine(data(RUN, EVIDENCE), window, 0)
    # a: at most 9.5; b: at most 4.75, so that of its hits d7 is left, and a relevant chunk of a fills the gap
    assert negatives(found)["a"] == ["d5", "d6"]
    assert negatives(found)["b"][0] == "d7"
    assert found.counts["excluded_by_margin"] == 3
    assert found.counts["filled_from_other_topics"] == 1
    found = mine(data(RUN, EVIDENCE), Window(count=1, last=5, ceiling=4.0, sampling="top"), 0)
    assert negatives(found) == {"a": ["d6"], "b": ["d7"]}  # d7 has 4.0, which is not above
    assert found.counts["excluded_by_ceiling"] == 4


def test_what_margin_and_ceiling_exclude_both_is_counted_once() -> None:
    window = Window(count=1, last=5, margin=0.05, ceiling=4.5, sampling="top")
    counts = mine(data(RUN, EVIDENCE), window, 0).counts
    # by the margin d2 of a, d5 and d2 of b, all of them above 4.5, too; by the ceiling alone d5 of a
    assert (counts["excluded_by_margin"], counts["excluded_by_ceiling"]) == (3, 1)


def test_a_gap_is_not_filled_with_what_is_a_negative_already() -> None:
    run = [("a", "d1", 3.0), ("a", "d4", 2.0), ("b", "d4", 2.0), ("b", "d5", 1.0)]
    found = mine(data(run, EVIDENCE), Window(count=2, last=5), 0)
    # a's hit d4 is all that is relevant to another topic; b has d5, and d1 of a
    assert negatives(found) == {"a": ["d4"], "b": ["d5", "d1"]}


def test_a_gap_is_not_filled_with_what_the_margin_left_out() -> None:
    evidence = [*EVIDENCE, ("b", "d7", None)]
    run = [("a", "d1", 3.0), ("a", "d4", 2.9), ("b", "d4", 2.0), ("b", "d7", 2.0), ("b", "d6", 1.0)]
    found = [mine(data(run, evidence), Window(count=1, last=5, margin=0.05), seed) for seed in range(10)]
    assert {tuple(negatives(one)["a"]) for one in found} == {("d7",)}  # d4 is all but as good as d1


def test_a_hit_counts_as_excluded_where_it_is_so_for_every_positive_of_its_topic() -> None:
    # a has two positives, d1 with 10 and d2 with 6: d3 nearly has d1's words, d5 (8) is above d2 alone, d6
    # (9.9) above 0.95 times either. Of b d7 alone is below 4.75.
    run = [
        ("a", "d1", 10.0), ("a", "d6", 9.9), ("a", "d3", 9.0), ("a", "d5", 8.0), ("a", "d2", 6.0),
        ("b", "d5", 6.0), ("b", "d4", 5.0), ("b", "d7", 4.0),
    ]  # fmt: skip
    evidence = [*EVIDENCE, ("a", "d2", TEXTS["d2"])]
    found = mine(data(run, evidence), Window(count=1, last=5, margin=0.05, sampling="top"), 0)
    assert found.counts["excluded_by_margin"] == 2  # a's d6, b's d5
    made = found.negatives[["qid", "positive", "negative"]].to_numpy().tolist()
    assert (made[0], made[2]) == (["a", "d1", "d5"], ["b", "d4", "d7"])
    assert made[1][:2] == ["a", "d2"]
    assert found.negatives["rank"].isna().tolist() == [False, True, False]


def test_a_scorer_of_its_own_is_asked_once_per_chunk_and_its_margin_holds_below_zero() -> None:
    asked: list[tuple[str, str]] = []
    scores = {"d1": -0.2, "d2": -0.205, "d5": -0.3, "d6": -0.9, "d4": 0.5, "d7": 0.47}

    def scorer(rows: pd.DataFrame) -> np.ndarray:
        asked.extend(rows[["qid", "docno"]].itertuples(index=False, name=None))
        return rows["docno"].map(scores).to_numpy()

    found = mine(data(RUN, EVIDENCE), Window(count=1, last=5, margin=0.1, sampling="top"), 0, None, scorer)
    assert negatives(found) == {"a": ["d5"], "b": ["d5"]}
    assert sorted(asked) == sorted(set(asked))


def test_a_positive_that_the_run_does_not_hold_has_no_hit_below_it() -> None:
    run = [row for row in RUN if row[1] != "d4"]
    found = mine(data(run, EVIDENCE), Window(count=1, last=5, margin=0.0), 0)
    assert found.negatives["rank"].isna().tolist() == [False, True]
    assert mine(data(run, EVIDENCE), Window(count=1, last=5), 0).counts["filled_from_other_topics"] == 0


def test_positives_are_drawn_and_no_negatives_are_mined_where_none_are_wanted() -> None:
    evidence = [*EVIDENCE, ("a", "d2", TEXTS["d2"])]
    found = mine(data(RUN, evidence), Window(count=0), 0, per_topic=1)
    assert found.positives["qid"].tolist() == ["a", "b"]
    assert found.negatives.empty
    assert list(found.negatives) == ["qid", "query", "positive", "negative", "rank", "score"]
    assert found.negatives.dtypes.equals(mine(data(RUN, evidence), Window(), 0).negatives.dtypes)
    assert list(found.positives) == ["qid", "query", "docno"]
    assert set(found.relevant["docno"]) == {"d1", "d2", "d4"}
    drawn = {mine(data(RUN, evidence), Window(count=0), seed, 1).positives["docno"][0] for seed in range(20)}
    assert drawn == {"d1", "d2"}


def test_so_many_examples_are_drawn_of_all_positives_each_with_its_negatives() -> None:
    evidence = [*EVIDENCE, ("a", "d2", TEXTS["d2"]), ("b", "d7", None)]
    every = {("a", "d1"), ("a", "d2"), ("b", "d4"), ("b", "d7")}
    drawn = set()
    for seed in range(40):
        found = mine(data(RUN, evidence), Window(count=2, last=5), seed, examples=3)
        rows = list(found.positives[["qid", "docno"]].itertuples(index=False, name=None))
        assert len(rows) == 3 == found.counts["positives"]
        assert rows == sorted(rows)
        pairs = found.negatives[["qid", "positive"]].drop_duplicates()
        assert list(pairs.itertuples(index=False, name=None)) == rows
        drawn.add(frozenset(every - set(rows)))
    assert drawn == {frozenset({row}) for row in every}  # each of them is left out at some seed
    assert mine(data(RUN, evidence), Window(count=0), 0, examples=4).counts["positives"] == 4
    one = mine(data(RUN, evidence), Window(count=0), 0, per_topic=1, examples=1)
    assert one.counts["topics_learnt_from"] == 1 == len(one.positives)


def test_the_same_seed_mines_the_same() -> None:
    tables = [mine(data(RUN, EVIDENCE), Window(count=1, last=5), seed).negatives for seed in (1, 1)]
    pd.testing.assert_frame_equal(*tables)
    assert len({mine(data(RUN, EVIDENCE), Window(count=1, last=5), s).negatives["negative"][0]
                for s in range(20)}) > 1  # fmt: skip


def test_what_was_judged_not_relevant_is_no_positive() -> None:
    graded = data(RUN, [*EVIDENCE, ("a", "d6", TEXTS["d6"])])
    evidence = graded.evidence.assign(relevance=[1, 2, 0])
    assert relevant_chunks(evidence, graded.chunks).to_numpy().tolist() == [["a", "d1"], ["b", "d4"]]


def test_evidence_is_the_chunk_that_holds_its_text_and_without_a_text_its_whole_document() -> None:
    rows = [
        ("x#0", "x", "the mill grinds corn", 0, 20), ("x#1", "x", "the river is wide", 21, 38),
        ("y#0", "y", "a bridge of stone", 0, 17),
        ("y#1", "y", "two towers of brick and a gate of iron", 18, 56),
    ]  # fmt: skip
    chunks = pd.DataFrame(rows, columns=["docno", "parent", "text", "start", "end"])
    evidence = pd.DataFrame(
        [
            ("a", 0, "x", "the river is wide"),
            ("b", 0, "y", None),
            ("c", 0, None, "two towers of brick and a gate of iron"),
        ],
        columns=["qid", "part", "docno", "text"],
    )
    assert relevant_chunks(evidence, chunks).to_numpy().tolist() == [
        ["a", "x#1"], ["c", "y#1"], ["b", "y#0"], ["b", "y#1"],
    ]  # fmt: skip


@pytest.mark.parametrize("evidence", [[], EVIDENCE[:1], [("a", "d1", None), ("b", "gone", None)]])
def test_fewer_than_two_topics_with_evidence_are_an_error(evidence: list[Any]) -> None:
    with pytest.raises(DataError, match=r"of 2 topics have evidence .* two are the least to learn from"):
        mine(data(RUN, evidence), Window(), 0)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"last": 3, "first": 4}, "trainer.e.last=3: allowed are ranks from trainer.e.first=4"),
        ({"margin": 1.2}, "trainer.e.margin=1.2: allowed are numbers from 0 to 1, and null (any score)"),
        ({"sampling": "all"}, "trainer.e.sampling='all': allowed are top, random"),
        ({"count": -1}, "trainer.e.count=-1: allowed are integers from 0"),
    ],
)
def test_values_that_are_not_allowed_are_named(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Window(**given).check("trainer.e")
    assert told in str(raised.value)


def test_similar_texts_agree_with_a_look_at_every_pair() -> None:
    generator = np.random.default_rng(5)
    words = [f"w{i}" for i in range(12)]
    texts = [" ".join(generator.choice(words, generator.integers(0, 9))) for _ in range(150)]
    sets = [set(text.split()) for text in texts]
    expected = {
        (i, j)
        for i, a in enumerate(sets)
        for j, b in enumerate(sets)
        if i != j and a and b and len(a & b) >= 0.8 * len(a | b) - 1e-9
    }
    first, second = similar(texts)
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == expected
    assert len(expected) > 50
    assert [len(side) for side in similar(["", "?!"])] == [0, 0]
