"""Fusion against ranx, on random runs."""

from __future__ import annotations

import numpy as np
import pytest

from ragauge.retrieval.fusion import Scored, fuse

pytestmark = pytest.mark.slow  # ranx compiles its kernels in every process

N_TOPICS, N_DOCS, DEPTH = 7, 60, 25


def runs(seed: int, depth: int = DEPTH) -> tuple[list[Scored], list[dict[str, dict[str, float]]]]:
    """Three lists as `fuse` takes them and as ranx does; no score stands twice in a list."""
    rng = np.random.default_rng(seed)
    ours, theirs = [], []
    for _ in range(3):
        items = np.array([rng.choice(N_DOCS, depth, replace=False) for _ in range(N_TOPICS)])
        scores = -np.sort(-rng.normal(3, 2, (N_TOPICS, depth)))
        ours.append((np.repeat(np.arange(N_TOPICS), depth), items.ravel(), scores.ravel()))
        theirs.append(
            {f"q{t}": {f"d{d:02}": float(s) for d, s in zip(items[t], scores[t], strict=True)} for t in range(N_TOPICS)}
        )
    return ours, theirs


@pytest.mark.parametrize(
    ("method", "params", "norm", "how"),
    [
        ("rrf", {"k": 60}, None, {"fusion": "rrf"}),
        ("rrf", {"k": 5}, None, {"fusion": "rrf", "constant": 5}),
        ("sum", {}, "min-max", {"fusion": "weighted"}),
        ("wsum", {"weights": [0.5, 0.3, 0.2]}, "min-max", {"fusion": "weighted", "weights": [0.5, 0.3, 0.2]}),
        ("mnz", {}, "min-max", {"fusion": "mnz"}),
        ("max", {}, "min-max", {"fusion": "max"}),
        ("isr", {}, None, {"fusion": "isr"}),
    ],
    ids=str,
)
def test_scores_are_those_of_ranx(method: str, params: dict, norm: str | None, how: dict) -> None:
    ranx = pytest.importorskip("ranx")
    ours, theirs = runs(3)
    extra = {"params": params} if params else {}
    combined = ranx.fuse(runs=[ranx.Run(run) for run in theirs], norm=norm, method=method, **extra)
    topic, item, score = fuse(ours, np.arange(N_DOCS), N_TOPICS, 3 * DEPTH, **how)
    found: dict[str, dict[str, float]] = {f"q{t}": {} for t in range(N_TOPICS)}
    for t, d, s in zip(topic, item, score, strict=True):
        found[f"q{t}"][f"d{d:02}"] = s
    expected = combined.to_dict()
    assert found.keys() == expected.keys()
    for qid in expected:
        assert found[qid] == pytest.approx(expected[qid], abs=1e-9)


def test_z_scores_order_as_those_of_ranx_where_every_list_holds_all() -> None:
    ranx = pytest.importorskip("ranx")
    ours, theirs = runs(5, N_DOCS)
    combined = ranx.fuse(runs=[ranx.Run(run) for run in theirs], norm="zmuv", method="sum").to_dict()
    topic, item, _ = fuse(ours, np.arange(N_DOCS), N_TOPICS, N_DOCS, "weighted", "z_score")
    for t in range(N_TOPICS):
        of_topic = combined[f"q{t}"]
        assert [f"d{d:02}" for d in item[topic == t]] == sorted(of_topic, key=of_topic.get, reverse=True)
