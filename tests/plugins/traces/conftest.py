"""Traces that an application left in MLflow."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from processes import run_fresh


@pytest.fixture(scope="session")
def traced_database(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """MLflow's database with the traces of traced_app.py, once for all processes; to be copied."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "traced"
    with FileLock(folder.with_suffix(".lock")):
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            program = str(Path(__file__).parent / "traced_app.py")
            done = run_fresh(folder, f"sqlite:///{folder / 'mlflow.db'}", program=program)
            assert done.returncode == 0, done.stderr
            (folder / "done").touch()
    return folder / "mlflow.db"
