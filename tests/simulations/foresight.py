"""How often intervals of foresight hold the true values, and how often two equal measures are told apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.plugins.foresight.adds import added
from ragauge.plugins.foresight.measures import Pairs, foresight

OTHER = AnswerMeasureInfo("other", "other", of="context")
STATISTICS = ("auc_right", "auc_lack", "spearman")


@dataclass(frozen=True)
class Population:
    """Topics and systems; how much topics are alike in all systems, how much a score says, and the base.

    ties: the share of scores that are cut off at 1. base: added to the logit of P(right).
    """

    topics: int
    systems: int
    alike: float = 1.0
    slope: float = 1.5
    base: float = 0.0
    ties: float = 0.0


POPULATIONS = {
    "120 topics, 5 systems": Population(120, 5),
    "40 topics, 2 systems": Population(40, 2),
    "half of the scores are 1": Population(120, 5, ties=0.5),
    "one in ten is right": Population(120, 5, base=-2.8),
    "the score nearly decides": Population(120, 3, slope=6.0),
    "one system": Population(80, 1),
}


def drawn(population: Population, topics: int, rng: np.random.Generator) -> pd.DataFrame:
    """Outcomes of so many topics: two measures that say the same of the answer, each with its own noise."""
    size = (topics, population.systems)
    topic = rng.normal(size=(topics, 1)) * population.alike
    better = np.linspace(0, 0.6, population.systems)
    good = topic + rng.normal(size=size) + better
    right = rng.random(size) < 1 / (1 + np.exp(-(population.slope * good + population.base)))
    lack = ~right & (rng.random(size) < 1 / (1 + np.exp(good)))
    cut = np.quantile(good, 1 - population.ties) if population.ties else np.inf
    scores = [np.minimum(good + rng.normal(size=size) * 0.8, cut) for _ in range(2)]
    label = np.where(right, 5, np.where(lack, 1, 4))
    return pd.DataFrame(
        {
            "qid": np.repeat(np.arange(topics), population.systems).astype(str),
            "system": np.tile(np.arange(population.systems), topics).astype(str),
            "ir_score": scores[0].ravel(),
            "other": scores[1].ravel(),
            "label": label.ravel(),
        }
    )


@cache
def truth(name: str) -> dict[str, float]:
    """The values of a population of 200,000 topics."""
    population = POPULATIONS[name]
    found = foresight(drawn(population, 200_000, np.random.default_rng(1)), [OTHER], n_boot=0)
    assert found is not None
    rows = found.table[found.table["measure"] == "ir_score"]
    return dict(zip(rows["statistic"], rows["value"], strict=True))


@cache
def results(name: str, trials: int, seed: int) -> pd.DataFrame:
    """The tables of so many samples, one below the other."""
    rng = np.random.default_rng(seed)
    population = POPULATIONS[name]
    tables = []
    for trial in range(trials):
        found = foresight(drawn(population, population.topics, rng), [OTHER], n_boot=400, seed=trial)
        assert found is not None
        tables.append(found.table.assign(trial=trial))
    return pd.concat(tables, ignore_index=True)


def coverage(name: str, trials: int, seed: int) -> dict[str, float]:
    """How often the 95 % interval of the IR score's statistics holds the true value."""
    rows = results(name, trials, seed)
    rows = rows[(rows["measure"] == "ir_score") & rows["statistic"].isin(STATISTICS)]
    true = rows["statistic"].map(truth(name))
    held = (rows["lo"] <= true) & (true <= rows["hi"])
    return {str(name): float(share) for name, share in held.groupby(rows["statistic"]).mean().items()}


def told_apart(name: str, trials: int, seed: int) -> dict[str, float]:
    """How often two measures that foresee equally well differ at 5 %."""
    rows = results(name, trials, seed)
    rows = rows[(rows["measure"] == "other") & rows["statistic"].isin(STATISTICS)]
    found = rows["p"].lt(0.05).groupby(rows["statistic"]).mean()
    return {str(name): float(share) for name, share in found.items()}


