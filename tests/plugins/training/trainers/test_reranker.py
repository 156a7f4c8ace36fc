"""A reranker in training: what it is saved as, that it learns, and what it is measured by."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.reranking.cross_encoder import CrossEncoderReranker
from ragauge.plugins.training.contract import MODEL, Trained, TrainingData, TrainingTools
from ragauge.plugins.training.trainers import reranker
from ragauge.plugins.training.trainers._pair_network import Watch, base_folder, load_base
from ragauge.plugins.training.trainers.reranker import Reranker
from ragauge.retrieval.pretrained import model_digest
from ragauge.retrieval.rerankers import NoReranker
from tiny_cross_encoder import write_cross_encoder

NAMES = ["anna", "ben", "carl", "dora", "emil", "fred", "gina", "hugo"]
FAST: dict[str, Any] = {
    "neg_ratio": 1, "max_length": 48, "batch_size": 8, "epochs": 1, "learning_rate": 5e-3, "evaluations": 2,
    "validation_topics": None, "precision": "f32", "device": "cpu", "depth": 4,
}  # fmt: skip
Train = Callable[..., tuple[Trained, Path, dict[int, dict[str, float]]]]


def data(side: str, n: int = 12) -> TrainingData:
    """Each topic asks for a name; one passage holds it, its evidence, and three others are found as well."""
    names = [f"{name}{side}{i}" for i, name in zip(range(n), NAMES * n, strict=False)]
    chunks = pd.DataFrame({"docno": [f"d{side}{i}" for i in range(n)], "text": [f"{x} built it" for x in names]})
    chunks = chunks.assign(parent=chunks["docno"], start=0, end=chunks["text"].str.len())
    topics = pd.DataFrame({"qid": [f"q{side}{i}" for i in range(n)], "query": [f"what of {x}?" for x in names]})
    evidence = pd.DataFrame({"qid": topics["qid"], "part": 0, "docno": chunks["docno"], "text": chunks["text"]})
    hits = [(i, (i + step) % n, rank) for i in range(n) for rank, step in enumerate((1, 0, 2, 3))]
    run = pd.DataFrame(
        {
            "qid": [f"q{side}{i}" for i, _, _ in hits],
            "docno": [f"d{side}{j}" for _, j, _ in hits],
            "rank": [rank for *_, rank in hits],
            "score": [4.0 - rank for *_, rank in hits],
        }
    )
    return TrainingData(topics, evidence, chunks, run)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cross_encoder(tmp_path_factory.mktemp("bases") / "tiny")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder without a head."""
    import transformers

    folder = write_cross_encoder(tmp_path_factory.mktemp("bases") / "plain")
    transformers.BertModel.from_pretrained(folder).save_pretrained(folder)
    return folder


@pytest.fixture
def train(tmp_path: Path, tools: Tools) -> Train:
    made = iter(range(100))

    def run(trainer: Reranker, seed: int = 0, **given: Any) -> tuple[Trained, Path, dict[int, dict[str, float]]]:
        at = tmp_path / str(next(made))
        (at / "checkpoints").mkdir(parents=True)
        (at / "out").mkdir()
        curve: dict[int, dict[str, float]] = {}

        def report(step: int, values: Mapping[str, float]) -> None:
            curve.setdefault(step, {}).update(values)

        training = TrainingTools(tools, at / "checkpoints", seed, None, report)
        sides = {"data": data("t"), "held_out": data("v", 6), **given}
        trained = trainer.train(sides["data"], sides["held_out"], at / "out", training)
        return trained, at / "out" / MODEL, curve

    return run


