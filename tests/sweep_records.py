"""Records of jobs and the outcomes that go with them, as a sweep's findings read them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragauge.contract.jobs import Jobs, systems_of


def record(*overrides: str, n: int = 100, **metrics: float) -> dict[str, Any]:
    given = dict(o.split("=", 1) for o in overrides)
    choices = {"retriever": "bm25", "chunker": "tokens", "llm": "extractive"}
    choices |= {key: value for key, value in given.items() if key in choices}
    return {
        "overrides": [*overrides, f"n_tokens={n}"],
        "choices": choices,
        "n_tokens": n,
        "ir_score_at_n": {n: metrics.get("ir_score", 0.5)},
        "metrics": {"ir_score": 0.5, "judge_share_missing": 0.0, "correct_share": 0.25, **metrics},
        "answer_measures": [],
        "bootstrap": 10,
        "seed": 0,
    }


def sweep(*records: dict[str, Any], labels: dict[str, list[int]] | None = None) -> Jobs:
    parts = [
        pd.DataFrame(
            {
                "qid": ["q1", "q2"],
                "system": system,
                "n_tokens": r["n_tokens"],
                "ir_score": r["metrics"]["ir_score"],
                "label": pd.array((labels or {}).get(system, [1, 1]), dtype="Int8"),
            }
        )
        for r, system in zip(records, systems_of(records), strict=True)
    ]
    return Jobs("s", "e", list(records), [], pd.concat(parts, ignore_index=True))
