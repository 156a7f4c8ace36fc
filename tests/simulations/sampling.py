"""Few judged topics and labels by people: shares, paired differences and their tests against known truth."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from scipy.special import expit

from ragauge.contract.answer_measures import NOT_SAMPLED
from ragauge.contract.errors import DataError
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate import choose_topics, cross_fit, ppi_shares
from ragauge.estimate.human import human_shares
from ragauge.estimate.intervals import bounded_mean
from ragauge.estimate.outcomes import TARGETS, TOPICS
from ragauge.estimate.pairs import mcnemar_p, powered_difference
from ragauge.estimate.sampled_means import sampled_difference, sampled_mean

PROBABILITIES = [f"p{c}" for c in range(1, 6)]


def class_probabilities(scores: np.ndarray) -> np.ndarray:
    """P(1..5) of a score: lack where it is low, right where it is high, class 3 rare."""
    logits = np.stack([2 - 6 * scores, -0.5 + 0 * scores, -2.5 + 0 * scores, 0.8 - scores, -1 + 4 * scores], -1)
    weights = np.exp(logits)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def drawn_scores(size: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(size) < 0.2, 0.0, rng.beta(0.8, 0.8, size))


def drawn_classes(probabilities: np.ndarray, luck: np.ndarray) -> np.ndarray:
    """The classes 1..5 that `luck` in [0, 1] gives."""
    return np.minimum((luck[..., None] > probabilities.cumsum(axis=-1)).sum(axis=-1) + 1, 5)


@cache
def true_shares() -> np.ndarray:
    """Of a population so large that nothing is left to chance: the five classes."""
    shares = class_probabilities(drawn_scores(2_000_000, np.random.default_rng(99))).mean(axis=0)
    return np.asarray(shares)


@cache
def _qids(n: int) -> list[str]:
    return [f"q{i:05d}" for i in range(n)]


def few_judged(n_topics: int, n: int, design: str, rng: np.random.Generator) -> pd.DataFrame:
    """Outcomes of topics drawn anew, n of them judged, with the predictions of a predictor a little off."""
    scores = drawn_scores(n_topics, rng)
    p = class_probabilities(scores)
    labels = pd.array(drawn_classes(p, rng.random(n_topics)), dtype="Int8")
    frame = pd.DataFrame({"qid": _qids(n_topics), "ir_score": scores, "label": labels})
    frame[PROBABILITIES] = 0.8 * p + 0.04
    chosen = choose_topics(frame.set_index("qid")["p5"], n, seed=int(rng.integers(2**31)), design=design)  # type: ignore[arg-type]
    frame[["stratum", "judged"]] = chosen[["stratum", "judged"]].to_numpy()
    return frame.astype({"stratum": int, "judged": bool})


def sampled_shares(design: str, n_topics: int, n: int, trials: int, seed: int, fit: bool = False) -> dict[str, float]:
    """What `ppi_shares` makes of n judged topics, over trials.

    `coverage` is the mean over the five classes, `least` the lowest of them; `sum_lo` and `sum_hi` are the
    least and the largest sum of the classes and of missing verdicts; `effective` the mean effective number of
    judged topics for class 5. With `fit` the predictor is fitted on the judged topics (`cross_fit`).
    """
    truth, inside, sums, effective = true_shares(), [], [], []
    rng = np.random.default_rng(seed)
    for trial in range(trials):
        frame = few_judged(n_topics, n, design, rng)
        frame = cross_fit(frame, seed=trial) if fit else frame
        table = ppi_shares(frame).set_index("share")
        inside.append(((table["lo"][:5] <= truth) & (truth <= table["hi"][:5])).to_numpy())
        sums.append(float(table["estimate"].iloc[:6].sum()))
        effective.append(float(table["effective_n"]["correct_share"]))
    covered = np.mean(inside, axis=0)
    return {
        "coverage": float(covered.mean()),
        "least": float(covered.min()),
        "sum_lo": min(sums),
        "sum_hi": max(sums),
        "effective": float(np.mean(effective)),
    }


KINDS = ("useful", "useless", "rare", "perfect", "nearly perfect")  # what the IR score says of the class


def _probabilities(kind: str, scores: np.ndarray) -> np.ndarray:
    """P(1..5) of a score where it says so much of the class."""
    p = class_probabilities(scores)
    if kind == "useless":
        return np.broadcast_to(true_shares(), p.shape)
    if kind == "rare":  # 2 % are right
        right = 0.05 * scores
        others = p[..., :4] / p[..., :4].sum(axis=-1, keepdims=True)
        return np.concatenate([others * (1 - right[..., None]), right[..., None]], axis=-1)
    if kind == "useful":
        return p
    off = 0.0 if kind == "perfect" else 0.01
    right = np.where(scores > 0.5, 1 - off, off)
    return np.stack([1 - right, *(np.zeros_like(right),) * 3, right], axis=-1)


@cache
def _shares_of(kind: str) -> np.ndarray:
    """The five class shares of a population so large that nothing is left to chance."""
    return np.asarray(_probabilities(kind, drawn_scores(2_000_000, np.random.default_rng(99))).mean(axis=0))


@cache
def answered_sample(
    kind: str, n_topics: int, n: int, trials: int, seed: int, design: str = "uniform"
) -> dict[str, dict[str, float]]:
    """n of n_topics are answered and judged, of two systems of equal shares that retrieve alike on half of the topics.

    They are drawn at random, or by strata of the true P(right) (`neyman`). The predictor is fitted on the n
    (`cross_fit`). By target, population and topics: `coverage`, the mean over the classes that there are, `least` of
    them, `sum` (the largest distance of the sum of shares from 1), `width` of the share of right answers and `plain`,
    that of the sample alone, `difference` (coverage of that of right answers) and `rejected`, how often it is called
    one at 5 %.
    """
    rng, truth = np.random.default_rng(seed), _shares_of(kind)
    there = truth > 0
    found: dict[str, list[list[float]]] = {target: [] for target in TARGETS}
    for trial in range(trials):
        first = drawn_scores(n_topics, rng)
        scores = np.stack([first, np.where(rng.random(n_topics) < 0.5, first, drawn_scores(n_topics, rng))])
        luck = np.where(rng.random(n_topics) < 0.5, rng.random(n_topics), rng.random((2, n_topics)))
        labels = drawn_classes(_probabilities(kind, scores), luck)
        of_topics = pd.DataFrame({"qid": _qids(n_topics), "stratum": 0})
        if design == "uniform":
            of_topics["judged"] = np.isin(np.arange(n_topics), rng.permutation(n_topics)[:n])
        else:
            p5 = pd.Series(_probabilities(kind, scores)[..., 4].mean(axis=0), index=of_topics["qid"])
            chosen = choose_topics(p5, n, seed=int(rng.integers(2**31)), design="neyman").set_index("qid")
            of_topics[["stratum", "judged"]] = chosen.loc[of_topics["qid"], ["stratum", "judged"]].to_numpy()
            of_topics = of_topics.astype({"stratum": int, "judged": bool})
        judged, stratum = of_topics["judged"].to_numpy(), of_topics["stratum"].to_numpy(dtype=float)
        systems = [
            cross_fit(of_topics.assign(system=name, ir_score=s, label=pd.array(c, "Int8")), seed=trial)
            for name, s, c in zip("ab", scores, labels, strict=True)
        ]
        # Verdicts on the others are known here alone.
        rows = pd.concat(systems, ignore_index=True)
        rows["label"] = rows["label"].where(rows["judged"])
        right = (labels == 5).astype(float)
        predicted = systems[0]["p5"].to_numpy() - systems[1]["p5"].to_numpy()
        for target in TARGETS:
            frame = rows.assign(sample_target=target)
            table = ppi_shares(frame[frame["system"] == "a"])
            fixed = target == TOPICS
            true = (labels[0][:, None] == np.arange(1, 6)).mean(axis=0) if fixed else truth
            inside = (table["lo"][:5] <= true + 1e-12) & (true - 1e-12 <= table["hi"][:5])
            own = table.set_index("share").loc["correct_share"]
            pair = powered_difference(right[0] - right[1], predicted, judged, stratum, fixed=fixed)
            apart = float((right[0] - right[1]).mean()) if fixed else 0.0
            found[target].append(
                [
                    *inside[there].astype(float),
                    abs(float(table["estimate"].iloc[:6].sum()) - 1),
                    own["hi"] - own["lo"],
                    own["classical_hi"] - own["classical_lo"],
                    pair[0].lo <= apart <= pair[0].hi,
                    pair[1] < 0.05,
                ]
            )
    told = {}
    for target, numbers in found.items():
        values = np.array(numbers, dtype=float)
        means, covered = values.mean(axis=0), values[:, :-5].mean(axis=0)
        told[target] = dict(
            zip(("sum", "width", "plain", "difference", "rejected"), map(float, means[-5:]), strict=True)
        )
        told[target] |= {"coverage": float(covered.mean()), "least": float(covered.min()), "sum": values[:, -5].max()}
    return told


F1 = AnswerMeasureInfo("f1", "F1", unit="ratio")
_MEANS = {"useful": 0.5, "useless": 0.5, "rare": 0.02}  # of an answer measure, by what the IR score says of it


def measured_sample(
    kind: str, n_topics: int, n: int, trials: int, seed: int, design: str = "uniform", lacking: float = 0.0
) -> dict[str, dict[str, float]]:
    """n of n_topics are answered by two systems of equal means, whose F1 is 0 or 1 on half of the topics.

    A value is missing with probability `lacking`. By target: `coverage` of the mean's interval, its `width` and that of
    the answered topics alone (`plain`), `difference` (coverage) and `rejected` (at 5 %, of equal populations).
    """
    rng, found = np.random.default_rng(seed), {target: [] for target in TARGETS}
    for _ in range(trials):
        score = rng.beta(0.6, 0.6, n_topics)
        middle = {"useful": 0.1 + 0.8 * score, "useless": np.full(n_topics, 0.5), "rare": 0.04 * score}[kind]
        of = np.broadcast_to(middle, (2, n_topics))
        whole = (rng.random((2, n_topics)) < of).astype(float)
        values = np.where(rng.random((2, n_topics)) < 0.5, whole, rng.beta(3 * of + 0.01, 3 * (1 - of) + 0.01))
        values[rng.random((2, n_topics)) < lacking] = np.nan
        even, dice = pd.Series(middle, index=_qids(n_topics)), int(rng.integers(2**31))
        chosen = choose_topics(even, n, seed=dice, design=design)  # type: ignore[arg-type]
        judged = chosen["judged"].to_numpy(dtype=bool)
        topics = pd.DataFrame({"qid": _qids(n_topics), "ir_score": score, "stratum": chosen["stratum"].to_numpy()})
        topics["answer_status"] = np.where(judged, "ok", NOT_SAMPLED)
        for target in TARGETS:
            a, b = (topics.assign(f1=np.where(judged, v, np.nan), sample_target=target) for v in values)
            mean, pair = sampled_mean(a, F1), sampled_difference(a, b, "f1", 1.0)
            assert mean is not None
            assert pair is not None
            fixed = target == TOPICS
            true = float(np.nanmean(values[0])) if fixed else _MEANS[kind]
            apart = float(np.nanmean(values[0] - values[1])) if fixed else 0.0
            plain = bounded_mean(values[0][judged & ~np.isnan(values[0])])
            inside = (mean.lo <= true <= mean.hi, pair[0].lo <= apart <= pair[0].hi)
            found[target].append((inside[0], mean.hi - mean.lo, plain.hi - plain.lo, inside[1], pair[1] < 0.05))
    names = ("coverage", "width", "plain", "difference", "rejected")
    return {
        target: dict(zip(names, map(float, np.mean(np.array(rows, dtype=float), axis=0)), strict=True))
        for target, rows in found.items()
    }


_CLASSES = np.array([0.15, 0.15, 0.08, 0.12, 0.5])  # of today's judge, and of the earlier one


@cache
def earlier_verdicts(
    n_topics: int, n: int, correlation: float | None, harsh: float, trials: int, seed: int, shared: bool = False
) -> dict[str, float]:
    """n of n_topics judged, half of the answers right, the IR score correlated .35 with that.

    An earlier class correlates by `correlation` with today's (equal so often, else drawn apart), and is missing
    on 5 % of the topics; of `harsh` of its right answers it says 4. With None there is no such class. `shared`: the
    earlier run judged the same sample, and no other topic (which `judge.earlier` refuses).
    Returns `effective` topics for class 5 over n, `coverage` of its share, `bias` and `error` (root mean square).
    """
    rng, found = np.random.default_rng(seed), []
    for trial in range(trials):
        today, other = (rng.choice(5, n_topics, p=_CLASSES) + 1 for _ in range(2))
        earlier = np.where(rng.random(n_topics) < (correlation or 0), today, other)
        earlier = np.where((earlier == 5) & (rng.random(n_topics) < harsh), 4, earlier)
        scores = np.clip(0.5 + 0.15 * (today == 5) - 0.075 + rng.normal(0, 0.2, n_topics), 0, 1)
        judged = np.isin(np.arange(n_topics), rng.permutation(n_topics)[:n])
        frame = pd.DataFrame({"qid": _qids(n_topics), "ir_score": scores, "judged": judged})
        frame["label"] = pd.Series(today, dtype="Int8").where(judged)
        known = pd.Series(earlier, dtype="Int8").where(rng.random(n_topics) > 0.05)
        known = known.where(judged) if shared else known
        given = frame if correlation is None else frame.assign(earlier_label=known)
        row = ppi_shares(cross_fit(given, seed=trial)).set_index("share").loc["correct_share"]
        off = float(row["estimate"]) - 0.5
        found.append((row["effective_n"] / n, row["lo"] <= 0.5 <= row["hi"], off, off**2))
    effective, coverage, bias, squared = np.mean(np.array(found, dtype=float), axis=0)
    return {"effective": effective, "coverage": coverage, "bias": bias, "error": squared**0.5}


def two_systems(
    n_topics: int, effect: float, spread: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Right or not of two systems [topics, 2], P(right) as a predictor sees it [topics, 2], mean difference.

    The systems retrieve the same on half of the topics. The first is better by `effect` throughout, and by
    `spread` on topics that are neither easy nor hard, worse by half of that on the others: with an effect of
    0 both are right equally often, but not in every stratum.
    """
    ease = rng.random(n_topics)
    scores = np.where(rng.random(n_topics) < 0.5, 0.0, rng.normal(0, 0.15, (2, n_topics))) + ease
    shape = np.where((ease > 1 / 3) & (ease < 2 / 3), spread, -spread / 2)
    chance = 0.1 + 0.8 * expit(10 * (ease - 0.5))
    truth = np.stack([chance + (effect + shape) / 2, chance - (effect + shape) / 2])
    luck = np.where(rng.random(n_topics) < 0.5, rng.random(n_topics), rng.random((2, n_topics)))
    right = (luck < np.clip(truth, 0, 1)).astype(float)
    return right.T, np.clip(expit(10 * (scores - 0.5)), 0.02, 0.98).T, np.asarray(effect)


