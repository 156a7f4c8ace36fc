"""The way through a training: the best step, deadlines, kills, and the same weights again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract.errors import ConfigError, DataError, full_disk
from ragauge.plugins.training.contract import TrainingTools
from ragauge.plugins.training.trainers import _checkpoints, _loop
from ragauge.plugins.training.trainers._loop import Outcome, Steps, train_network
from tiny_encoder import write_encoder

PAIRS = [(f"where is {letter}{letter}", f"{letter} {letter} is here") for letter in "abcdefghijklmnop"]


class Stopped(BaseException):
    """In place of a kill."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("base") / "tiny")


def training(
    base: Path,
    folder: Path,
    steps: Steps,
    values: Mapping[int, float] | None = None,
    max_seconds: float | None = None,
    stop_at: int | None = None,
    loss_of: Any = None,
    look: Callable[[], None] = lambda: None,
    arguments: Mapping[str, Any] | None = None,
) -> tuple[Outcome, dict[str, Any], list[tuple[int, dict[str, float]]]]:
    """A training of the tiny model; values: what the evaluations give in turn, else that of the weights."""
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from datasets import Dataset

    folder.mkdir(parents=True, exist_ok=True)
    reported: list[tuple[int, dict[str, float]]] = []
    began = time.monotonic()

    def report(step: int, found: Mapping[str, float]) -> None:
        reported.append((step, dict(found)))
        if stop_at is not None and step >= stop_at and "validation" in found:
            raise Stopped

    model = SentenceTransformer(str(base), device="cpu", local_files_only=True)
    looks = iter(values.values()) if values is not None else None

    def evaluate() -> dict[str, float]:
        look()
        if looks is not None:
            return {"validation": next(looks)}
        weight = next(model.parameters()).detach().double()
        return {"validation": float(weight.abs().sum())}

    tools: Any = TrainingTools(None, folder, 3, max_seconds, report)  # type: ignore[arg-type]
    data = Dataset.from_dict({"anchor": [a for a, _ in PAIRS], "positive": [b for _, b in PAIRS]})
    loss = (loss_of or MultipleNegativesRankingLoss)(model)
    outcome = train_network(
        SentenceTransformerTrainer,
        {"model": model, "train_dataset": data, "loss": loss},
        steps,
        tools,
        evaluate,
        "validation",
        began,
        arguments,
    )
    return outcome, {name: value.clone() for name, value in model.state_dict().items()}, reported


