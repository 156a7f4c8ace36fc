"""How often systems that are alike differ in some measure of a report, and how often a real difference is found."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate.pairs import compare_pairs, corrected

TOPICS = 120
ANSWERS = [AnswerMeasureInfo(f"m{i}", f"measure {i}", unit="ratio") for i in range(5)]


def _frame(rng: np.random.Generator, answers: list[AnswerMeasureInfo], gain: float) -> pd.DataFrame:
    """Two systems that are alike in every measure, but for the first one's IR score, which is `gain` higher."""
    easy = {name: rng.uniform(0.3, 0.7, TOPICS) for name in ("ir_score", *(info.name for info in answers))}
    parts = []
    for system in range(2):
        values = {name: of + rng.uniform(-0.25, 0.25, TOPICS) for name, of in easy.items()}
        values["ir_score"] += gain * (0.5 - system)
        label = pd.array(rng.choice([1, 4, 5], TOPICS, p=[0.3, 0.2, 0.5]), dtype="Int8")
        parts.append(pd.DataFrame({"qid": np.arange(TOPICS), "system": f"s{system}", "label": label, **values}))
    return pd.concat(parts, ignore_index=True)


@cache
def found(measures: int, gain: float, trials: int, seed: int) -> dict[str, tuple[float, float]]:
    """{family: (how often a difference is said where there is none, how often the real one is)}, at 5 %.

    Three measures are IR score, right answers and hallucinations, further ones are measures of answers, all
    independent of each other. With a gain the first system's IR score is higher than the other's.
    """
    rng = np.random.default_rng(seed)
    answers = ANSWERS[: measures - 3]
    counts = {family: np.zeros(2) for family in ("measure", "all")}
    for _ in range(trials):
        pairs = compare_pairs(_frame(rng, answers, gain), "system", seed, answers=answers)
        real = (pairs["measure"] == "ir_score") & (pairs["a"] == "s0") & (gain > 0)
        for family, count in counts.items():
            differs = corrected(pairs, family)["p_holm"] < 0.05
            count += [(differs & ~real).any(), (differs & real).any()]
    return {family: (float(count[0] / trials), float(count[1] / trials)) for family, count in counts.items()}
