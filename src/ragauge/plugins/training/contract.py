"""Input and output of a trainer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.component import Component, Tools
from ragauge.contract.default import Default
from ragauge.contract.stages import Components

MODEL = "model"  # the folder, below the one that a trainer fills, that holds the network


@dataclass(frozen=True)
class TrainingData:
    """One side of a split: topics, their evidence, all texts, and the run.

    The frames are those of a job (`topics`, `evidence`, `chunks`, `run`). `run` holds the hits of the
    configured retriever for these topics, from which hard negatives are mined; `texts` are all chunks of the
    collection.
    """

    topics: pd.DataFrame
    evidence: pd.DataFrame
    chunks: pd.DataFrame
    run: pd.DataFrame


@dataclass(frozen=True)
class TrainingTools:
    """The tools that a trainer gets beside its data.

    checkpoints: a folder that stays when the process is killed and is gone when the training has ended.
    seed: for everything random. max_seconds: how long the training may take, None for as long as it needs; one that is
    cut ends at its best checkpoint. report(step, values): writes values of a step, such as {"loss": 0.3}, into the
    training's MLflow run; finite numbers, steps from 1.
    """

    tools: Tools
    checkpoints: Path
    seed: int
    max_seconds: float | None
    report: Callable[[int, Mapping[str, float]], None]


@dataclass(frozen=True)
class Trained:
    """The results of a training beside the model's files.

    tables: frames that become artifacts, such as mined negatives. values: metrics. facts: lines of the
    model's card by their headings, such as {"loss": "..."}.
    """

    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)


class Trainer(Component):
    """Config group `trainer`: makes a network from topics and their evidence.

    A trainer is a frozen dataclass whose fields are its config keys, as every component; its `version` is
    raised where the same data would give another model. `kind` is encoder, reranker or judge. `uses` names
    the shared models that it takes from the tools.
    """

    @abstractmethod
    def base(self) -> Mapping[str, Any]:
        """The identity of the base model; ConfigError if it does not exist."""

    @abstractmethod
    def train(self, data: TrainingData, held_out: TrainingData, folder: Path, tools: TrainingTools) -> Trained:
        """Fills `folder / MODEL` with the network, as safetensors; continues from a checkpoint if there is one.

        `held_out` is what early stopping looks at. DataError where the data cannot be learnt from.
        """

    def systems(self, components: Components, model: Path | None) -> Mapping[str, Mapping[str, Any]]:
        """The systems that measure the model: a name, and components by group that replace the config's.

        model: the folder of the trained network; None is before the training. The names are the same before
        and after, so that the two are paired topic by topic. {}: it is not measured by what is retrieved.
        """
        return {}


@dataclass(frozen=True)
class Fitted:
    """A predictor of judge classes, a few rows of its features, and the by-products of its training.

    settings: entries of the predictor's settings beside those of its scores, such as the training rows.
    """

    model: Any
    example: pd.DataFrame
    trained: Trained
    settings: Mapping[str, Any] = field(default_factory=dict)


class RunsTrainer(Component):
    """Config group `trainer` as well: makes a predictor from the judged outcomes of MLflow runs.

    It is a frozen dataclass with a `version`, as a `Trainer` is; `kind` is predictor. features: the columns of the
    runs' outcomes that the predictor reads.
    """

    features = Default[Sequence[str]]()

    @abstractmethod
    def fit(
        self, outcomes: pd.DataFrame, n_boot: int, seed: int, embed: Callable[[Sequence[str]], np.ndarray] | None = None
    ) -> Fitted:
        """Fits judged rows [qid, query, label, the features, weight if a row stands for several, sweep, dataset,
        retriever, llm]; equal qids are one topic. DataError if the rows do not allow a fit.

        embed: float [questions, dimensions] of questions, for a trainer whose `uses` names the embedder.
        """
