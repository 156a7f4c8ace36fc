"""Examples for judges: as many wrong ones as right ones, and the wrong ones are wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest

from plugins.training.judge_inputs import collection
from ragauge.contract.topics import (
    ANSWER_FAITHFULNESS,
    ANSWER_RELEVANCE,
    CONTEXT_RELEVANCE,
    QUESTIONS,
)
from ragauge.plugins.training.trainers.facts import kind_of
from ragauge.plugins.training.trainers.triples import (
    CHANGED,
    HIT,
    POSITIVE,
    SAME_ANSWERS,
    SAME_DOCUMENT,
    STRONG,
    examples,
    table_of,
)


def test_as_many_wrong_examples_as_right_ones_of_every_question() -> None:
    found = examples(collection(), QUESTIONS, seed=0)
    counts = Counter((one.judged, one.label) for one in found)
    for question in QUESTIONS:
        assert counts[question, 1] == counts[question, 0] >= 12
    assert {one.kind for one in found if one.label} == {POSITIVE}
    assert list(table_of(found)) == ["judged", "qid", "label", "kind", "docno", "answer"]


def test_right_examples_hold_what_they_say() -> None:
    data = collection()
    answers = dict(zip(data.topics["qid"], data.topics["answer"], strict=True))
    for one in examples(data, QUESTIONS, seed=0):
        if one.label and one.judged == CONTEXT_RELEVANCE:
            assert one.docno == f"d{one.qid[1:]}#0"
        if one.label and one.judged == ANSWER_FAITHFULNESS:
            assert one.triple.answer in one.triple.passage
            assert answers[one.qid] in one.triple.answer
        if one.judged == ANSWER_RELEVANCE:
            assert one.triple.passage == ""


def test_no_wrong_example_is_right() -> None:
    data = collection()
    answers = dict(zip(data.topics["qid"], data.topics["answer"], strict=True))
    for seed in range(5):
        for one in examples(data, QUESTIONS, seed=seed):
            if one.label:
                continue
            if one.judged == CONTEXT_RELEVANCE:
                assert answers[one.qid] not in one.triple.passage
            elif one.judged == ANSWER_FAITHFULNESS:
                assert one.triple.answer not in one.triple.passage
            else:
                assert kind_of(one.triple.answer) != kind_of(answers[one.qid])


def test_strong_examples_come_where_there_are_any_and_none_where_they_are_not_asked_for() -> None:
    kinds = Counter(one.kind for one in examples(collection(), QUESTIONS, seed=0, strong=1.0))
    assert all(kinds[kind] for kind in (CHANGED, HIT, SAME_DOCUMENT))
    weak = examples(collection(), QUESTIONS, seed=0, strong=0.0)
    assert not {one.kind for one in weak} & set(STRONG)


def test_wrong_answers_of_a_document_with_one_topic_are_its_sentences_without_evidence_and_answer() -> None:
    data = collection()
    data = replace(data, topics=data.topics.assign(answers=[[a, "the old tide"] for a in data.topics["answer"]]))
    more = "{text} Fog hangs over the mill. Some say it was {answer}. ... It is the old tide. They wait."
    answers = dict(zip("d" + data.topics["qid"].str[1:] + "#0", data.topics["answer"], strict=True))
    texts = [
        more.format(text=text, answer=answers[docno]) if docno in answers else text
        for docno, text in zip(data.chunks["docno"], data.chunks["text"], strict=True)
    ]
    chunks = data.chunks.assign(text=texts)
    found: dict[str, set[str]] = {}
    for seed in range(6):
        made = examples(replace(data, chunks=chunks), [ANSWER_RELEVANCE], seed=seed, strong=1.0)
        for one in made:
            if not one.label:
                assert one.kind == SAME_ANSWERS
                found.setdefault(one.qid, set()).add(one.triple.answer)
    towns = data.chunks.set_index("docno")["text"].str.split().str[0]
    free = {"Fog hangs over the mill.", "They wait."}
    assert found == {qid: {f"{towns[f'd{qid[1:]}#0']} is a town.", *free} for qid in data.topics["qid"]}


def test_a_hit_that_holds_the_answer_is_no_wrong_example() -> None:
    data = collection()
    at = data.chunks.index[data.chunks["docno"] == "d0#0"][0]
    twin = data.chunks.loc[[at]].assign(docno="twin#0", parent="twin")
    chunks = pd.concat([data.chunks, twin], ignore_index=True).astype(data.chunks.dtypes)
    hit = data.run.iloc[[0]].assign(docno="twin#0", rank=1)
    both = replace(data, chunks=chunks, run=pd.concat([data.run.assign(rank=data.run["rank"] + 1), hit]))
    for seed in range(10):
        for one in examples(both, (CONTEXT_RELEVANCE, ANSWER_FAITHFULNESS), seed=seed, strong=1.0):
            if one.qid == "q0" and not one.label and one.kind != CHANGED:
                assert one.docno not in ("twin#0", "d0#0")


def test_the_same_seed_gives_the_same_examples() -> None:
    assert examples(collection(), QUESTIONS, seed=3) == examples(collection(), QUESTIONS, seed=3)
    assert examples(collection(), QUESTIONS, seed=3) != examples(collection(), QUESTIONS, seed=4)


def test_an_unanswerable_topic_has_no_examples() -> None:
    data = collection()
    marked = data.topics.assign(unanswerable=data.topics["qid"].eq("q0"))
    evidence = data.evidence[data.evidence["qid"] != "q0"].reset_index(drop=True)
    found = examples(replace(data, topics=marked, evidence=evidence), QUESTIONS, seed=0)
    assert "q0" not in {one.qid for one in found}


@pytest.mark.parametrize("per_topic", [1, 2])
def test_a_topic_has_no_more_right_examples_than_asked_for(per_topic: int) -> None:
    found = examples(collection(), QUESTIONS, seed=0, per_topic=per_topic)
    of = Counter((one.judged, one.qid) for one in found if one.label)
    assert max(of.values()) <= per_topic