def equal(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return set(a) == set(b) and all(bool((a[name] == b[name]).all()) for name in a)


def test_the_network_ends_with_the_weights_of_its_best_step(base: Path, tmp_path: Path) -> None:
    steps = Steps(batch_size=4, epochs=2, learning_rate=1e-3, evaluations=4)
    values = {0: 0.1, 2: 0.2, 4: 0.9, 6: 0.3, 8: 0.4}
    outcome, weights, reported = training(base, tmp_path / "a", steps, values)
    assert (outcome.steps, outcome.best_step, outcome.ended) == (8, 4, "epochs")
    assert outcome.history == {step: {"validation": v} for step, v in values.items() if step}
    assert outcome.values() == {
        "training_steps": 8, "best_step": 4, "validation_before": 0.1, "validation_best": 0.9,
    }  # fmt: skip
    losses = [step for step, found in reported if "loss" in found]
    assert losses == list(range(1, 9))
    last = training(base, tmp_path / "b", steps, {**values, 8: 1.0})[1]
    assert not equal(weights, last)
    outcome, first, _ = training(base, tmp_path / "c", steps, {**values, 8: 0.9})  # as good, later
    assert outcome.best_step == 4
    assert equal(weights, first)


def test_the_learning_rate_rises_and_falls_to_zero(base: Path, tmp_path: Path) -> None:
    steps = Steps(batch_size=2, epochs=1, learning_rate=1e-3, warm_up=0.25, evaluations=1)
    reported = training(base, tmp_path, steps)[2]
    rates = [found["learning_rate"] for _, found in reported if "learning_rate" in found]
    assert rates == pytest.approx([1e-3 * share for share in (1 / 3, 2 / 3, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6)])


def test_a_curve_of_the_loss_has_so_many_points_and_the_first(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _loop._POINTS == 200
    monkeypatch.setattr(_loop, "_POINTS", 10)
    steps = Steps(batch_size=8, epochs=11, learning_rate=1e-5, evaluations=1)  # 22 steps of two batches
    outcome, _, reported = training(base, tmp_path, steps, {0: 0.1, 22: 0.2})
    assert outcome.steps == 22
    assert [step for step, found in reported if "loss" in found] == [1, *range(2, 23, 2)]


def test_the_same_training_gives_the_same_weights(base: Path, tmp_path: Path) -> None:
    steps = Steps(batch_size=4, epochs=1, learning_rate=1e-3, evaluations=2)
    first, second = (training(base, tmp_path / name, steps)[1] for name in "ab")
    assert equal(first, second)


def test_random_numbers_in_a_training_are_those_of_its_seed(base: Path, tmp_path: Path) -> None:
    import torch
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    seeds: set[int] = set()

    class Seeing(MultipleNegativesRankingLoss):  # type: ignore[misc]
        def forward(self, *given: Any, **named: Any) -> Any:
            seeds.add(torch.initial_seed())
            return super().forward(*given, **named)

    training(base, tmp_path, Steps(batch_size=8, evaluations=1), loss_of=Seeing)
    assert seeds == {3}


def test_where_batches_run_out_before_their_number_the_last_step_is_evaluated(base: Path, tmp_path: Path) -> None:
    from sentence_transformers.base.sampler import DefaultBatchSampler

    class Fewer(DefaultBatchSampler):  # type: ignore[misc]
        def __len__(self) -> int:
            return 5

        def __iter__(self) -> Any:
            yield from ([0, 1], [2, 3], [4, 5])

    steps = Steps(batch_size=2, evaluations=1)
    outcome = training(base, tmp_path, steps, {0: 0.1, 3: 0.2}, arguments={"batch_sampler": Fewer})[0]
    assert (outcome.steps, outcome.best_step, outcome.ended) == (3, 3, "epochs")
    assert outcome.history == {3: {"validation": 0.2}}


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_a_training_that_was_stopped_continues_to_the_same_weights(base: Path, tmp_path: Path, precision: str) -> None:
    steps = Steps(batch_size=4, epochs=3, learning_rate=1e-3, evaluations=6, precision=precision)
    whole, weights, reported = training(base, tmp_path / "whole", steps)
    with pytest.raises(Stopped):
        training(base, tmp_path / "cut", steps, stop_at=8)
    assert [p.name for p in (tmp_path / "cut").glob("checkpoint-*")] == ["checkpoint-6"]
    half = tmp_path / "cut" / "checkpoint-8"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half")
    state = tmp_path / "cut" / "checkpoint-6" / "trainer_state.json"
    kept = json.loads(state.read_text())
    assert kept["log_history"] == []  # it would grow with every step
    kept["stateful_callbacks"]["Steering"]["attributes"]["spent"] = 1000.0
    state.write_text(json.dumps(kept))
    outcome, again, told = training(base, tmp_path / "cut", steps)
    assert 1000 < outcome.seconds < 1600
    assert not half.exists() or (half / "trainer_state.json").exists()
    assert equal(weights, again)
    assert (outcome.history, outcome.before) == (whole.history, whole.before)
    loss = [{step: found["loss"] for step, found in rows if "loss" in found} for rows in (reported, told)]
    assert loss[0] == loss[1]


def test_patience_ends_a_training_that_gets_no_better(base: Path, tmp_path: Path) -> None:
    steps = Steps(batch_size=2, epochs=2, learning_rate=1e-3, evaluations=8, patience=2)
    outcome = training(base, tmp_path, steps, dict(enumerate([0.5, 0.6, 0.7, 0.7, 0.6, 0.9])))[0]
    assert (outcome.steps, outcome.best_step, outcome.ended) == (8, 4, "patience")


class Clock:
    """Every look at it takes a tenth of a second, or as long as it is told."""

    def __init__(self, look: float = 0.1) -> None:
        self.now = 0.0
        self.look = look

    def monotonic(self) -> float:
        self.now += self.look
        return self.now


def test_a_deadline_shortens_the_schedule_and_not_the_last_steps(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_loop, "time", Clock())
    monkeypatch.setitem(globals(), "time", _loop.time)
    steps = Steps(batch_size=4, epochs=5000, learning_rate=1e-3, evaluations=4)
    outcome, _, reported = training(base, tmp_path, steps, max_seconds=30)
    assert outcome.ended == "max_seconds"
    assert 20 < outcome.seconds < 31
    assert 20 < outcome.steps < 200
    assert len(outcome.history) >= 3
    rates = {step: found["learning_rate"] for step, found in reported if "learning_rate" in found}
    assert max(rates.values()) > 5e-4
    assert rates[max(rates)] < 1e-4


class Still:
    """A clock that stands where it is put."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_the_plan_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that went on at step 10 and second 100 is at step 50 and second 300 of 1000."""
    clock = Still()
    monkeypatch.setattr(_loop, "time", clock)
    tools: Any = TrainingTools(None, tmp_path, 0, 1000.0, lambda *_: None)  # type: ignore[arg-type]
    rate = _loop._Rate(0.1)
    way = _loop._steering(None, Steps(evaluations=10), tools, dict, "validation", 0.0, rate)
    with way:
        way.planned, way.first, way.began, way.step, clock.now = 500, 10, 100.0, 50, 300.0
        way.looks, way.saves, way.history, rate.total = [10.0, 10.0], [20.0], {40: {}}, 500
        way.plan()
        # 160 of the 200 seconds went into 40 steps: 4 each. An evaluation with its checkpoint takes 30, and a
        # quarter of 900 seconds is enough for 7, of which 2 are over. 5 of them leave 550 of 700 seconds, and
        # 95 % of that are enough for 130 further steps. The next one is after a fifth of those beyond 40.
        assert (rate.total, way.due) == (180, 68)
        way.looks, way.saves, rate.total = [1.0, 1.0], [], 200
        way.planned = 235
        way.plan()
        # 198 / 40 = 4.95 each; evaluations of 1 second: 10 * 3/4, so 8 of them. 0.95 * 692 / 4.95 = 132.8
        assert (rate.total, way.due) == (182, 58)
        way.planned = 150
        way.plan()
        assert rate.total == 150  # no more than the epochs


def test_a_loss_that_is_no_number_ends_in_one_line(base: Path, tmp_path: Path) -> None:
    from torch import nn

    class Broken(nn.Module):
        def __init__(self, model: Any) -> None:
            super().__init__()
            self.model = model

        def forward(self, features: Any, labels: Any) -> Any:
            return self.model(next(iter(features)))["sentence_embedding"].sum() * float("nan")

    with pytest.raises(DataError, match="the loss is nan at step 1, it diverged: a smaller learning_rate"):
        training(base, tmp_path, Steps(batch_size=4, learning_rate=0.5), loss_of=Broken)


def test_a_full_disk_at_a_checkpoint_is_told_as_one(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """safetensors tells a full disk by an error of its own, torch by a RuntimeError without a number."""
    import safetensors.torch
    from safetensors import SafetensorError

    def full(*_: object, **__: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(SafetensorError) as raised:
        training(base, tmp_path, Steps(batch_size=4))
    assert "no space is left on the disk" in str(full_disk(raised.value, tmp_path))

    monkeypatch.setattr(_checkpoints, "_FULL", 1 << 60)
    with pytest.raises(OSError, match="No space left") as of_torch, _checkpoints.told_as_full(tmp_path):
        raise RuntimeError("[enforce fail at inline_container.cc:858] . PytorchStreamWriter failed writing")
    assert "no space is left on the disk" in str(full_disk(of_torch.value, tmp_path))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"epochs": 0}, "trainer.x.epochs=0: allowed are numbers above 0"),
        ({"warm_up": 1.2}, "trainer.x.warm_up=1.2: allowed are numbers from 0 to 1"),
        ({"learning_rate": float("nan")}, "trainer.x.learning_rate=nan: allowed are numbers above 0 to 1"),
        ({"patience": 0}, "trainer.x.patience=0: allowed are integers from 1, and null (no early stopping)"),
    ],
)
def test_values_that_are_not_allowed_are_named(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Steps(**given).check("trainer.x")
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("device", "flags", "of_gpu", "precision"),
    [
        ("cpu", "avx512f avx512_bf16", False, "bf16"),
        ("cpu", "avx2 amx_bf16 amx_tile", False, "bf16"),
        ("cpu", "avx512f", True, "f32"),
        ("cuda", "avx512_bf16 amx_bf16", False, "f32"),
        ("cuda", "avx512f", True, "bf16"),
        ("cuda:1", "avx512f", True, "bf16"),
        ("mps", "", True, "f32"),
    ],
)
def test_auto_is_bf16_where_the_device_itself_computes_with_it(
    device: str, flags: str, of_gpu: bool, precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    (tmp_path / "cpuinfo").write_text(f"processor: 0\nflags: fpu {flags} sse\n", encoding="utf-8")
    monkeypatch.setattr(_loop, "Path", lambda _: tmp_path / "cpuinfo")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: of_gpu)
    assert _loop.settle_precision("trainer.x", "auto", device) == precision


def test_auto_is_what_the_machine_has() -> None:
    assert _loop.settle_device("trainer.x", "auto") in ("cpu", "cuda")
    assert _loop.settle_precision("trainer.x", "auto", "cpu") in ("bf16", "f32")
    with pytest.raises(ConfigError, match=r"trainer.x.device='tpu': allowed are auto, cpu, cuda"):
        _loop.settle_device("trainer.x", "tpu")