def paired_sample(
    design: str, n_topics: int, n: int, effect: float, spread: float, trials: int, seed: int
) -> dict[str, float]:
    """Two systems of which n topics are judged: `rejected` at 5 %, `coverage` of the interval of the
    difference, and `mcnemar`: what McNemar's test on the judged topics rejects, whatever their strata.
    """
    rng = np.random.default_rng(seed)
    rejected, inside, unweighted = [], [], []
    for _ in range(trials):
        right, p, truth = two_systems(n_topics, effect, spread, rng)
        even = pd.Series(p.mean(axis=1), index=_qids(n_topics))
        chosen = choose_topics(even, n, seed=int(rng.integers(2**31)), design=design)  # type: ignore[arg-type]
        judged, stratum = chosen["judged"].to_numpy(dtype=bool), chosen["stratum"].to_numpy(dtype=float)
        d = right[:, 0] - right[:, 1]
        found, p_value = powered_difference(d, p[:, 0] - p[:, 1], judged, stratum)
        rejected.append(p_value < 0.05)
        inside.append(found.lo <= truth <= found.hi)
        unweighted.append(float(mcnemar_p(d[judged, None])[0]) < 0.05)
    return {
        "rejected": float(np.mean(rejected)),
        "coverage": float(np.mean(inside)),
        "mcnemar": float(np.mean(unweighted)),
    }


