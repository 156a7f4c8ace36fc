"""Questions about the same documents: topics in clusters whose latent ease is correlated, with known truth.

A topic's latent value of a system is root(rho) of its document's and root(1 - rho) of its own normal variable, of
each system by itself, so that documents favour one system or the other by chance. Every trial gives, with the
documents as clusters and with topics taken to be independent, whether the interval holds the truth and its width, or
whether something is found where there is nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import norm

from ragauge.contract.errors import DataError
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.outcomes import CLUSTER
from ragauge.estimate import bounded_mean, cross_validate, ppi_shares
from ragauge.estimate.agreement import kappa_estimate
from ragauge.estimate.best import best_systems
from ragauge.estimate.human import powered_share
from ragauge.estimate.intervals import Estimate, bootstrap_mean, paired_mean, paired_share_interval
from ragauge.estimate.pairs import compare_pairs
from ragauge.estimate.slices import macro_averages, mixed_slicings, slice_estimates
from ragauge.estimate.thresholds import fit_threshold
from ragauge.plugins.budgets.curves import compare_curves, curve_band

RHO = 0.3
SIZES = {f"{n} topics, {m} a document": np.full(n // m, m) for n in (30, 120, 500) for m in (3, 5, 10) if n // m > 5}
UNEVEN = np.random.default_rng(0).integers(1, 31, 40)  # questions of 40 documents
Trial = Callable[[np.random.Generator, np.ndarray, float], tuple[np.ndarray, np.ndarray]]


def latent(rng: np.random.Generator, clusters: np.ndarray, rho: float, systems: int = 1) -> np.ndarray:
    """float64 [topics, systems]."""
    of_cluster = rng.standard_normal((clusters.max() + 1, systems))[clusters]
    return np.sqrt(rho) * of_cluster + np.sqrt(1 - rho) * rng.standard_normal((len(clusters), systems))


def measured(trial: Trial, sizes: np.ndarray, rho: float, trials: int, seed: int) -> np.ndarray:
    """float64 [2, 2]: with clusters, and without, how often the trial is true and the mean width."""
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    found = [trial(rng, clusters, rho) for _ in range(trials)]
    return np.array([np.mean([one[i] for one in found], axis=0) for i in (0, 1)]).T


def _covers(estimates: list[Estimate], truth: float) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.array([float(e.lo <= truth <= e.hi) for e in estimates]),
        np.array([e.hi - e.lo for e in estimates]),
    )


def _both(clusters: np.ndarray) -> tuple[np.ndarray, None]:
    return clusters, None


def _nothing(*found: bool) -> tuple[np.ndarray, np.ndarray]:
    return np.array(found, dtype=float), np.zeros(2)


def share_of(p: float) -> Trial:
    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        x = (latent(rng, clusters, rho)[:, 0] < norm.ppf(p)).astype(float)
        return _covers([bounded_mean(x, clusters=c) for c in _both(clusters)], p)

    return trial


def score(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores of a uniform distribution."""
    x = norm.cdf(latent(rng, clusters, rho)[:, 0])
    return _covers([bounded_mean(x, clusters=c) for c in _both(clusters)], 0.5)


