"""`reranker=cross_encoder`: a network reads question and chunk together and gives one score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.checks import is_number, require, require_choice, require_count, require_text
from ragauge.contract.component import Tools
from ragauge.contract.engine import in_blocks
from ragauge.contract.identity import later, named, runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Reranker
from ragauge.plugins.reranking.pair_model import load_pair_model, pair_model_folder, require_no_template
from ragauge.retrieval.pretrained import model_digest, settle_backend
from ragauge.retrieval.ranking import ranked
from ragauge.retrieval.reading import Reader, reader_of
from ragauge.retrieval.rerankers import candidates, check_depth
from ragauge.store.vectors import PAIR_SCORES, VectorCache, vectors_name


@option("reranker/cross_encoder")
class CrossEncoderReranker(Reranker):
    """Orders the best `depth` hits of a topic by a cross-encoder's score; `top_k` of them come out.

    model: a name on the hub, the path of a folder, or the URI of an MLflow model (models:/…, runs:/…).
    top_k: None is depth. Hits below depth in the run are dropped.
    max_length: tokens of question and chunk together, beyond which the longer one is cut; None is the
    model's own.
    long: a pair with more tokens is `cut` there; with `max` each window of the chunk beside the question is scored, and
        the highest score counts (`Reader.windows_of_pairs`).
    fuse: weight of the first stage's score in the score that orders hits, in [0, 1). Both are normalised within each
        topic's candidates (`fused_scores`); 0 is the cross-encoder's score alone.
    backend, device: as of the embedder; both are part of the identity.
    batch_size: pairs at once; None is as many as fit a number of tokens.
    folder: where the files of `model` lie, where that is no path; found by ragauge.

    `score` is what CrossEncoder.predict gives: the logit through the model's own activation, or with `fuse`
    the weighted sum, in [0, 1]. Every distinct
    pair of texts is scored once in the life of a store. Counted are `reranker_pairs`, scored now, and
    `reranker_pairs_cached`, which were scored before.
    Source: Nogueira and Cho 2019, arXiv:1901.04085; `long`: BERT-FirstP and BERT-MaxP of Dai and Callan, SIGIR 2019.
    """

    component = "cross_encoder"
    kind = "cross_encoder"
    counts = ("reranker_pairs", "reranker_pairs_cached")

    model: str
    depth: int = CONF
    top_k: int | None = CONF
    max_length: int | None = CONF
    backend: str = CONF
    device: str = CONF
    batch_size: int | None = runtime(CONF)
    threads: int | None = runtime(CONF)
    folder: str | None = runtime(None)
    fuse: float = later(0.0)
    long: str = later("cut")

    def __post_init__(self) -> None:
        require_text("reranker.model", self.model, "a model's name, the path of its folder, and an MLflow model's URI")
        check_depth(self.depth, self.top_k)
        require_count("reranker.max_length", self.max_length, 8, "tokens", null="the model's own")
        for key in ("batch_size", "threads"):
            require_count(f"reranker.{key}", getattr(self, key), null="")
        weight = is_number(self.fuse) and 0 <= self.fuse < 1
        require("reranker.fuse", self.fuse, weight, "numbers from 0 (the reranker alone) to below 1")
        require_choice("reranker.long", self.long, ("cut", "max"))
        require_text("reranker.device", self.device, "devices of torch: cpu, cuda, cuda:1, mps")
        object.__setattr__(self, "backend", settle_backend(self.backend, self.device, "reranker"))

    def identity(self) -> dict[str, Any]:
        """The model's name, its scorer, and the numbers of hits in and out."""
        return {
            **named(self),
            "model": self.model if ":/" in self.model else Path(self.model).name,
            "scorer": self._scorer(),
            "depth": self.depth,
            "top_k": self.top_k or self.depth,
            **({"fuse": float(self.fuse)} if self.fuse else {}),
            **({} if self.long == "cut" else {"long": self.long}),
        }

    def _scorer(self) -> Mapping[str, Any]:
        """Everything that affects a pair's score, wherever the model's folder lies."""
        return {
            "digest": model_digest(self._folder),
            "backend": self.backend,
            "device": self.device.partition(":")[0],
            "max_length": self.max_length,
            "version": self.version,
        }

    def reader(self) -> Reader | None:
        """Counts tokens against the limit of question and chunk together; None without one, or if windows cover all."""
        return reader_of(self._folder, self.max_length) if self.long == "cut" else None

    @property
    def _folder(self) -> Path:
        return pair_model_folder(self.model, self.folder)

    def rerank(self, run: pd.DataFrame, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """The best `depth` hits by falling score, ties by docno; ConfigError for a model with several scores."""
        found = candidates(run, topics, chunks, self.depth)
        pairs = list(zip(found["query"], found["text"], strict=True))
        distinct = list(dict.fromkeys(pairs))
        scores = self._whole_scores(distinct, tools).astype(float)
        row = {pair: i for i, pair in enumerate(distinct)}
        score = scores[[row[pair] for pair in pairs]]
        if self.fuse:
            score = fused_scores(found["qid"], found["score"], score, self.fuse)
        scored = found.drop(columns=["query", "text"]).assign(score=score)
        return ranked(scored, self.top_k or self.depth)

    def _whole_scores(self, pairs: list[tuple[str, str]], tools: Tools) -> np.ndarray:
        """float32 [len(pairs)] of distinct pairs, truncated or in windows according to `long`."""
        reader = reader_of(self._folder, self.max_length) if self.long == "max" else None
        if reader is None or not pairs:
            return self._scores(pairs, tools)
        require_no_template(self.model, self._folder, "reranker.long")
        windows = reader.windows_of_pairs(pairs, "reranker.long")
        distinct = {pair: i for i, pair in enumerate(dict.fromkeys(pair for of_pair in windows for pair in of_pair))}
        scores = self._scores(list(distinct), tools)
        return np.array([max(scores[distinct[pair]] for pair in of_pair) for of_pair in windows], dtype=np.float32)

    def _scores(self, pairs: list[tuple[str, str]], tools: Tools) -> np.ndarray:
        """float32 [len(pairs)] of distinct pairs; loads the model only for an unknown score."""
        root, engine = tools.store.root, tools.engine
        work = _PairScores(self, root.absolute())
        new = 0

        def score(missing: list[tuple[str, str]]) -> np.ndarray:
            nonlocal new
            found = np.concatenate(list(engine.map(work, in_blocks(missing, engine))))
            new += len(missing)
            return found[:, None]

        cache = VectorCache(root, vectors_name(self._scorer()), f"reranking with {Path(self.model).name}", PAIR_SCORES)
        at_once = engine.rows_at_once
        scores = cache.get(pairs, score, at_once)[:, 0] if pairs else np.empty(0, dtype=np.float32)
        tools.count("reranker_pairs", new)
        tools.count("reranker_pairs_cached", len(pairs) - new)
        return scores


@dataclass(frozen=True)
class _PairScores:
    """Maps pairs of texts to float32 [pairs], by a model loaded once per process."""

    reranker: CrossEncoderReranker
    root: Path

    def __call__(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        own, root = self.reranker, self.root if self.root.is_dir() else None
        model = load_pair_model(own._folder, own.backend, own.device, own.max_length, root)
        return model.scores(pairs, own.batch_size, own.threads)


def fused_scores(qids: pd.Series, first: pd.Series, second: np.ndarray, weight: float) -> np.ndarray:
    """float64 [hits]: weight x the first stage's score + (1 - weight) x the reranker's, normalised.

    Both are normalised within each topic: a score's distance to the topic's lowest over the topic's range, 1 where all
    of a topic are equal. It is CombSUM with min-max, as `fusion=weighted` of retriever=hybrid. Rounded to 12 places, so
    that equal sums are ties.
    """
    parts = [_min_max(qids, first.to_numpy(dtype=float)), _min_max(qids, second.astype(float))]
    return np.asarray(np.round(weight * parts[0] + (1 - weight) * parts[1], 12))


def _min_max(qids: pd.Series, score: np.ndarray) -> np.ndarray:
    topics = pd.Series(score).groupby(qids.to_numpy())
    low, high = topics.transform("min").to_numpy(), topics.transform("max").to_numpy()
    span = high - low
    return np.where(span > 0, (score - low) / np.where(span > 0, span, 1.0), 1.0)
