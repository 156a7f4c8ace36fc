"""Fine-tunes a judge's encoder and heads: batches, checkpoints, time limit."""

from __future__ import annotations

import io
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.contract.errors import DataError
from ragauge.contract.progress import progress
from ragauge.plugins.training.ares.interactions import interactions, sides
from ragauge.plugins.training.ares.network import JudgeNetwork
from ragauge.plugins.training.contract import TrainingTools
from ragauge.plugins.training.trainers.triples import Example

_FILE = "judge.pt"
_WARM_UP = 0.1  # share of the training in which the learning rate rises
_CLIP = 1.0  # norm of a gradient, at most
_SORTED = 16  # batches of which the examples are put together by length
_HEAD_LR = 30.0  # times the encoder's: heads start from nothing


@dataclass(frozen=True)
class Tuning:
    """How a judge is tuned: `lr` is the encoder's highest learning rate, `precision` f32 or bf16, `looks` the
    number of evaluations on the held-out examples.
    """

    epochs: int
    batch_size: int
    lr: float
    precision: str
    looks: int


def tune(
    network: JudgeNetwork,
    examples: Sequence[Example],
    look: Callable[[], Mapping[str, float]],
    how: Tuning,
    tools: TrainingTools,
) -> dict[str, float]:
    """Fits encoder and heads of a network that reads pairs, in place; returns facts about the training.

    The loss is the cross-entropy of each example's own head. AdamW. The learning rate rises over the first tenth and
    falls to 0 along a line, by steps or by `tools.max_seconds`, whichever is further. So a time limit does not cut it
    short. `look` gives measures of the held-out examples with the heads as they are; what is kept is the state of the
    lowest `validation_loss`. A checkpoint is written at every look. With the same number of threads a training that
    goes on from one ends at the same weights as one that was not killed. DataError where the loss is not finite.
    """
    return _Run(network, examples, look, how, tools).run()