def foremost(
    useful: int, measures: int, topics: int, systems: int, trials: int, seed: int, base: float = 0.0
) -> dict[str, float]:
    """Of so many measures the first ones foresee equally well (AUC about 0.65), the others nothing.

    base: added to the logit of P(right): at 0 half of the answers are right, at -2.8 one in ten.

    `claimed`: how often one is said to foresee better than chance; `held`: how often the set of the best holds
    the first; `size`: the mean number of measures in it.
    """
    rng = np.random.default_rng(seed)
    infos = [AnswerMeasureInfo(f"m{i}", f"m{i}", of="context") for i in range(measures)]
    claimed, held, size = [], [], []
    for trial in range(trials):
        shape = (topics, systems)
        good = rng.normal(size=(topics, 1)) + rng.normal(size=shape)
        right = rng.random(shape) < 1 / (1 + np.exp(-good - base - np.linspace(-1, 1, systems) * (systems > 1)))
        values = {
            info.name: (
                (good if i < useful else 0) + rng.normal(size=(topics, 1)) + 1.5 * rng.normal(size=shape)
            ).ravel()
            for i, info in enumerate(infos)
        }
        frame = pd.DataFrame(
            {
                "qid": np.repeat(np.arange(topics), systems).astype(str),
                "system": np.tile(np.arange(systems), topics).astype(str),
                "label": np.where(right, 5, 4).ravel(),
                **values,
            }
        )
        found = foresight(frame, infos, n_boot=400, seed=trial)
        assert found is not None
        rows = found.table[found.table["statistic"] == "auc_right"].set_index("measure")
        claimed.append(rows["p_chance"].min() < 0.05)
        held.append(not rows["p_best"]["m0"] < 0.05)  # undefined where all answers are alike
        size.append((rows["p_best"] >= 0.05).sum())
    return {"claimed": float(np.mean(claimed)), "held": float(np.mean(held)), "size": float(np.mean(size))}


GAINS = ("nothing", "a copy of the IR score", "a little", "as much as the IR score")


def beside(kind: str, topics: int, systems: int, base: float, rng: np.random.Generator) -> pd.DataFrame:
    """Answers, an IR score, and a measure that says this much beside it (one of `GAINS`), as `added` takes them."""
    topic = np.repeat(np.arange(topics), systems)
    score, other = (
        0.7 * (rng.normal(size=topics)[topic] + rng.normal(size=len(topic))) for _ in range(2)
    )  # fmt: skip
    measure = score + 0.5 * rng.normal(size=len(topic)) if kind == GAINS[1] else other
    of_measure = {GAINS[2]: 0.4, GAINS[3]: 1.2}.get(kind, 0.0)
    logit = 1.2 * score + of_measure * other + base + 0.5 * rng.normal(size=topics)[topic]
    right = rng.random(len(topic)) < 1 / (1 + np.exp(-logit))
    return pd.DataFrame(
        {
            "score": score, "measure": measure, "system": np.tile(np.arange(systems), topics),
            "_right": right, "_topic": topic, "_weight": 1.0,
        }
    )  # fmt: skip


@cache
def true_gain(kind: str, base: float) -> float:
    """What the measure adds to the AUC in 60,000 topics; nothing where right answers depend on the IR score alone."""
    if kind in GAINS[:2]:
        return 0.0
    rows = beside(kind, 60_000, 3, base, np.random.default_rng(99))
    return added(rows, "score", "measure", 1, "system", 1e9, 0.95, 0)[0]


@cache
def gains(kind: str, topics: int, systems: int, base: float, trials: int, seed: int) -> dict[str, float]:
    """`held`: how often the 95 % interval of the gain holds the true one; `claimed`: how often it is above 0; `off`:
    the mean gain less the true one."""
    rng = np.random.default_rng(seed)
    found = []
    for trial in range(trials):
        rows = beside(kind, topics, systems, base, rng)
        df = Pairs.of(rows, "_right", "system").df
        found.append(added(rows, "score", "measure", 1, "system", df, 0.95, trial))
    gain, lo, hi = np.array(found)[~np.isnan(found).any(axis=1)].T
    true = true_gain(kind, base)
    held = (lo <= true) & (true <= hi)
    return {"held": float(held.mean()), "claimed": float((lo > 0).mean()), "off": float(gain.mean() - true)}
