"""The network of a reranker in training: its base, and how it ranks during training."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.contract.errors import ConfigError, DataError
from ragauge.measures.rankings import metric_of, ranking_means, ranking_values
from ragauge.plugins.reranking.cross_encoder import fused_scores
from ragauge.plugins.reranking.pair_model import (
    MODEL_FILES,
    PairModel,
    checked_config,
    is_pair_model,
    require_one_score,
)
from ragauge.plugins.training.contract import TrainingData
from ragauge.plugins.training.trainers.mining import relevant_chunks
from ragauge.retrieval.pretrained import first_line, hub_folder, quiet
from ragauge.retrieval.ranking import ranked
from ragauge.retrieval.rerankers import candidates
from ragauge.texts.model_files import model_path

KEY = "trainer.model"
_GIVE = "Give the path of the folder of an encoder or a cross-encoder (with config.json and *.safetensors)"


def base_folder(model: str, folder: str | None = None) -> tuple[Path, bool]:
    """The folder of the base, and whether it scores pairs already; downloads a hub model.

    ConfigError where there is none, where loading it might execute something, and for several scores.
    """
    path = Path(folder or model).expanduser()
    if not path.is_dir():
        path = model_path(model) or hub_folder(KEY, model, "cross-encoder", MODEL_FILES, _GIVE)
    config, own = checked_config(KEY, model, path, _GIVE)
    scores_pairs = is_pair_model(path, config, own)
    if scores_pairs and "ForSequenceClassification" in str(config.get("architectures")):
        require_one_score(model, len(config.get("id2label") or ()) or int(config.get("num_labels", 2)), KEY)
    return path.resolve(), scores_pairs


def load_base(folder: Path, device: str, max_length: int | None, activation: str, seed: int) -> Any:
    """The base as a CrossEncoder of sentence-transformers with one score and `activation` of torch.nn behind.

    A plain encoder gets a head upon its first token, its weights drawn by the seed. ConfigError where it
    cannot be loaded, and for a max_length that it does not take.
    """
    import torch

    torch.manual_seed(seed)
    # It would tell that a plain encoder gets another form, which is what is asked for.
    logging.getLogger("sentence_transformers.base.model").setLevel(logging.ERROR)
    with quiet():
        from sentence_transformers import CrossEncoder

        try:
            model = CrossEncoder(
                str(folder),
                num_labels=1,
                device=device,
                max_length=max_length,
                activation_fn=getattr(torch.nn, activation)(),
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
        except Exception as error:
            raise ConfigError(
                f"{KEY}: {folder} cannot be loaded by sentence-transformers with device={device}: "
                f"{first_line(error)}. {_GIVE}"
            ) from error
    require_one_score(folder, model.num_labels, KEY)
    network: Any = model[0]
    positions = getattr(network.model.config, "max_position_embeddings", None)
    if max_length is not None and positions is not None and max_length > positions:
        raise ConfigError(
            f"trainer.max_length={max_length}: allowed are 8 to {positions}, the tokens that {folder} takes"
        )
    return model


class Watch:
    """Ranks the candidates of held-out topics with the network, alone and fused with the retriever's score."""

    def __init__(
        self, held_out: TrainingData, measure: str, depth: int, fuse: float, topics: int | None, seed: int
    ) -> None:
        """`topics` of the held-out topics that have a relevant chunk, drawn by the seed; None is all."""
        relevant = relevant_chunks(held_out.evidence, held_out.chunks).assign(relevance=1)
        known = sorted(set(relevant["qid"]) & set(held_out.topics["qid"]) & set(held_out.run["qid"]))
        if not known:
            raise DataError(
                f"validation: none of its {len(held_out.topics)} topics has hits, and evidence that stands "
                "in a document; early stopping is about those"
            )
        if topics is not None and topics < len(known):
            known = sorted(np.random.default_rng(seed).choice(known, topics, replace=False).tolist())
        self.qrels = relevant[relevant["qid"].isin(known)]
        run = held_out.run[held_out.run["qid"].isin(known)]
        self.hits = candidates(run, held_out.topics, held_out.chunks, depth)
        self.measure, self.fuse = measure, fuse
        self.name = f"validation_{metric_of(measure)}"

    @property
    def deciding(self) -> str:
        """The value that early stopping uses: fused with the retriever's score, unless fuse is 0."""
        return f"{self.name}_fused" if self.fuse else self.name

    def values(self, model: Any) -> Mapping[str, float]:
        """The measure's mean over the topics, by name."""
        training = model.training
        model.eval()
        pairs = list(zip(self.hits["query"], self.hits["text"], strict=True))
        try:
            scores = PairModel(model, "torch").scores(pairs).astype(float)
        finally:
            model.train(training)
        found = {self.name: self._mean(scores)}
        if self.fuse:
            found[self.deciding] = self._mean(fused_scores(self.hits["qid"], self.hits["score"], scores, self.fuse))
        return found

    def _mean(self, scores: np.ndarray) -> float:
        order = ranked(self.hits[["qid", "docno"]].assign(score=scores))
        (value,) = ranking_means(ranking_values(order, self.qrels, [self.measure])).values()
        return value
