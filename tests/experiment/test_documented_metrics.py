"""docs/method.md, or the finding, says what every metric is that MLflow shows, and VALIDITY.md has its interval."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pandas as pd
import pytest

from processes import ROOT, run
from ragauge.contract.groups import CALLS, RANKINGS
from ragauge.contract.metrics import OF_EVERY_CHART, Metric, is_known, measure_metrics, spelled, without_groups
from ragauge.findings.of_sweeps import findings, metrics_of_sweeps
from ragauge.findings.order import job_findings, metrics_of_jobs
from ragauge.measures.rankings import metric_of

SMALL = ["dataset.limit=12", "chunker=none", "bootstrap=50", "answers=[em,f1]", "slices=[type]"]
_TABLE = ROOT / "docs" / "method.md"
_VALIDITY = ROOT / "benchmarks" / "VALIDITY.md"


def entries() -> Iterator[tuple[list[str], str, str]]:
    """Of every row of the table, and of what findings declare: names, what they are, and the row of VALIDITY.md."""
    section = _TABLE.read_text(encoding="utf-8").split("## Every metric\n")[1].split("\n## ")[0]
    for line in section.splitlines():
        if line.startswith("| `"):
            names, what, checked = (cell.strip() for cell in line.strip("|").split("|"))
            yield re.findall(r"`([^`]+)`", names), what, checked
    for metric in declared():
        if isinstance(metric, Metric) and metric.what:
            yield spelled([metric], metric.chart), metric.what, metric.checked_by


def declared() -> list[Metric | str]:
    """What findings say of their metrics."""
    return [*OF_EVERY_CHART, *(metric for finding in (*job_findings(), *findings()) for metric in finding.metrics)]


def logged(folder: Path) -> set[str]:
    with sqlite3.connect(folder / "mlruns" / "mlflow.db") as database:
        return set(without_groups(dict(database.execute("select key, max(value) from metrics group by key"))))


def ended(name: str) -> str:
    return re.sub(r"_(lo|hi)$", "", name)


@pytest.fixture(scope="module")
def measured(two_by_two: Path, tmp_path_factory: pytest.TempPathFactory, bring_models: Callable[..., None]) -> set[str]:
    """What jobs log: judged with people's labels, a sample judged, with a given predictor, with latency."""
    for plug_in in ("rewriting", "latency"):
        pytest.importorskip(f"ragauge.plugins.{plug_in}")
    labels = pd.read_parquet(next((two_by_two / "multirun").glob("*/*/0/outcomes.parquet")))
    folder = tmp_path_factory.mktemp("measured")
    bring_models(folder / ".ragauge")
    people = folder / "people.csv"
    labels[["qid", "label"]].dropna().to_csv(people, index=False)
    sweep = ""  # that of the first jobs
    for more in (
        ["-m", "retriever=bm25,mlq", "n_tokens=100,300", f"human_labels={people}"],
        ["-m", "retriever=bm25,sim", "n_tokens=100", "judge.sample=8"],
        [
            *["retriever=bm25", "rewriter=multi_query", "n_tokens=100", "llm=none", "judge=none"],
            "predictor=runs:/{sweep}/predictor",
        ],
        ["retriever=bm25", "n_tokens=100", "measure_latency=true", "latency_topics=3"],
    ):
        small = [o for o in SMALL if not ("llm=none" in more and o.startswith("answers="))]
        done = run(folder, *(option.replace("{sweep}", sweep) for option in more), *small)
        assert done.returncode == 0, done.stderr
        with sqlite3.connect(folder / "mlruns" / "mlflow.db") as database:
            sweep = database.execute("select run_uuid from tags where key='role' and value='sweep'").fetchone()[0]
    return logged(folder) | logged(two_by_two)


@pytest.mark.slow
def test_every_logged_metric_is_documented(measured: set[str]) -> None:
    known = [pattern for patterns, _, _ in entries() for pattern in patterns]
    who = "|".join(filter(None, CALLS))
    names = {re.sub(rf"^({who})(?=llm_|[a-z]+_tokens|cost_usd$)", "", name) for name in measured}
    assert {
        name for name in names if not any(fnmatchcase(name, p) or fnmatchcase(ended(name), p) for p in known)
    } == set()


@pytest.mark.slow
def test_every_logged_interval_has_a_row_among_the_numbers_against_known_truth(measured: set[str]) -> None:
    with_interval = {ended(name) for name in measured if name.endswith("_lo")}
    rows = [line.split("|")[1] for line in _VALIDITY.read_text(encoding="utf-8").splitlines() if "|" in line]
    for name in sorted(with_interval):
        of = [
            (pattern, checked)
            for patterns, _, checked in entries()
            for pattern in patterns
            if fnmatchcase(name, pattern) and pattern != "*"
        ]
        # The longest pattern says most of the name.
        _, checked = max(of, key=lambda entry: len(entry[0]))
        assert any(checked in row for row in rows), f"{name}: no row of VALIDITY.md has {checked!r}"


@pytest.mark.slow
def test_every_logged_metric_is_known_before_a_job_runs(measured: set[str]) -> None:
    """Else a gate on it would be refused."""
    of_measures = measure_metrics(["em", "f1", "contains", "rouge_l"])
    known = [
        *metrics_of_jobs(),
        *metrics_of_sweeps(),
        *spelled(declared(), charts=True),
        *measure_metrics([*map(metric_of, RANKINGS), "truthfulness"]),
        *of_measures,
        "slice/*",
        "slice_macro/*",
    ]
    assert {name for name in measured if not is_known(name, known)} == set()


def test_every_name_that_is_known_before_a_job_runs_is_documented() -> None:
    patterns = [pattern for names, _, _ in entries() for pattern in names]
    who = "|".join(filter(None, CALLS))
    for name in dict.fromkeys([*metrics_of_jobs(), *metrics_of_sweeps(), *spelled(declared(), charts=True)]):
        plain = re.sub(rf"^({who})(?=llm_|[a-z]+_tokens|cost_usd$)", "", name).replace("*", "x")
        assert any(fnmatchcase(plain, p) or fnmatchcase(ended(plain), p) for p in patterns), name


def test_every_entry_names_its_estimator() -> None:
    for patterns, what, checked in entries():
        assert patterns, what
        assert len(what.split()) >= 3, what
        assert checked, what
