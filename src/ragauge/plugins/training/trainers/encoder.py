"""`trainer=encoder`: an encoder trained to find the passages that answer a question (dense passage retrieval)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.checks import require, require_choice, require_count, require_number, require_text
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.progress import working
from ragauge.contract.stages import Components
from ragauge.measures.rankings import full_name
from ragauge.plugins.training.contract import MODEL, Trained, Trainer, TrainingData, TrainingTools
from ragauge.plugins.training.trainers._encoder_validation import Validation
from ragauge.plugins.training.trainers._loop import (
    Steps,
    require_packages,
    settle_device,
    settle_precision,
    train_network,
)
from ragauge.plugins.training.trainers.mining import Mined, Window, mine
from ragauge.retrieval.embedders import (
    CachedEmbedder,
    SentenceTransformerEmbedder,
    encoder_folder,
    read_encoder,
)
from ragauge.retrieval.pretrained import model_digest, quiet
from ragauge.retrieval.retrievers import BM25, Hybrid, Sim

LOSSES = ("dpr", "dpr_cached", "triplet")
SCORES = ("encoder", "run")

_NEGATIVES = {**asdict(Window(count=7)), "score": "encoder"}  # so many: see docs/training.md
_HYBRID_DEPTH = 100  # hits of both arms that are fused


@option("trainer/encoder")
class Encoder(Trainer):
    """A sentence-transformers encoder, tuned on questions and the passages that hold their evidence.

    model: the base, by name, path of its folder or MLflow URI. loss: dpr is the softmax over the passages of a batch,
        -log(exp(s cos(q, p)) / sum_j exp(s cos(q, p_j))) with s = `scale`, over the positives and hard negatives of all
        questions of the batch (Karpukhin et al. 2020). dpr_cached is the same in pieces of `mini_batch_size`, so that a
        large batch needs no more memory (GradCache, Gao et al. 2021). triplet is max(0, cos(q, n) - cos(q, p) +
        triplet_margin).
    negatives: fields of `Window` (mining.py), and `score`: what margin and ceiling look at, the
    cosine of the base ("encoder") or the score of the run ("run"). positives_per_topic: None is all.
    examples: positives of all topics together that are learnt from at most, drawn by the seed; None is all.
    average: the weight of the base in the mean of its weights and the tuned ones; that mean is kept (WiSE-FT, Wortsman
        et al. 2022). 0 is the tuned encoder itself.
    max_length: tokens of a text while training, at most the base's own; None is these. validation_measure:
    which checkpoint is the best, by rankings of `validation_chunks` chunks for `validation_topics` of the
    held-out topics.
    folder: where the files of `model` lie, where that is no path; found by ragauge.
    """

    component = "encoder"
    version = 2
    kind = "encoder"

    model: str = runtime(CONF)  # its digest is in the key by `base`
    loss: str = CONF
    scale: float = CONF
    triplet_margin: float = CONF
    negatives: Mapping[str, Any] = field(default_factory=dict)
    positives_per_topic: int | None = CONF
    examples: int | None = CONF
    average: float = CONF
    batch_size: int = CONF
    mini_batch_size: int = CONF
    epochs: float = CONF
    learning_rate: float = CONF
    warm_up: float = CONF
    weight_decay: float = CONF
    max_length: int | None = CONF
    query_prefix: str = CONF
    passage_prefix: str = CONF
    precision: str = CONF
    device: str = CONF
    evaluations: int = CONF
    patience: int | None = CONF
    validation_measure: str = CONF
    validation_topics: int = CONF
    validation_chunks: int = CONF
    folder: str | None = runtime(None)

    def __post_init__(self) -> None:
        require_packages("trainer=encoder")
        what = "a model's name, the path of its folder, and an MLflow model's URI"
        require_text("trainer.model", self.model, what)
        require_choice("trainer.loss", self.loss, LOSSES)
        require_number("trainer.scale", self.scale, 0, above=True)
        require_number("trainer.triplet_margin", self.triplet_margin, 0, 2)
        require_number("trainer.average", self.average, 0, 0.95)
        require_count("trainer.positives_per_topic", self.positives_per_topic, null="all")
        require_count("trainer.examples", self.examples, 2, null="all")
        require_count("trainer.mini_batch_size", self.mini_batch_size)
        require_count("trainer.max_length", self.max_length, 8, "tokens", null="the base's own")
        require_count("trainer.validation_topics", self.validation_topics)
        require_count("trainer.validation_chunks", self.validation_chunks)
        for key in ("query_prefix", "passage_prefix"):
            require(f"trainer.{key}", getattr(self, key), isinstance(getattr(self, key), str), "texts")
        full_name(self.validation_measure)
        device = settle_device("trainer", self.device)
        object.__setattr__(self, "device", device)
        object.__setattr__(self, "precision", settle_precision("trainer", self.precision, device))
        given = dict(self.negatives)
        known = [*_NEGATIVES]
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise ConfigError(f"trainer.negatives.{unknown[0]}: allowed are {', '.join(known)}")
        require_choice("trainer.negatives.score", given.get("score", "encoder"), SCORES)
        object.__setattr__(self, "negatives", {**_NEGATIVES, **given})
        self._window.check("trainer.negatives")
        self._steps.check("trainer")
        if self.loss == "triplet" and not self._window.count:
            raise ConfigError("trainer.negatives.count=0: loss=triplet takes 1 or more")

    @property
    def _window(self) -> Window:
        return Window(**{key: value for key, value in self.negatives.items() if key != "score"})

    @property
    def _steps(self) -> Steps:
        names = ("batch_size", "epochs", "learning_rate", "warm_up", "weight_decay", "evaluations")
        others = ("patience", "precision", "device")
        return Steps(**{name: getattr(self, name) for name in (*names, *others)})

    @property
    def _base(self) -> Path:
        return encoder_folder("trainer.model", self.model, "", self.folder)

    def base(self) -> Mapping[str, Any]:
        """Name and digest of the base model."""
        name = self.model if ":/" in self.model else Path(self.model).name
        return {"model": name, "digest": model_digest(self._base)}

    def train(self, data: TrainingData, held_out: TrainingData, folder: Path, tools: TrainingTools) -> Trained:
        """Fills `folder / MODEL` with the encoder of the best checkpoint, averaged with its base."""
        import torch
        from sentence_transformers import SentenceTransformerTrainer

        from ragauge.plugins.training.trainers._batches import RelevanceBatches

        started = time.monotonic()
        mined = self._mined(data, tools)
        examples, rows = self._examples(mined, data.chunks)
        model = read_encoder("trainer.model", self._base, self.device)
        own_length = model.max_seq_length
        if self.max_length is not None:
            model.max_seq_length = min(self.max_length, own_length or self.max_length)
        base = {name: value.detach().clone() for name, value in model.state_dict().items()}
        validation = Validation.of(
            held_out, self.validation_measure, self.validation_topics, self.validation_chunks, tools.seed
        )

        def evaluate() -> Mapping[str, float]:
            tuned = {name: value.detach().clone() for name, value in model.state_dict().items()}
            model.load_state_dict(averaged(base, tuned, self.average))
            with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.precision == "bf16"):
                found = validation.values(partial(self._encoded, model))
            model.load_state_dict(tuned)
            return found

        outcome = train_network(
            SentenceTransformerTrainer,
            {"model": model, "train_dataset": examples, "loss": self._loss(model)},
            self._steps,
            tools,
            evaluate,
            validation.name,
            started,
            {"batch_sampler": partial(RelevanceBatches, rows=rows)},
        )
        model.load_state_dict(averaged(base, model.state_dict(), self.average))
        model.max_seq_length = own_length
        with quiet():
            model.save_pretrained(str(folder / MODEL), create_model_card=False)
        values = {"training_examples": len(rows), **{f"mined_{k}": v for k, v in mined.counts.items()}}
        facts = {
            "loss": self._described(),
            "negatives": self._told(mined),
            **outcome.facts(),
            **({"average": f"{self.average:g} of the weights are the base's"} if self.average else {}),
            **({"query_prefix": repr(self.query_prefix)} if self.query_prefix else {}),
            **({"passage_prefix": repr(self.passage_prefix)} if self.passage_prefix else {}),
        }
        tables = {"negatives": mined.negatives} if len(mined.negatives) else {}
        return Trained(tables, {**values, **outcome.values()}, facts)

    def systems(self, components: Components, model: Path | None) -> Mapping[str, Mapping[str, Any]]:
        """The encoder alone, and in a hybrid with BM25: the config's hybrid if it has one, else min-max sums."""
        embedder = self._embedder()
        if model is not None:
            embedder = replace(embedder, model=str(model), folder=None)
        own = components.retriever
        arms = {"bm25": BM25(), "sim": Sim()}
        hybrid = Hybrid(options=arms, fusion="weighted", depth=_HYBRID_DEPTH)
        return {
            "alone": {"retriever": Sim(), "embedder": embedder},
            "hybrid": {"retriever": own if isinstance(own, Hybrid) else hybrid, "embedder": embedder},
        }

    # --- what it learns from ----------------------------------------------------------------------------

    def _mined(self, data: TrainingData, tools: TrainingTools) -> Mined:
        window = self._window
        looks = window.margin is not None or window.ceiling is not None
        scorer = None
        if looks and self.negatives["score"] == "encoder":
            embedder = CachedEmbedder(self._embedder(), tools.tools.store.root)
            scorer = partial(_cosines, data, embedder)
        with working(f"mining negatives of {len(data.topics):,} topics"):
            return mine(data, window, tools.seed, self.positives_per_topic, scorer, self.examples)

    def _embedder(self) -> SentenceTransformerEmbedder:
        return SentenceTransformerEmbedder(
            self.model,
            device=self.device,
            query_prefix=self.query_prefix,
            passage_prefix=self.passage_prefix,
            folder=self.folder,
        )

    def _examples(self, mined: Mined, chunks: pd.DataFrame) -> tuple[Any, list[Any]]:
        """The dataset of anchors, positives and negatives, and the rows that form batches."""
        from datasets import Dataset
        from ragauge.plugins.training.trainers._batches import Row

        text = chunks.set_index("docno")["text"]
        wide = mined.positives.rename(columns={"docno": "positive"})
        columns = ["positive"]
        if len(mined.negatives):
            negatives = mined.negatives[["qid", "positive", "negative"]]
            number = negatives.groupby(["qid", "positive"]).cumcount() + 1
            if self.loss == "triplet":
                wide = wide.merge(negatives.rename(columns={"negative": "negative_1"}), on=["qid", "positive"])
                columns.append("negative_1")
            else:
                every = negatives.assign(number=number).pivot(
                    index=["qid", "positive"], columns="number", values="negative"
                )
                every.columns = [f"negative_{name}" for name in every.columns]
                wide = wide.merge(every.reset_index(), on=["qid", "positive"], how="left")
                lacking = wide[list(every.columns)].isna().any(axis=1)
                if lacking.any():
                    raise DataError(
                        f"trainer.negatives.count={self._window.count}: topic "
                        f"{wide.loc[lacking, 'qid'].iloc[0]!r} has fewer hits that may be negatives, and "
                        f"{wide['qid'].nunique()} topics have too few relevant passages to fill the gap"
                    )
                columns += list(every.columns)
        relevant = mined.relevant.groupby("qid")["docno"].agg(frozenset).to_dict()
        folded = wide["query"].str.casefold().str.split().str.join(" ")
        rows = [
            Row(question, frozenset(passages), relevant[qid])
            for question, qid, *passages in zip(folded, wide["qid"], *(wide[name] for name in columns), strict=True)
        ]
        texts = {"anchor": (self.query_prefix + wide["query"]).tolist()}
        texts |= {name: (self.passage_prefix + text[wide[name]]).tolist() for name in columns}
        return Dataset.from_dict(texts), rows

    def _loss(self, model: Any) -> Any:
        from sentence_transformers.sentence_transformer import losses

        if self.loss == "triplet":
            cosine = losses.TripletDistanceMetric.COSINE
            return losses.TripletLoss(model, cosine, self.triplet_margin)
        if self.loss == "dpr_cached":
            pieces = self.mini_batch_size
            return losses.CachedMultipleNegativesRankingLoss(model, self.scale, mini_batch_size=pieces)
        return losses.MultipleNegativesRankingLoss(model, self.scale)

    def _encoded(self, model: Any, texts: list[str], role: str) -> np.ndarray:
        prefix = self.query_prefix if role == "query" else self.passage_prefix
        vectors = model.encode(
            [prefix + text for text in texts],
            batch_size=self.mini_batch_size,
            show_progress_bar=False,
            normalize_embeddings=True,
        )
        return np.asarray(vectors, dtype=np.float32)

    def _described(self) -> str:
        size = f"triplet_margin={self.triplet_margin:g}" if self.loss == "triplet" else f"scale={self.scale:g}"
        return (
            f"{self.loss} ({size}), batch_size={self.batch_size}, learning_rate={self.learning_rate:g}, "
            f"precision={self.precision}"
        )

    def _told(self, mined: Mined) -> str:
        if not self._window.count:
            return "those of the batch alone"
        window, told = self._window, mined.counts.items()
        counts = ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in told)
        return f"{window.count} per positive, of ranks {window.first} to {window.last}: {counts}"


def averaged(base: Mapping[str, Any], tuned: Mapping[str, Any], share: float) -> dict[str, Any]:
    """share * base + (1 - share) * tuned, weight by weight; other than floats are taken from the tuned model."""
    if not share:
        return dict(tuned)
    return {
        name: share * base[name] + (1 - share) * value if value.is_floating_point() else value
        for name, value in tuned.items()
    }


def _cosines(data: TrainingData, embedder: CachedEmbedder, pairs: pd.DataFrame) -> np.ndarray:
    """The cosine of topic and chunk for every row [qid, docno]."""
    queries = data.topics.set_index("qid")["query"][pairs["qid"]].tolist()
    texts = data.chunks.set_index("docno")["text"][pairs["docno"]].tolist()
    asked, found = embedder.embed(queries, "query"), embedder.embed(texts, "passage")
    return np.einsum("ij,ij->i", asked.astype(np.float64), found.astype(np.float64))
