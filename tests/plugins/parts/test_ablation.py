"""Differences of options with all else equal: by hand, by brute force over the grid, and on samples."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.estimate.outcomes import CLUSTER
from ragauge.estimate.pairs import compare_pairs
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


def grid_settings(*factors: tuple[str, tuple[str, ...]]) -> dict[str, dict[str, str]]:
    names = [name for name, _ in factors]
    return {
        " ".join(chosen): dict(zip(names, chosen, strict=True))
        for chosen in product(*(options for _, options in factors))
    }


GRID = grid_settings(("retriever", ("bm25", "sim")), ("reranker", ("cross", "none")))
SCORES = {
    "bm25 cross": [0.9, 0.7],
    "bm25 none": [0.5, 0.5],
    "sim cross": [0.6, 1.0],
    "sim none": [0.6, 0.8],
}


def test_with_one_setting_it_is_the_paired_comparison_of_the_two_systems() -> None:
    rng = np.random.default_rng(0)
    rows = outcomes(
        {name: rng.random(40).tolist() for name in ("a", "b")},
        {name: rng.integers(1, 6, 40).tolist() for name in ("a", "b")},
    )
    found = ablation(rows, {"b": {"part": "b"}, "a": {"part": "a"}}).set_index("measure")
    pairs = compare_pairs(rows, "system", seed=3).set_index("measure")
    for measure in ("ir_score", "correct", "hallucination"):
        expected = pairs.loc[measure, ["difference", "lo", "hi", "n"]].astype(float)
        # The pair is a less b, and b was named first: the base.
        np.testing.assert_allclose(found.loc[measure, ["difference", "lo", "hi", "n"]].astype(float), expected)


def test_a_sample_of_judged_topics_gives_the_difference_over_all_topics() -> None:
    rng = np.random.default_rng(2)
    n = 400
    judged = np.arange(n) < 100
    parts = []
    for system, p in (("none", 0.3), ("cross", 0.6)):
        label = np.where(rng.random(n) < p, 5, 1)
        columns = {f"p{c}": 0.0 for c in (2, 3, 4)} | {"p5": p, "p1": 1 - p}
        rows = outcomes({system: [0.5] * n}, {system: label.tolist()}).assign(judged=judged, stratum=0)
        parts.append(rows.assign(**columns))
    frame = pd.concat(parts, ignore_index=True)
    frame["label"] = frame["label"].where(frame["judged"])
    found = ablation(frame, {s: {"reranker": s} for s in ("none", "cross")}).set_index("measure")
    assert found.loc["correct", "n"] == 100
    assert found.loc["correct", "lo"] < 0.3 < found.loc["correct", "hi"]
    assert found.loc["ir_score", "n"] == n


def test_a_system_without_settings_is_told() -> None:
    with pytest.raises(DataError, match="no settings are given of system 'sim none'"):
        ablation(outcomes(SCORES), {name: own for name, own in GRID.items() if name != "sim none"})


def test_an_ablation_over_clusters_is_wider() -> None:
    rng = np.random.default_rng(0)
    ease = np.repeat(rng.random(6), 10)  # topics of a cluster are alike
    rows = outcomes({name: np.clip(ease + rng.normal(0, 0.1, 60), 0, 1).round(2).tolist() for name in "st"})
    rows[CLUSTER] = np.tile(np.repeat(list("abcdef"), 10), 2)
    settings = {"s": {"reranker": "none"}, "t": {"reranker": "x"}}
    over, alone = (ablation(part, settings) for part in (rows, rows.drop(columns=CLUSTER)))
    assert over["difference"].tolist() == pytest.approx(alone["difference"].tolist())
    assert (over["hi"] - over["lo"] > alone["hi"] - alone["lo"]).all()
