"""Outcomes of retrievers for tests of statistics."""

from __future__ import annotations

import pandas as pd


def outcomes(scores: dict[str, list[float]], labels: dict[str, list[int | None]] | None = None) -> pd.DataFrame:
    """One topic a position, one retriever a key."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "qid": [f"q{i}" for i in range(len(values))],
                    "retriever": name,
                    "ir_score": values,
                    "label": pd.array((labels or {}).get(name, [None] * len(values)), dtype="Int8"),
                }
            )
            for name, values in scores.items()
        ],
        ignore_index=True,
    )