def _judge_of(people: np.ndarray, kind: float, harsh: float, rng: np.random.Generator) -> np.ndarray:
    """Verdicts 5 or 4 on answers that are (5) or are not (4) right: `kind` of the wrong ones pass for right,
    `harsh` of the right ones for wrong.
    """
    luck = rng.random(people.shape)
    return np.where(people == 5, np.where(luck < harsh, 4, 5), np.where(luck < kind, 5, 4))


def human_corrected(
    n_labels: int, drawn: str, share: float, errors: tuple[float, float], trials: int, seed: int
) -> dict[str, float]:
    """A judge corrected by n_labels of 300 topics: `bias` of the share of right answers and `coverage`.

    `errors` are how often a wrong answer passes for right and the reverse. Labels are drawn at `random`,
    half of them where the judge says right (`halves`), or only there (`right`); `refused` is how often they
    are refused.
    """
    rng = np.random.default_rng(seed)
    off, inside, refused = [], [], 0
    for _ in range(trials):
        people = np.where(rng.random(300) < share, 5, 4)
        judge = _judge_of(people, *errors, rng)
        chosen = np.arange(300)
        if drawn == "random":
            chosen = rng.permutation(300)[:n_labels]
        else:
            right, wrong = rng.permutation(chosen[judge == 5]), rng.permutation(chosen[judge == 4])
            half = n_labels if drawn == "right" else n_labels // 2
            chosen = np.concatenate([right[:half], wrong[: n_labels - half]])
        given = np.where(np.isin(np.arange(300), chosen), people.astype(float), np.nan)
        frame = pd.DataFrame({"qid": _qids(300), "ir_score": rng.random(300), "label": pd.array(judge, "Int8")})
        try:
            shares = human_shares(frame.assign(human_label=pd.array(given, dtype="Int8")))
        except DataError:
            refused += 1
            continue
        assert shares is not None
        row = shares.set_index("share").loc["correct_share"]
        off.append(float(row["estimate"]) - share)
        inside.append(float(row["lo"]) <= share <= float(row["hi"]))
    nan = float("nan")
    return {
        "bias": float(np.mean(off)) if off else nan,
        "coverage": float(np.mean(inside)) if inside else nan,
        "refused": refused / trials,
    }