@pytest.mark.parametrize(("loss", "activation"), [("bce", "Sigmoid"), ("mse", "Identity")])
def test_a_trained_model_is_read_by_the_cross_encoder_as_it_was_saved(
    plain: Path, train: Train, tools: Tools, loss: str, activation: str
) -> None:
    trained, model, curve = train(Reranker(str(plain), loss=loss, **FAST))
    own = json.loads((model / "config_sentence_transformers.json").read_text())
    assert own["activation_fn"] == f"torch.nn.modules.{'activation' if loss == 'bce' else 'linear'}.{activation}"
    assert {file.suffix for file in model.iterdir()} <= {".json", ".safetensors", ".txt"}
    held_out = data("v", 6)
    reranker = CrossEncoderReranker(str(model), depth=4, backend="torch")
    made = reranker.rerank(held_out.run, held_out.topics, held_out.chunks, tools)
    from sentence_transformers import CrossEncoder

    texts = held_out.chunks.set_index("docno")["text"]
    asked = held_out.topics.set_index("qid")["query"]
    pairs = [[asked[q], texts[d]] for q, d in zip(made["qid"], made["docno"], strict=True)]
    theirs = CrossEncoder(str(model), device="cpu", local_files_only=True)
    np.testing.assert_allclose(made["score"], theirs.predict(pairs), atol=1e-5)
    assert theirs.max_seq_length == 48
    if loss == "bce":
        assert made["score"].between(0, 1).all()
    assert trained.values["training_pairs"] == len(trained.tables["pairs"]) == 24
    assert {"loss", "validation_ndcg_at_10", "validation_ndcg_at_10_fused"} <= {
        name for values in curve.values() for name in values
    }


def test_the_same_command_gives_the_same_weights_and_another_seed_others(tiny: Path, train: Train) -> None:
    trainer = Reranker(str(tiny), **FAST)
    digests = [model_digest(train(trainer, seed)[1]) for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]


class Killed(Exception):
    """Stands where a signal ends the process."""


def test_a_training_that_was_killed_ends_as_an_uninterrupted_one(
    plain: Path, tools: Tools, tmp_path: Path, train: Train
) -> None:
    trainer = Reranker(str(plain), **{**FAST, "epochs": 3, "evaluations": 9, "patience": None})
    whole = train(trainer)[1]
    checkpoints, resumed = tmp_path / "checkpoints", False
    checkpoints.mkdir()

    def report(step: int, values: Mapping[str, float]) -> None:
        if step == 6 and not resumed:
            raise Killed

    for resumed in (False, True):
        folder = tmp_path / f"out{resumed}"
        folder.mkdir()
        training = TrainingTools(tools, checkpoints, 0, None, report)
        if resumed:
            assert list(checkpoints.glob("checkpoint-*"))
            trainer.train(data("t"), data("v", 6), folder, training)
        else:
            with pytest.raises(Killed):
                trainer.train(data("t"), data("v", 6), folder, training)
    assert model_digest(folder / MODEL) == model_digest(whole)


def test_a_reranker_learns_what_tells_evidence_from_other_hits(plain: Path, train: Train) -> None:
    """Every hit that is no evidence consists of nines; the retriever puts one of these first."""

    def told_apart(side: str, n: int) -> TrainingData:
        found = data(side, n)
        nines = pd.DataFrame({"docno": [f"n{i}" for i in range(4)], "text": ["9 9 9 " * (i + 1) for i in range(4)]})
        nines = nines.assign(parent=nines["docno"], start=0, end=nines["text"].str.len())
        docno = found.run["docno"].where(found.run["rank"] == 1, "n" + found.run["rank"].astype(str))
        return replace(found, chunks=pd.concat([found.chunks, nines]), run=found.run.assign(docno=docno))

    trainer = Reranker(str(plain), **{**FAST, "epochs": 4, "fuse": 0.0, "validation_measure": "P@1"})
    trained, _, curve = train(trainer, data=told_apart("t", 24), held_out=told_apart("v", 12))
    assert trained.values["validation_p_at_1_best"] == 1.0
    losses = [values["loss"] for _, values in sorted(curve.items()) if "loss" in values]
    assert np.mean(losses[-3:]) < np.mean(losses[:3])


def test_before_the_training_there_is_the_retriever_s_order_or_the_base(tiny: Path, plain: Path) -> None:
    systems = Reranker(str(plain), depth=7, fuse=0.3).systems(None, None)
    assert systems == {"reranked": {"reranker": NoReranker()}, "fused": {"reranker": NoReranker()}}
    after = Reranker(str(plain), depth=7, fuse=0.3).systems(None, tiny)
    assert {name: (part["reranker"].depth, part["reranker"].fuse) for name, part in after.items()} == {
        "reranked": (7, 0.0), "fused": (7, 0.3),
    }  # fmt: skip
    assert set(Reranker(str(plain), fuse=0).systems(None, tiny)) == {"reranked"}
    before = Reranker(str(tiny)).systems(None, None)
    assert {part["reranker"].model for part in before.values()} == {str(tiny)}


# --- what early stopping looks at ---------------------------------------------------------------------


