"""Faults that were planted in a fictional world are found, whatever the topic."""

from __future__ import annotations

import pandas as pd
import pytest

from plugins.fictional.planted_faults import Scripted, faults
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.findings.failures import with_failures
from small_pipeline import SmallPipelines

FEW, MANY = 6, 50


def found(pipeline: Pipeline) -> pd.DataFrame:
    return with_failures(pipeline.outcomes, pipeline, "causes")


def causes_of(small: SmallPipelines, fault: str, limit: int) -> tuple[str, dict[str, int]]:
    cause, parts = faults(limit)[fault]
    counts = found(small(**parts))["failure_cause"].fillna("not failed").value_counts()
    return cause, {str(name): int(count) for name, count in counts.items()}


@pytest.mark.parametrize("fault", list(faults(FEW)))
def test_a_planted_fault_is_the_cause(small: SmallPipelines, fault: str) -> None:
    cause, counts = causes_of(small, fault, FEW)
    assert counts == {cause: FEW}


@pytest.mark.slow
@pytest.mark.parametrize("fault", list(faults(MANY)))
def test_a_planted_fault_is_the_cause_of_all_of_fifty_topics(small: SmallPipelines, fault: str) -> None:
    cause, counts = causes_of(small, fault, MANY)
    assert counts == {cause: MANY}


def test_right_answers_have_no_cause_even_where_evidence_was_lost(small: SmallPipelines) -> None:
    parts = faults(FEW)["the retriever finds others"][1]
    answers = small(**parts).frame("topics").set_index("qid")["answer"]
    telling = Scripted("telling", lambda topic, context: answers[topic["qid"]])
    rows = found(small(**(parts | {"llm": telling})))
    assert rows["label"].eq(5).all()
    assert rows["failure_cause"].isna().all()
    assert rows["evidence_in_context"].isin(["none", "some"]).all()
