"""Prints one table line: the exact threshold fit against scipy's differential evolution on 37,020 pairs.

    python benchmarks/bench_thresholds.py

Both maximise the same likelihood (docs/method.md) for a planted k = 0.670 with a fifth of the classes turned
round; differential evolution runs with scipy's defaults and ten seeds. Times are medians.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import differential_evolution

from ragauge.estimate import fit_threshold

PAIRS, PLANTED, NOISE, SEEDS = 37_020, 0.670, 0.2, 10


def main() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(PAIRS)
    is_right = (scores > PLANTED) ^ (rng.random(PAIRS) < NOISE)

    def loss(t: np.ndarray) -> float:
        return -float(np.log(((scores > t[0]) == is_right) + 1e-10).sum())

    times, agreements, found = [], [], []
    for seed in range(SEEDS):
        start = time.perf_counter()
        result = differential_evolution(loss, [(0, 1)], seed=seed)
        times.append(time.perf_counter() - start)
        found.append(float(result.x[0]))
        agreements.append(float(((scores > result.x[0]) == is_right).mean()))

    exact_times = []
    for _ in range(20):
        start = time.perf_counter()
        exact = fit_threshold(scores, is_right, "above")
        exact_times.append(time.perf_counter() - start)

    ours, theirs = np.median(exact_times), np.median(times)
    names = ["pairs", "exact, ms", "differential evolution, ms", "ratio", "agreement, exact", "evolution"]
    print("| " + " | ".join([*names, "k, exact", "k, evolution"]) + " |")
    print("|---|---|---|---|---|---|---|---|")
    print(
        f"| {PAIRS:,} | {1000 * ours:.1f} | {1000 * theirs:.1f} | {theirs / ours:.1f} "
        f"| {exact.accuracy:.5f} | {min(agreements):.5f} to {max(agreements):.5f} "
        f"| {exact.value:.4f} on every run | {min(found):.4f} to {max(found):.4f} |"
    )


if __name__ == "__main__":
    main()