class _Run:
    def __init__(
        self,
        network: JudgeNetwork,
        examples: Sequence[Example],
        look: Callable[[], Mapping[str, float]],
        how: Tuning,
        tools: TrainingTools,
    ) -> None:
        import torch

        self.network, self.look, self.how, self.tools = network, look, how, tools
        self.pairs = [sides(one.judged, one.triple) for one in examples]
        self.head = np.array([network.questions.index(one.judged) for one in examples])
        self.label = np.array([one.label for one in examples], dtype=np.float32)
        beside = interactions([one.triple for one in examples])
        self.middle, self.scale = beside.mean(axis=0), np.maximum(beside.std(axis=0), 1e-6)
        self.beside = ((beside - self.middle) / self.scale).astype(np.float32)
        self.device = network.encoder.device
        torch.manual_seed(tools.seed)
        hidden = network.encoder.config.hidden_size
        self.heads = torch.nn.Linear(hidden + beside.shape[1], len(network.questions)).to(self.device)
        torch.nn.init.zeros_(self.heads.weight)
        torch.nn.init.zeros_(self.heads.bias)
        self.optimizer = torch.optim.AdamW(
            [
                {"params": list(network.encoder.parameters()), "peak": how.lr},
                {"params": list(self.heads.parameters()), "peak": how.lr * _HEAD_LR},
            ],
            lr=how.lr,
            weight_decay=0.01,
        )
        self.per_epoch = math.ceil(len(examples) / how.batch_size)
        self.steps = self.per_epoch * how.epochs
        self.every = max(1, self.steps // how.looks)
        self.step, self.spent = 0, 0.0
        self.best: dict[str, Any] | None = None
        self.looks: list[float] = []

    def run(self) -> dict[str, float]:
        self._resume()
        began = time.monotonic() - self.spent
        with progress(self.steps, "training the judge", "batch") as bar:
            bar.restart(self.steps, self.step)
            losses: list[float] = []
            while (done := self._done(time.monotonic() - began)) < 1:
                losses.append(self._one_step(done))
                self.step += 1
                if done > 0:  # fewer steps where the time ends before them
                    bar.total = min(self.steps, math.ceil(self.step / done))
                bar.update()
                bar.set_postfix_str(f"loss {losses[-1]:.3f}", refresh=False)
                if self.step % self.every == 0:
                    self.spent = time.monotonic() - began
                    self._look(float(np.mean(losses)))
                    losses = []
        if losses or self.best is None:
            self._look(float(np.mean(losses)) if losses else math.nan)
        assert self.best is not None
        self._set(self.best["encoder"], self.best["heads"])
        return {"steps": self.step, "best_step": self.best["step"], "steps_per_epoch": self.per_epoch}

    def _done(self, seconds: float) -> float:
        """The progress of the training in [0, 1], by steps or by time."""
        limit = self.tools.max_seconds
        by_time = 0.0 if limit is None else seconds / limit
        return max(self.step / self.steps, by_time)

    def _one_step(self, done: float) -> float:
        import torch

        rows = self._batch(self.step)
        factor = min(done / _WARM_UP + 1 / self.steps, 1.0, (1 - done) / (1 - _WARM_UP))
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * factor
        self.network.encoder.train()
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.how.precision == "bf16"):
            pooled = self.network.pooled(*zip(*(self.pairs[i] for i in rows), strict=True))
        features = torch.cat([pooled.float(), torch.from_numpy(self.beside[rows]).to(self.device)], dim=1)
        logits = self.heads(features)[torch.arange(len(rows)), torch.from_numpy(self.head[rows])]
        wanted = torch.from_numpy(self.label[rows]).to(self.device)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, wanted)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise DataError(
                f"trainer: the loss is {value} after {self.step} steps: the training diverged; "
                f"choose trainer.lr below {self.how.lr:g}"
            )
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        every = [p for group in self.optimizer.param_groups for p in group["params"]]
        torch.nn.utils.clip_grad_norm_(every, _CLIP)
        self.optimizer.step()
        return value

    def _batch(self, step: int) -> np.ndarray:
        """The rows of a step, fixed by the seed: shuffled, then sorted by length within blocks of batches."""
        epoch, at = divmod(step, self.per_epoch)
        rng = np.random.default_rng((self.tools.seed, epoch))
        order = rng.permutation(len(self.pairs))
        size = self.how.batch_size * _SORTED
        lengths = np.array([len(a) + len(b) for a, b in self.pairs])
        blocks = [order[i : i + size] for i in range(0, len(order), size)]
        order = np.concatenate([block[np.argsort(lengths[block], kind="stable")] for block in blocks])
        batches = [order[i : i + self.how.batch_size] for i in range(0, len(order), self.how.batch_size)]
        return np.asarray(batches[int(rng.permutation(len(batches))[at])])

    def _look(self, loss: float) -> None:
        self._fold()
        values = dict(self.look())
        now = values["validation_loss"]
        if not math.isfinite(now):
            raise DataError(
                f"trainer: the loss of the held-out examples is {now} after {self.step} steps: the training "
                f"diverged; choose trainer.lr below {self.how.lr:g}"
            )
        if not self.looks or now < min(self.looks):
            self.best = {
                "step": self.step,
                "encoder": _copied(self.network.encoder),
                "heads": _copied(self.heads),
            }
        self.looks.append(now)
        self.tools.report(max(self.step, 1), {**({"loss": loss} if math.isfinite(loss) else {}), **values})
        self._save()

    def _fold(self) -> None:
        """The heads as the network has them: of interactions as they come, not in standard units."""
        weight = self.heads.weight.detach().cpu().double().numpy().copy()
        n = len(self.scale)
        weight[:, -n:] /= self.scale
        self.network.weight = weight
        self.network.bias = self.heads.bias.detach().cpu().double().numpy() - weight[:, -n:] @ self.middle

    def _set(self, encoder: Mapping[str, Any], heads: Mapping[str, Any]) -> None:
        self.network.encoder.load_state_dict(encoder)
        self.heads.load_state_dict(heads)
        self.network.encoder.eval()
        self._fold()

    def _save(self) -> None:
        import torch

        state = {
            "step": self.step,
            "spent": self.spent,
            "looks": self.looks,
            "best": self.best,
            "encoder": self.network.encoder.state_dict(),
            "heads": self.heads.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
        }
        kept = io.BytesIO()  # torch's own writing turns a full disk into an error without a number
        torch.save(state, kept)
        draft = self.tools.checkpoints / f"{_FILE}.draft"
        draft.write_bytes(kept.getbuffer())
        os.replace(draft, self.tools.checkpoints / _FILE)

    def _resume(self) -> None:
        import torch

        file: Path = self.tools.checkpoints / _FILE
        if not file.is_file():
            return
        # weights_only: a checkpoint is numbers, and nothing of it is executed.
        state = torch.load(file, map_location=self.device, weights_only=True)
        self.step, self.spent, self.looks = state["step"], state["spent"], state["looks"]
        self.best = state["best"]
        self._set(state["encoder"], state["heads"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"].cpu())


def _copied(module: Any) -> dict[str, Any]:
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
