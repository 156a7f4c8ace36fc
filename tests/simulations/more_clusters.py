"""Topics in clusters for the other kinds of intervals and tests: trials as in `simulations.clusters`."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from scipy.stats import norm

from ragauge.contract.outcomes import CAUSE, CLUSTER
from ragauge.diagnose.failures import EVERY_CAUSE, cause_shares
from ragauge.diagnose.funnel import funnel
from ragauge.estimate import cross_validate, fit_zones
from ragauge.estimate.board import share_estimates
from ragauge.estimate.intervals import Estimate, paired_mean, paired_share_interval
from ragauge.estimate.pairs import compare_pairs, sign_flip_p
from ragauge.estimate.plan import of_clusters, topics_for_mean
from ragauge.estimate.slices import slice_differences, slice_estimates
from ragauge.estimate.thresholds import fit_threshold
from simulations.clusters import UNEVEN, Trial, _both, _covers, _frame, _nothing, _scored, latent

FEW = {"6 documents of 5": np.full(6, 5), "12 of 10": np.full(12, 10)}
MANY = {"30 of 3": np.full(30, 3), "60 of 5": np.full(60, 5), "40 of 1 to 30": UNEVEN}
_SLOPE = 4.0  # of P(right) by the score, on the logit scale


def _parts(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    return rows, rows.drop(columns=CLUSTER)


def _gain(rows: pd.DataFrame) -> list[Estimate]:
    scores, right = rows["ir_score"].to_numpy(), rows["label"].eq(5).to_numpy(dtype=bool)
    return [
        fit_threshold(scores, right, "above", n_splits=5, clusters=of).gain for of in _both(rows[CLUSTER].to_numpy())
    ]


@cache
def _many(clusters: tuple[int, ...], rho: float) -> dict[str, float]:
    """What is estimated of as many topics over 150 data sets: means of the gain and of measures of the predictor.

    Of calibration slope and intercept medians, since those of few topics have no finite mean.
    """
    rng, found = np.random.default_rng(0), []
    for _ in range(150):
        rows = _scored(rng, np.array(clusters), rho)
        of = {name: e.value for name, e in cross_validate(rows, n_boot=0).estimates.items()}
        found.append({**of, "gain": _gain(rows)[0].value})
    drawn = pd.DataFrame(found)
    return {name: float(of.median() if "calibration" in name else of.mean()) for name, of in drawn.items()}


def gain(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """The gain of a threshold over the better constant answer, on unseen topics."""
    return _covers(_gain(_scored(rng, clusters, rho)), _many(tuple(clusters), rho)["gain"])


def of_predictor(name: str) -> Trial:
    """A measure of the predictor on unseen topics."""

    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        found = [cross_validate(one, n_boot=300).estimates[name] for one in _parts(_scored(rng, clusters, rho))]
        return _covers(found, _many(tuple(clusters), rho)[name])

    return trial


def _systems(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> pd.DataFrame:
    """Six systems whose scores rise in another order than their shares of right answers; scores say a little."""
    n, scores, rights = len(clusters), [], []
    for _at, (own, right) in enumerate(zip((0.0, 0.3, 0.6, 0.9, 1.2, 1.5), (0, 0.6, 0.3, 0.9, 1.5, 1.2), strict=True)):
        z = latent(rng, clusters, rho, 2)
        scores.append(norm.cdf(z[:, 0] + own - 0.75))
        rights.append(z[:, 1] + 0.5 * (z[:, 0]) > 0.75 - right)
    return pd.DataFrame(
        {
            "qid": np.tile(np.arange(n), 6),
            "system": np.repeat([f"s{at}" for at in range(6)], n),
            "ir_score": np.concatenate(scores),
            "label": pd.array(np.where(np.concatenate(rights), 5, 4), dtype="Int8"),
            CLUSTER: np.tile(clusters, 6),
        }
    )


@cache
def _true_rank(statistic: str) -> float:
    from ragauge.plugins.foresight.measures import foresight

    found = foresight(_systems(np.random.default_rng(1), np.arange(100_000), 0.0), (), n_boot=0)
    assert found is not None
    return float(found.table.set_index("statistic")["value"][statistic])


def rank(statistic: str) -> Trial:
    """Spearman's correlation of score and right answers within systems, or Kendall's of six systems' means."""

    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        from ragauge.plugins.foresight.measures import foresight

        found = [foresight(part, (), n_boot=300) for part in _parts(_systems(rng, clusters, rho))]
        rows = [one.table.set_index("statistic").loc[statistic] for one in found if one is not None]
        return _covers([Estimate(row["value"], row["lo"], row["hi"], 0) for row in rows], _true_rank(statistic))

    return trial


