"""Trainings of a judge on a small collection: what it learns, twice the same, on from a checkpoint."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from patched import instead_of
from plugins.training.judge_inputs import collection
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.contract.topics import ANSWER_FAITHFULNESS, CONTEXT_RELEVANCE, QUESTIONS
from ragauge.plugins.training.ares import network
from ragauge.plugins.training.ares.interactions import INTERACTIONS, Triple, interactions
from ragauge.plugins.training.ares.network import TEXTS, JudgeNetwork, load_encoder, load_judge
from ragauge.plugins.training.contract import MODEL, Trained, TrainingTools
from ragauge.plugins.training.trainers import _judge_tuning, judge
from ragauge.plugins.training.trainers._judge_tuning import Tuning, tune
from ragauge.plugins.training.trainers.judge import JudgeTrainer, measures_of, temperature
from ragauge.plugins.training.trainers.triples import Example, examples
from ragauge.retrieval.pretrained import model_digest
from tiny_cross_encoder import write_cross_encoder

Report = Callable[[int, Mapping[str, float]], None]


@pytest.fixture
def base(tmp_path: Path) -> str:
    return str(write_cross_encoder(tmp_path / "base", positions=128))


def tools(folder: Path, report: Report = lambda step, values: None, seconds: float | None = None) -> TrainingTools:
    folder.mkdir(parents=True, exist_ok=True)
    given: Any = None
    return TrainingTools(given, folder, 0, seconds, report)


def trained(base: str, folder: Path, run: TrainingTools, **keys: Any) -> Trained:
    trainer = JudgeTrainer(base, **{"max_length": 64, "epochs": 2, "batch_size": 8, "lr": 1e-3, "looks": 3, **keys})
    return trainer.train(collection(24), collection(8, first=24), folder, run)


def test_its_options_are_those_of_the_config(base: str) -> None:
    from omegaconf import OmegaConf

    conf = (
        Path(__file__).resolve().parents[4]
        / "src"
        / "ragauge"
        / "plugins"
        / "training"
        / "conf"
        / "trainer"
        / "judge.yaml"
    )
    config: Any = OmegaConf.to_container(OmegaConf.load(conf))
    assert config.pop("_target_") == "ragauge.plugins.training.trainers.judge.JudgeTrainer"
    assert identity(JudgeTrainer(**config)) == identity(JudgeTrainer())


def untrained(base: str, **keys: Any) -> JudgeNetwork:
    trainer = JudgeTrainer(base, max_length=64, **keys)
    return trainer._untrained(*load_encoder(Path(base), "cpu", "key"))


def test_the_heads_of_an_untouched_encoder_are_sklearn_s_of_scaled_features(base: str) -> None:
    """Each feature in standard units, those of the encoder divided by the root of their number per word's."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    network = untrained(base, tune=False, questions=[CONTEXT_RELEVANCE])
    made = examples(collection(12), [CONTEXT_RELEVANCE], seed=0)
    triples, labels = [one.triple for one in made], [one.label for one in made]
    judge._fit_heads(network, made, penalty=0.02)
    features = network.features(CONTEXT_RELEVANCE, triples)
    n_read = features.shape[1] - len(INTERACTIONS)
    scaled = StandardScaler().fit_transform(features)
    scaled[:, :n_read] /= np.sqrt(n_read / len(INTERACTIONS))
    theirs = LogisticRegression(C=0.02, max_iter=2000).fit(scaled, labels).predict_proba(scaled)[:, 1]
    np.testing.assert_allclose(network.probabilities(CONTEXT_RELEVANCE, triples), theirs, atol=1e-3)
    assert np.ptp(theirs) > 0.1


def test_texts_are_compared_by_their_mean_vectors_and_by_each_token_s_nearest() -> None:
    r = 0.5**0.5  # the first text's mean is (r, r) at the length 1, the second's (0.6, 0.8)
    expected = [0.6 * r, 0.8 * r, r - 0.6, 0.8 - r, 1.4 * r, 0.7, 0.6, 0.65]
    found = network._compared(np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([[1.2, 1.6]]))
    np.testing.assert_allclose(found, expected)


