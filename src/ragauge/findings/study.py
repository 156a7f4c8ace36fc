"""The published HotpotQA numbers of the study behind the method, for comparison.

Source: El Yagouby, master's thesis (2024) and the paper after it (2025). HotpotQA dev (distractor), 7,404
questions, 100,000 Wikipedia documents, all-MiniLM-L6-v2, Llama 3 8B, GPT-4o as judge.
"""

from __future__ import annotations

_GRID = range(100, 1100, 100)

# Mean IR score by retriever at N tokens.
IR_SCORE: dict[str, dict[int, float]] = {
    name: dict(zip(_GRID, values, strict=True))
    for name, values in {
        "bm25": (0.40, 0.46, 0.49, 0.52, 0.55, 0.57, 0.58, 0.60, 0.61, 0.62),
        "sim": (0.34, 0.39, 0.41, 0.44, 0.46, 0.47, 0.48, 0.50, 0.51, 0.52),
        "mmr": (0.34, 0.38, 0.39, 0.41, 0.42, 0.43, 0.44, 0.44, 0.45, 0.46),
        "mlq": (0.29, 0.33, 0.35, 0.37, 0.39, 0.40, 0.41, 0.42, 0.43, 0.43),
        "reo": (0.16, 0.19, 0.20, 0.21, 0.22, 0.23, 0.24, 0.25, 0.26, 0.26),
    }.items()
}

# Shares of judge classes 1 to 5 by retriever; they add up to 1 but for rounding.
JUDGE_SHARES_N_TOKENS = 1000
JUDGE_SHARES: dict[str, tuple[float, float, float, float, float]] = {
    "none": (0.01, 0.13, 0.04, 0.58, 0.24),
    "bm25": (0.08, 0.05, 0.13, 0.31, 0.42),
    "sim": (0.09, 0.05, 0.14, 0.40, 0.32),
    "mmr": (0.10, 0.07, 0.12, 0.42, 0.29),
    "mlq": (0.18, 0.06, 0.12, 0.41, 0.24),
    "reo": (0.29, 0.05, 0.07, 0.41, 0.18),
}
