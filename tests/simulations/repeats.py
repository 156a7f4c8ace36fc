"""Answers to topics and verdicts on them with known components of variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.plugins.repeats.components import components, rank_correlation
from ragauge.plugins.repeats.stability import stability


@dataclass(frozen=True)
class World:
    """A topic's answers are right with a probability drawn from Beta(a, b); fixed: it is 0 or 1 for each topic.

    error: how often a verdict is the opposite. alike: right answers to a topic are one text, which shares its verdicts.
    """

    a: float
    b: float
    error: float
    alike: bool = False
    fixed: bool = False

    def drawn(self, n: int, r: int, k: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Verdicts of 0 or 1 [n, r, k], and the texts of the answers [n, r] as numbers."""
        p = rng.beta(self.a, self.b, n)
        p = (rng.random(n) < p).astype(float) if self.fixed else p
        right = rng.random((n, r)) < p[:, None]
        texts = np.where(right & self.alike, 0, 1 + np.arange(r))
        wrong = rng.random((n, r + 1, k)) < self.error
        own = np.take_along_axis(wrong, texts[:, :, None].repeat(k, axis=2), axis=1)
        return np.where(own, ~right[:, :, None], right[:, :, None]).astype(float), texts

    @property
    def truth(self) -> dict[str, float]:
        """The share of verdicts of 1, and the three components."""
        mean = self.a / (self.a + self.b)
        spread = mean * (1 - mean) / (self.a + self.b + 1)
        seen = (1 - 2 * self.error) ** 2
        topic = mean * (1 - mean) if self.fixed else spread
        return {
            "share": self.error + (1 - 2 * self.error) * mean,
            "topic": seen * topic,
            "answer": seen * (mean * (1 - mean) - topic),
            "judge": self.error * (1 - self.error),
        }


def estimates(world: World, n: int, r: int, k: int, trials: int, seed: int, n_boot: int = 2) -> pd.DataFrame:
    """By component: its truth, the bias of the estimate with its standard error, and the coverage of its interval."""
    rng, truth = np.random.default_rng(seed), world.truth
    found = []
    for trial in range(trials):
        one = components(*world.drawn(n, r, k, rng), n_boot=n_boot, seed=trial)
        found.append([(e.value, e.lo <= truth[name] <= e.hi) for name, e in zip(_PARTS, _of(one), strict=True)])
    values = np.array(found, dtype=float)
    true = np.array([truth[name] for name in _PARTS])
    error = values[:, :, 0].std(axis=0, ddof=1) / np.sqrt(trials)
    bias, covered = values[:, :, 0].mean(axis=0) - true, values[:, :, 1].mean(axis=0)
    return pd.DataFrame({"true": true, "bias": bias, "error": error, "covered": covered}, index=list(_PARTS))


_PARTS = ("topic", "answer", "judge")


def _of(one):
    return one.topic, one.answer, one.judge


def coverage(world: World, n: int, r: int, trials: int, seed: int) -> dict[str, float]:
    """Coverage of the 95 % intervals of the share of right answers, of right once, right always and agreement."""
    from ragauge.estimate.board import share_estimates

    rng = np.random.default_rng(seed)
    many, _ = world.drawn(400_000, r, 1, rng)
    right = many[:, :, 0]
    pairs = (right[:, :, None] == right[:, None, :]).sum(axis=(1, 2)) - r
    truth = {
        "right_once": right.max(axis=1).mean(), "right_always": right.min(axis=1).mean(),
        "agreement": (pairs / (r * (r - 1))).mean(),
    }  # fmt: skip
    held = dict.fromkeys(("share", *truth), 0)
    qids = np.array([f"q{i:03}" for i in range(n)])
    for _ in range(trials):
        values, texts = world.drawn(n, r, 1, rng)
        labels = np.where(values[:, :, 0] == 1, 5, 4)
        columns = {f"label_{s + 1}": pd.array(labels[:, s], dtype="Int8") for s in range(1, r)}
        outcomes = pd.DataFrame({"qid": qids, "ir_score": np.nan, "label": pd.array(labels[:, 0], "Int8"), **columns})
        share = share_estimates(outcomes.assign(prompts_are="repeats"))["correct_share"]
        held["share"] += share.lo <= world.truth["share"] <= share.hi
        repeated = pd.DataFrame(
            {
                "qid": np.repeat(qids, r), "sample": np.tile(np.arange(r), n), "repeat": 0, "judge_status": "ok",
                "answer": texts.ravel().astype(str), "label": pd.array(labels.ravel(), "Int8"),
            }
        )  # fmt: skip
        found = stability(repeated, outcomes, n_boot=2)
        for name, value in truth.items():
            one = getattr(found, name)
            held[name] += one.lo <= value <= one.hi
    return {name: count / trials for name, count in held.items()}


def foresight_coverage(world: World, n: int, r: int, noise: float, trials: int, seed: int) -> tuple[float, float]:
    """The true rank correlation of a score and the variance of a topic's answers being right, and the coverage.

    The score is the topic's probability of a right answer plus a normal error of this standard deviation.
    """
    rng = np.random.default_rng(seed)

    def drawn(size: int) -> tuple[np.ndarray, np.ndarray]:
        p = rng.beta(world.a, world.b, size)
        right = rng.random((size, r)) < p[:, None]
        return p + rng.normal(0, noise, size), right.var(axis=1, ddof=1)

    truth = rank_correlation(*drawn(200_000), n_boot=0).value
    found = [rank_correlation(*drawn(n), n_boot=200, seed=trial) for trial in range(trials)]
    return truth, float(np.mean([one.lo <= truth <= one.hi for one in found]))