def human_shares_of_a_judge(errs: float, n_labels: int, trials: int, seed: int) -> tuple[float, float, float]:
    """Of 300 answers 80 % are right, the others in four equal classes; `errs` of the verdicts are of any class.

    Returns bias, coverage and mean width of the share of right answers by n_labels random labels.
    """
    rng, found = np.random.default_rng(seed), []
    verdict = pd.DataFrame({"qid": np.arange(300), "ir_score": np.tile([0.4, 0.6], 150)})
    for _ in range(trials):
        people = rng.choice(5, 300, p=[0.05, 0.05, 0.05, 0.05, 0.8]) + 1
        judge = np.where(rng.random(300) < errs, rng.integers(1, 6, 300), people)
        given = np.where(np.isin(np.arange(300), rng.permutation(300)[:n_labels]), people.astype(float), np.nan)
        try:
            shares = human_shares(verdict.assign(label=judge, human_label=pd.array(given, dtype="Int8")))
        except DataError:
            continue
        assert shares is not None
        right = shares.set_index("share").loc["correct_share"]
        found.append((right["estimate"] - 0.8, right["lo"] <= 0.8 <= right["hi"], right["hi"] - right["lo"]))
    bias, coverage, width = np.mean(np.array(found, dtype=float), axis=0)
    return float(bias), float(coverage), float(width)


