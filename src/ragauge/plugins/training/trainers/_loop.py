"""The training loop: steps, deadline, checkpoints, the best step, and reports.

Around any `transformers.Trainer`, such as those of sentence-transformers: their own way to save, evaluate and
stop is left aside, since it knows neither a deadline nor our validation.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragauge.contract.checks import require_choice, require_count, require_number
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.extras import require_extra
from ragauge.contract.progress import progress, working
from ragauge.plugins.training.contract import TrainingTools
from ragauge.plugins.training.trainers._checkpoints import BEST, STATE, last_checkpoint, quiet, told_as_full

DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("auto", "bf16", "f32")

_PILOT = 5  # steps between two looks at the speed
_SHARE_PLANNED = 0.95  # of the time that is left, since a step may take longer than those before
_SHARE_LOOKED = 0.25  # of the time of the steps goes into evaluations, at most, but one there is
_SAVE_EVERY = 60.0  # seconds between checkpoints, besides those of evaluations
_POINTS = 200  # of a curve of the loss


@dataclass(frozen=True)
class Steps:
    """How a network is trained.

    epochs: may be a fraction. warm_up: share of the steps in which the learning rate rises from 0; then it
    falls to 0 in a straight line. evaluations: how often the network is held against the validation topics.
    patience: the training ends when so many of them in a row brought nothing better; None is never.
    precision: bf16 (activations; weights stay f32) or f32. device: cpu or cuda.
    """

    batch_size: int = 32
    epochs: float = 1.0
    learning_rate: float = 2e-5
    warm_up: float = 0.1
    weight_decay: float = 0.01
    evaluations: int = 8
    patience: int | None = None
    precision: str = "f32"
    device: str = "cpu"

    def check(self, key: str) -> None:
        """ConfigError that names `key` and a field for values that are not allowed."""
        require_count(f"{key}.batch_size", self.batch_size)
        require_number(f"{key}.epochs", self.epochs, 0, above=True)
        require_number(f"{key}.learning_rate", self.learning_rate, 0, 1, above=True)
        require_number(f"{key}.warm_up", self.warm_up, 0, 1)
        require_number(f"{key}.weight_decay", self.weight_decay, 0, 1)
        require_count(f"{key}.evaluations", self.evaluations)
        require_count(f"{key}.patience", self.patience, null="no early stopping")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a training; the network holds the weights of its best step.

    before: the validation's values of the network as it was; history: those of every evaluation by step.
    ended: "epochs", "patience" or "max_seconds".
    """

    steps: int
    best_step: int
    before: Mapping[str, float]
    history: Mapping[int, Mapping[str, float]]
    ended: str
    seconds: float

    def values(self) -> dict[str, float]:
        """Metrics of the training: its steps, the best step, and the validation before and at the best step."""
        best = self.history[self.best_step]
        found: dict[str, float] = {"training_steps": self.steps, "best_step": self.best_step}
        found |= {f"{name}_before": value for name, value in self.before.items()}
        return found | {f"{name}_best": best[name] for name in self.before}

    def facts(self) -> dict[str, str]:
        """Lines for the model card."""
        why = {"epochs": "all epochs", "patience": "nothing better came", "max_seconds": "max_seconds"}
        return {"steps": f"{self.steps:,} ({why[self.ended]}); the model is that of step {self.best_step:,}"}


def settle_device(key: str, device: str) -> str:
    """cpu or cuda; "auto" takes a GPU if there is one. ConfigError if a requested GPU is missing."""
    require_choice(f"{key}.device", device, DEVICES)
    if device == "cpu":
        return device
    import torch

    there = torch.cuda.is_available()
    if device == "cuda" and not there:
        raise ConfigError(f"{key}.device=cuda: torch sees no GPU here; allowed are cpu, and auto")
    return "cuda" if there else "cpu"


