"""What verdicts say: made once per set of outcomes and settings, and the same when read from the store."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.estimate import cross_fit, ppi_shares, summary
from ragauge.findings import estimates as room
from ragauge.findings.estimates import Findings, findings
from ragauge.store import Store

SETTINGS = {"measure": {"part": "substring"}, "tokenizer": {"part": "words"}, "n_tokens": [100]}
ESTIMATE: dict[str, Any] = {"features": ["ir_score"], "spline": False, "calibrate": False}


def outcomes(n: int = 60, seed: int = 0, judged: bool = True) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    label = np.where(score > 0.6, 5, np.where(score < 0.3, 1, rng.integers(2, 5, n)))
    return pd.DataFrame(
        {
            "qid": [f"q{i}" for i in range(n)],
            "ir_score": score,
            "label": pd.array(label if judged else [None] * n, dtype="Int8"),
            "answer": "any",
        }
    )


def found(store: Store, frame: pd.DataFrame, name: str = "bm25", n_boot: int = 50) -> Findings:
    return findings(store, frame, name, n_boot, 3, ESTIMATE, SETTINGS)


def made(store: Store) -> int:
    return store.made.count("findings")


def test_they_are_what_the_metrics_say_and_are_made_once(store: Store) -> None:
    frame = outcomes()
    first = found(store, frame)
    estimates = summary.estimate(frame, 50, 3, **ESTIMATE)
    expected = {**summary.quality(frame), **estimates.metrics}
    assert first.metrics.keys() == expected.keys()
    for name, value in expected.items():
        assert first.metrics[name] == value or math.isnan(value), name
    assert first.figure is not None
    assert first.figure.read_bytes().startswith(b"\x89PNG")
    assert first.predictor is not None
    assert (first.predictor / "MLmodel").is_file()
    assert first.sampled_shares is None
    again = found(Store(store.root), frame.copy())
    assert again == first
    assert made(store) == 1


@pytest.mark.parametrize("change", ["label", "score", "missing", "topic", "name", "replicates", "code"])
def test_whatever_they_depend_on_makes_them_anew(store: Store, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = outcomes()
    found(store, frame)
    other = outcomes()
    if change == "label":
        other.loc[0, "label"] = 6 - other.loc[0, "label"] if other.loc[0, "label"] != 3 else 4
    elif change == "score":
        other.loc[0, "ir_score"] = other.loc[0, "ir_score"] / 2
    elif change == "missing":
        other.loc[0, "label"] = pd.NA
    elif change == "topic":
        other.loc[0, "qid"] = "another"
    elif change == "code":
        monkeypatch.setattr(room, "VERSION", 0)
    found(store, other, "sim" if change == "name" else "bm25", n_boot=51 if change == "replicates" else 50)
    assert made(store) == 2


def test_what_they_do_not_depend_on_does_not(store: Store) -> None:
    found(store, outcomes())
    found(store, outcomes().assign(answer="another text"))
    assert made(store) == 1


def test_outcomes_read_from_a_file_are_the_same(store: Store) -> None:
    frame = outcomes()
    frame.loc[3, "label"] = pd.NA
    found(store, frame)
    found(store, pd.read_parquet(_written(frame, store)))
    assert made(store) == 1


def _written(frame: pd.DataFrame, store: Store) -> str:
    path = store.root / "frame.parquet"
    frame.to_parquet(path)
    return str(path)


def test_without_a_verdict_there_are_metrics_only(store: Store) -> None:
    without = found(store, outcomes(judged=False))
    assert without.metrics["judge_share_missing"] == 1
    assert (without.predictor, without.figure, without.sampled_shares) == (None, None, None)


def test_of_a_sample_they_hold_the_shares_of_all_topics(store: Store) -> None:
    frame = outcomes(80)
    chosen = np.arange(80) % 2 == 0
    frame["label"] = frame["label"].where(chosen)
    frame = cross_fit(frame.assign(judged=chosen, stratum=0), **ESTIMATE, seed=3)
    sampled = found(store, frame)
    shares = ppi_shares(frame)
    assert sampled.sampled_shares is not None
    pd.testing.assert_frame_equal(sampled.sampled_shares, shares)
    estimate = shares.set_index("share")["estimate"]
    assert sampled.metrics["correct_share"] == estimate["correct_share"]
    assert sampled.metrics["judged_topics"] == 40