class Known:
    """Stands where a network does, for `PairModel.scores`."""

    def __init__(self, scores: Mapping[str, float]) -> None:
        self.known, self.training = scores, True

    def eval(self) -> None:
        self.training = False

    def train(self, mode: bool) -> None:
        self.training = mode


def test_the_watch_measures_the_order_alone_and_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    from ragauge.plugins.training.trainers import _pair_network

    held_out = data("v", 4)
    watch = Watch(held_out, "P@1", 4, 0.9, None, 0)
    assert (watch.name, watch.deciding) == ("validation_p_at_1", "validation_p_at_1_fused")
    right = dict(zip(held_out.topics["query"], held_out.chunks["text"], strict=True))

    class Scores:
        def __init__(self, model: Any, backend: str) -> None:
            assert not model.training

        def scores(self, pairs: list[tuple[str, str]]) -> np.ndarray:
            return np.array([float(right[query] == text) for query, text in pairs], dtype=np.float32)

    monkeypatch.setattr(_pair_network, "PairModel", Scores)
    network = Known({})
    # The retriever has the evidence at the second of four places: 2/3 of its range. With .9 of that the first
    # place, which the network gives nothing, has .9 and the evidence .6 + .1.
    assert watch.values(network) == {"validation_p_at_1": 1.0, "validation_p_at_1_fused": 0.0}
    assert network.training
    assert Watch(held_out, "P@1", 4, 0.2, None, 0).values(network)["validation_p_at_1_fused"] == 1.0
    alone = Watch(held_out, "P@1", 4, 0.0, 2, 0)
    assert alone.deciding == "validation_p_at_1"
    assert alone.values(network) == {"validation_p_at_1": 1.0}
    assert alone.hits["qid"].nunique() == 2


def test_only_topics_with_a_question_hits_and_evidence_are_watched() -> None:
    held_out = data("v", 6)
    known = replace(
        held_out,
        topics=held_out.topics.iloc[:5],
        run=held_out.run[held_out.run["qid"] != "qv1"],
        evidence=held_out.evidence[held_out.evidence["qid"] != "qv3"],
    )
    watch = Watch(known, "P@1", 2, 0.0, None, 0)
    assert watch.hits["qid"].tolist() == ["qv0", "qv0", "qv2", "qv2", "qv4", "qv4"]
    assert watch.qrels[["qid", "docno"]].to_numpy().tolist() == [
        ["qv0", "dv0"], ["qv2", "dv2"], ["qv4", "dv4"],
    ]  # fmt: skip
    assert set(Watch(known, "P@1", 2, 0.0, 2, 0).hits["qid"]) < {"qv0", "qv2", "qv4"}


def test_a_validation_without_evidence_is_one_line() -> None:
    held_out = data("v", 4)
    with pytest.raises(DataError, match=r"^validation: none of its 4 topics has hits") as caught:
        Watch(replace(held_out, evidence=held_out.evidence.iloc[:0]), "P@1", 4, 0.5, None, 0)
    assert "\n" not in str(caught.value)


# --- bases --------------------------------------------------------------------------------------------


def test_a_plain_encoder_gets_a_head_of_the_seed_and_keeps_its_layers(plain: Path, tiny: Path) -> None:
    import torch

    def weights(folder: Path, seed: int) -> dict[str, Any]:
        return dict(load_base(folder, "cpu", None, "Sigmoid", seed)[0].model.state_dict())

    first, again, other = weights(plain, 0), weights(plain, 0), weights(plain, 1)
    head = "classifier.weight"
    assert first[head].shape == (1, 32)
    assert torch.equal(first[head], again[head])
    assert not torch.equal(first[head], other[head])
    assert torch.equal(weights(tiny, 0)[head], weights(tiny, 1)[head])  # a cross-encoder keeps its own
    layer = "bert.encoder.layer.0.attention.self.query.weight"
    assert torch.equal(first[layer], other[layer])
    assert torch.equal(first[layer], weights(tiny, 0)[layer])
    assert base_folder(str(plain)) == (plain.resolve(), False)
    assert base_folder(str(tiny)) == (tiny.resolve(), True)
    assert base_folder("all-MiniLM-L6-v2")[1] is False


def test_a_base_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def unreachable(*_: Any, **__: Any) -> None:
        raise OSError("the hub cannot be reached")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(ConfigError, match=r"^trainer\.model=nobody/nothing: neither a folder nor") as caught:
        Reranker("nobody/nothing").base()
    assert "\n" not in str(caught.value)


