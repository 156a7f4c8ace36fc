"""The judge's prompts as a source of error: shares and differences against known truth."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.estimate.board import share_estimates
from ragauge.estimate.pairs import compare_pairs

PROMPTS = 3
_APART = 0.1  # of the verdicts on a topic that are luck of their own under each prompt


def verdicts(
    n: int, shift: float, own: float, effect: float, rng: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray]:
    """Outcomes of two systems a and b on n topics by three prompts, and their shares of right answers [2, 3].

    60 % of the answers are right over all prompts that might be, of b's `effect` more. A prompt moves both systems
    by a normal shift of this standard deviation, and each of them by another one of `own`.
    """
    moved = rng.normal(0, shift, PROMPTS) + rng.normal(0, own, (2, PROMPTS))
    shares = np.clip(np.array([[0.6], [0.6 + effect]]) + moved, 0, 1)
    topic = np.where(rng.random((2, n)) < 0.5, rng.random(n), rng.random((2, n)))
    luck = np.where(rng.random((PROMPTS, 2, n)) < _APART, rng.random((PROMPTS, 2, n)), topic)
    labels = np.where(luck < shares.T[:, :, None], 5, 4).reshape(PROMPTS, 2 * n)
    frame = pd.DataFrame({"qid": np.tile(np.arange(n), 2), "retriever": np.repeat(["a", "b"], n), "ir_score": np.nan})
    names = ("label", *(f"label_{k}" for k in range(2, PROMPTS + 1)))
    return frame.assign(**{name: pd.array(row, dtype="Int8") for name, row in zip(names, labels, strict=True)}), shares


def shares_by_prompts(n: int, shift: float, trials: int, seed: int) -> dict[str, tuple[float, float]]:
    """(coverage, mean width) of 95 % intervals of the share of right answers.

    `one`, `fixed`, `sample`: of the share over all prompts that might be, with one prompt, and with three as either;
    `own`: of the mean share over these three prompts, as fixed ones.
    """
    rng, found = np.random.default_rng(seed), {"one": [], "fixed": [], "sample": [], "own": []}
    for _ in range(trials):
        both, shares = verdicts(n, shift, 0.0, 0.0, rng)
        frame = both[:n]
        for name, rows, truth in (
            ("one", frame[["qid", "label"]], 0.6),
            ("fixed", frame.assign(prompts_are="fixed"), 0.6),
            ("sample", frame.assign(prompts_are="sample"), 0.6),
            ("own", frame.assign(prompts_are="fixed"), shares[0].mean()),
        ):
            share = share_estimates(rows)["correct_share"]
            found[name].append((share.lo <= truth <= share.hi, share.hi - share.lo))
    return {name: tuple(np.mean(rows, axis=0)) for name, rows in found.items()}


def pairs_by_prompts(
    n: int, shift: float, own: float, effect: float, trials: int, seed: int
) -> dict[str, tuple[float, float, float]]:
    """(coverage, mean width, share rejected at 5 %) of a difference of two systems, by name as above."""
    rng, found = np.random.default_rng(seed), {"one": [], "fixed": [], "sample": []}
    for trial in range(trials):
        both, _ = verdicts(n, shift, own, effect, rng)
        alone = both.drop(columns=["label_2", "label_3"])
        for name, rows in (("one", alone), *((kind, both.assign(prompts_are=kind)) for kind in ("fixed", "sample"))):
            row = compare_pairs(rows, seed=trial).set_index("measure").loc["correct"]
            found[name].append((row["lo"] <= -effect <= row["hi"], row["hi"] - row["lo"], row["p"] < 0.05))
    return {name: tuple(np.mean(np.array(rows, dtype=float), axis=0)) for name, rows in found.items()}
