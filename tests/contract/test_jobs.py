"""The jobs that findings read: budgets, systems, what was lost, and settings that differ."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from ragauge.contract.families import Families
from ragauge.contract.jobs import Compared, Jobs, settings_of, system_names
from ragauge.contract.record import JobRecord
from sweep_records import record_of


def record(system: str, n: int = 100, /, **changes: Any) -> JobRecord:
    own = {"name": system, "overrides": [f"retriever={system}", f"n_tokens={n}"], "n_tokens": n, "seed": 3,
           "bootstrap": 20, "estimate": {"spline": False}, "metrics": {"ir_score": n / 1000}}  # fmt: skip
    return record_of({**own, **changes})


def jobs(*records: JobRecord, failed: Any = (), budgets: Any = (("a", 100), ("b", 100))) -> Jobs:
    outcomes = pd.DataFrame(list(budgets), columns=["system", "n_tokens"]).assign(qid="q")
    return Jobs("s", "e", list(records), list(failed), outcomes)


def test_the_budget_is_the_largest_that_every_system_has() -> None:
    both = jobs(record("a"), budgets=[("a", 100), ("a", 200), ("a", 300), ("b", 200), ("b", 100)])
    assert both.n_tokens == 200
    assert both.at_n["system"].tolist() == ["a", "b"]
    assert jobs(record("a"), budgets=[("a", 100), ("b", 300)]).n_tokens == 300


def test_settings_that_differ_are_told_and_the_first_job_s_are_taken() -> None:
    same = jobs(record("a"), record("b"))
    assert same.notes == []
    assert (same.n_boot, same.seed) == (20, 3)
    other = jobs(record("a"), record("b", seed=4, estimate={"spline": True}), record("c", seed=4))
    assert other.notes == [
        "The jobs have seed 3 and 4: what is pooled takes the first.",
        "The jobs have estimate {spline: false} and {spline: true}: what is pooled takes the first.",
    ]
    assert (other.n_boot, other.seed) == (20, 3)


def test_a_system_is_lost_where_none_of_its_jobs_finished() -> None:
    failed = [record("b", system="b", error="no model"), record("a", 300, system="a", error="slow"), record("c")]
    assert jobs(record("a"), record("d"), failed=failed).lost == {"b": "no model", "c": "no error was recorded"}


def test_metrics_are_those_of_each_system_by_budget() -> None:
    found = jobs(record("a", 100), record("a", 300), record("b", 100)).metrics_by_system()
    assert found == {"a": {100: {"ir_score": 0.1}, 300: {"ir_score": 0.3}}, "b": {100: {"ir_score": 0.1}}}


@pytest.mark.parametrize(
    ("jobs_", "names"),
    [
        (["retriever=a n_tokens=1", "retriever=a n_tokens=2"], ["a", "a"]),
        (["retriever=a llm=x", "retriever=b llm=x"], ["a", "b"]),
        (["retriever=a llm=x", "retriever=a", "retriever=b"], ["a · x", "a · default", "b · default"]),
        (["+chunker.size=5 llm=x", "llm=y"], ["size=5 · x", "size=default · y"]),
        (["recorded.system=s1", "recorded.system=s2"], ["s1", "s2"]),
        (["recorded.system='v1.2'", 'recorded.system="Łódź"', r"recorded.system='it\'s'"], ["v1.2", "Łódź", "it's"]),
        (["recorded.system='", "recorded.system=b"], ["'", "b"]),
        (["llm=x", "llm=x"], ["all", "all"]),
        (["-m retriever=a"], ["a"]),
        # A sample of answers stands in a name only where nothing else tells jobs apart.
        (["retriever=a n_tokens=1 llm.sample=60", "retriever=b n_tokens=1 llm.sample=80"], ["a", "b"]),
        (["retriever=a llm.sample=60", "retriever=a llm.sample=80"], ["sample=60", "sample=80"]),
    ],
)
def test_systems_are_named_by_what_differs_but_for_the_budget(jobs_: list[str], names: list[str]) -> None:
    assert system_names([job.split() for job in jobs_]) == names


def test_the_settings_of_systems_are_the_options_that_differ() -> None:
    records = [
        record("bm25", 100, choices={"retriever": "run_1", "llm": "x"}, system="one"),
        record("sim", 200, overrides=["retriever=sim", "+chunker.size=5", "~rerun", "hydra.verbose=1", "llm=x"],
               choices={"retriever": "sim", "llm": "x"}, system="two"),
    ]  # fmt: skip
    assert settings_of(records) == {
        "one": {"retriever": "run_1", "chunker.size": "default"},
        "two": {"retriever": "sim", "chunker.size": "5"},
    }
    named = jobs(*records)
    assert named.systems == ["one", "two"]
    assert jobs(*records, record("c")).systems[0] != "one"  # an older record has no name


def test_measures_families_and_units_are_those_of_the_records() -> None:
    em, f1 = ({"name": name, "label": name.upper()} for name in ("em", "f1"))
    found = jobs(record("a", answer_measures=[em], report={"family": "all"}, cluster="user"),
                 record("b", answer_measures=[{**em, "label": "other"}, f1], report={"family": "section"}))  # fmt: skip
    assert [(info.name, info.label) for info in found.answer_measures] == [("em", "EM"), ("f1", "F1")]
    assert found.families == Families("all")
    assert found.units == "topics"
    for cluster, units in (
        ("user", "clusters of topics (user)"),
        ("document", "documents"),
        (None, "clusters of topics"),
    ):
        clustered = jobs(record("a", cluster=cluster))
        assert Jobs(*list(vars(clustered).values())[:4], clustered.outcomes.assign(topic_cluster="c")).units == units


def test_the_heading_of_pairs_names_the_baseline_and_the_budget() -> None:
    def compared(n_tokens: int | None) -> Compared:
        runs = pd.DataFrame({"n_tokens": [100, 300]})
        return Compared(pd.DataFrame(), {"r": "bm25"}, "r", [], n_tokens, 10, 0, runs=runs)

    assert compared(100).pairs_heading == "Paired differences from bm25, N = 100 tokens"
    assert compared(None).pairs_heading == "Paired differences from bm25"
    assert compared(100).several_budgets
    assert not compared(None).several_budgets