def _by_slice(n: int, clusters: np.ndarray, own: bool) -> np.ndarray:
    """int [topics]: of four slices, whole documents in turn (`own`) or topics of every document in turn."""
    return (clusters if own else np.arange(n)) % 4


def shrunk(spread: float, own: bool) -> Trial:
    """Right answers of four slices, shrunk: the share of them that is held. `spread` is that of latent ease."""

    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        n, ease = len(clusters), spread * rng.standard_normal(4)
        at = _by_slice(n, clusters, own)
        right = latent(rng, clusters, rho)[:, 0] < 0.4 + ease[at]
        rows = pd.DataFrame({"qid": np.arange(n), "ir_score": np.nan, CLUSTER: clusters, "slice:k": at.astype(str)})
        rows["label"] = pd.array(np.where(right, 5, 2), dtype="Int8")
        inside, width = [], []
        for part in _parts(rows):
            found = slice_estimates(part)
            found = found[found["measure"] == "correct_share"]
            true = norm.cdf(0.4 + ease[found["slice"].astype(int)])
            inside.append(float(((found["shrunk_lo"] <= true) & (true <= found["shrunk_hi"])).mean()))
            width.append(float((found["shrunk_hi"] - found["shrunk_lo"]).mean()))
        return np.array(inside), np.array(width)

    return trial


