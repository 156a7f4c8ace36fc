"""`trainer=reranker`: a cross-encoder trained on pairs of question and passage with label 1 or 0."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragauge.contract.checks import (
    is_number,
    require,
    require_choice,
    require_count,
    require_text,
)
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.stages import Components
from ragauge.measures.rankings import full_name
from ragauge.plugins.reranking.cross_encoder import CrossEncoderReranker
from ragauge.plugins.training.contract import MODEL, Trained, Trainer, TrainingData, TrainingTools
from ragauge.plugins.training.trainers._loop import (
    Steps,
    require_packages,
    settle_device,
    settle_precision,
    train_network,
)
from ragauge.plugins.training.trainers._pair_network import Watch, base_folder, load_base
from ragauge.plugins.training.trainers.pairs import PairSource, training_pairs
from ragauge.retrieval.pretrained import model_digest, quiet
from ragauge.retrieval.rerankers import NoReranker

ACTIVATIONS = {"bce": "Sigmoid", "mse": "Identity"}  # behind the saved model's logit


@option("trainer/reranker")
class Reranker(Trainer):
    """Tunes a cross-encoder on the relevant chunks of every topic and on irrelevant ones.

    model: the base, an encoder (which gets a head upon its first token) or a cross-encoder of one score. It is a name
        on the hub, a carried model's name, the path of a folder, or an MLflow URI.
    loss: bce, -y log s(z) - (1 - y) log(1 - s(z)) of the logit z; mse, (z - y)**2.
    neg_ratio, negatives, first, last, positives_per_topic, margin, ceiling: which pairs (`pairs.PairSource`).
    depth: hits of a topic that are reranked when the model is measured. fuse: weight of the retriever's score
        in the system "fused" (reranker=cross_encoder has the formula); 0 leaves that system out.
    validation_measure: the measure that early stopping uses: over chunks, of held-out topics' reranked hits, fused ones
        unless fuse is 0. validation_topics: the number of these topics; None is all.
    folder: where the files of `model` lie, where that is no path; found by ragauge.
    The other keys are those of `_loop.Steps`.

    Sources: Nogueira and Cho 2019, arXiv:1901.04085 (bce); mse on 1 and 0 as in the HyDE / RAG-Fusion study.
    """

    component = "reranker"
    kind = "reranker"

    model: str = runtime(CONF)  # its digest is in the key by `base`
    loss: str = CONF
    neg_ratio: int = CONF
    negatives: str = CONF
    first: int = CONF
    last: int = CONF
    positives_per_topic: int | None = CONF
    margin: float | None = CONF
    ceiling: float | None = CONF
    max_length: int | None = CONF
    batch_size: int = CONF
    epochs: float = CONF
    learning_rate: float = CONF
    warm_up: float = CONF
    weight_decay: float = CONF
    depth: int = CONF
    fuse: float = CONF
    evaluations: int = CONF
    patience: int | None = CONF
    validation_measure: str = CONF
    validation_topics: int | None = CONF
    precision: str = CONF
    device: str = CONF
    threads: int | None = runtime(CONF)
    folder: str | None = runtime(None)

    def __post_init__(self) -> None:
        what = "a model's name, the path of its folder, and an MLflow model's URI"
        require_text("trainer.model", self.model, what)
        require_choice("trainer.loss", self.loss, ACTIVATIONS)
        self._source.check("trainer")
        require_count("trainer.max_length", self.max_length, 8, "tokens", null="the model's own")
        require_count("trainer.depth", self.depth, 2, "hits of a topic that are reranked")
        weight = is_number(self.fuse) and 0 <= self.fuse < 1
        require("trainer.fuse", self.fuse, weight, "numbers from 0 (the reranker alone) to below 1")
        require_count("trainer.validation_topics", self.validation_topics, null="all held-out topics")
        require_text("trainer.validation_measure", self.validation_measure, "names of ir-measures, such as nDCG@10")
        full_name(self.validation_measure)
        require_count("trainer.threads", self.threads, null="torch's own choice")
        object.__setattr__(self, "device", settle_device("trainer", self.device))
        object.__setattr__(self, "precision", settle_precision("trainer", self.precision, self.device))
        self._steps.check("trainer")
        require_packages("trainer=reranker")

    @property
    def _source(self) -> PairSource:
        return PairSource(
            self.neg_ratio,
            self.negatives,
            self.first,
            self.last,
            self.positives_per_topic,
            self.margin,
            self.ceiling,
        )

    @property
    def _steps(self) -> Steps:
        return Steps(
            self.batch_size, self.epochs, self.learning_rate, self.warm_up, self.weight_decay,
            self.evaluations, self.patience, self.precision, self.device,
        )  # fmt: skip

    def base(self) -> Mapping[str, Any]:
        """Name and digest of the base, and whether it scores pairs already."""
        folder, scores_pairs = base_folder(self.model, self.folder)
        return {
            "model": self.model if not Path(self.model).expanduser().is_dir() else folder.name,
            "digest": model_digest(folder),
            "head": "its own" if scores_pairs else "new",
        }

    def train(self, data: TrainingData, held_out: TrainingData, folder: Path, tools: TrainingTools) -> Trained:
        """Fills `folder / MODEL` with the cross-encoder of the best evaluation.

        The table "pairs" holds what it learnt from (`pairs.Pairs`); values: their counts, and the steps.
        """
        started = time.monotonic()
        pairs = training_pairs(data, self._source, tools.seed)
        watch = Watch(held_out, self.validation_measure, self.depth, self.fuse, self.validation_topics, tools.seed)
        import torch
        from sentence_transformers.cross_encoder import CrossEncoderTrainer, losses

        from datasets import Dataset
        from ragauge.plugins.training.trainers._pair_batches import ByLength

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        model = load_base(
            base_folder(self.model, self.folder)[0],
            self.device,
            self.max_length,
            ACTIVATIONS[self.loss],
            tools.seed,
        )
        loss = losses.BinaryCrossEntropyLoss(model) if self.loss == "bce" else losses.MSELoss(model)
        texts = data.chunks.set_index("docno")["text"]
        rows = pairs.table.assign(text=pairs.table["docno"].map(texts), label=pairs.table["label"].astype(float))
        dataset = Dataset.from_pandas(rows[["query", "text", "label"]], preserve_index=False)
        outcome = train_network(
            CrossEncoderTrainer,
            {"model": model, "train_dataset": dataset, "loss": loss},
            self._steps,
            tools,
            lambda: watch.values(model),
            watch.deciding,
            started,
            {"batch_sampler": ByLength},
        )
        with quiet():
            model.to("cpu").save_pretrained(str(folder / MODEL), create_model_card=False)
        facts = {
            "pairs": f"{len(rows):,}, {self.neg_ratio} {self.negatives} negatives for every positive",
            "loss": self.loss,
            **outcome.facts(),
        }
        counts = {"training_pairs": len(rows), **{f"mined_{name}": n for name, n in pairs.counts.items()}}
        return Trained({"pairs": pairs.table}, {**counts, **outcome.values()}, facts)

    def systems(self, components: Components, model: Path | None) -> Mapping[str, Mapping[str, Any]]:
        """The model alone over the retriever's best `depth` hits ("reranked"), and fused with it ("fused").

        Before the training the base stands there if it scores pairs, and else the retriever's own order.
        """
        folder, scores_pairs = base_folder(self.model, self.folder)
        names = {"reranked": 0.0, **({"fused": self.fuse} if self.fuse else {})}
        if model is None and not scores_pairs:
            return {name: {"reranker": NoReranker()} for name in names}
        return {
            name: {
                "reranker": CrossEncoderReranker(
                    str(model or folder),
                    depth=self.depth,
                    max_length=self.max_length,
                    device=self.device,
                    threads=self.threads,
                    fuse=fuse,
                )
            }
            for name, fuse in names.items()
        }
