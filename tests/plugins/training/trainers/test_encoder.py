"""`trainer=encoder` on a tiny network: the same weights again, kills, losses, and what it learns from."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.plugins.training.contract import MODEL, Trained, TrainingData, TrainingTools
from ragauge.plugins.training.trainers import encoder
from ragauge.plugins.training.trainers._loop import Outcome
from ragauge.plugins.training.trainers.encoder import Encoder
from ragauge.plugins.training.trainers.mining import Window, mine
from ragauge.retrieval.embedders import SentenceTransformerEmbedder
from ragauge.retrieval.pretrained import model_digest
from ragauge.retrieval.retrievers import BM25, Hybrid, Sim
from ragauge.store import Store
from tiny_encoder import write_encoder

TINY: dict[str, Any] = {
    "batch_size": 4, "epochs": 2, "learning_rate": 5e-3, "precision": "f32", "evaluations": 2, "average": 0.0,
    "device": "cpu", "warm_up": 0.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("base") / "tiny")


def letters(number: int) -> str:
    return "".join(chr(97 + (number // 26**place) % 26) for place in range(3))


def collection(first: int, last: int) -> TrainingData:
    """Topics, each with the chunk that has its three letters reversed; those after it are hits, too."""
    docnos = [f"d{i}" for i in range(60)]
    chunks = pd.DataFrame({"docno": docnos, "text": [f"{letters(7 * i)[::-1]} it is" for i in range(60)]})
    chunks = chunks.assign(parent=docnos, start=0, end=chunks["text"].str.len())
    at = range(first, last)
    topics = pd.DataFrame({"qid": [f"q{i}" for i in at], "query": [f"what is {letters(7 * i)}" for i in at]})
    topics = topics.assign(answer="")
    evidence = pd.DataFrame({"qid": topics["qid"], "part": 0, "docno": [f"d{i}" for i in at], "text": None})
    rows = [(f"q{i}", f"d{(i + step) % 60}", 10.0 - step, step) for i in at for step in range(6)]  # the evidence first
    run = pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"])
    return TrainingData(topics, evidence, chunks, run)


def trained(
    trainer: Encoder, folder: Path, seed: int = 0, max_seconds: float | None = None
) -> tuple[Trained, str, list[tuple[int, dict[str, float]]]]:
    """What a training leaves, the digest of its weights, and what it reported."""
    reported: list[tuple[int, dict[str, float]]] = []

    def report(step: int, values: Mapping[str, float]) -> None:
        reported.append((step, dict(values)))

    checkpoints = folder / "checkpoints"
    checkpoints.mkdir(parents=True, exist_ok=True)
    shared: Any = None
    tools = Tools(Store(folder / "store"), shared, shared)
    given = TrainingTools(tools, checkpoints, seed, max_seconds, report)
    found = trainer.train(collection(0, 40), collection(40, 60), folder, given)
    return found, model_digest(folder / MODEL), reported


def test_its_options_are_those_of_the_config() -> None:
    from omegaconf import OmegaConf

    conf = (
        Path(__file__).resolve().parents[4]
        / "src"
        / "ragauge"
        / "plugins"
        / "training"
        / "conf"
        / "trainer"
        / "encoder.yaml"
    )
    config: Any = OmegaConf.to_container(OmegaConf.load(conf))
    assert config.pop("_target_") == "ragauge.plugins.training.trainers.encoder.Encoder"
    assert identity(Encoder(**config)) == identity(Encoder())


def test_too_few_passages_for_the_negatives_of_a_question_are_told(base: Path) -> None:
    data = collection(0, 3)  # five hits without evidence a topic; two of them are what the others have
    mined = mine(data, Window(count=7), 0)
    told = "trainer.negatives.count=7: topic 'q0' has fewer hits that may be negatives, and 3 topics have too"
    with pytest.raises(DataError, match=re.escape(told)):
        Encoder(model=str(base))._examples(mined, data.chunks)


def test_a_positive_without_any_negative_is_told_and_not_left_out(base: Path) -> None:
    data = collection(0, 3)
    mined = mine(data, Window(count=2), 0)
    without = replace(mined, negatives=mined.negatives[mined.negatives["qid"] != "q1"])
    with pytest.raises(DataError, match=r"^trainer\.negatives\.count=2: topic 'q1' has fewer hits"):
        Encoder(str(base), negatives={"count": 2})._examples(without, data.chunks)


def test_what_is_kept_is_the_average_with_the_base_at_the_base_s_length(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from safetensors.torch import load_file
    from sentence_transformers import SentenceTransformer

    own = SentenceTransformer(str(base), device="cpu", local_files_only=True).max_seq_length

    def moved(trainer: Any, given: Mapping[str, Any], steps: Any, tools: Any, evaluate: Any, *_: Any) -> Outcome:
        """In place of a training: every weight is 1 more."""
        model = given["model"]
        assert model.max_seq_length == 16 < own
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(1.0)
        tuned = {name: value.clone() for name, value in model.state_dict().items()}
        values = evaluate()
        assert all(torch.equal(value, tuned[name]) for name, value in model.state_dict().items())
        return Outcome(1, 1, values, {1: values}, "epochs", 0.0)

    looked: list[float] = []
    encoded = Encoder._encoded

    def look(self: Encoder, model: Any, texts: list[str], role: str) -> np.ndarray:
        looked.append(float(next(iter(model.parameters())).detach().flatten()[0]))
        return encoded(self, model, texts, role)

    monkeypatch.setattr(encoder, "train_network", moved)
    monkeypatch.setattr(Encoder, "_encoded", look)
    given = {**TINY, "average": 0.25, "max_length": 16, "negatives": {"count": 0}}
    trained(Encoder(str(base), **given), tmp_path)
    kept = SentenceTransformer(str(tmp_path / MODEL), device="cpu", local_files_only=True)
    assert kept.max_seq_length == own
    before, after = (load_file(folder / "model.safetensors") for folder in (base, tmp_path / MODEL))
    for name, value in before.items():
        if value.is_floating_point():
            torch.testing.assert_close(after[name], value + 0.75)
    first = SentenceTransformer(str(base), device="cpu", local_files_only=True).parameters()
    assert looked == pytest.approx([float(next(iter(first)).detach().flatten()[0]) + 0.75] * 2, abs=1e-5)


@pytest.mark.parametrize("loss", ["dpr", "triplet"])
def test_examples_hold_each_positive_with_its_negatives_and_what_is_relevant(base: Path, loss: str) -> None:
    data = collection(0, 3)
    data = replace(data, topics=data.topics.assign(query=["What  is A", "what is a", "what is b"]))
    mined = mine(data, Window(count=2), 0)
    trainer = Encoder(str(base), loss, query_prefix="q: ", passage_prefix="p: ")
    dataset, rows = trainer._examples(mined, data.chunks)
    text = data.chunks.set_index("docno")["text"]
    found = mined.negatives.groupby("positive", sort=False)["negative"].agg(list)
    expected = []
    for i, query in enumerate(data.topics["query"]):
        negatives = found[f"d{i}"]
        texts = [f"p: {text[docno]}" for docno in negatives]
        of_rows = [[one] for one in texts] if loss == "triplet" else [texts]
        expected += [(f"q: {query}", f"p: {text[f'd{i}']}", *one) for one in of_rows]
    assert list(zip(*dataset.to_dict().values(), strict=True)) == expected
    assert list(dataset.column_names)[:3] == ["anchor", "positive", "negative_1"]
    per_topic = 2 if loss == "triplet" else 1
    assert [row.question for row in rows] == [
        question for question in ("what is a", "what is a", "what is b") for _ in range(per_topic)
    ]  # one question, however it is spelt
    assert [row.relevant for row in rows] == [frozenset({f"d{i}"}) for i in range(3) for _ in range(per_topic)]
    assert set().union(*(row.passages for row in rows[:per_topic])) == {"d0", *found["d0"]}


@pytest.mark.slow
def test_an_encoder_learns_and_the_same_command_gives_the_same_weights(base: Path, tmp_path: Path) -> None:
    trainer = Encoder(model=str(base), negatives={"count": 1, "margin": None}, **TINY)
    first, digest, reported = trained(trainer, tmp_path / "a")
    again = trained(trainer, tmp_path / "b")[1]
    assert digest == again != model_digest(base)
    assert trained(trainer, tmp_path / "c", seed=1)[1] != digest
    losses = [found["loss"] for _, found in reported if "loss" in found]
    assert len(losses) == 20
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    assert {step for step, found in reported if "validation_ndcg_at_10" in found} == {10, 20}
    assert first.values["mined_candidates"] == 240
    assert first.values["mined_excluded_as_evidence"] == 40
    assert len(first.tables["negatives"]) == first.values["training_examples"] == 40
    assert set(first.tables["negatives"]) == {"qid", "query", "positive", "negative", "rank", "score"}
    assert first.values["best_step"] in (10, 20)
    assert not list((tmp_path / "a" / MODEL).rglob("*.bin"))
    assert not (tmp_path / "a" / MODEL / "README.md").exists()
    vectors = SentenceTransformerEmbedder(str(tmp_path / "a" / MODEL), backend="torch").embed(["it is"])
    assert vectors.shape == (1, 32)


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"loss": "dpr_cached", "mini_batch_size": 2},
        {"loss": "triplet", "negatives": {"count": 2, "margin": None}},
        {"negatives": {"count": 2, "margin": 0.05, "score": "run"}, "positives_per_topic": 1},
        {"negatives": {"count": 1, "margin": 0.01, "ceiling": 0.999}, "query_prefix": "q: "},
    ],
)
def test_every_loss_and_every_way_to_mine_trains(base: Path, tmp_path: Path, given: dict[str, Any]) -> None:
    found, digest, _ = trained(Encoder(model=str(base), **{**TINY, "epochs": 1, **given}), tmp_path)
    assert digest != model_digest(base)
    assert np.isfinite(list(found.values.values())).all()


def test_the_cached_loss_is_the_loss_of_the_whole_batch(base: Path, tmp_path: Path) -> None:
    """GradCache computes the same gradients in pieces; dropout draws other numbers, so it is off."""
    import torch
    from sentence_transformers import SentenceTransformer

    found = []
    texts = [[f"what is {letters(i)}" for i in range(6)], [f"{letters(i)} it is" for i in range(6)]]
    for loss in ("dpr", "dpr_cached"):
        model = SentenceTransformer(str(base), device="cpu").eval()
        features = [model.preprocess(side) for side in texts]
        of = Encoder(model=str(base), loss=loss, mini_batch_size=2)._loss(model)
        value = of(features, None)
        value.backward()
        vectors = [model.encode(side, convert_to_tensor=True, normalize_embeddings=True) for side in texts]
        expected = torch.nn.functional.cross_entropy(20 * vectors[0] @ vectors[1].T, torch.arange(6))
        assert float(value.detach()) == pytest.approx(float(expected), abs=1e-4)
        found.append(torch.cat([p.grad.ravel() for p in model.parameters() if p.grad is not None]))
    assert torch.allclose(found[0], found[1], atol=1e-5)


def test_the_triplet_loss_by_hand(base: Path) -> None:
    """The mean of max(0, cos(q, n) - cos(q, p) + margin), 0 for a negative that is far enough away."""
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(base), device="cpu").eval()
    sides = [
        [f"what is {letters(7 * i)}" for i in range(6)],
        [f"{letters(7 * i)[::-1]} it is" for i in range(6)],
        [f"nobody {letters(11 * i + 5)}" for i in range(6)],
    ]
    asked, right, wrong = (model.encode(texts, normalize_embeddings=True) for texts in sides)
    apart = (asked * wrong).sum(axis=1) - (asked * right).sum(axis=1)
    margin = float(-np.sort(apart)[1:3].mean())  # more than two of them lack
    assert margin > 0
    of = Encoder(model=str(base), loss="triplet", triplet_margin=margin, negatives={"count": 1})._loss(model)
    with torch.no_grad():
        value = float(of([model.preprocess(texts) for texts in sides], None))
    lacking = [float(one) + margin for one in apart if one + margin > 0]
    assert len(lacking) == 4
    assert value == pytest.approx(sum(lacking) / 6, abs=1e-5)


def test_it_is_measured_alone_and_in_a_hybrid(base: Path, tmp_path: Path) -> None:
    from types import SimpleNamespace

    trainer = Encoder(model=str(base), query_prefix="q: ", passage_prefix="p: ")
    before = trainer.systems(SimpleNamespace(retriever=BM25()), None)
    after = trainer.systems(SimpleNamespace(retriever=BM25()), tmp_path)
    assert list(before) == list(after) == ["alone", "hybrid"]
    assert (before["alone"]["embedder"].model, after["alone"]["embedder"].model) == (str(base), str(tmp_path))
    assert after["hybrid"]["embedder"].query_prefix == "q: "
    assert isinstance(after["alone"]["retriever"], Sim)
    assert isinstance(after["hybrid"]["retriever"], Hybrid)
    own = Hybrid(arms=("sim", "bm25"), options={"sim": Sim(), "bm25": BM25()})
    assert trainer.systems(SimpleNamespace(retriever=own), None)["hybrid"]["retriever"] is own


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"loss": "mse"}, "trainer.loss='mse': allowed are dpr, dpr_cached, triplet"),
        ({"average": 1}, "trainer.average=1: allowed are numbers from 0 to 0.95"),
        ({"negatives": {"window": 3}}, "trainer.negatives.window: allowed are count, first, last, margin"),
        ({"negatives": {"score": "x"}}, "trainer.negatives.score='x': allowed are encoder, run"),
        ({"loss": "triplet", "negatives": {"count": 0}}, "trainer.negatives.count=0: loss=triplet takes 1"),
        ({"max_length": 2}, "trainer.max_length=2: allowed are integers from 8"),
        ({"validation_measure": "best"}, "'best' is no measure that ir-measures knows"),
    ],
)
def test_bad_options_are_one_line(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Encoder(**given)
    assert told in str(raised.value)


def test_the_base_is_named_by_its_folder_or_by_its_mlflow_uri(base: Path) -> None:
    digest = model_digest(base)
    assert Encoder(model=str(base)).base() == {"model": "tiny", "digest": digest}
    of_mlflow = Encoder(model="models:/tuned/3", folder=str(base))
    assert of_mlflow.base() == {"model": "models:/tuned/3", "digest": digest}


def test_a_base_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"^trainer\.model=.*empty: the folder holds no model"):
        Encoder(model=str(tmp_path / "empty")).base()


_KILLED = """
import sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, {tests!r})
sys.path.insert(0, {here!r})
from test_encoder import TINY, trained
from ragauge.plugins.training.trainers.encoder import Encoder
given = {{**TINY, "epochs": 60, "evaluations": 30, "patience": None, "negatives": {{"count": 0}}}}
trained(Encoder(model={base!r}, **given), Path({folder!r}))
"""


@pytest.mark.slow
def test_a_training_that_was_killed_continues_and_gives_the_weights_of_one_that_was_not(
    base: Path, tmp_path: Path
) -> None:
    here = Path(__file__).resolve().parent

    def start(folder: Path) -> subprocess.Popen[bytes]:
        code = _KILLED.format(tests=str(here.parents[2]), here=str(here), base=str(base), folder=str(folder))
        return subprocess.Popen([sys.executable, "-c", code], env=os.environ.copy())

    whole = start(tmp_path / "whole")
    killed = start(tmp_path / "cut")
    deadline = time.monotonic() + 300
    while not list((tmp_path / "cut" / "checkpoints").glob("checkpoint-*/trainer_state.json")):
        assert killed.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "cut" / MODEL).exists()
    checkpoints = sorted((tmp_path / "cut" / "checkpoints").glob("checkpoint-*/trainer_state.json"))
    assert 0 < json.loads(checkpoints[-1].read_text(encoding="utf-8"))["global_step"] < 600
    assert start(tmp_path / "cut").wait(timeout=600) == 0
    assert whole.wait(timeout=600) == 0
    assert model_digest(tmp_path / "cut" / MODEL) == model_digest(tmp_path / "whole" / MODEL)
