"""A trainer that learns nothing: it copies its model, so that what surrounds a training can be tried."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.plugins.training.contract import MODEL, Trained, Trainer, TrainingData, TrainingTools
from ragauge.retrieval.embedders import SentenceTransformerEmbedder
from ragauge.retrieval.retrievers import Sim
from ragauge.texts.model_files import model_path


@dataclass(frozen=True)
class CopyTrainer(Trainer):
    """Copies a model, by its folder or MiniLM; with `fails` it ends in an error after its steps."""

    component = "copy"
    version = 1
    kind = "encoder"

    model: str = "all-MiniLM-L6-v2"
    steps: int = 3
    seconds: float = 0
    fails: bool = False

    def base(self) -> Mapping[str, Any]:
        return {"model": self.model}

    def train(self, data: TrainingData, held_out: TrainingData, folder: Path, tools: TrainingTools) -> Trained:
        for step in range(1, self.steps + 1):
            tools.report(step, {"loss": 1 / step})
            (tools.checkpoints / "last").write_text(str(step), encoding="utf-8")
        time.sleep(self.seconds)
        if self.fails:
            raise DataError("trainer: one topic is too few to learn from")
        shutil.copytree(model_path(self.model) or self.model, folder / MODEL)
        mined = pd.DataFrame({"qid": data.topics["qid"], "docno": "none"})
        return Trained({"negatives": mined}, {"examples": len(mined)}, {"loss": "none"})

    def systems(self, components: Any, model: Path | None) -> Mapping[str, Mapping[str, Any]]:
        name = self.model if model is None else str(model)
        return {"alone": {"retriever": Sim(), "embedder": SentenceTransformerEmbedder(name, "torch")}}
