"""What a job left in its folder, and the check that a recording of it gives the same."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

OF_JOB = {"n_tokens", "dataset", "retriever", "chunker", "llm", "judge", "reason", "score_gap"}
# What a recording has no steps for: chunks and hits that were not in the context, documents of evidence.
OF_STEPS = {"failure_cause", "failure_decided_by", "evidence_cluster"}


def outcomes(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "outcomes.parquet")


def found(folder: Path) -> dict[str, float]:
    values: dict[str, float] = json.loads((folder / "job.json").read_text())["metrics"]
    return values


def assert_same(live: Path, again: Path, ranked: bool) -> None:
    """Scores, answers and classes of all topics are equal to the last bit.

    ranked: whether the documents of the contexts are known again. Their ranking is that of the live job as
    far as the context went; without, there is none to measure.
    """
    first, second = outcomes(live), outcomes(again)
    rankings = set(json.loads((live / "job.json").read_text())["rankings"])
    assert {"ndcg_at_10", "p_at_1", "r_at_1", "rr"} <= rankings <= set(first)
    assert rankings & set(second) == (rankings if ranked else set())
    for column in rankings & set(second):
        assert (second[column] <= first[column]).all(), column
        if column.endswith("_at_1"):
            some = first["n_used"] > 0
            pd.testing.assert_series_equal(first[column][some], second[column][some], check_exact=True)
    assert {"ir_score", "evidence_best", "answer", "label", "n_used"} <= set(first) - OF_JOB
    for column in set(first) - OF_JOB - OF_STEPS - rankings:
        pd.testing.assert_series_equal(first[column], second[column], check_exact=True, obj=column)
    assert found(live)["ir_score"] == found(again)["ir_score"]
    assert found(live)["correct_share"] == found(again)["correct_share"]
