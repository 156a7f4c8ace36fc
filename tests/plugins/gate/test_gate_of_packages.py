"""A gate on what a finding of another package found, and one of a job that Python runs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import test_job_findings
from hydra import initialize_config_dir
from test_job_findings import CONF, ran

import ragauge
from ragauge.contract import loading
from ragauge.contract.finding import JobFinding
from ragauge.experiment.gates import GROUP
from ragauge.experiment.setup import config
from ragauge.plugins.gate.ended import Asked, gate_runs
from ragauge.plugins.gate.rules import read_gate


@pytest.fixture(autouse=True)
def hydra() -> Iterator[None]:
    config.register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


def test_a_gate_holds_a_job_to_the_metrics_of_a_package_s_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = {
        JobFinding.group: [EntryPoint("short", f"{test_job_findings.__name__}:ShortAnswers", JobFinding.group)],
        GROUP: [EntryPoint("gate", "ragauge.plugins.gate.checking", GROUP)],
    }
    monkeypatch.setattr(loading, "entry_points", lambda group: points.get(group, []))
    code, record = ran(tmp_path, "first", "retriever.top_k=3")
    assert code == 0
    share = record["metrics"]["short_answers"]
    code, gated = ran(tmp_path, "gated", "retriever.top_k=3", f"+gate.short_answers={{max:{share - 0.1}}}")
    assert code == 3
    assert "short_answers" in gated["error"]
    gate = read_gate({"short_answers": {"min": share}})
    checks = gate_runs(Asked(record["run_id"], gate), f"sqlite:///{tmp_path / 'mlflow.db'}").checks
    assert [check.verdict for check in checks] == ["pass"]


@pytest.mark.slow
def test_from_python_a_gate_that_is_not_met_is_an_error_that_names_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = ["dataset=sample", "dataset.limit=4", "chunker=none", "tokenizer=words", "retriever=bm25", "bootstrap=20"]
    with pytest.raises(ragauge.GateError, match=r"its results: ragauge.load"):
        ragauge.run([*job, "n_tokens=50", "n_grid=[50]", "+gate.ir_score=0.999"])
