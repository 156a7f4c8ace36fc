"""How often intervals of an ablation hold the true effect of an option."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ragauge.plugins.parts.ablation import ablation

RETRIEVERS, RERANKERS = ("bm25", "sim", "hybrid"), ("none", "cross", "llm")
# Of each reranker in each retriever: what it adds to the IR score and to P(right). On average `cross` adds
# 0.04 and `llm` nothing: it helps some settings as much as it harms others.
_EFFECT = {
    "none": (0.0, 0.0, 0.0),
    "cross": (0.02, 0.04, 0.06),
    "llm": (-0.05, 0.0, 0.05),
}
TRUE = {option: float(np.mean(effects)) for option, effects in _EFFECT.items()}
SETTINGS = {
    f"{retriever} {reranker}": {"retriever": retriever, "reranker": reranker}
    for retriever in RETRIEVERS
    for reranker in RERANKERS
}


def grid(n: int, option: str, rng: np.random.Generator, judged: float = 1.0) -> pd.DataFrame:
    """Outcomes over n topics, some easy for all, of the systems without reranker and with this one.

    A share `judged` of the topics has verdicts.
    """
    ease, luck = rng.uniform(0.3, 0.6, n), rng.random(n)
    shared = rng.random(n) < 0.7  # topics on which the systems' luck is the same
    seen = np.zeros(n, dtype=bool)
    seen[rng.permutation(n)[: round(judged * n)]] = True
    parts = []
    for name, own in SETTINGS.items():
        if own["reranker"] not in ("none", option):
            continue
        effect = _EFFECT[own["reranker"]][RETRIEVERS.index(own["retriever"])]
        p = ease + effect
        own_luck = np.where(shared, luck, rng.random(n))
        label = np.where(own_luck < p, 5, np.where(own_luck > p + 0.2, 1, 4))
        columns: dict[str, Any] = {
            "system": name,
            "qid": np.arange(n),
            "ir_score": p + rng.uniform(-0.1, 0.1, n),
            "label": pd.array(label, dtype="Int8"),
        }
        if judged < 1:
            columns |= {"judged": seen, "stratum": 0, "p5": p, "p4": 0.2, "p1": 0.8 - p, "p2": 0.0, "p3": 0.0}
            columns["label"] = pd.array(np.where(seen, label, None), dtype="Int8")
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def coverage(measure: str, option: str, n: int, trials: int, seed: int, judged: float = 1.0) -> float:
    """How often the 95 % interval of the option against none holds its effect, averaged over retrievers."""
    rng = np.random.default_rng(seed)
    held = 0
    for _ in range(trials):
        frame = grid(n, option, rng, judged)
        found = ablation(frame, SETTINGS)
        rows = found[(found["option"] == option) & (found["measure"] == measure)]
        held += int(rows["lo"].iloc[0] <= TRUE[option] <= rows["hi"].iloc[0])
    return held / trials