def settle_precision(key: str, precision: str, device: str) -> str:
    """bf16 or f32; "auto" is bf16 if the device supports it, about 1.7 times as fast."""
    require_choice(f"{key}.precision", precision, PRECISIONS)
    if precision != "auto":
        return precision
    import torch

    if device.startswith("cuda"):
        return "bf16" if torch.cuda.is_bf16_supported() else "f32"
    flags = Path("/proc/cpuinfo")
    known = flags.read_text(encoding="utf-8") if flags.is_file() else ""
    return "bf16" if "avx512_bf16" in known or "amx_bf16" in known else "f32"


def require_packages(key: str) -> None:
    """ConfigError if a package needed for training is not installed."""
    require_extra(key, "torch", "sentence_transformers", "accelerate", "datasets")


def train_network(
    trainer_class: Any,
    given: Mapping[str, Any],
    steps: Steps,
    tools: TrainingTools,
    evaluate: Callable[[], Mapping[str, float]],
    measure: str,
    started: float,
    arguments: Mapping[str, Any] | None = None,
) -> Outcome:
    """Trains `given["model"]`, which ends with the weights of the evaluation with the highest `measure`.

    trainer_class: a `transformers.Trainer`, such as SentenceTransformerTrainer; given: its arguments (model,
    train_dataset, loss, …); arguments: further fields of its training arguments. evaluate: the values of the current
    network on the validation topics; reported by these names. started: `time.monotonic()` when the work began that
    `tools.max_seconds` is about.
    A training that was killed continues from its last checkpoint below `tools.checkpoints`. With a deadline
    the number of steps, and with it the learning rate's schedule, follows from the speed measured so far, so
    that the last step still comes before it. DataError where the loss is not a number.
    """
    from transformers import TrainingArguments, set_seed
    from transformers.trainer_callback import PrinterCallback

    checkpoint = last_checkpoint(tools.checkpoints)
    set_seed(tools.seed)
    own = getattr(trainer_class, "training_args_class", TrainingArguments)
    with quiet():
        args = own(
            output_dir=str(tools.checkpoints),
            per_device_train_batch_size=steps.batch_size,
            num_train_epochs=steps.epochs,
            learning_rate=steps.learning_rate,
            weight_decay=steps.weight_decay,
            seed=tools.seed,
            data_seed=tools.seed,
            bf16=steps.precision == "bf16",
            use_cpu=steps.device == "cpu",
            save_strategy="no",  # the callback says when
            save_total_limit=1,
            eval_strategy="no",
            logging_steps=1,
            logging_nan_inf_filter=False,
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            **(arguments or {}),
        )
        rate = _Rate(steps.warm_up)
        trainer = _scheduled(trainer_class, rate)(args=args, **given)
        trainer.remove_callback(PrinterCallback)
        steering = _steering(trainer, steps, tools, evaluate, measure, started, rate)
        trainer.add_callback(steering)
        if checkpoint is not None:
            steering.resume(checkpoint)
        with told_as_full(tools.checkpoints), steering:
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
            return steering.finish()


class _Rate:
    """The learning rate as a share of its peak, by step, in the form saved in transformers' checkpoints."""

    def __init__(self, warm_up: float) -> None:
        self.warm_up = warm_up
        self.total = 1

    def __call__(self, step: int) -> float:
        rising = max(1.0, self.warm_up * self.total)
        if self.warm_up and step < rising:
            return (step + 1) / (rising + 1)
        return max(0.0, (self.total - step) / max(1.0, self.total - rising))


def _scheduled(trainer_class: Any, rate: _Rate) -> Any:
    """The trainer's class with this learning rate, whose total number of steps may change during training."""

    class Scheduled(trainer_class):  # type: ignore[misc]
        def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
            from torch.optim.lr_scheduler import LambdaLR

            rate.total = min(rate.total, num_training_steps) if rate.total > 1 else num_training_steps
            self.lr_scheduler = LambdaLR(optimizer or self.optimizer, rate)
            return self.lr_scheduler

        def add_model_card_callback(self, *_: Any) -> None:
            """Adds none: sentence-transformers' card would show texts of the data; ragauge writes its own."""

    return Scheduled


