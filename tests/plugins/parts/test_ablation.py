"""An ablation on a sample of judged topics, and where systems have no settings or no outcomes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.estimate.pairs import powered_difference
from ragauge.plugins.parts.ablation import ablation

Values = dict[str, list[float]]


def outcomes(scores: Values, labels: dict[str, list[int | None]] | None = None) -> pd.DataFrame:
    """One topic a position, one system a key."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "qid": [f"q{i}" for i in range(len(values))],
                    "system": name,
                    "ir_score": values,
                    "label": pd.array((labels or {}).get(name, [None] * len(values)), dtype="Int8"),
                }
            )
            for name, values in scores.items()
        ],
        ignore_index=True,
    )


GRID = {f"{r} {o}": {"retriever": r, "reranker": o} for r in ("bm25", "sim") for o in ("cross", "none")}
SCORES = {
    "bm25 cross": [0.9, 0.7],
    "bm25 none": [0.5, 0.5],
    "sim cross": [0.6, 1.0],
    "sim none": [0.6, 0.8],
}


def test_a_sample_of_judged_topics_gives_the_difference_over_all_topics() -> None:
    rng = np.random.default_rng(2)
    n = 400
    judged = np.arange(n) < 100
    parts = []
    for system, p in (("none", 0.3), ("cross", 0.6)):
        label = np.where(rng.random(n) < p, 5, 1)
        expected = np.where(judged, p, p + 0.2)  # the topics that nobody judged are the easier ones
        columns = {f"p{c}": 0.0 for c in (2, 3, 4)} | {"p5": expected - 0.2 * (system == "none"), "p1": 1 - expected}
        rows = outcomes({system: [0.5] * n}, {system: label.tolist()}).assign(judged=judged, stratum=0)
        parts.append(rows.assign(**columns))
    frame = pd.concat(parts, ignore_index=True)
    frame["label"] = frame["label"].where(frame["judged"])
    found = ablation(frame, {s: {"reranker": s} for s in ("none", "cross")}).set_index("measure")
    assert found.loc["correct", "n"] == 100
    assert found.loc["correct", "lo"] < 0.3 < found.loc["correct", "hi"]
    right = frame["label"].eq(5).astype(float).to_numpy().reshape(2, n)
    foreseen = frame["p5"].to_numpy().reshape(2, n)
    by_hand, _ = powered_difference(right[1] - right[0], foreseen[1] - foreseen[0], judged, np.zeros(n, dtype=int))
    assert found.loc["correct", ["difference", "lo", "hi"]].tolist() == pytest.approx(
        [by_hand.value, by_hand.lo, by_hand.hi]
    )
    assert found.loc["ir_score", "n"] == n


def test_a_system_without_settings_is_told() -> None:
    with pytest.raises(DataError, match="no settings are given of system 'sim none'"):
        ablation(outcomes(SCORES), {name: own for name, own in GRID.items() if name != "sim none"})


def test_a_system_that_has_no_option_of_a_part_is_no_match_of_it() -> None:
    grid = {name: dict(own) for name, own in GRID.items()}
    del grid["sim none"]["reranker"]
    found = ablation(outcomes(SCORES), grid)
    assert found[["factor", "option", "settings"]].values.tolist() == [
        ["retriever", "sim", 1], ["reranker", "cross", 1],
    ]  # fmt: skip


def test_a_system_without_outcomes_makes_no_match() -> None:
    found = ablation(outcomes({name: SCORES[name] for name in ("bm25 cross", "bm25 none")}), GRID)
    assert list(zip(found["option"], found["settings"], strict=True)) == [("cross", 1)]
    apart = outcomes(SCORES)
    apart["qid"] += apart["system"].eq("sim none").map({True: " of another data set", False: ""})
    assert ablation(apart, GRID).empty
