"""Examples of documents with several passages, where answers stand in passages that are no evidence."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from ragauge.contract.topics import ANSWER_FAITHFULNESS, ANSWER_RELEVANCE, CONTEXT_RELEVANCE
from ragauge.plugins.training.contract import TrainingData
from ragauge.plugins.training.trainers.triples import (
    CHANGED,
    HIT,
    POSITIVE,
    RANDOM_ANSWER,
    RANDOM_PASSAGE,
    SAME_ANSWERS,
    SAME_DOCUMENT,
    Example,
    examples,
)

# The best hits of q0 after its own two passages; x3 holds its answer, and x8 and x9 are not among the ten.
OTHERS = {f"x{i}#0": f"Nothing of note {word}." for i, word in enumerate("abcdefghij")}
OTHERS["x3#0"] = "Ann Bell sings in Ost."
PASSAGES = {
    "m#0": "The mill stands at Ost. It has four stones.",
    "m#1": "Its owner is Ann Bell. Bells ring for 1,204 geese.",
    "m#2": "The stones came from Ost by boat.",
    "g#0": "There are 1,204 geese.",
    "o#0": "Asked whether it is old, people say yes.",
    "t#0": "Tor was first.",
    "t#1": "Tor was second.",
    "t#2": "Tor was third.",
    **OTHERS,
}
TOPICS = [
    ("q0", "Who owns the mill with four stones?", "Ann Bell"),
    ("q1", "How many geese are there?", "1,204"),
    ("q2", "Is it old?", "yes"),
    ("q3", "Who was it?", "Tor"),
]
EVIDENCE = [
    ("q0", "m", "It has four stones."),
    ("q0", "m", "Its owner is Ann Bell."),
    ("q1", "g", "There are 1,204 geese."),
    ("q2", "o", "Asked whether it is old, people say yes."),
    ("q3", "t", "Tor was first."),
    ("q3", "t", "Tor was second."),
    ("q3", "t", "Tor was third."),
]
SEEDS = 60


def few() -> TrainingData:
    rows, at = [], dict.fromkeys((docno.split("#")[0] for docno in PASSAGES), 0)
    for docno, text in PASSAGES.items():
        parent = docno.split("#")[0]
        rows.append((docno, text, parent, at[parent], at[parent] + len(text)))
        at[parent] += len(text) + 1
    chunks = pd.DataFrame(rows, columns=["docno", "text", "parent", "start", "end"])
    topics = pd.DataFrame(TOPICS, columns=["qid", "query", "answer"]).astype("str")
    evidence = pd.DataFrame(EVIDENCE, columns=["qid", "docno", "text"]).astype("str")
    evidence.insert(1, "part", evidence.groupby("qid").cumcount())
    hits = ["m#1", "m#0", *OTHERS]
    run = pd.DataFrame({"qid": "q0", "docno": hits, "rank": range(len(hits))}).astype({"qid": "str"})
    run["score"] = -run["rank"].astype(float)
    return TrainingData(topics, evidence, chunks.astype({"docno": "str", "parent": "str"}), run)


def made(question: str, qid: str, label: int, strong: float) -> Iterator[Example]:
    """The examples of many seeds."""
    for seed in range(SEEDS):
        for one in examples(few(), [question], seed, strong=strong):
            if (one.qid, one.label) == (qid, label):
                yield one


def test_strong_passages_are_the_ten_best_hits_and_the_document_s_others_without_evidence_and_answer() -> None:
    found = {(one.kind, one.docno) for one in made(CONTEXT_RELEVANCE, "q0", 0, strong=1)}
    best = [f"x{i}#0" for i in range(8) if i != 3]
    assert found == {(SAME_DOCUMENT, "m#2"), *((HIT, docno) for docno in best)}


def test_random_passages_are_all_others_without_evidence_and_answer() -> None:
    found = [one.docno for one in made(CONTEXT_RELEVANCE, "q0", 0, strong=0)]
    assert len(found) == 2 * SEEDS
    assert set(found) == set(PASSAGES) - {"m#0", "m#1", "x3#0"}
    assert {one.kind for one in made(CONTEXT_RELEVANCE, "q0", 0, strong=0)} == {RANDOM_PASSAGE}


def test_no_passage_or_answer_is_unfaithful_that_holds_the_answer() -> None:
    for strong in (0.0, 1.0):
        found = list(made(ANSWER_FAITHFULNESS, "q0", 0, strong))
        passages = {one.docno for one in found if one.kind in (RANDOM_PASSAGE, HIT, SAME_DOCUMENT)}
        assert passages
        assert not passages & {"m#1", "x3#0", "m#0"}  # m#0 is evidence, though without the answer
    other = {one.triple.answer for one in made(ANSWER_FAITHFULNESS, "q0", 0, 0.0) if one.kind == RANDOM_ANSWER}
    assert other == {
        "There are 1,204 geese.",  # but not 1,204, which stands in the passage
        "yes", "Asked whether it is old, people say yes.",
        "Tor", "Tor was first.", "Tor was second.", "Tor was third.",
    }  # fmt: skip


def test_yes_and_no_stand_in_no_passage() -> None:
    right = {one.triple.answer for one in made(ANSWER_FAITHFULNESS, "q2", 1, 0.5)}
    assert right == {"Asked whether it is old, people say yes."}


def test_a_topic_gives_as_many_of_its_passages_as_were_asked_for() -> None:
    seen = set()
    for seed in range(SEEDS):
        of = [
            one.docno
            for one in examples(few(), [CONTEXT_RELEVANCE], seed, per_topic=2)
            if (one.qid, one.kind) == ("q3", POSITIVE)
        ]
        assert len(of) == 2
        seen |= set(of)
    assert seen == {"t#0", "t#1", "t#2"}


def test_sentences_that_are_evidence_are_answers_to_no_other_question() -> None:
    found = {one.triple.answer for one in made(ANSWER_RELEVANCE, "q0", 0, strong=1)}
    assert found == {"The mill stands at Ost.", "Bells ring for 1,204 geese."}
    assert {one.kind for one in made(ANSWER_RELEVANCE, "q0", 0, strong=1)} == {SAME_ANSWERS}


def test_half_of_the_strong_unfaithful_answers_have_a_changed_fact() -> None:
    found = list(made(ANSWER_FAITHFULNESS, "q0", 0, strong=1))
    changed = [one for one in found if one.kind == CHANGED]
    assert 0.35 < len(changed) / len(found) < 0.65
    assert {one.docno for one in changed} == {"m#1"}
    assert {one.triple.answer for one in changed} == {"Tor", "Its owner is Tor."}