def _steering(
    trainer: Any,
    steps: Steps,
    tools: TrainingTools,
    evaluate: Callable[[], Mapping[str, float]],
    measure: str,
    started: float,
    rate: _Rate,
) -> Any:
    from safetensors.torch import load_file, save_file
    from transformers import TrainerCallback
    from transformers.trainer_callback import ExportableState

    class Steering(TrainerCallback, ExportableState):  # type: ignore[misc]
        """Evaluates, saves, reports and stops, in place of the trainer's own rules."""

        def __init__(self) -> None:
            self.before: dict[str, float] = {}
            self.look_before = 0.0  # seconds of the evaluation before the first step
            self.history: dict[int, dict[str, float]] = {}
            self.losses: dict[int, float] = {}
            self.spent = 0.0  # seconds, of earlier processes
            self.planned = 0
            self.due: int | None = None  # with a deadline: the step of the next evaluation
            self.ended = "epochs"
            self.first = 0  # the step that this process began with
            self.looks: list[float] = []  # seconds of the evaluations since then
            self.saves: list[float] = []  # and of the checkpoints
            self.began = self.saved = self.saving = time.monotonic()
            self.step = 0
            self.bar: Any = None

        # --- what is kept with a checkpoint -----------------------------------------------------------

        def state(self) -> dict[str, Any]:
            kept = {
                "before": self.before,
                "history": {str(step): values for step, values in self.history.items()},
                "losses": {str(step): loss for step, loss in self.losses.items()},
                "spent": self.elapsed(),
                "total": rate.total,
            }
            return {"args": {}, "attributes": kept}

        def resume(self, checkpoint: Path) -> None:
            """Restores the state of a checkpoint, and reports its curves again."""
            known = json.loads((checkpoint / STATE).read_text(encoding="utf-8"))
            kept = known["stateful_callbacks"]["Steering"]["attributes"]
            self.before, self.spent, rate.total = kept["before"], kept["spent"], kept["total"]
            self.history = {int(step): values for step, values in kept["history"].items()}
            self.losses = {int(step): loss for step, loss in kept["losses"].items()}
            for step, loss in self.losses.items():
                tools.report(step, {"loss": loss})
            for step, values in self.history.items():
                tools.report(step, values)

        def elapsed(self) -> float:
            return self.spent + time.monotonic() - started

        # --- events -----------------------------------------------------------------------------------

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.planned, self.step = int(state.max_steps), int(state.global_step)
            if not self.before:
                with working("validating the network before its first step"):
                    self.before = self.look()
                self.look_before = self.looks[-1]
            self.bar.restart(rate.total, self.step)
            self.first, self.looks = self.step, []
            self.began = self.saved = time.monotonic()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.step = step = int(state.global_step)
            if (step - self.first) % _PILOT == 0:
                self.plan()
            late = tools.max_seconds is not None and self.elapsed() >= tools.max_seconds
            done = step >= rate.total
            if done or self.is_due(step):
                if not (late and self.history):
                    self.evaluate(step)
            elif late and not self.history:
                self.evaluate(step)
            tired = steps.patience is not None and self.since_best() >= steps.patience
            if done or late or tired:
                short = done and step < self.planned
                self.ended = "max_seconds" if late or short else "patience" if tired and not done else "epochs"
                control.should_training_stop = True
            elif step in self.history or time.monotonic() - self.saved >= _SAVE_EVERY:
                control.should_save = True
                self.saving = time.monotonic()
            self.bar.update(1)

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.saved = time.monotonic()
            self.saves.append(self.saved - self.saving)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if not logs or "loss" not in logs:
                return
            loss, step = float(logs["loss"]), int(state.global_step)
            if not math.isfinite(loss):
                raise DataError(
                    f"training: the loss is {loss} at step {step:,}, it diverged: a smaller learning_rate "
                    f"than {steps.learning_rate:g} or a longer warm_up than {steps.warm_up:g} may help"
                )
            best = f", best {measure} {self.best():.3f}" if self.history else ""
            self.bar.set_postfix_str(f"loss {loss:.3f}{best}", refresh=False)
            state.log_history.clear()  # would grow with every step; the curve is kept here
            if step == 1 or step % max(1, rate.total // _POINTS) == 0 or step == rate.total:
                self.losses[step] = loss
                tools.report(step, {"loss": loss, "learning_rate": float(logs.get("learning_rate", 0.0))})

        # --- what they do -----------------------------------------------------------------------------

        def look(self) -> dict[str, float]:
            began = time.monotonic()
            model = trainer.model
            training = model.training
            model.eval()
            found = {name: float(value) for name, value in evaluate().items()}
            model.train(training)
            self.looks.append(time.monotonic() - began)
            return found

        def is_due(self, step: int) -> bool:
            """Whether the network is evaluated on the validation topics after this step."""
            if self.due is not None:
                return step >= self.due
            share = steps.evaluations / rate.total
            return math.floor(step * share) > math.floor((step - 1) * share)

        def evaluate(self, step: int) -> None:
            with working(f"validating the network after {step:,} steps"):
                values = self.look()
            best = self.best()
            self.history[step] = values
            if self.due is not None:
                self.due = self.planned  # until the next plan
            tools.report(step, values)
            if values[measure] > best or len(self.history) == 1:
                kept = {name: t.detach().cpu().clone() for name, t in trainer.model.state_dict().items()}
                fresh = tools.checkpoints / f"{BEST}.new"
                save_file(kept, str(fresh))
                os.replace(fresh, tools.checkpoints / BEST)

        def best(self) -> float:
            """The best value of the validation measure so far."""
            return max((known[measure] for known in self.history.values()), default=-math.inf)

        def since_best(self) -> int:
            """The number of evaluations after the best one."""
            values = [known[measure] for known in self.history.values()]
            return len(values) - 1 - values.index(max(values)) if values else 0

        def plan(self) -> None:
            """Sets the number of steps to fit the time left, by the speed so far.

            Where evaluations take long there are fewer of them, at equal distances, not fewer steps.
            """
            if tools.max_seconds is None:
                return
            aside = sum(self.looks) + sum(self.saves)
            pace = (time.monotonic() - self.began - aside) / (self.step - self.first)
            each = max(self.looks, default=self.look_before) + max(self.saves, default=0.0)
            left = tools.max_seconds - self.elapsed()
            for_steps = left + time.monotonic() - self.began
            affordable = int(_SHARE_LOOKED * for_steps / max(each, 1e-6)) - len(self.looks)
            looks = max(1, min(math.ceil(steps.evaluations * (1 - self.step / rate.total)), affordable))
            more = max(0, int(_SHARE_PLANNED * (left - looks * each) / max(pace, 1e-6)))
            rate.total = min(self.planned, self.step + more)
            last = max(self.history, default=0)
            self.due = last + math.ceil((rate.total - last) / looks)
            self.bar.total = rate.total

        def finish(self) -> Outcome:
            if self.step not in self.history and self.ended == "epochs":  # fewer batches than expected
                self.evaluate(self.step)
            best = max(self.history, key=lambda step: (self.history[step][measure], -step))
            trainer.model.load_state_dict(load_file(str(tools.checkpoints / BEST)))
            trainer.model.eval()
            return Outcome(self.step, best, self.before, self.history, self.ended, self.elapsed())

        def __enter__(self) -> None:
            self.bar = progress(None, "training", "step")

        def __exit__(self, *ended: object) -> None:
            self.bar.__exit__(*ended)

    return Steering()
