"""`ragauge train trainer=reranker` from the configuration to the registered model that a job reranks by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from ragauge import track
from ragauge.contract.identity import identity
from ragauge.experiment.request import JobFolder
from ragauge.experiment.stages.components import instantiate_components
from ragauge.plugins.training import config
from ragauge.plugins.training.jobs.job import execute
from tiny_cross_encoder import write_cross_encoder

CONF = Path(__file__).resolve().parents[4] / "conf"

pytestmark = pytest.mark.slow


def test_a_trained_reranker_is_registered_and_reranks_by_its_name(tmp_path: Path) -> None:
    base = write_cross_encoder(tmp_path / "base", positions=128)
    uri = f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}"
    given = [
        "trainer=reranker", f"trainer.model={base}", "trainer.max_length=128", "trainer.epochs=1",
        "trainer.depth=5",
        "trainer.neg_ratio=1", "trainer.evaluations=2", "trainer.validation_topics=5", "trainer.device=cpu",
        "dataset=sample", "dataset.limit=30", "leaks=drop", "retriever=bm25", f"store={tmp_path / 's'}",
        f"tracking.uri={uri}", "measures=[P@1,R@5]", "register=tiny",
    ]  # fmt: skip
    config.register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("train", overrides=given)
        used = compose(
            "config",
            overrides=["reranker=cross_encoder", "reranker.model=models:/tiny/1", f"tracking.uri={uri}",
                       "reranker.fuse=0.5", "retriever=bm25"],
        )  # fmt: skip
    code = execute(cfg, JobFolder(tmp_path / "out", None, 0, {"trainer": "reranker"}, given))
    record = json.loads((tmp_path / "out" / "job.json").read_text(encoding="utf-8"))
    assert code == 0, record
    reader = track.Reader(uri)
    run = reader.run(record["run_id"])
    metrics = reader.metrics(run.run_id)
    for system in ("reranked", "fused"):
        for measure in ("p_at_1", "r_at_5"):
            before, after, gain = (metrics[f"{system}_{measure}_{end}"] for end in ("before", "after", "gain"))
            assert after - before == pytest.approx(gain)
    pairs = reader.table(run.run_id, "pairs.json")
    assert len(pairs) == metrics["training_pairs"]
    assert set(pairs["label"]) == {0, 1}
    assert {"loss", "validation_ndcg_at_10_fused"} <= {
        name for name in ("loss", "validation_ndcg_at_10_fused") if reader.history(run.run_id, name)
    }
    reranker = instantiate_components(used).reranker
    made = identity(reranker)
    assert made["fuse"] == 0.5
    assert made["scorer"]["digest"] == record["model_digest"]