def test_heads_on_an_untouched_encoder_learn_what_is_faithful(base: str, tmp_path: Path) -> None:
    reported: dict[int, Mapping[str, float]] = {}
    found = trained(base, tmp_path / "m", tools(tmp_path / "c", reported.__setitem__), tune=False)
    assert found.values["validation_answer_faithfulness_auc"] > 0.9
    assert found.values["validation_context_relevance_accuracy"] > 0.8
    assert set(reported) == {1}
    folder = tmp_path / "m" / MODEL
    assert {f.suffix for f in folder.iterdir()} <= {".json", ".txt", ".safetensors"}
    judge = load_judge(folder, "cpu", "key")
    assert judge.reads == TEXTS
    assert found.facts["network"] == "the encoder is the base's, as it was"
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
def test_a_tuned_encoder_learns_and_the_same_command_gives_the_same_weights(base: str, tmp_path: Path) -> None:
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

    monkeypatch.setattr(_judge_tuning, "time", instead_of(time, monotonic=clock))
    found = trained(base, tmp_path / "m", tools(tmp_path / "c", seconds=10), epochs=100)
    assert found.values["steps"] < 12 < found.values["steps_per_epoch"] * 100
    assert (tmp_path / "m" / MODEL / "judge.json").is_file()


def tuning(base: str, folder: Path, n: int, seconds: float | None = None, **changed: Any) -> _judge_tuning._Run:
    """What tunes an encoder on n examples, before its first step."""
    made = examples(collection(24), QUESTIONS, seed=0)[:n]
    assert len(made) == n
    how = {"epochs": 2, "batch_size": 2, "lr": 1e-3, "precision": "f32", "looks": 1, **changed}
    return _judge_tuning._Run(untrained(base), made, dict, Tuning(**how), tools(folder, seconds=seconds))


def test_the_heads_see_the_interactions_of_words_in_standard_units(base: str, tmp_path: Path) -> None:
    from sklearn.preprocessing import StandardScaler

    run = tuning(base, tmp_path, 20)
    made = examples(collection(24), QUESTIONS, seed=0)[:20]
    theirs = StandardScaler().fit_transform(interactions([one.triple for one in made]))
    np.testing.assert_allclose(run.beside, theirs, atol=1e-5)
    spread = run.beside.std(axis=0)
    np.testing.assert_allclose(spread[spread > 0], 1, atol=1e-5)
    # Questions and passages alone: what is of answers is the same everywhere.
    assert [name for name, one in zip(INTERACTIONS, spread, strict=True) if one > 0] == [
        "question_in_passage", "question_in_sentence",
    ]  # fmt: skip


def test_the_network_s_heads_are_those_of_the_training_on_features_as_they_come(base: str, tmp_path: Path) -> None:
    import torch

    made = examples(collection(24), QUESTIONS, seed=0)
    run = tuning(base, tmp_path, len(made))
    torch.nn.init.normal_(run.heads.weight)
    torch.nn.init.normal_(run.heads.bias)
    run._fold()
    pooled = torch.randn(len(made), run.network.encoder.config.hidden_size)
    there = run.heads(torch.cat([pooled, torch.from_numpy(run.beside)], dim=1)).detach().numpy()
    raw = np.hstack([pooled.numpy(), interactions([one.triple for one in made])])
    np.testing.assert_allclose(raw @ run.network.weight.T + run.network.bias, there, atol=1e-3)


def test_the_state_of_the_lowest_held_out_loss_is_kept(base: str, tmp_path: Path) -> None:
    network = untrained(base)
    losses, seen = iter([0.5, 0.3, 0.4, 0.3]), []

    def look() -> dict[str, float]:
        weight = next(iter(network.encoder.state_dict().values()))
        seen.append((weight.clone(), network.weight.copy()))
        return {"validation_loss": next(losses)}

    made = examples(collection(24), QUESTIONS, seed=0)[:16]
    how = Tuning(epochs=1, batch_size=2, lr=1e-2, precision="f32", looks=4)
    found = tune(network, made, look, how, tools(tmp_path))
    assert found == {"steps": 8, "best_step": 4, "steps_per_epoch": 8}
    weight = next(iter(network.encoder.state_dict().values()))
    assert [bool((weight == at).all()) for at, _ in seen] == [False, True, False, False]
    np.testing.assert_array_equal(network.weight, seen[1][1])


