"""Jobs with a cross-encoder from the command line: no pair is scored twice, wherever the model lies."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from processes import run
from ragauge.contract.metrics import without_groups
from ragauge.track.connection import client_of
from tiny_cross_encoder import write_cross_encoder

SMALL = [
    "dataset.limit=8", "chunker=none", "bootstrap=0", "llm=none", "judge=none", "retriever=bm25",
    "reranker=cross_encoder", "reranker.backend=torch", "reranker.max_length=64", "reranker.depth=4",
]  # fmt: skip


def metrics(folder: Path) -> dict[str, float]:
    """The metrics of the run that was logged last."""
    with sqlite3.connect(folder / "mlruns" / "mlflow.db") as database:
        (last,) = database.execute(
            "select run_uuid from runs where name like 'bm25%' order by start_time desc limit 1"
        ).fetchone()
        return without_groups(dict(database.execute("select key, value from metrics where run_uuid = ?", (last,))))


@pytest.mark.slow
def test_no_pair_is_scored_twice(tmp_path: Path) -> None:
    model = write_cross_encoder(tmp_path / "tiny")
    given = [*SMALL, f"reranker.model={model}"]
    done = run(tmp_path, *given)
    assert done.returncode == 0, done.stderr
    first = metrics(tmp_path)
    pairs = first["reranker_pairs"]
    assert pairs > 8
    assert first["reranker_pairs_cached"] == 0

    assert run(tmp_path, *given).returncode == 0
    again = metrics(tmp_path)
    assert (again["reranker_pairs"], again["reranker_pairs_cached"], again["stages_made"]) == (0, 0, 0)

    assert run(tmp_path, *given, "reranker.top_k=2").returncode == 0
    cut = metrics(tmp_path)
    assert (cut["reranker_pairs"], cut["reranker_pairs_cached"]) == (0, pairs)

    # The same weights from MLflow are the same model, and those of several scores are none.
    client, experiment = client_of(f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}", "models")
    logged = client.create_run(experiment).info.run_id
    client.log_artifacts(logged, str(model), "reranker")
    done = run(tmp_path, *SMALL, f"reranker.model=runs:/{logged}/reranker")
    assert done.returncode == 0, done.stderr
    of_mlflow = metrics(tmp_path)
    assert (of_mlflow["reranker_pairs"], of_mlflow["reranker_pairs_cached"]) == (0, pairs)

    three = write_cross_encoder(tmp_path / "three", num_labels=3)
    refused = run(tmp_path, *SMALL, f"reranker.model={three}")
    assert refused.returncode == 2
    assert "three: gives a pair 3 scores" in refused.stderr
    assert "Traceback" not in refused.stderr
