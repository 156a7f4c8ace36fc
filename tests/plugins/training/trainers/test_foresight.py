"""The network of `trainer=foresight`: used where questions tell right from wrong, else left out; a column of topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from ragauge.contract import component
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import check
from ragauge.estimate.portable import portable
from ragauge.plugins.training.network import Network
from ragauge.plugins.training.trainers.foresight import FEATURE, ForesightTrainer, stacked


def vector(text: str, turned: float = 0.0) -> np.ndarray:
    """A vector of 6 numbers by the text's letters; `turned` is another embedder's."""
    rng = np.random.default_rng(sum(map(ord, text)) + 7 * len(text))
    kind = 1.5 if text.startswith("Is") else -1.5
    return np.append(rng.normal(size=5), kind) + turned


def embed(questions: Sequence[str]) -> np.ndarray:
    return np.stack([vector(question) for question in questions])


def answers(n: int, by_question: bool, seed: int = 0) -> pd.DataFrame:
    """Answers of two systems; yes-or-no questions are answered right more often, or not, and so is a large x."""
    rng = np.random.default_rng(seed)
    queries = np.repeat([f"{'Is' if i % 2 else 'Who'} {rng.integers(1_000_000_000)}?" for i in range(n)], 2)
    x = rng.normal(size=2 * n)
    kind = np.array([1.0 if query.startswith("Is") else -1.0 for query in queries])
    right = rng.random(2 * n) < 1 / (1 + np.exp(-x - (1.5 * kind if by_question else 0)))
    frame = pd.DataFrame({"qid": queries, "query": queries, "x": x, "llm": "one", "dataset": "one", "sweep": "one"})
    label = pd.array(np.where(right, 5, 4), dtype="Int8")
    return frame.assign(label=label, retriever=np.tile(["a", "b"], n))


def test_the_layer_is_used_where_it_foresees_more_and_left_out_else() -> None:
    for by_question in (True, False):
        rows = answers(60, by_question)
        head, logits = stacked(rows, ["x"], embed(rows["query"].tolist()), seed=0)
        assert np.isfinite(head.penalty) == by_question
        assert bool(np.any(logits)) == by_question
        assert bool(np.any(head.weights)) == by_question


def test_a_row_s_logit_comes_from_other_topics() -> None:
    rows = answers(40, True)
    vectors = embed(rows["query"].tolist())
    _, logits = stacked(rows, ["x"], vectors, seed=0)
    turned = rows.assign(label=rows["label"].where(rows["qid"] != rows["qid"][0], 4))
    _, other = stacked(turned, ["x"], vectors, seed=0)
    own = (rows["qid"] == rows["qid"][0]).to_numpy()
    np.testing.assert_allclose(logits[own], other[own])


@dataclass(frozen=True)
class Embedder(component.Embedder):
    turned: float = 0.0

    def embed(self, texts: Sequence[str], role: str) -> np.ndarray:
        assert role == "query"
        return np.stack([vector(text, self.turned) for text in texts])


def test_the_predictor_reads_the_layer_s_logit_which_a_measure_computes(tmp_path: Path) -> None:
    rows = answers(60, True)
    fitted = ForesightTrainer(features=("x",)).fit(rows, 0, 0, embed)
    assert list(fitted.model.feature_names_in_) == ["x", FEATURE]
    values = fitted.trained.values
    assert values["predictor_auc_correct"] > values["predictor_auc_correct_without_network"] + 0.05
    file = tmp_path / "predictor.json"
    file.write_text(portable(fitted.model, fitted.settings).to_json())
    topics = rows[["qid", "query"]].drop_duplicates()[:5]
    none = pd.DataFrame()
    measure = Network(str(file))
    found = check("answer_values", measure.measure_ranking(topics, none, none, 100, tools(Embedder())), "network")
    layer: Any = fitted.settings[FEATURE]
    by_hand = [vector(query) @ np.array(layer["weights"]) + layer["intercept"] for query in topics["query"]]
    np.testing.assert_allclose(found["value"], by_hand)
    with pytest.raises(ConfigError, match="was trained with another embedder"):
        measure.measure_ranking(topics, none, none, 100, tools(Embedder(3.0)))
    plain = tmp_path / "plain.json"
    plain.write_text(portable(fitted.model, {}).to_json())
    with pytest.raises(ConfigError, match="holds no network; ragauge train trainer=foresight makes"):
        Network(str(plain))


def tools(embedder: Embedder) -> Tools:
    return Tools(cast(Any, None), cast(Any, embedder), cast(Any, None))