def test_an_example_moves_the_head_of_its_own_question_alone(base: str, tmp_path: Path) -> None:
    last = [e for e in examples(collection(24), QUESTIONS, seed=0) if e.judged == QUESTIONS[-1]][:8]
    how = Tuning(epochs=1, batch_size=8, lr=1e-2, precision="f32", looks=1)
    run = _judge_tuning._Run(untrained(base), last, dict, how, tools(tmp_path))
    run._one_step(0.5)
    assert [bool(row.any()) for row in run.heads.weight.detach()] == [False, False, True]


def test_the_time_of_an_earlier_process_counts(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = tuning(base, tmp_path, 16, seconds=10)
    earlier.spent = 9.5
    earlier._save()
    now = iter(range(10_000))
    monkeypatch.setattr(_judge_tuning, "time", instead_of(time, monotonic=lambda: 0.1 * next(now)))
    run = tuning(base, tmp_path, 16, seconds=10, epochs=100)
    run.look = lambda: {"validation_loss": 0.5}
    assert run.run()["steps"] == 4  # after 9.6 to 9.9 seconds; the next look at the clock is at its end


@pytest.mark.parametrize(
    ("done", "factor"), [(0.0, 0.05), (0.05, 0.55), (0.1, 1.0), (0.55, 0.5), (0.91, 0.1), (1.0, 0.0)]
)
def test_the_learning_rate_rises_for_a_tenth_and_falls_along_a_line(
    base: str, tmp_path: Path, done: float, factor: float
) -> None:
    run = tuning(base, tmp_path, 20)
    assert run.steps == 20
    run._one_step(done)
    rates = [group["lr"] for group in run.optimizer.param_groups]
    assert rates == pytest.approx([1e-3 * factor, 1e-3 * factor * 30])  # the encoder's, the heads'


def test_how_much_is_done_is_the_share_of_the_steps_or_of_the_time(base: str, tmp_path: Path) -> None:
    run = tuning(base, tmp_path, 8, seconds=10)
    assert run.steps == 8
    run.step = 2
    assert [run._done(seconds) for seconds in (0.0, 2.0, 4.0, 10.0, 12.0)] == [0.25, 0.25, 0.4, 1.0, 1.2]
    endless = tuning(base, tmp_path, 8)
    endless.step = 6
    assert endless._done(1e9) == 0.75


def test_every_epoch_has_each_example_once_in_batches_of_about_one_length(base: str, tmp_path: Path) -> None:
    run = tuning(base, tmp_path, 75)
    assert run.per_epoch == 38
    epochs = [[run._batch(38 * epoch + step) for step in range(38)] for epoch in (0, 1)]
    lengths = np.array([len(first) + len(second) for first, second in run.pairs])
    for batches in epochs:
        assert sorted(np.concatenate(batches).tolist()) == list(range(75))
        assert sorted(map(len, batches)) == [1, *[2] * 37]
        # Sorted in blocks of 16 batches: the gaps within a block's batches add up to its range at most.
        assert sum(np.ptp(lengths[batch]) for batch in batches) <= 3 * np.ptp(lengths)
    assert [batch.tolist() for batch in epochs[0]] != [batch.tolist() for batch in epochs[1]]


def test_a_held_out_loss_that_is_no_number_ends_the_training(base: str, tmp_path: Path) -> None:
    made = examples(collection(24), QUESTIONS, seed=0)[:8]
    how = Tuning(epochs=1, batch_size=4, lr=1e-3, precision="f32", looks=2)
    reported: list[int] = []
    given = tools(tmp_path, lambda step, values: reported.append(step))
    told = (
        r"^trainer: the loss of the held-out examples is nan after 1 steps: the training diverged; choose "
        r"trainer\.lr below 0\.001$"
    )
    with pytest.raises(DataError, match=told):
        tune(untrained(base), made, lambda: {"validation_loss": float("nan")}, how, given)
    assert reported == []


def test_a_loss_that_is_no_number_ends_the_training_and_names_the_learning_rate(base: str, tmp_path: Path) -> None:
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
        ({"precision": "half"}, r"trainer\.precision='half': allowed are auto, bf16, f32"),
    ],
)
def test_a_bad_key_is_one_line(keys: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        JudgeTrainer(**keys)


def test_a_base_without_safetensors_or_for_fewer_tokens_is_one_line(base: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"trainer\.model=.*empty: config\.json and \*\.safetensors are needed"):
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
    sure = measures_of(np.array([1.0, 0, 1, 0]), np.array([1.0, 0.0, 0.0, 1.0]))
    assert sure["log_loss"] == pytest.approx(np.log(1e7) / 2)  # probabilities from 1e-7 to 1 - 1e-7


class Told:
    """Stands where a network does: it gives the probability that is each example's passage."""

    questions = (ANSWER_FAITHFULNESS,)

    def __init__(self) -> None:
        self.temperatures = np.ones(1)

    def probabilities(self, question: str, triples: list[Triple]) -> np.ndarray:
        return np.array([float(triple.passage) for triple in triples])


def test_an_answer_that_the_judge_is_certain_of_has_a_finite_loss() -> None:
    given = [(0, 1.0), *[(1, 0.95)] * 99, *[(0, 0.2)] * 50]
    unseen = [
        Example(ANSWER_FAITHFULNESS, f"q{i}", label, "", "", Triple("", str(p))) for i, (label, p) in enumerate(given)
    ]
    label, p = np.array(given).T
    logits = np.log(np.clip(p, 1e-12, 1 - 1e-12)) - np.log1p(-np.clip(p, 1e-12, 1 - 1e-12))
    grid = np.exp(np.linspace(np.log(0.1), np.log(20), 4000))
    losses = [np.logaddexp(0, -np.where(label == 1, logits, -logits) / by).mean() for by in grid]
    found = judge._calibrated(Told(), unseen)  # type: ignore[arg-type]
    best = float(grid[int(np.argmin(losses))])
    assert 0.2 < best < 10
    assert found[f"validation_{ANSWER_FAITHFULNESS}_temperature"] == pytest.approx(best, rel=0.01)


@pytest.mark.parametrize("sides", [1, 2])
def test_the_calibrated_loss_is_by_the_temperature_of_the_other_half_of_the_topics(sides: int) -> None:
    """Without any on the other side the probabilities stay as they are."""
    halves: dict[bool, list[str]] = {False: [], True: []}
    for i in range(40):
        halves[judge.hash_half(f"q{i}")].append(f"q{i}")
    given = {
        False: [(1, 0.9), (1, 0.8), (0, 0.7), (0, 0.1), (1, 0.6), (0, 0.2)],
        True: [(1, 0.99), (0, 0.95), (1, 0.7), (0, 0.3), (0, 0.4), (1, 0.2)],
    }
    chosen = {side: rows for side, rows in given.items() if sides == 2 or side}
    unseen = [
        Example(ANSWER_FAITHFULNESS, qid, label, "", "", Triple("", str(p)))
        for side, rows in chosen.items()
        for qid, (label, p) in zip(halves[side], rows, strict=False)
    ]

    def losses(rows: list[tuple[int, float]], by: float) -> np.ndarray:
        label, p = np.array(rows).T
        odds = (p / (1 - p)) ** (1 / by)
        return -np.log(np.where(label == 1, odds, 1) / (1 + odds))

    def best(rows: list[tuple[int, float]]) -> float:
        grid = np.exp(np.linspace(np.log(0.1), np.log(20), 4000))
        return float(grid[int(np.argmin([losses(rows, by).mean() for by in grid]))])

    found = judge._calibrated(Told(), unseen)  # type: ignore[arg-type]
    apart = [losses(rows, best(given[not side]) if sides == 2 else 1.0) for side, rows in chosen.items()]
    name = f"validation_{ANSWER_FAITHFULNESS}"
    assert found[f"{name}_log_loss_calibrated"] == pytest.approx(np.concatenate(apart).mean(), abs=1e-3)
    every = [row for rows in chosen.values() for row in rows]
    assert found[f"{name}_log_loss"] == pytest.approx(losses(every, 1.0).mean())
    assert found[f"{name}_temperature"] == pytest.approx(best(every), rel=0.01)


def test_a_kept_judge_of_another_make_is_refused(base: str, tmp_path: Path) -> None:
    trained(base, tmp_path / "m", tools(tmp_path / "c"), tune=False)
    file = tmp_path / "m" / MODEL / "judge.json"
    told = json.loads(file.read_text(encoding="utf-8"))
    for change in ({"reads": "code"}, {"questions": ["x"]}, {"interactions": []}, {"max_length": "8"}):
        file.write_text(json.dumps({**told, **change}), encoding="utf-8")
        with pytest.raises(ConfigError, match=r"key: .*judge\.json is not what this version"):
            load_judge(tmp_path / "m" / MODEL, "cpu", "key")
    assert set(told["questions"]) == set(QUESTIONS)
