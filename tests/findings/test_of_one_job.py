"""Findings of one job, from frames written by hand: labels, clusters, the funnel's answers, grids, topics."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from ragauge.contract.finding import Col, Facts, Num
from ragauge.contract.outcomes import CLUSTER
from ragauge.findings import asked_again
from ragauge.findings.clusters import ClustersFound
from ragauge.findings.people import judged_lines
from ragauge.findings.tables import by_budget
from ragauge.findings.topics import EvidencePart, Topic, _article
from sweep_records import record, sweep


def test_a_judge_of_single_answers_is_asked_again_about_the_answers_and_labels_of_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge = SimpleNamespace(mode="single")
    rows = pd.DataFrame({"qid": ["a", "b"], "answer": ["x", "y"], "label": [5, 1], "seconds": 1.0})
    pipeline = SimpleNamespace(
        components=SimpleNamespace(judge=judge), answers=rows, verdicts=rows, to_judge=lambda answers: answers
    )
    job: Any = SimpleNamespace(pipeline=pipeline, n_tokens=300)
    monkeypatch.setattr(asked_again, "judged_again", lambda _, candidates, verdicts: (candidates, verdicts))
    monkeypatch.setattr(asked_again, "BatchJudge", SimpleNamespace)
    candidates, verdicts = asked_again._of_one_job(job)
    assert candidates.to_dict("list") == {"qid": ["a", "b"], "answer": ["x", "y"], "candidate": ["300", "300"]}
    assert verdicts.to_dict("list") == {"qid": ["a", "b"], "label": [5, 1], "candidate": ["300", "300"]}


def test_clusters_are_measured_of_scores_without_verdicts_and_are_none_where_nothing_is_shared() -> None:
    rows = pd.DataFrame({"qid": ["a", "b", "c", "d"], "ir_score": [0.1, 0.2, 0.8, 0.9]})
    job: Any = SimpleNamespace(pipeline=SimpleNamespace(retrieved=rows), outcomes=rows.iloc[:0])
    assert ClustersFound().compute(job, {}) is None  # type: ignore[arg-type]
    job.pipeline.retrieved = rows.assign(**{CLUSTER: ["x", "x", "y", "y"]})
    found = ClustersFound().compute(job, {})  # type: ignore[arg-type]
    assert found is not None
    assert found.metrics["clusters"] == 2
    assert found.metrics["cluster_icc"] > 0.9


def test_an_interval_stands_behind_an_agreement_with_people_where_there_is_one() -> None:
    values = {"human_labels": 20, "judge_kappa": 0.5, "judge_agreement": 0.75}
    assert judged_lines(values) == ["  judge against 20 labels by people: kappa 0.50, equal 75.0%"]
    with_interval = {**values, "judge_kappa_lo": 0.2, "judge_kappa_hi": 0.8}
    assert judged_lines(with_interval) == [
        "  judge against 20 labels by people: kappa 0.50 (95 % 0.20 to 0.80), equal 75.0%"
    ]


def test_a_grid_of_budgets_has_a_dash_where_a_system_did_not_run() -> None:
    jobs = sweep(record("retriever=bm25", ir_score=0.5), record("retriever=bm25", n=300, ir_score=0.75),
                 record("retriever=sim", n=300, ir_score=0.25))  # fmt: skip
    grid = by_budget(jobs, "Scores", lambda metrics: Num(metrics["ir_score"], "score"))
    assert [column.title for column in grid.columns if isinstance(column, Col)] == ["System", "100", "300"]
    assert [list(row) for row in grid.rows] == [
        ["bm25", Num(0.5, "score"), Num(0.75, "score")], ["sim", "–", Num(0.25, "score")],
    ]  # fmt: skip


def test_a_part_of_the_evidence_has_its_value_below_where_the_job_knows_it() -> None:
    outcome = {"system": "bm25", "n_tokens": 100, "ir_score": 0.5, "qid": "a", "answer": "x", "answer_reference": "y",
               "query": "?", "label": 5, "verdicts": {5: 1}, "measure": "substring"}  # fmt: skip
    parts = [EvidencePart("one", 0.75, (0, 3), 0.25), EvidencePart("two", 0.5, None)]
    facts = _article(Topic(outcome, parts)).blocks[0]
    assert isinstance(facts, Facts)
    assert [item.below for item in dict(facts.rows)["Evidence"].items] == [  # type: ignore[union-attr]
        "substring 0.250, longest match 75.0 %", "longest match 50.0 %",
    ]  # fmt: skip
