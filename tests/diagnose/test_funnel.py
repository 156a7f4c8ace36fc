"""The funnel by hand: means over topics, paired changes, and what the LLM made of the evidence."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.diagnose.funnel import (
    answers_by_evidence,
    by_topic,
    evidence_in_context,
    funnel,
    funnel_metrics,
    funnel_of_metrics,
    share_of,
)
from ragauge.estimate.intervals import bounded_mean, paired_share_interval

PARTS = pd.DataFrame(
    {
        "qid": ["a", "a", "b", "c"],
        "part": [0, 1, 0, 0],
        "corpus": [1.0, 1.0, 1.0, 0.0],
        "best_chunk": [1.0, 0.5, 1.0, 0.0],
        "candidates": [1.0, 1.0, 0.2, 0.0],
        "context": [1.0, 0.0, 0.2, 0.0],
    }
)


def test_every_step_has_its_mean_and_its_change_topic_by_topic() -> None:
    table = funnel(PARTS).set_index("step")
    assert list(table.index) == ["corpus", "best_chunk", "candidates", "context"]
    assert table["value"].tolist() == pytest.approx([2 / 3, 1.75 / 3, 1.2 / 3, 0.7 / 3])
    assert math.isnan(table["change"]["corpus"])
    assert table["change"].tolist()[1:] == pytest.approx([-0.25 / 3, (0.25 - 0.8) / 3, -0.5 / 3])
    assert table["n"].eq(3).all()
    mean = bounded_mean(np.array([0.5, 0.2, 0.0]))
    assert (table["lo"]["context"], table["hi"]["context"]) == (mean.lo, mean.hi)
    change = paired_share_interval(np.array([0.25, -0.8, 0.0]))
    assert (table["change_lo"]["candidates"], table["change_hi"]["candidates"]) == (change.lo, change.hi)
    narrow = funnel(PARTS, level=0.8).set_index("step")
    mean, change = (
        bounded_mean(np.array([0.5, 0.2, 0.0]), level=0.8),
        paired_share_interval(np.array([0.25, -0.8, 0.0]), level=0.8),
    )
    assert (narrow["lo"]["context"], narrow["hi"]["context"]) == (mean.lo, mean.hi)
    assert (narrow["change_lo"]["candidates"], narrow["change_hi"]["candidates"]) == (change.lo, change.hi)


def test_topics_of_a_document_are_one_draw() -> None:
    """Documents are told by qid, in another order, and of a topic without evidence, too."""
    table = funnel(PARTS, clusters=pd.Series({"z": "other", "c": "one", "b": "other", "a": "one"})).set_index("step")
    documents = np.array([0, 1, 0])  # of a, b and c
    mean = bounded_mean(np.array([0.5, 0.2, 0.0]), clusters=documents)
    change = paired_share_interval(np.array([0.25, -0.8, 0.0]), clusters=documents)
    assert tuple(table.loc["context", ["value", "lo", "hi"]]) == (mean.value, mean.lo, mean.hi)
    assert tuple(table.loc["candidates", ["change", "change_lo", "change_hi"]]) == (change.value, change.lo, change.hi)


def test_a_step_that_the_job_has_not_is_not_there() -> None:
    table = funnel(PARTS.drop(columns="best_chunk").assign(corpus=float("nan")))
    assert table["step"].tolist() == ["candidates", "context"]
    assert math.isnan(table["change"].iloc[0])


def test_without_any_step_no_topic_has_a_place_in_the_funnel() -> None:
    found = by_topic(PARTS[["qid", "part"]])
    assert (list(found.columns), len(found)) == (["qid"], 0)


def test_what_rounding_adds_to_a_share_is_cut_off() -> None:
    found = by_topic(PARTS.assign(corpus=1 + 1e-10, context=-1e-10))
    assert found["corpus"].tolist() == [1.0] * 3
    assert found["context"].tolist() == [0.0] * 3


def test_metrics_hold_the_table() -> None:
    table = funnel(PARTS)
    metrics = funnel_metrics(table)
    assert metrics["funnel_context"] == pytest.approx(0.7 / 3)
    assert "funnel_corpus_change" not in metrics
    again = funnel_of_metrics(metrics)
    pd.testing.assert_frame_equal(again, table.drop(columns="n"))
    assert funnel_of_metrics({"ir_score": 1.0}).empty


def test_no_evidence_is_no_funnel() -> None:
    assert funnel(PARTS.iloc[:0]).empty
    assert funnel_metrics(funnel(PARTS.iloc[:0])) == {}


@pytest.mark.parametrize("value", [1.2, -0.1, float("nan")])
def test_a_value_that_is_no_share_is_told(value: float) -> None:
    with pytest.raises(DataError, match=r"qid='b', part=0: candidates is .*\[0, 1\]"):
        funnel(PARTS.assign(candidates=[1.0, 1.0, value, value]))


def test_evidence_stands_whole_in_part_or_not_at_all() -> None:
    assert evidence_in_context(PARTS).to_dict() == {"a": "some", "b": "none", "c": "none"}
    assert evidence_in_context(PARTS.assign(context=0.9)).eq("all").all()
    three = PARTS.assign(qid=["a", "a", "a", "c"], context=[1.0, 0.9, 0.89, 1.0])
    assert evidence_in_context(three).to_dict() == {"a": "some", "c": "all"}


def outcomes(**columns: list[object]) -> pd.DataFrame:
    frame = pd.DataFrame(columns)
    frame.insert(0, "qid", [f"q{i}" for i in range(len(frame))])
    return frame.astype({"label": "Int8"})


def test_answers_are_counted_by_the_evidence_that_they_had() -> None:
    table = answers_by_evidence(
        outcomes(
            label=[5, 5, 4, 2, 1, 3, None, 5, 1],
            evidence_in_context=["all", "all", "all", "some", "none", "none", "none", None, "none"],
        )
    ).set_index(["evidence", "answer"])
    assert table["topics"]["all", "right"] == 2
    assert table["share"]["all", "right"] == pytest.approx(2 / 3)
    assert table["share"]["all", "hallucination"] == pytest.approx(1 / 3)
    assert table["share"]["some", "hallucination"] == 1
    assert table["share"]["none", "lack"] == pytest.approx(2 / 4)
    assert table["share"]["none", "incomplete"] == pytest.approx(1 / 4)
    assert table["share"]["none", "no verdict"] == pytest.approx(1 / 4)
    assert table["topics"]["none"].tolist() == [0, 0, 1, 2, 1]
    assert table["n"].groupby("evidence").first().to_dict() == {"all": 3, "some": 1, "none": 4}
    sums = table.groupby("evidence")["share"].sum()
    assert sums.tolist() == pytest.approx([1, 1, 1])
    assert table["lo"]["all", "right"] < 2 / 3 < table["hi"]["all", "right"]


def test_unanswerable_topics_and_those_that_nobody_judged_do_not_count() -> None:
    rows = outcomes(
        label=[5, 1, None],
        evidence_in_context=["all", "all", "all"],
        unanswerable=[False, True, False],
        judged=[True, True, False],
    )
    assert answers_by_evidence(rows)["n"].unique().tolist() == [1]
    assert answers_by_evidence(rows.assign(label=pd.Series([None] * 3, dtype="Int8"))).empty
    assert answers_by_evidence(rows.drop(columns="evidence_in_context")).empty


def test_a_share_of_a_sample_is_weighted_and_has_a_width_where_nothing_was_found() -> None:
    dice = np.random.default_rng(0)
    counts = dice.random(60) < 0.4
    rows = pd.DataFrame({"qid": [f"q{i}" for i in range(60)], "weight": dice.uniform(0.5, 2, 60)})
    share = share_of(counts, rows)
    assert share.value == pytest.approx(np.average(counts, weights=rows["weight"]))
    assert share.lo < share.value < share.hi
    plain = rows.drop(columns="weight")
    assert share.hi - share.lo > 1.02 * (share_of(counts, plain).hi - share_of(counts, plain).lo)  # unequal weights
    assert share_of(counts, rows.assign(weight=1.0)) == share_of(counts, plain)
    none = share_of(np.zeros(60, dtype=bool), rows)
    assert (none.value, none.lo) == (0.0, 0.0)
    assert 0.05 < none.hi < 0.1
    assert share_of(counts, plain) == bounded_mean(counts.astype(float), rows["qid"])