def _two_sliced(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> pd.DataFrame:
    rows = _frame(rng, clusters, rho)
    return rows.assign(**{"slice:k": _by_slice(len(rows), rows["qid"].to_numpy(), False).astype(str)})


def slices_differ(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Two equal systems: called different in some of four slices, in right answers."""
    p = []
    for part in _parts(_two_sliced(rng, clusters, rho)):
        found = slice_differences(part, "s0", "s1")
        p.append(found.loc[found["measure"] == "correct", "p_holm"].min())
    return _nothing(*(one < 0.05 for one in p))


def of_slices(shown: str) -> Trial:
    """Differences of right answers of two equal systems in four slices: the share held, `alone` or `shrunk`."""
    lo, hi = ("lo", "hi") if shown == "alone" else ("shrunk_lo", "shrunk_hi")

    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        inside, width = [], []
        for part in _parts(_two_sliced(rng, clusters, rho)):
            found = slice_differences(part, "s0", "s1")
            found = found[found["measure"] == "correct"]
            inside.append(float(((found[lo] <= 0) & (found[hi] >= 0)).mean()) if len(found) else 1.0)
            width.append(float((found[hi] - found[lo]).mean()) if len(found) else 1.0)
        return np.array(inside), np.array(width)

    return trial


def funnel_change(lose: float) -> Trial:
    """A step of the funnel that a share `lose` of the topics loses half of their evidence at."""

    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        n = len(clusters)
        lost = 0.5 * (latent(rng, clusters, rho)[:, 0] < norm.ppf(lose))
        parts = pd.DataFrame({"qid": np.arange(n), "part": 0, "candidates": 1.0, "context": 1.0 - lost})
        found = [funnel(parts, clusters=None if c is None else pd.Series(c)).iloc[1] for c in _both(clusters)]
        return _covers([Estimate(r["change"], r["change_lo"], r["change_hi"], n) for r in found], -0.5 * lose)

    return trial


def failures(drawn: bool) -> Trial:
    """The share of topics that fail for a cause (.2), of all topics or of judged ones that were drawn by strata."""
    cause = next(iter(EVERY_CAUSE))

    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        n = len(clusters)
        failed = latent(rng, clusters, rho)[:, 0] < norm.ppf(0.2)
        rows = pd.DataFrame({"qid": np.arange(n), CAUSE: np.where(failed, cause, None), CLUSTER: clusters})
        if drawn:  # two thirds of the first half of each document, one third of the other
            stratum = np.arange(n) % 2
            judged = rng.random(n) < np.where(stratum, 1 / 3, 2 / 3)
            rows = rows.assign(judged=judged, stratum=stratum)
        found = [cause_shares(part, [cause]).iloc[0] for part in _parts(rows)]
        return _covers([Estimate(r["share"], r["lo"], r["hi"], n) for r in found], 0.2)

    return trial


def robust(measure: str) -> Trial:
    """An LLM of which noise makes .7 right to .5, and .6 with evidence in several documents: drop or difference."""

    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        from ragauge.plugins.robustness.estimate import DOCUMENTS, abilities

        n = len(clusters)
        z, many = latent(rng, clusters, rho, 2), np.arange(n) % 2 == 1
        right = z < norm.ppf([0.7, 0.5])
        if measure == "several":
            right = z < norm.ppf(np.where(many, 0.6, 0.7))[:, None]
        rows = pd.DataFrame(
            {
                "qid": np.tile(np.arange(n), 2), "system": "s", "condition": np.repeat([0.0, 0.8], n), "ir_score": 0.5,
                "label": pd.array(np.where(right.T.ravel(), 5, 4), dtype="Int8"),
                DOCUMENTS: np.tile(np.where(many, "2", "1"), 2), CLUSTER: np.tile(clusters, 2),
            }
        )  # fmt: skip
        if measure != "several":
            rows = rows.drop(columns=DOCUMENTS)
        changes = [abilities(part).changes for part in _parts(rows)]
        found = [one[one["of"] == ("several" if measure == "several" else "0.8")].iloc[0] for one in changes]
        estimates = [Estimate(r["difference"], r["lo"], r["hi"], n) for r in found]
        return _covers(estimates, -0.1 if measure == "several" else -0.2)

    return trial


def _by_prompts(rng: np.random.Generator, clusters: np.ndarray, rho: float, shift: float) -> pd.DataFrame:
    """Verdicts by three prompts on two equal systems: .6 are right, less or more by each prompt's own shift."""
    n = len(clusters)
    z = latent(rng, clusters, rho, 2)
    shares = 0.6 + shift * rng.standard_normal(3)
    labels = [
        np.where(np.sqrt(0.9) * z + np.sqrt(0.1) * rng.standard_normal((n, 2)) < norm.ppf(p), 5, 4) for p in shares
    ]
    names = ("label", "label_2", "label_3")
    return pd.DataFrame(
        {
            "qid": np.tile(np.arange(n), 2), "system": np.repeat(["a", "b"], n), "ir_score": np.nan,
            "prompts_are": "sample", CLUSTER: np.tile(clusters, 2),
            **{name: pd.array(of.T.ravel(), dtype="Int8") for name, of in zip(names, labels, strict=True)},
        }
    )  # fmt: skip


def prompts(shift: float) -> Trial:
    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        rows = _by_prompts(rng, clusters, rho, shift).iloc[: len(clusters)]
        return _covers([share_estimates(part)["correct_share"] for part in _parts(rows)], 0.6)

    return trial


def prompts_differ(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Two equal systems, three prompts: called different in right answers."""
    found = [compare_pairs(part, "system") for part in _parts(_by_prompts(rng, clusters, rho, 0.0))]
    return _nothing(*(one.set_index("measure")["p"]["correct"] < 0.05 for one in found))


def equivalent(shares: bool) -> Trial:
    """Two systems exactly as far apart as the margin, 0.05: called equivalent."""

    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        if shares:
            z = np.sqrt(0.9) * latent(rng, clusters, rho) + np.sqrt(0.1) * latent(rng, clusters, rho, 2)
            right = (z < norm.ppf([0.7, 0.65])).astype(float)
            found = [paired_share_interval(right[:, 0] - right[:, 1], level=0.9, clusters=c) for c in _both(clusters)]
        else:
            d = 0.05 + 0.08 * latent(rng, clusters, rho)[:, 0]
            found = [paired_mean(d, 0.9, clusters=c) for c in _both(clusters)]
        return _nothing(*(one.lo > -0.05 and one.hi < 0.05 for one in found))

    return trial


def looks(regressed: bool, whole: bool) -> Trial:
    """A gate that is looked at five times as topics come: passes at a look although worse by its tolerance of 0.05
    (or, `regressed`, is called so although equal). `whole`: the topics come document by document, else in any order.
    """

    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        from ragauge.plugins.gate.gating import paired_test
        from ragauge.plugins.gate.looks import level_of

        n = len(clusters)
        d = (0.0 if regressed else -0.05) + 0.2 * latent(rng, clusters, rho)[:, 0]
        order = np.arange(n) if whole else rng.permutation(n)
        said = [False, False]
        for at, of in enumerate(_both(clusters)):
            for k in range(1, 6):
                some = order[: round(n * k / 5)]
                level = max(level_of(0.05, tuple(i / 5 for i in range(1, k + 1))), 1e-12)
                known = None if of is None else of[some]
                if known is not None and len(np.unique(known)) < 2:
                    continue
                found = paired_test(
                    d[some], np.zeros(len(some)), 0.0 if regressed else 0.05, alpha=level, clusters=known
                )
                said[at] |= (found.p_regressed if regressed else found.p_pass) < level
        return _nothing(*said)

    return trial


def zone(risk: str) -> Trial:
    """Over a tenth of the answers in the zone are not right: the promise is broken."""
    from simulations import zones

    fails = getattr(zones, risk)
    fine = (np.arange(10_000) + 0.5) / 10_000
    beyond = np.cumsum(fails(fine)[::-1])[::-1] / np.arange(len(fine), 0, -1)

    def trial(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
        score, luck = norm.cdf(latent(rng, clusters, rho, 2)).T
        label = pd.array(np.where(luck < fails(score), 4, 5), dtype="Int8")
        rows = pd.DataFrame({"qid": np.arange(len(clusters)), "ir_score": score, "label": label, CLUSTER: clusters})
        found = [fit_zones(part).right for part in _parts(rows)]
        return _nothing(*(bool(one.n) and beyond[min(int(one.value * 10_000), 9_999)] > 0.1 for one in found))

    return trial


def sampled_difference(rng: np.random.Generator, clusters: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Right answers of two equal systems, 40 % of the topics judged: the interval of the difference."""
    n = len(clusters)
    rows = _frame(rng, clusters, rho)
    judged = np.tile(rng.permutation(n) < max(int(0.4 * n), 12), 2)
    p5 = np.clip(0.3 + 0.3 * (rows["label"].eq(5).to_numpy(dtype=float) - 0.3) + 0.1 * rng.standard_normal(2 * n), 0, 1)
    rows = rows.assign(ir_score=np.nan, judged=judged, p1=0.0, p2=1 - p5, p3=0.0, p4=0.0, p5=p5)
    rows["label"] = rows["label"].mask(~judged)
    found = [compare_pairs(part, "system").set_index("measure").loc["correct"] for part in _parts(rows)]
    return _covers([Estimate(r["difference"], r["lo"], r["hi"], n) for r in found], 0.0)


def power_of_plan(size: int, rho: float, difference: float, trials: int, seed: int) -> tuple[int, float, int, float]:
    """Topics in documents of `size` that are planned for a difference of scores with 80 % power, and the power that
    the sign-flip test over documents has; the same as if topics were independent."""
    rng = np.random.default_rng(seed)

    def differences(documents: int) -> tuple[np.ndarray, np.ndarray]:
        clusters = np.repeat(np.arange(documents), size)
        x = norm.cdf(latent(rng, clusters, rho, 2))
        return x[:, 0] - x[:, 1], clusters

    pilot, clusters = differences(40_000 // size)
    planned = []
    for values, per in ((of_clusters(pilot, clusters), size), (pilot, 1)):
        documents = int(np.ceil(topics_for_mean(float(values.std(ddof=1)), difference) * per / size))
        found = 0.0
        for _ in range(trials):
            d, of = differences(documents)
            found += sign_flip_p(np.bincount(of, d + difference)[:, None])[0] < 0.05
        planned += [documents * size, found / trials]
    return tuple(planned)  # type: ignore[return-value]


INTERVALS: dict[str, tuple[Trial, int]] = {
    "gain of a threshold": (gain, 200),
    "AUC of the predictor": (of_predictor("auc_correct"), 60),
    "calibration error (ECE) of the predictor": (of_predictor("ece"), 60),
    "calibration slope of the predictor": (of_predictor("calibration_slope"), 60),
    "calibration intercept of the predictor": (of_predictor("calibration_intercept"), 60),
    "Spearman's correlation of score and right answers": (rank("spearman"), 100),
    "Kendall's tau of six systems": (rank("kendall"), 100),
    "shrunk slices, each with documents of its own": (shrunk(0.3, True), 150),
    "shrunk slices that share documents": (shrunk(0.3, False), 60),
    "equal slices that share documents, shrunk": (shrunk(0.0, False), 60),
    "difference by slice, right answers": (of_slices("alone"), 40),
    "difference by slice, shrunk": (of_slices("shrunk"), 40),
    "change of a step of the funnel, 20 % lose half": (funnel_change(0.2), 200),
    "change of a step of the funnel, 3 % lose half": (funnel_change(0.03), 200),
    "share of a cause of failures": (failures(False), 200),
    "share of a cause of failures, judged by strata": (failures(True), 200),
    "what noise costs an LLM": (robust("noise"), 60),
    "evidence in several documents less in one": (robust("several"), 60),
    "share by three prompts of the judge, a sample": (prompts(0.0), 150),
    "share by three prompts that differ by 3.4 points": (prompts(0.034), 150),
    "paired difference of right answers by a judged sample": (sampled_difference, 100),
}
TESTS: dict[str, tuple[Trial, int]] = {
    "two equal systems, three prompts: called different": (prompts_differ, 100),
    "two equal systems: called different in some of four slices": (slices_differ, 60),
    "scores as far apart as the margin: called equivalent": (equivalent(False), 300),
    "right answers as far apart as the margin: called equivalent": (equivalent(True), 300),
    "five looks, worse by its tolerance: passes": (looks(False, False), 200),
    "five looks, equal systems: called regressed": (looks(True, False), 200),
    "five looks document by document, worse by its tolerance: passes": (looks(False, True), 200),
    "zone, a useless score: its promise is broken": (zone("useless"), 150),
    "zone, a steep score: its promise is broken": (zone("steep"), 150),
}
