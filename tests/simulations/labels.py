"""Simulations of labels by people: which answers are labelled, and what shares and differences come of it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from ragauge.estimate.human import human_pairs, human_shares
from ragauge.plugins.labels.design import inclusion, places
from ragauge.plugins.labels.expected import expected
from ragauge.plugins.labels.rogan_gladen import Judge, Rate, rogan_gladen

SETTINGS = ("no evidence", "incomplete", "independent", "inverted", "perfect", "rare")
_SYSTEMS = {"a": 0.0, "b": 0.12}


def outcomes(kind: str, n_topics: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of two systems with `truth`, what a person says, and `label`, what the judge says of it by `kind`."""
    shared, parts = rng.normal(size=n_topics), []
    hard = rng.random(n_topics)
    for name, better in _SYSTEMS.items():
        ability = shared + 0.8 * rng.normal(size=n_topics)
        score = 1 / (1 + np.exp(-1.6 * ability - better))
        right = rng.random(n_topics) < 1 / (1 + np.exp(-(4 * (score + better) - 1.8)))
        label = np.where(right, 5, rng.choice([1, 2, 3, 4], size=n_topics, p=[0.2, 0.25, 0.25, 0.3]))
        luck = np.where(rng.random(n_topics) < 0.5, hard, rng.random(n_topics))  # errors of both systems go together
        truth = np.where(luck < _errs(kind, score, label), np.where(label == 5, rng.choice([2, 4], n_topics), 5), label)
        parts.append(
            pd.DataFrame(
                {"qid": np.arange(n_topics).astype(str), "system": name, "ir_score": score, "label": label}
            ).assign(truth=truth, n_tokens=500, retriever=name)
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
def truth_of(kind: str) -> dict[str, float]:
    """Shares and difference of the population, of 400,000 topics."""
    frame = outcomes(kind, 400_000, np.random.default_rng(99))
    of = {name: part["truth"].to_numpy() for name, part in frame.groupby("system")}
    right = {name: float((x == 5).mean()) for name, x in of.items()}
    return {
        "correct": right["a"], "hallucination": float(np.isin(of["a"], [2, 4]).mean()),
        "difference": right["a"] - right["b"],
    }  # fmt: skip


def labelled(
    kind: str, n_topics: int, topics: tuple[int, ...], earlier: int, trials: int, seed: int, draws: int = 20
) -> dict[int, dict[str, float]]:
    """Coverage of 95 % intervals, and widths beside those of as many labels of topics drawn uniformly, by topics.

    `draws` samples are drawn of each data set.

    `earlier` topics, drawn uniformly, were labelled before: the judge's errors are learnt from them. `topics` are
    labelled for each of the two systems.
    """
    truth = truth_of(kind)
    names = ("correct", "hallucination", "difference")
    found: dict[int, list[list[list[tuple[float, float, float]]]]] = {n: [] for n in topics}
    uniform: list[float] = []
    for number in range(max(trials // draws, 1)):
        rng = np.random.default_rng([seed, number])
        frame = outcomes(kind, n_topics, rng)
        qids = np.unique(frame["qid"])
        before = frame["qid"].isin(rng.choice(qids, earlier, replace=False))
        known = expected(frame.assign(earlier_human=frame["truth"].where(before).astype("Int8")))
        uniform.append(known.uniform)
        sizes = [pd.Series(known.sizes[rows.index], rows["qid"]) for _, rows in frame.groupby("system")]
        chances = {n: np.concatenate([inclusion((s / s.sum()).to_numpy(), n) for s in sizes]) for n in topics}
        for _ in range(min(draws, trials)):
            one = int(rng.integers(2**31))
            place = np.concatenate([places(size, one) for size in sizes])
            plain = rng.permutation(qids)
            for n in topics:
                chance = {"drawn": np.where(place < n, chances[n], np.nan)}
                chance["uniform"] = np.where(frame["qid"].isin(plain[:n]), n / n_topics, np.nan)
                row = []
                for probability in chance.values():
                    rows = frame.assign(human_probability=probability)
                    rows["human_label"] = frame["truth"].where(rows["human_probability"].notna()).astype("Int8")
                    row.append(_limits(rows))
                found[n].append(row)
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


def _limits(rows: pd.DataFrame) -> list[tuple[float, float, float]]:
    """Estimate and limits of the two shares of system a, and of the difference of right answers."""
    shares, pairs = human_shares(rows[rows["system"] == "a"]), human_pairs(rows)
    assert shares is not None
    assert pairs is not None
    of = shares.set_index("share")
    found = [tuple(of.loc[f"{name}_share", ["estimate", "lo", "hi"]]) for name in ("correct", "hallucination")]
    pair = pairs[pairs["measure"] == "correct"].iloc[0]
    return [*found, (pair["difference"], pair["lo"], pair["hi"])]


def other_period(n_labels: int, share_then: float, share_now: float, trials: int, seed: int) -> dict[str, float]:
    """Coverage and bias of the share of right answers from labels of a period with another share of right answers.

    The judge has sensitivity .9 and specificity .8 in both periods; 1,000 answers are estimated. `ppi` takes the labels
    for labels of these answers: the judged share plus the labels' mean error.
    """
    rng, found = np.random.default_rng(seed), []

    def judged(right: np.ndarray) -> np.ndarray:
        return np.where(right, rng.random(len(right)) < 0.9, rng.random(len(right)) < 0.2)

    for _ in range(trials):
        now, then = (rng.random(n) < share for n, share in ((1000, share_now), (n_labels, share_then)))
        said, said_then = judged(now), judged(then)
        p = float(said.mean())
        rates = [Rate(float(x.mean()), len(x)) for x in (said_then[then], ~said_then[~then])]
        by_rates = rogan_gladen(Rate(p, 1000), Judge(rates[0], rates[1], n_labels))
        error = then.astype(float) - said_then
        reach = 1.96 * np.sqrt(p * (1 - p) / 1000 + error.var(ddof=1) / n_labels)
        found.append((by_rates.value, by_rates.lo, by_rates.hi, p + error.mean(), reach))
    value, lo, hi, ppi, reach = np.array(found).T
    return {
        "coverage": float(((lo <= share_now) & (share_now <= hi)).mean()),
        "bias": float(value.mean() - share_now),
        "ppi": float((np.abs(ppi - share_now) <= reach).mean()),
        "ppi_bias": float(ppi.mean() - share_now),
    }


def nearly_all_right(share: float, errs: float, n_labels: int, trials: int, seed: int) -> dict[str, float]:
    """Coverage of the 95 % interval of right answers where most draws of labels are all alike, and how many are.

    Of 300 topics this share is right. The judge gives any class with probability `errs`, else the true one. Topics are
    drawn to be labelled with probabilities that differ by a factor of five.
    """
    rng, n_topics, found = np.random.default_rng(seed), 300, []
    for _ in range(trials):
        truth = np.where(rng.random(n_topics) < share, 5, rng.choice([1, 2, 3, 4], n_topics))
        label = np.where(rng.random(n_topics) < errs, rng.choice([1, 2, 3, 4, 5], n_topics), truth)
        size = rng.uniform(0.2, 1, n_topics)
        drawn = np.argsort(rng.random(n_topics) / size)[:n_labels]
        given = np.isin(np.arange(n_topics), drawn)
        rows = pd.DataFrame({"qid": np.arange(n_topics).astype(str), "n_tokens": 500, "system": "a", "ir_score": 0.5})
        rows["label"], rows["human_label"] = (
            pd.array(values, dtype="Int8") for values in (label, np.where(given, truth, None))
        )
        rows["human_probability"] = np.where(given, inclusion(size / size.sum(), n_labels), np.nan)
        shares = human_shares(rows)
        assert shares is not None
        right = shares.set_index("share").loc["correct_share"]
        found.append((right["lo"] <= share <= right["hi"], (truth[given] == 5).all(), right["hi"] - right["lo"]))
    covered, alike, width = np.array(found, dtype=float).T
    return {"coverage": float(covered.mean()), "alike": float(alike.mean()), "width": float(width.min())}