def test_a_base_of_several_scores_is_one_line(tmp_path: Path) -> None:
    three = write_cross_encoder(tmp_path / "three", num_labels=3)
    with pytest.raises(ConfigError, match=r"^trainer\.model=.*three: gives a pair 3 scores"):
        Reranker(str(three)).base()


def test_a_classifier_that_does_not_say_how_many_scores_it_gives_has_two(tmp_path: Path) -> None:
    two = write_cross_encoder(tmp_path / "two", num_labels=2)
    config = json.loads((two / "config.json").read_text())
    kept = {name: value for name, value in config.items() if name not in ("id2label", "label2id", "num_labels")}
    (two / "config.json").write_text(json.dumps(kept))
    with pytest.raises(ConfigError, match=r"^trainer\.model=.*two: gives a pair 2 scores"):
        Reranker(str(two)).base()


@pytest.mark.parametrize("attack", ["activation", "pickle"])
def test_nothing_of_a_base_is_executed(tmp_path: Path, plain: Path, attack: str) -> None:
    """An encoder of others names a function as its activation, or has weights that execute when loaded."""
    import shutil

    import torch

    folder = tmp_path / "attack"
    shutil.copytree(plain, folder)
    if attack == "pickle":
        (folder / "model.safetensors").unlink()
        torch.save({}, folder / "pytorch_model.bin")
    else:
        known = json.loads((folder / "config.json").read_text())
        evil = {"sentence_transformers": {"activation_fn": "torch.utils.collect_env.main"}}
        (folder / "config.json").write_text(json.dumps(known | evil))
    told = "holds no .*safetensors" if attack == "pickle" else "names the activation"
    with pytest.raises(ConfigError, match=rf"^trainer\.model=.*attack: .*{told}"):
        Reranker(str(folder)).base()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"loss": "hinge"}, r"trainer\.loss='hinge': allowed are bce, mse"),
        ({"fuse": 1}, r"trainer\.fuse=1: allowed are numbers from 0 \(the reranker alone\) to below 1"),
        ({"depth": 1}, r"trainer\.depth=1"),
        ({"max_length": 4}, r"trainer\.max_length=4"),
        ({"validation_measure": "nDCC@10"}, r".*nDCC@10"),
        ({"validation_topics": 0}, r"trainer\.validation_topics=0"),
        ({"learning_rate": 0}, r"trainer\.learning_rate=0"),
        ({"neg_ratio": 0}, r"trainer\.neg_ratio=0"),
        ({"model": ""}, r"trainer\.model=''"),
    ],
)
def test_values_out_of_range_are_one_line(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=f"^{told}") as caught:
        Reranker(**given)
    assert "\n" not in str(caught.value)


def test_a_length_that_the_base_does_not_take_is_one_line(tiny: Path, train: Train) -> None:
    with pytest.raises(ConfigError, match=r"^trainer\.max_length=65: allowed are 8 to 64"):
        train(Reranker(str(tiny), **{**FAST, "max_length": 65}))


def test_a_length_may_be_the_longest_that_the_base_takes(tiny: Path) -> None:
    assert load_base(tiny, "cpu", 64, "Sigmoid", 0).max_length == 64


@pytest.mark.parametrize(
    ("loss", "expected", "activation"),
    [("bce", "BinaryCrossEntropyLoss", "Sigmoid"), ("mse", "MSELoss", "Identity")],
)
def test_the_loss_is_the_one_that_was_asked_for(
    loss: str, expected: str, activation: str, tiny: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Begun(Exception):
        """In place of a training."""

    def begun(trainer: Any, given: Mapping[str, Any], *others: Any) -> None:
        raise Begun(type(given["loss"]).__name__, type(given["model"].activation_fn).__name__)

    monkeypatch.setattr(reranker, "train_network", begun)
    with pytest.raises(Begun) as told:
        train(Reranker(str(tiny), **{**FAST, "loss": loss}))
    assert told.value.args == (expected, activation)


def test_code_beside_a_model_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "attack")
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nclass Evil: pass\n")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    own = {"model_type": "CrossEncoder"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(own))
    with pytest.raises(ConfigError, match=r"^trainer\.model=.*names the module 'evil\.Evil'; allowed are"):
        base_folder(str(folder))
    assert not (tmp_path / "ran").exists()
