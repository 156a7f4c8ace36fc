"""`ragauge train trainer=encoder`: config in, a registered model out that an embedder takes by its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from ragauge import track
from ragauge.experiment.request import JobFolder
from ragauge.plugins.training import config
from ragauge.plugins.training.jobs.job import execute
from ragauge.retrieval.embedders import SentenceTransformerEmbedder
from ragauge.retrieval.pretrained import model_digest
from tiny_encoder import write_encoder

CONF = Path(__file__).resolve().parents[4] / "conf"


@pytest.mark.slow
def test_a_tuned_encoder_is_registered_used_by_name_and_tuned_further(tmp_path: Path) -> None:
    base = write_encoder(tmp_path / "tiny", dense=True)
    uri = f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}"

    def train(number: int, *overrides: str) -> dict[str, object]:
        config.register()
        given = ["trainer=encoder", "dataset=sample", "dataset.limit=40", "leaks=drop", "measures=[P@1,R@5]"]
        given += [f"store={tmp_path / 's'}", f"tracking.uri={uri}", "trainer.epochs=0.5", "register=tuned"]
        given += ["trainer.batch_size=8", "trainer.evaluations=1", "trainer.negatives.count=1"]
        folder = JobFolder(tmp_path / f"out{number}", None, 0, {"trainer": "encoder"}, tuple(overrides))
        with initialize_config_dir(str(CONF), version_base="1.3"):
            cfg = compose("train", overrides=[*given, *overrides])
        code = execute(cfg, folder)
        record: dict[str, object] = json.loads((folder.path / "job.json").read_text(encoding="utf-8"))
        assert code == 0, record
        return record

    record = train(0, f"trainer.model={base}")
    reader = track.Reader(uri)
    metrics = reader.metrics(str(record["run_id"]))
    for name in ("alone_p_at_1_gain", "hybrid_r_at_5_after", "validation_ndcg_at_10_best", "training_steps",
                 "mined_excluded_as_evidence", "training_examples"):  # fmt: skip
        assert name in metrics
    assert reader.history(str(record["run_id"]), "loss")
    assert len(reader.table(str(record["run_id"]), "negatives.json")) == metrics["training_examples"]
    folder = track.model_folder(uri, "models:/tuned/1", "embedder.model")
    assert model_digest(folder) == record["model_digest"] != model_digest(base)
    embedder = SentenceTransformerEmbedder("models:/tuned/1", backend="torch", folder=str(folder))
    assert embedder.embed(["where is it"]).shape == (1, 16)
    further = train(1, "trainer.model=models:/tuned/1")
    assert further["model_digest"] not in (record["model_digest"], model_digest(base))
    params = reader.run(str(further["run_id"])).params
    assert params["trainer.model"] == "models:/tuned/1"
