"""Trainings of a judge on a small collection: what it learns, twice the same, on from a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judge_inputs import collection
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.judge_questions import ANSWER_FAITHFULNESS, QUESTIONS
from ragauge.contract.training import MODEL, Trained, Trainer, TrainingTools
from ragauge.measures.trained.interactions import Triple
from ragauge.measures.trained.network import load_judge
from ragauge.retrieval.pretrained import model_digest
from ragauge.trainers import _judge_tuning
from ragauge.trainers.judge import JudgeTrainer, measures_of, temperature
from tiny_cross_encoder import write_cross_encoder

Report = Callable[[int, Mapping[str, float]], None]


@pytest.fixture
def base(tmp_path: Path) -> str:
    return str(write_cross_encoder(tmp_path / "base", positions=128))


def tools(
    folder: Path, report: Report = lambda step, values: None, seconds: float | None = None
) -> TrainingTools:
    folder.mkdir(parents=True, exist_ok=True)
    given: Any = None
    return TrainingTools(given, folder, 0, seconds, report)


def trained(base: str, folder: Path, run: TrainingTools, **keys: Any) -> Trained:
    trainer = JudgeTrainer(
        base, **{"max_length": 64, "epochs": 2, "batch_size": 8, "lr": 1e-3, "looks": 3, **keys}
    )
    return trainer.train(collection(24), collection(8, first=24), folder, run)


def test_the_trainer_satisfies_the_protocol(base: str) -> None:
    trainer: Trainer = JudgeTrainer(base)
    assert trainer.kind == "judge"
    assert trainer.systems(None, None) == {}
    assert trainer.base()["digest"] == model_digest(Path(base))


def test_heads_on_an_untouched_encoder_learn_what_is_faithful(base: str, tmp_path: Path) -> None:
    reported: dict[int, Mapping[str, float]] = {}
    found = trained(base, tmp_path / "m", tools(tmp_path / "c", reported.__setitem__), tune=False)
    assert found.values["validation_answer_faithfulness_auc"] > 0.9
    assert found.values["validation_context_relevance_accuracy"] > 0.8
    assert set(reported) == {1}
    folder = tmp_path / "m" / MODEL
    assert {f.suffix for f in folder.iterdir()} <= {".json", ".txt", ".safetensors"}
    judge = load_judge(folder, "cpu", "key")
    passage = "Bar is a town. In Bar live 1000 people."
    right, wrong = judge.probabilities(
        ANSWER_FAITHFULNESS,
        [Triple("How many people live in Bar?", passage, said) for said in ("1000", "Ann Bolo")],
    )
    assert right > 0.5 > wrong
    examples = found.tables["examples"]
    assert examples.groupby(["side", "judged"])["label"].mean().eq(0.5).all()
    assert found.values["training_examples"] == (examples["side"] == "training").sum()


@pytest.mark.slow
def test_a_tuned_encoder_learns_and_the_same_command_gives_the_same_weights(
    base: str, tmp_path: Path
) -> None:
    losses: list[float] = []

    def report(step: int, values: Mapping[str, float]) -> None:
        losses.append(values["validation_loss"])

    found = trained(base, tmp_path / "a", tools(tmp_path / "ca", report))
    assert min(losses) < 0.65 < np.log(2) + 0.01
    assert found.values["best_step"] <= found.values["steps"]
    trained(base, tmp_path / "b", tools(tmp_path / "cb"))
    assert model_digest(tmp_path / "a" / MODEL) == model_digest(tmp_path / "b" / MODEL)


@pytest.mark.slow
def test_a_training_that_was_stopped_goes_on_and_ends_at_the_same_weights(base: str, tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    seen: list[int] = []

    def kill(step: int, values: Mapping[str, float]) -> None:
        seen.append(step)
        if len(seen) == 3:
            raise Killed

    with pytest.raises(Killed):
        trained(base, tmp_path / "a", tools(tmp_path / "ca", kill))
    later: list[int] = []
    trained(base, tmp_path / "a", tools(tmp_path / "ca", lambda step, values: later.append(step)))
    assert later[0] == seen[-1]  # the look whose checkpoint was not written
    whole: list[int] = []
    trained(base, tmp_path / "b", tools(tmp_path / "cb", lambda step, values: whole.append(step)))
    assert later[-1] == whole[-1]
    assert model_digest(tmp_path / "a" / MODEL) == model_digest(tmp_path / "b" / MODEL)


def test_a_time_limit_ends_at_the_best_state_and_the_learning_rate_has_come_down(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    monkeypatch.setattr(_judge_tuning.time, "monotonic", clock)
    found = trained(base, tmp_path / "m", tools(tmp_path / "c", seconds=10), epochs=100)
    assert found.values["steps"] < 12 < found.values["steps_per_epoch"] * 100
    assert (tmp_path / "m" / MODEL / "judge.json").is_file()


def test_a_loss_that_is_no_number_ends_the_training_and_names_the_learning_rate(
    base: str, tmp_path: Path
) -> None:
    from safetensors.numpy import load_file, save_file

    file = Path(base) / "model.safetensors"
    weights = load_file(file)
    save_file({name: np.full_like(array, np.nan) for name, array in weights.items()}, file, {"format": "pt"})
    with pytest.raises(DataError, match=r"the loss is nan after 0 steps: .*choose trainer\.lr below 0\.001"):
        trained(base, tmp_path / "m", tools(tmp_path / "c"))
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
def test_a_killed_process_leaves_a_checkpoint_from_which_the_next_goes_on(base: str, tmp_path: Path) -> None:
    import signal
    import subprocess
    import sys

    script = (
        "import os, signal, sys; from pathlib import Path; import test_judge_trainer as t\n"
        "seen = []\n"
        "def report(step, values):\n"
        "    seen.append(step)\n"
        "    print(step, flush=True)\n"
        "    if len(seen) == 2 and sys.argv[3] == 'kill': os.kill(os.getpid(), signal.SIGKILL)\n"
        "t.trained(sys.argv[1], Path(sys.argv[2]) / 'm', t.tools(Path(sys.argv[2]) / 'c', report))\n"
    )
    import os

    found = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, found))}
    told = []
    for folder, what in (("a", "kill"), ("a", "go on"), ("b", "go on")):
        command = [sys.executable, "-c", script, base, str(tmp_path / folder), what]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == (-signal.SIGKILL if what == "kill" else 0), done.stderr
        told.append(done.stdout.split())
    assert told[1] == told[2][1:]  # from the checkpoint on, and no step of before it
    assert model_digest(tmp_path / "a" / "m" / MODEL) == model_digest(tmp_path / "b" / "m" / MODEL)


def test_examples_of_one_class_are_told_before_the_model_is_loaded(base: str, tmp_path: Path) -> None:
    data = collection(6)
    silent = replace(data, topics=data.topics.assign(answer=None))
    with pytest.raises(DataError, match=r"training, 6 topics: answer_faithfulness has 0 right and 0 wrong"):
        JudgeTrainer(base, max_length=64).train(silent, data, tmp_path / "m", tools(tmp_path / "c"))
    with pytest.raises(DataError, match=r"validation, 1 topics: context_relevance has 1 right and 1 wrong"):
        JudgeTrainer(base, max_length=64).train(data, collection(1), tmp_path / "m", tools(tmp_path / "c"))
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (
            {"questions": ["context"]},
            r"trainer\.questions=\['context'\]: allowed are lists of context_relevance",
        ),
        ({"questions": []}, r"trainer\.questions=\[\]"),
        ({"strong": 1.5}, r"trainer\.strong=1\.5: allowed are numbers from 0 to 1"),
        ({"epochs": 0}, r"trainer\.epochs=0: allowed are integers from 1"),
        ({"lr": float("nan")}, r"trainer\.lr=nan"),
        ({"tune": "yes"}, r"trainer\.tune='yes': allowed are true, false"),
    ],
)
def test_a_bad_key_is_one_line(keys: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        JudgeTrainer(**keys)


def test_a_base_without_safetensors_or_for_fewer_tokens_is_one_line(base: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        ConfigError, match=r"trainer\.model=.*empty: config\.json and \*\.safetensors are needed"
    ):
        JudgeTrainer(str(tmp_path / "empty")).base()
    with pytest.raises(ConfigError, match=r"trainer\.max_length=512: allowed are 8 to 128"):
        trained(base, tmp_path / "m", tools(tmp_path / "c"), max_length=512)


def test_the_temperature_is_that_of_the_lowest_log_loss() -> None:
    rng = np.random.default_rng(0)
    logits = 3 * rng.standard_normal(400)
    label = (rng.random(400) < 1 / (1 + np.exp(-logits / 2.5))).astype(float)
    grid = np.exp(np.linspace(np.log(0.2), np.log(15), 2000))
    losses = [measures_of(label, 1 / (1 + np.exp(-logits / t)))["log_loss"] for t in grid]
    assert temperature(logits, label) == pytest.approx(grid[int(np.argmin(losses))], rel=0.01)
    assert 1.8 < temperature(logits, label) < 3.5


def test_measures_by_hand() -> None:
    found = measures_of(np.array([1.0, 1, 0, 0]), np.array([0.9, 0.4, 0.6, 0.1]))
    assert found["accuracy"] == 0.5
    assert found["auc"] == 0.75
    assert found["log_loss"] == pytest.approx(-np.log([0.9, 0.4, 0.4, 0.9]).mean())


def test_a_kept_judge_of_another_make_is_refused(base: str, tmp_path: Path) -> None:
    trained(base, tmp_path / "m", tools(tmp_path / "c"), tune=False)
    file = tmp_path / "m" / MODEL / "judge.json"
    told = json.loads(file.read_text(encoding="utf-8"))
    for change in ({"reads": "code"}, {"questions": ["x"]}, {"interactions": []}, {"max_length": "8"}):
        file.write_text(json.dumps({**told, **change}), encoding="utf-8")
        with pytest.raises(ConfigError, match=r"key: .*judge\.json is not what this version"):
            load_judge(tmp_path / "m" / MODEL, "cpu", "key")
    assert set(told["questions"]) == set(QUESTIONS)
