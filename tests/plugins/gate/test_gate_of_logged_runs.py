"""The gate on runs that MLflow holds: which of them are looked at, and what is said of each."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from logged_runs import LoggedRuns, questions
from ragauge.contract.errors import DataError
from ragauge.plugins.gate.baseline import Sought, find_baseline
from ragauge.plugins.gate.ended import Asked, gate_runs
from ragauge.plugins.gate.rules import read_gate
from ragauge.plugins.gate.verdicts import Check

TOPICS = 60


def rows(scores: np.ndarray | float = 0.5) -> pd.DataFrame:
    return questions({f"q{i:02}": float(score) for i, score in enumerate(np.broadcast_to(scores, TOPICS))})


def checks(logged: LoggedRuns, source: str, pooled: bool = False, **rules: object) -> list[Check]:
    return gate_runs(Asked(source, read_gate(rules), pooled=pooled), logged.uri).checks


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> LoggedRuns:
    return LoggedRuns(f"sqlite:///{tmp_path_factory.mktemp('gate') / 'mlflow.db'}", "gated")


def test_the_own_run_of_a_group_is_held_to_the_gate_and_not_that_of_another(logged: LoggedRuns) -> None:
    ids = {}
    for number, (group, ece) in enumerate([("judge=chat", 0.05), ("judge=lexical", 0.5)]):
        logged.job(rows(), "bm25", sweep_id="groups", job=str(number), group=group)
        ids[group] = logged.sweep("groups", {"predictor_ece": ece}, group=group)
    rule = {"max": 0.1}
    for group, verdict in (("judge=chat", "pass"), ("judge=lexical", "missed")):
        [check] = checks(logged, ids[group], pooled=True, predictor_ece=rule)
        assert (check.run_id, check.verdict) == (ids[group], verdict)


def test_a_drop_is_decided_against_the_baseline_topic_by_topic(logged: LoggedRuns) -> None:
    # Differences of -0.25 and -0.15 by turns: -0.2 in the mean, and far from none on 60 topics.
    base = np.tile([0.75, 0.25], TOPICS // 2)
    good = logged.job(rows(base), "good")
    worse = logged.job(rows(base - np.tile([0.25, 0.15], TOPICS // 2)), "worse")
    same = logged.job(rows(base), "same")
    [missed] = checks(logged, worse, ir_score={"tolerance": 0.05}, baseline=good)
    assert (missed.verdict, missed.n) == ("regressed", TOPICS)
    assert missed.value == pytest.approx(0.3)
    assert missed.difference == pytest.approx(-0.2)
    assert missed.difference_lo < -0.2 < missed.difference_hi < -0.05
    [kept] = checks(logged, same, ir_score={"tolerance": 0.05}, baseline=good)
    assert (kept.verdict, kept.difference, kept.n) == ("pass", 0, TOPICS)
    # Beside a wide tolerance the same drop is none.
    [allowed] = checks(logged, worse, ir_score={"tolerance": 0.4}, baseline=good)
    assert allowed.verdict == "pass"
    # As far below as the tolerance, give or take: sixty topics do not decide it.
    [open_] = checks(logged, worse, ir_score={"tolerance": 0.2}, baseline=good)
    assert open_.verdict == "inconclusive"
    assert open_.topics > TOPICS


def test_the_newest_run_with_a_tag_that_is_of_another_sweep_is_the_baseline(logged: LoggedRuns) -> None:
    ours = LoggedRuns(logged.uri, "tagged")
    for name in ("older", "newer"):
        ours.job(rows(), name, stage="production")
    ours.job(rows(), "of our sweep", stage="production", sweep_id="now", job="0")
    gate = read_gate({"ir_score": {"tolerance": 0.1}, "baseline_tag": "stage=production"})
    found, _ = find_baseline(gate, ours.uri, Sought("any", "tagged", "", "now"))
    assert found.name == "newer"
    with pytest.raises(DataError, match="no other finished run of the experiment gated has this tag"):
        find_baseline(gate, ours.uri, Sought("any", "gated"))


def test_a_bound_inside_of_the_interval_decides_nothing_unless_the_value_alone_is_asked_for(
    logged: LoggedRuns,
) -> None:
    # Six of 25 answers are hallucinations: .24, and .115 to .434 by Wilson.
    labels = [4] * 6 + [5] * 19
    qids = [f"q{i:02}" for i in range(25)]
    given = dict(zip(qids, labels, strict=True))
    run = logged.job(questions(dict.fromkeys(qids, 0.5), given), "few")
    for bound, by, verdict in (
        (0.30, "interval", "inconclusive"), (0.30, "value", "pass"), (0.20, "value", "missed"),
        (0.45, "interval", "pass"), (0.10, "interval", "missed"),
    ):  # fmt: skip
        [check] = checks(logged, run, hallucination_share={"max": bound, "by": by})
        assert (check.verdict, round(check.value, 2)) == (verdict, 0.24), (bound, by)
    [open_] = checks(logged, run, hallucination_share={"max": 0.30})
    assert open_.said.endswith("is neither clearly above nor clearly at most 0.3: inconclusive")
    [least] = checks(logged, run, correct_share={"min": 0.8})
    assert least.verdict == "inconclusive"
    # Without an interval the value decides.
    [whole] = checks(logged, run, topics={"min": 25})
    assert whole.verdict == "pass"
