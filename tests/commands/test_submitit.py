"""hydra/launcher=submitit_local: a sweep's jobs in processes of their own, as Slurm would start them."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_sweep import job_records, mlflow_runs, sweep_folders

from processes import run_fresh

SMALL = [
    "-m", "dataset=sample", "dataset.limit=12", "chunker=none", "llm.by=words", "bootstrap=20", "retriever=bm25,none",
    "n_tokens=100",
]  # fmt: skip


@pytest.mark.slow
def test_a_sweep_by_submitit_has_a_run_for_each_job_and_is_pooled(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
    done = run_fresh(tmp_path, *SMALL, "hydra/launcher=submitit_local", "hydra.launcher.timeout_min=60")
    assert done.returncode == 0, done.stderr
    assert "2 job(s) done, 0 failed" in done.stdout
    [folder] = sweep_folders(tmp_path)
    assert [record["status"] for record in job_records(folder)] == ["FINISHED"] * 2
    assert sorted(run.data.tags["retriever"] for run in mlflow_runs(tmp_path, "job")[1]) == ["bm25", "none"]
    assert [run.info.status for run in mlflow_runs(tmp_path, "sweep")[1]] == ["FINISHED"]
    assert list((folder / ".submitit").rglob("*_log.err")), "what a job prints is beside the sweep"
