"""Whether planned numbers of topics and labels keep what they promise."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import expit

from ragauge.estimate.pairs import mcnemar_p, sign_flip_p
from ragauge.estimate.plan import (
    detectable_mean,
    mcnemar_power,
    sd_upper,
    share_upper,
    topics_for_mean,
    topics_for_shares,
)
from ragauge.estimate.plan_labels import labels_for_width, plan_labels
from ragauge.estimate.ppi import ppi_shares


def score_differences(size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Differences of two systems' IR scores with mean 0: 0 on 60 % of the topics, else uniform in +-1/2.

    Their standard deviation is sqrt(0.4 / 12).
    """
    return np.where(rng.random(size) < 0.6, 0.0, rng.random(size) - 0.5)


_SD = math.sqrt(0.4 / 12)


def power_for_mean(difference: float, comparisons: int, trials: int, seed: int) -> tuple[int, float]:
    """The planned number of topics, and how often the sign-flip test rejects at 5 % / comparisons with it."""
    rng = np.random.default_rng(seed)
    alpha = 0.05 / comparisons
    n = int(topics_for_mean(_SD, difference, 0.8, alpha))
    found = sign_flip_p(score_differences((n, trials), rng) + difference, seed)
    return n, float(np.mean(found < alpha))


def power_for_shares(
    discordant: float, difference: float, comparisons: int, trials: int, seed: int
) -> tuple[int, float]:
    """The planned number of topics, and how often McNemar's test rejects at 5 % / comparisons with it."""
    rng = np.random.default_rng(seed)
    alpha = 0.05 / comparisons
    n = int(topics_for_shares(discordant, difference, 0.8, alpha))
    won = (discordant + difference) / 2
    drawn = rng.random((n, trials))
    values = np.where(drawn < won, 1.0, np.where(drawn < discordant, -1.0, 0.0))
    return n, float(np.mean(mcnemar_p(values) < alpha))


def power_of_detectable(n: int, trials: int, seed: int) -> float:
    """How often the sign-flip test sees the difference that a sweep of n topics is said to detect.

    Said from the spread that the sweep itself has, and tested on another sweep of n topics.
    """
    rng = np.random.default_rng(seed)
    seen = score_differences((n, trials), rng).std(axis=0, ddof=1)
    shifts = np.array([detectable_mean(float(sd), n) for sd in seen])
    return float(np.mean(sign_flip_p(score_differences((n, trials), rng) + shifts, seed) < 0.05))


def pilots_with_power(n_pilot: int, shares: bool, trials: int, seed: int) -> tuple[float, float]:
    """How many pilots lead to a study of power 0.8 or more: from their spread, and from its upper limit."""
    rng = np.random.default_rng(seed)
    enough = np.zeros(2)
    for _ in range(trials):
        if shares:
            hits = int(rng.binomial(n_pilot, 0.3))
            for at, psi in enumerate((hits / n_pilot, share_upper(hits, n_pilot))):
                n = int(topics_for_shares(psi, 0.1))
                enough[at] += mcnemar_power(n, 0.3, 0.1) >= 0.8
        else:
            values = score_differences((n_pilot,), rng)
            needed = topics_for_mean(_SD, 0.05)
            for at, sd in enumerate((float(values.std(ddof=1)), sd_upper(values))):
                enough[at] += topics_for_mean(sd, 0.05) >= needed
    return float(enough[0] / trials), float(enough[1] / trials)


def _labelled(n: int, slope: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Right or not of n topics, and a calibrated prediction of it."""
    p = expit(slope * (rng.random(n) - 0.6))
    return rng.random(n) < p, p


def widths_of_planned_labels(
    n_topics: int, slope: float, width: float, trials: int, seed: int
) -> tuple[int, float, float]:
    """Planned labels for an interval of the width, the mean width that `ppi_shares` gives, its coverage."""
    rng = np.random.default_rng(seed)
    y, f = _labelled(1_000_000, slope, rng)
    share, rho = float(y.mean()), float(np.corrcoef(y, f)[0, 1])
    n = int(labels_for_width(share, width, 0.95, rho, float(y.std() / f.std()), n_topics))
    widths, covered = [], 0
    for _ in range(trials):
        y, f = _labelled(n_topics, slope, rng)
        judged = np.zeros(n_topics, dtype=bool)
        judged[rng.choice(n_topics, n, replace=False)] = True
        frame = pd.DataFrame({"qid": np.arange(n_topics), "label": np.where(y, 5, 4), "judged": judged})
        found = ppi_shares(frame.assign(p1=0.0, p2=0.0, p3=0.0, p4=1 - f, p5=f)).iloc[-1]
        widths.append(found["hi"] - found["lo"])
        covered += found["lo"] <= share <= found["hi"]
    return n, float(np.mean(widths)), covered / trials


def pilots_with_labels(n_pilot: int, trials: int, seed: int) -> tuple[float, float]:
    """How many pilots plan enough human labels for a width of 0.1 with the judge: as seen, with confidence.

    The judge is wrong in one of ten; the study has 2,000 topics.
    """
    rng = np.random.default_rng(seed)
    share, error, n_topics = 0.3, 0.1, 2000
    judged = share * (1 - error) + (1 - share) * error
    rho = (share * (1 - error) - share * judged) / math.sqrt(share * (1 - share) * judged * (1 - judged))
    ratio = math.sqrt(share * (1 - share) / judged / (1 - judged))
    needed = labels_for_width(share, 0.1, 0.95, rho, ratio, n_topics)
    enough = np.zeros(2)
    for _ in range(trials):
        people = np.where(rng.random(n_pilot) < share, 5, 4)
        verdicts = np.where(rng.random(n_pilot) < error, 9 - people, people)
        frame = pd.DataFrame(
            {"qid": np.arange(n_pilot), "system": "a", "label": verdicts, "human_label": people}
        ).assign(p5=0.5)
        found = plan_labels(frame, 0.1, n_topics=n_topics).set_index("kind").loc["judge"]
        enough += [found["labels"] >= needed, found["labels_upper"] >= needed]
    return float(enough[0] / trials), float(enough[1] / trials)


def power_after_a_pilot_without_differences(n: int, rate: float, loss: float) -> tuple[int, float]:
    """Topics that a pilot of n equal topics plans with 80 % confidence for the true difference rate * loss, where a
    `rate` of the topics loses so much; and the power of the sign-flip test on them, enumerated.
    """
    topics = int(topics_for_mean(sd_upper(np.zeros(n)), rate * loss))
    # Equal losses reject where six differ: 2^(1 - 6) < 0.05.
    return topics, float(stats.binom.sf(5, topics, rate))
