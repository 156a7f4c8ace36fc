"""Simulations of labels by people: which answers are labelled, and what shares and differences come of it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from ragauge.estimate.human import human_pairs, human_shares
from ragauge.plugins.labels.design import draw
from ragauge.plugins.labels.expected import expected

SETTINGS = ("no evidence", "incomplete", "independent", "inverted", "perfect", "rare")
_SYSTEMS = {"a": 0.0, "b": 0.12}


def outcomes(kind: str, n_topics: int, rng: np.random.Generator, clusters: int = 0) -> pd.DataFrame:
    """Rows of two systems with `truth`, what a person says, and `label`, what the judge says of it by `kind`."""
    shared, parts = rng.normal(size=n_topics), []
    if clusters:
        of = np.arange(n_topics) % clusters
        shared = np.sqrt(0.5) * shared + np.sqrt(0.5) * rng.normal(size=clusters)[of]
    hard = rng.random(n_topics)
    for name, better in _SYSTEMS.items():
        ability = shared + 0.8 * rng.normal(size=n_topics)
        score = 1 / (1 + np.exp(-1.6 * ability - better))
        right = rng.random(n_topics) < 1 / (1 + np.exp(-(4 * (score + better) - 1.8)))
        label = np.where(right, 5, rng.choice([1, 2, 3, 4], size=n_topics, p=[0.2, 0.25, 0.25, 0.3]))
        luck = np.where(rng.random(n_topics) < 0.5, hard, rng.random(n_topics))  # errors of both systems go together
        truth = np.where(luck < _errs(kind, score, label), np.where(label == 5, rng.choice([2, 4], n_topics), 5), label)
        parts.append(
            pd.DataFrame({"qid": np.arange(n_topics).astype(str), "system": name, "ir_score": score, "label": label})
            .assign(truth=truth, n_tokens=500, retriever=name)
            .assign(**({"topic_cluster": of.astype(str)} if clusters else {}))
        )
    return pd.concat(parts, ignore_index=True).astype({"label": "Int8"})


def _errs(kind: str, score: np.ndarray, label: np.ndarray) -> np.ndarray:
    """How probably the judge is wrong on each answer."""
    if kind == "no evidence":  # it believes answers that the context does not carry
        return np.where((label == 5) & (score < 0.35), 0.5, 0.003)
    if kind == "incomplete":  # people call half of the answers right that it calls incomplete
        return np.where(label == 3, 0.5, 0.003)
    if kind == "inverted":  # it errs where its verdict is the most probable one
        return np.where((label == 5) == (score > 0.5), 0.15, 0.0)
    return np.full(len(score), {"independent": 0.1, "perfect": 0.0, "rare": 0.02}[kind])


@cache
def truth_of(kind: str, clusters: int = 0) -> dict[str, float]:
    """Shares and difference of the population, of 400,000 topics."""
    frame = outcomes(kind, 400_000, np.random.default_rng(99))
    of = {name: part["truth"].to_numpy() for name, part in frame.groupby("system")}
    right = {name: float((x == 5).mean()) for name, x in of.items()}
    return {
        "correct": right["a"], "hallucination": float(np.isin(of["a"], [2, 4]).mean()),
        "difference": right["a"] - right["b"],
    }  # fmt: skip


def labelled(
    kind: str, n_topics: int, topics: tuple[int, ...], earlier: int, trials: int, seed: int, clusters: int = 0
) -> dict[int, dict[str, float]]:
    """Coverage of 95 % intervals, and widths beside those of as many labels of topics drawn uniformly, by topics.

    `earlier` topics, drawn uniformly, were labelled before: the judge's errors are learnt from them. `topics` are
    labelled for each of the two systems.
    """
    rng, truth = np.random.default_rng(seed), truth_of(kind)
    names = ("correct", "hallucination", "difference")
    found: dict[int, list[np.ndarray]] = {n: [] for n in topics}
    uniform: list[float] = []
    for _ in range(trials):
        frame = outcomes(kind, n_topics, rng, clusters)
        qids = np.unique(frame["qid"])
        before = frame["qid"].isin(rng.choice(qids, earlier, replace=False))
        known = expected(frame.assign(earlier_human=frame["truth"].where(before).astype("Int8")))
        uniform.append(known.uniform)
        for n in topics:
            seed_of = int(rng.integers(2**31))
            drawn = {
                system: draw(pd.Series(known.sizes[rows.index], rows["qid"]), n, seed_of).set_index("qid")[
                    "probability"
                ]
                for system, rows in frame.groupby("system")
            }
            probability = pd.concat(
                [rows["qid"].map(drawn[name]) for name, rows in frame.groupby("system")]
            ).sort_index()
            plain = rng.choice(qids, n, replace=False)
            row = []
            for chosen, weights in ((probability.notna(), probability), (frame["qid"].isin(plain), n / n_topics)):
                rows = frame.assign(human_label=frame["truth"].where(chosen).astype("Int8"))
                rows["human_probability"] = weights
                row.append([_limits(rows, name) for name in names])
            found[n].append(np.array(row))
    result = {}
    for n, of_trials in found.items():
        x = np.array(of_trials)  # trials, design, measure, (value, lo, hi)
        right = np.array([truth[name] for name in names])
        covered = ((x[..., 1] <= right) & (right <= x[..., 2])).mean(axis=0)
        width = (x[..., 2] - x[..., 1]).mean(axis=0)
        result[n] = {
            **{f"{name}": float(covered[0, k]) for k, name in enumerate(names)},
            **{f"{name}_uniform": float(covered[1, k]) for k, name in enumerate(names)},
            **{f"{name}_width": float(width[0, k] / width[1, k]) for k, name in enumerate(names)},
            **{f"{name}_bias": float((x[:, 0, k, 0] - right[k]).mean()) for k, name in enumerate(names)},
            "share": float(np.mean(uniform)),
        }
    return result


def _limits(rows: pd.DataFrame, name: str) -> tuple[float, float, float]:
    if name == "difference":
        pairs = human_pairs(rows)
        assert pairs is not None
        row = pairs[pairs["measure"] == "correct"].iloc[0]
        return row["difference"], row["lo"], row["hi"]
    shares = human_shares(rows[rows["system"] == "a"])
    assert shares is not None
    row = shares.set_index("share").loc[f"{name}_share"]
    return row["estimate"], row["lo"], row["hi"]