def human_difference(
    n_labels: int, effect: float, errors: tuple[float, float], trials: int, seed: int
) -> dict[str, float]:
    """Two systems with 50 % right answers (the first `effect` more) and a judge kinder to the first.

    `errors` are how often a wrong answer of the first and of the second passes for right. Of 400 topics
    n_labels are labelled. `judge`: how often McNemar's test of the verdicts rejects at 5 %; `rejected`: the
    test of the corrected difference; `coverage`: how often its interval holds the effect.
    """
    rng = np.random.default_rng(seed)
    by_judge, rejected, inside = [], [], []
    for _ in range(trials):
        luck = np.where(rng.random(400) < 0.5, rng.random(400), rng.random((2, 400)))
        people = np.where(luck < np.array([[0.5 + effect], [0.5]]), 5, 4)
        judge = np.stack([_judge_of(people[i], errors[i], 0.05, rng) for i in (0, 1)])
        labelled = np.isin(np.arange(400), rng.permutation(400)[:n_labels])
        y, f = ((x[0] == 5).astype(float) - (x[1] == 5) for x in (people, judge))
        found, p = powered_difference(y, f, labelled)
        by_judge.append(float(mcnemar_p(f[:, None])[0]) < 0.05)
        rejected.append(p < 0.05)
        inside.append(found.lo <= effect <= found.hi)
    return {
        "judge": float(np.mean(by_judge)),
        "rejected": float(np.mean(rejected)),
        "coverage": float(np.mean(inside)),
    }
