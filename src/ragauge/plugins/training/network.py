"""`answers=[network]`: the logit of a right answer by the network of `trainer=foresight`, for every topic."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragauge import track
from ragauge.contract.checks import require_text
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import named, runtime
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresRanking
from ragauge.plugins.training.trainers.foresight import FEATURE, PROBE, Head, read_head
from ragauge.track.models import load_predictor, read_file

_KEY = "answers.network.model"
_SAME = 0.999  # cosine of the vectors of PROBE from which on the embedder is that of the training


@dataclass(frozen=True)
class Network(MeasuresRanking):
    """The network of a predictor that `trainer=foresight` made.

    model: the predictor: models:/<name>/<version>, runs:/<run id>/predictor, or its file. uri: where MLflow keeps it.
    """

    component = "network"
    uses = frozenset({"embedder"})
    infos = (AnswerMeasureInfo(FEATURE, "network", "higher", "score", "Without evidence", "context", False, False),)

    model: str
    uri: str | None = runtime(None)

    def __post_init__(self) -> None:
        require_text(_KEY, self.model, "a predictor that trainer=foresight made: its URI in MLflow, or its file")
        _head_of(self.model, self.uri)

    def identity(self) -> dict[str, Any]:
        """The digest of the network's weights, from whichever source."""
        head, probe = _head_of(self.model, self.uri)
        numbers = np.concatenate([head.weights, [head.intercept], probe])
        return {**named(self), "network": hashlib.sha256(numbers.tobytes()).hexdigest()}

    def measure_ranking(
        self, topics: pd.DataFrame, run: pd.DataFrame, passages: pd.DataFrame, n_tokens: int, tools: Tools
    ) -> pd.DataFrame:
        """Frame `answer_values`, a row per topic; ConfigError if the embedder differs from the training's."""
        head, probe = _head_of(self.model, self.uri)
        vectors = np.asarray(tools.embedder.embed([PROBE, *topics["query"]], "query"), dtype=float)
        if vectors.shape[1] != len(probe) or vectors[0] @ probe < _SAME * np.linalg.norm(vectors[0]) * np.linalg.norm(
            probe
        ):
            raise ConfigError(f"{_KEY}={self.model} was trained with another embedder; give that one by embedder=")
        return pd.DataFrame(
            {
                "qid": topics["qid"].to_numpy(),
                "n_tokens": n_tokens,
                "measure": FEATURE,
                "value": vectors[1:] @ head.weights + head.intercept,
                "status": "ok",
            }
        ).astype({"qid": "str", "n_tokens": "int64", "measure": "str", "value": "float64", "status": "str"})


@lru_cache(maxsize=8)
def _head_of(model: str, uri: str | None) -> tuple[Head, np.ndarray]:
    try:
        if Path(model).is_file():
            return read_head(read_file(Path(model)).settings, model)
        return read_head(load_predictor(track.tracking_uri(uri), model)[1], model)
    except DataError as error:
        raise ConfigError(f"{_KEY}: {error}") from error