def size(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Values of any size: lognormal, bootstrap."""
    x = np.exp(0.5 * latent(rng, clusters, rho)[:, 0])
    return _covers([bootstrap_mean(x, n_boot=500, clusters=c) for c in _both(clusters)], float(np.exp(0.125)))


def paired_shares(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    right = latent(rng, clusters, rho, 2) < norm.ppf(0.3)
    d = right[:, 0].astype(float) - right[:, 1]
    return _covers([paired_share_interval(d, clusters=c) for c in _both(clusters)], 0.0)


def paired_scores(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    x = norm.cdf(latent(rng, clusters, rho, 2))
    return _covers([paired_mean(x[:, 0] - x[:, 1], clusters=c) for c in _both(clusters)], 0.0)


def rare(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Differences of scores where 3 % of the topics lose 0.5."""
    d = -0.5 * (latent(rng, clusters, rho)[:, 0] < norm.ppf(0.03))
    return _covers([paired_mean(d, clusters=c) for c in _both(clusters)], -0.015)


def _frame(rng: np.random.Generator, clusters: np.ndarray, rho: float, systems: int = 2) -> pd.DataFrame:
    """Outcomes of equal systems: scores are uniform, .3 are right, each by itself."""
    n = len(clusters)
    scores, right = norm.cdf(latent(rng, clusters, rho, systems)), latent(rng, clusters, rho, systems) < norm.ppf(0.3)
    return pd.DataFrame(
        {
            "qid": np.tile(np.arange(n), systems),
            "system": np.repeat([f"s{i}" for i in range(systems)], n),
            "ir_score": scores.T.ravel(),
            "label": pd.array(np.where(right.T.ravel(), 5, 2), dtype="Int8"),
            CLUSTER: np.tile(clusters, systems),
        }
    )


def tested(measure: str) -> Trial:
    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        rows = _frame(rng, clusters, rho)
        rows["label" if measure == "ir_score" else "ir_score"] = np.nan
        p = [
            compare_pairs(part, "system").set_index("measure")["p"][measure]
            for part in (rows, rows.drop(columns=CLUSTER))
        ]
        return _nothing(*(one < 0.05 for one in p))

    return trial


def best(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Four equal systems: whether the first is in the confidence set of the best."""
    x = pd.DataFrame(norm.cdf(latent(rng, clusters, rho, 4)))
    return _nothing(*(best_systems(x, clusters=c)["p_best"][0] >= 0.05 for c in _both(clusters)))


def curve(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Whether the band of four budgets holds all four means."""
    both = latent(rng, clusters, rho)
    x = pd.DataFrame(norm.cdf(np.sqrt(0.7) * both + np.sqrt(0.3) * latent(rng, clusters, rho, 4)))
    bands = [curve_band(x, clusters=c) for c in _both(clusters)]
    inside = [float(((b["band_lo"] <= 0.5) & (b["band_hi"] >= 0.5)).all()) for b in bands]
    return np.array(inside), np.array([(b["band_hi"] - b["band_lo"]).mean() for b in bands])


def curves(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Two equal systems at four budgets: called different at some budget."""
    of = {name: pd.DataFrame(norm.cdf(latent(rng, clusters, rho, 4))) for name in "ab"}
    p = [compare_curves(of, None, clusters=c)["p_all_budgets"].min() for c in (pd.Series(clusters), None)]
    return _nothing(*(one < 0.05 for one in p))


def kappa(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """A judge of two classes, .4 and .6 of the topics, that errs in 15 %, in some documents more often."""
    truth = np.where(latent(rng, clusters, rho)[:, 0] < norm.ppf(0.4), 1, 5)
    said = np.where(latent(rng, clusters, rho)[:, 0] < norm.ppf(0.15), 6 - truth, truth)
    chance = 0.4 * (0.4 * 0.85 + 0.6 * 0.15) + 0.6 * (0.6 * 0.85 + 0.4 * 0.15)
    qids = pd.Series(np.arange(len(clusters)))
    return _covers(
        [kappa_estimate(truth, said, qids, 0.95, c) for c in (pd.Series(clusters), None)],
        (0.85 - chance) / (1 - chance),
    )


def agreement(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Equal labels of a judge that errs in 15 %."""
    same = (latent(rng, clusters, rho)[:, 0] > norm.ppf(0.15)).astype(float)
    return _covers([bounded_mean(same, clusters=c) for c in _both(clusters)], 0.85)


def useless(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """A score that says nothing: k is called useful."""
    scores, right = norm.cdf(latent(rng, clusters, rho)[:, 0]), latent(rng, clusters, rho)[:, 0] < 0
    found = [fit_threshold(scores, right, "above", n_splits=5, clusters=c) for c in _both(clusters)]
    return _nothing(*(one.useful for one in found))


def kept_best(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Whether the best threshold, .5, is among those that are not rejected."""
    z = latent(rng, clusters, rho, 2)
    scores = norm.cdf(z[:, 0])
    right = z[:, 1] < norm.ppf(1 / (1 + np.exp(-6 * (scores - 0.5))))
    found = [fit_threshold(scores, right, "above", clusters=c) for c in _both(clusters)]
    return _nothing(*(any(0.5 in part for part in one.not_rejected) for one in found))


def foreseen(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Twenty measures that say nothing of the answers: one of them is found better than chance."""
    from ragauge.plugins.foresight.measures import foresight

    rows = _frame(rng, clusters, rho, 1)
    infos = [AnswerMeasureInfo(f"m{i}", f"m{i}", of="context") for i in range(19)]
    other = dict(zip((one.name for one in infos), latent(rng, clusters, rho, 19).T, strict=True))
    rows = rows.assign(**other)
    found = [foresight(part, infos, n_boot=300) for part in (rows, rows.drop(columns=CLUSTER))]
    return _nothing(*(one is not None and one.table["p_chance"].min() < 0.05 for one in found))


def auc(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """The AUC of a score that says nothing: its interval."""
    from ragauge.plugins.foresight.measures import foresight

    rows = _frame(rng, clusters, rho, 1)
    found = [foresight(part, (), n_boot=300) for part in (rows, rows.drop(columns=CLUSTER))]
    first = [one.table.iloc[0] for one in found if one is not None]
    return _covers([Estimate(row["value"], row["lo"], row["hi"], 0) for row in first], 0.5)


def ablated(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Right answers with an option that does nothing, over two settings, less those without it."""
    from ragauge.plugins.parts.ablation import ablation

    rows = _frame(rng, clusters, rho, 4)
    settings = {f"s{i}": {"retriever": "ab"[i // 2], "reranker": ("none", "cross")[i % 2]} for i in range(4)}
    found = [ablation(part, settings) for part in (rows, rows.drop(columns=CLUSTER))]
    which = [one[(one["factor"] == "reranker") & (one["measure"] == "correct")].iloc[0] for one in found]
    return _covers([Estimate(row["difference"], row["lo"], row["hi"], 0) for row in which], 0.0)


def powered(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Right answers (.3) of all topics, 40 % of which were judged at random, by a prediction."""
    n = len(clusters)
    z = latent(rng, clusters, rho)[:, 0]
    right = z < norm.ppf(0.3)
    p5 = norm.cdf((norm.ppf(0.3) - 0.7 * (z + 0.6 * rng.standard_normal(n))) / 0.8)
    judged = np.zeros(n, dtype=bool)
    judged[rng.permutation(n)[: max(int(0.4 * n), 12)]] = True
    rows = pd.DataFrame({"qid": np.arange(n), "judged": judged, CLUSTER: clusters})
    rows["label"] = pd.array(np.where(right, 5, 2), dtype="Int8")
    rows["label"] = rows["label"].mask(~judged)
    rows = rows.assign(p1=0.0, p2=1 - p5, p3=0.0, p4=0.0, p5=p5)
    found = [ppi_shares(part).set_index("share").loc["correct_share"] for part in (rows, rows.drop(columns=CLUSTER))]
    return _covers([Estimate(row["estimate"], row["lo"], row["hi"], n) for row in found], 0.3)


def people(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """The share of yes (.4) as people would say, of labels on 40 % of the topics and a judge's probabilities."""
    n = len(clusters)
    z = latent(rng, clusters, rho)[:, 0]
    yes, said = (z < norm.ppf(0.4)).astype(float), norm.cdf(norm.ppf(0.4) - z + 0.7 * rng.standard_normal(n))
    while True:
        labels = np.where(rng.permutation(n) < max(int(0.4 * n), 12), yes, np.nan)
        try:
            found = [powered_share(labels, said, clusters=c).powered for c in _both(clusters)]
        except DataError:  # one random draw of a thousand is refused
            continue
        return _covers(found, 0.4)


def sliced(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """The mean over two slices that every document has topics of."""
    n = len(clusters)
    right = latent(rng, clusters, rho)[:, 0] < norm.ppf(0.3)
    rows = pd.DataFrame(
        {
            "qid": np.arange(n), "ir_score": np.nan, "label": pd.array(np.where(right, 5, 2), dtype="Int8"),
            "slice:k": np.where(np.arange(n) % 2, "odd", "even"), CLUSTER: clusters,
        }
    )  # fmt: skip
    found = []
    for part in (rows, rows.drop(columns=CLUSTER)):
        averages = macro_averages(slice_estimates(part), mixed=mixed_slicings(part)).set_index("measure")
        found.append(averages.loc["correct_share"])
    return _covers([Estimate(row["value"], row["lo"], row["hi"], n) for row in found], 0.3)


def gate(regressed: bool, shares: bool) -> Trial:
    """A gate calls an equal system regressed, or lets one pass that is worse by its tolerance of 0.05."""

    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        from ragauge.plugins.gate.gating import paired_test

        z = latent(rng, clusters, rho, 2)
        own, other = (z < norm.ppf(0.7)).astype(float).T if shares else norm.cdf(z).T
        if not regressed:
            own = (z[:, 0] < norm.ppf(0.65)).astype(float) if shares else norm.cdf(z[:, 0]) * 0.9
        found = [paired_test(own, other, 0.0 if regressed else 0.05, clusters=c) for c in _both(clusters)]
        return _nothing(*((one.p_regressed if regressed else one.p_pass) < 0.05 for one in found))

    return trial


def _scored(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> pd.DataFrame:
    """Outcomes of one system whose P(right) rises with the score, from 0.12 to 0.88."""
    z = latent(rng, clusters, rho, 2)
    right = norm.cdf(z[:, 1]) < expit(4 * (norm.cdf(z[:, 0]) - 0.5))
    label = pd.array(np.where(right, 5, 4), dtype="Int8")
    return pd.DataFrame(
        {"qid": np.arange(len(clusters)), "ir_score": norm.cdf(z[:, 0]), "label": label, CLUSTER: clusters}
    )


@cache
def _true_loss(name: str, clusters: tuple[int, ...], rho: float) -> float:
    """The mean of a loss on unseen topics over 150 data sets."""
    rng = np.random.default_rng(0)
    drawn = (_scored(rng, np.array(clusters), rho) for _ in range(150))
    return float(np.mean([cross_validate(one, n_boot=0).estimates[name].value for one in drawn]))


def loss(name: str) -> Trial:
    """A loss of the predictor on unseen topics: its interval, of the mean over fits."""

    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        rows = _scored(rng, clusters, rho)
        found = [cross_validate(one, n_boot=300).estimates[name] for one in (rows, rows.drop(columns=CLUSTER))]
        return _covers(found, _true_loss(name, tuple(clusters), rho))

    return trial


def _retrieved(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> pd.DataFrame:
    """Outcomes of three retrievers: right where the score is high, and by how easy a topic is for the retriever."""
    n, parts = len(clusters), []
    scores, easy = norm.cdf(latent(rng, clusters, rho, 3)), 2 * latent(rng, clusters, rho, 3)
    for number, retriever in enumerate("abc"):
        score = scores[:, number] ** (2 / (2 + number))
        odds = np.exp(np.column_stack([1.5 - 4 * score, np.zeros(n), 3 * score - 1 + easy[:, number]]))
        drawn = (rng.random(n)[:, None] * odds.sum(axis=1, keepdims=True) > odds.cumsum(axis=1)).sum(axis=1)
        label = pd.array(np.array([1, 4, 5])[drawn], dtype="Int8")
        rows = {"qid": np.arange(n), "retriever": retriever, "ir_score": score, "label": label, CLUSTER: clusters}
        parts.append(pd.DataFrame(rows))
    return pd.concat(parts, ignore_index=True)


@cache
def _true_differences() -> np.ndarray:
    """float64 [9]: predicted less judged shares of classes 1, 4 and 5 of each retriever, fitted on many topics."""
    from simulations.transfer import differences

    rng, many = np.random.default_rng(0), np.arange(40_000)
    found = [differences(_retrieved(rng, many, 0.0), _retrieved(rng, many, 0.0)) for _ in range(4)]
    return np.asarray(np.mean(found, axis=0)[:, [0, 3, 4]].ravel())


@cache
def _new_error(clusters: tuple[int, ...], rho: float) -> float:
    """The mean absolute error of class shares on as many topics as the fits had, over 100 pairs of data sets."""
    from simulations.transfer import differences

    rng, at = np.random.default_rng(0), np.array(clusters)
    return float(
        np.mean([np.abs(differences(_retrieved(rng, at, rho), _retrieved(rng, at, rho))).mean() for _ in range(100)])
    )


def transferred(error: bool) -> Trial:
    """Predicted less judged shares of retrievers left out (the share of nine that is held), or their error."""

    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        from ragauge.plugins.transfer.measured import leave_one_out

        rows = _retrieved(rng, clusters, rho)
        found = [leave_one_out(one, n_boot=300) for one in (rows, rows.drop(columns=CLUSTER))]
        if error:
            return _covers([one.mean_absolute_error for one in found], _new_error(tuple(clusters), rho))
        tables = [one.table[one.table["class"].isin((1, 4, 5))] for one in found]
        held = [(t["lo"] <= _true_differences()) & (_true_differences() <= t["hi"]) for t in tables]
        return np.array([one.mean() for one in held]), np.array([(t["hi"] - t["lo"]).mean() for t in tables])

    return trial


SOME = {f"{n} topics, {m} a document": np.full(n // m, m) for n, m in ((30, 5), (120, 10), (500, 10))}
INTERVALS: dict[str, tuple[Trial, int]] = {
    "share of 0.3": (share_of(0.3), 300),
    "share of 0.05": (share_of(0.05), 300),
    "mean score": (score, 300),
    "mean of any size, by bootstrap": (size, 290),
    "paired difference of shares": (paired_shares, 300),
    "paired difference of scores": (paired_scores, 300),
    "paired difference of scores, 3 % of the topics lose 0.5": (rare, 300),
    "kappa": (kappa, 300),
    "agreement of judge and people": (agreement, 300),
    "share by a judged sample (PPI)": (powered, 120),
    "share as people would judge (PPI)": (people, 120),
    "mean over slices that share documents": (sliced, 40),
    "AUC of a measure": (auc, 120),
    "ablation, right answers": (ablated, 60),
    "band of a curve over four budgets": (curve, 60),
}
REFITS: dict[str, tuple[Trial, int]] = {  # a predictor is fitted in every trial
    "shares of retrievers left out, predicted less judged": (transferred(False), 40),
    "mean absolute error of transfer": (transferred(True), 40),
}
HELD: dict[str, tuple[Trial, int]] = {
    "of four equal systems the first is in the set of the best": (best, 120),
    "the best threshold is among those not rejected": (kept_best, 180),
}
TESTS: dict[str, tuple[Trial, int]] = {
    "two equal systems, right answers: called different": (tested("correct"), 100),
    "two equal systems, IR score: called different": (tested("ir_score"), 100),
    "two equal curves: called different at some budget": (curves, 60),
    "a useless score: k is called useful": (useless, 180),
    "gate, right answers: equal systems, called regressed": (gate(True, True), 180),
    "gate, scores: equal systems, called regressed": (gate(True, False), 180),
    "gate, right answers: worse by its tolerance, passes": (gate(False, True), 180),
    "gate, scores: worse by its tolerance, passes": (gate(False, False), 180),
    "twenty useless measures: one foresees": (foreseen, 200),
}


def cells(trials: int, rho: float) -> dict[str, np.ndarray]:
    """The numbers of topics and documents that are tried: fewer where a trial takes long, and without correlation."""
    if rho == 0:
        return SOME
    return {**(SIZES if trials >= 300 else SOME), "40 documents of 1 to 30 topics": UNEVEN}
