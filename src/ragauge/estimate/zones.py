"""Zones of the IR score that guarantee a share of at most alpha of answers with another class.

Above `right.value` at most alpha of the answers are not right (class 5), below `lack.value` at most alpha are not a
lack of information (class 1). Each holds for answers to new topics of the same kind, with the given confidence over
draws of the topics it was found on. A threshold is chosen by tests of many thresholds, from strict to loose (Learn then
Test: Angelopoulos et al. 2021); where none passes there is none (docs/method.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import betainc

from ragauge.contract.errors import DataError
from ragauge.estimate._segments import Side
from ragauge.estimate.outcomes import (
    GROUP_COLUMNS,
    LACK,
    RIGHT,
    check_outcomes,
    labels_of,
    topic_codes,
    units_of,
    weights_of,
)

ALPHA, CONFIDENCE = 0.1, 0.95
_STEPS = 100  # thresholds are whole hundredths


@dataclass(frozen=True)
class Zone:
    """The scores on one side of a threshold, at most a share alpha of them not of class `target`.

    `side` "above" is score > value, "below" is score < value. `value`: the loosest threshold that holds, a
    whole hundredth; NaN where none does, and `why_none` says why. `n` of the `n_rows` answers lie in the
    zone, 0 where there is none. `missed` is the share of the n with another class or no verdict, on the data that the
    zone was found on; NaN where n is 0.
    """

    side: Side
    target: int
    value: float
    n: int
    n_rows: int
    missed: float
    why_none: str = ""

    @property
    def share(self) -> float:
        """The share of all answers in the zone; NaN without answers."""
        return self.n / self.n_rows if self.n_rows else float("nan")


@dataclass(frozen=True)
class Zones:
    """The zones of right answers and of lacks of information, for one alpha and one confidence each."""

    right: Zone
    lack: Zone
    alpha: float
    confidence: float
    n_topics: int

    def metrics(self) -> dict[str, float]:
        """The metrics `zone_right_above` and `zone_lack_below`, each with `_share` and `_missed`."""
        return {
            "zone_right_above": self.right.value,
            "zone_right_share": self.right.share,
            "zone_right_missed": self.right.missed,
            "zone_lack_below": self.lack.value,
            "zone_lack_share": self.lack.share,
            "zone_lack_missed": self.lack.missed,
        }


def fit_zones(frame: pd.DataFrame, alpha: float = ALPHA, confidence: float = CONFIDENCE) -> Zones:
    """The two zones of a frame of outcomes: qid, ir_score, label, and columns that distinguish rows of a topic.

    Clusters, where the frame has some, take the place of topics. A missing verdict counts as not right and as no
    lack. Jobs without a single verdict are left out: they had no judge. Not offered for topics that were drawn by
    strata (a `weight` that varies). Raises DataError on a bad row, and for an alpha or a confidence that is not
    allowed.
    """
    if not 0.001 <= alpha <= 0.5:
        raise DataError(f"alpha={alpha}: allowed are 0.001 to 0.5")
    if not 0.5 <= confidence <= 0.9999:
        raise DataError(f"confidence={confidence}: allowed are 0.5 to 0.9999")
    check_outcomes(frame)
    rows = _judged_jobs(frame)
    scores = rows["ir_score"].to_numpy(dtype=float)
    labels = labels_of(rows)
    topics, n_topics = topic_codes(units_of(rows))
    uneven = len(rows) > 0 and bool(np.ptp(weights_of(rows)) > 1e-9)
    sides: tuple[tuple[int, Side], ...] = ((RIGHT, "above"), (LACK, "below"))
    right, lack = (
        Zone(side, target, float("nan"), 0, len(rows), float("nan"), "topics were drawn by strata")
        if uneven
        else fit_zone(scores, labels == target, side, target, topics, alpha, confidence)
        for target, side in sides
    )
    return Zones(right, lack, alpha, confidence, n_topics)


def fit_zone(
    scores: np.ndarray,
    is_target: np.ndarray,
    side: Side,
    target: int,
    topics: np.ndarray,
    alpha: float = ALPHA,
    confidence: float = CONFIDENCE,
) -> Zone:
    """The loosest threshold on whose `side` at most alpha of the answers are not `is_target`.

    `scores` float [n] in [0, 1], `is_target` bool [n], `topics` int [n] from 0. The share is one of answers:
    a topic counts as often as it has answers in the zone. The whole hundredths are tested, from strict to loose, by the
    fallback procedure (Wiens & Dmitrienko 2005). The level 1 - confidence is split evenly over the `_starts`. A test
    that passes hands its level on to the next threshold, and one that fails loses it.
    """
    n_rows = len(scores)
    none = Zone(side, target, float("nan"), 0, n_rows, float("nan"), "there are no verdicts")
    if n_rows == 0:
        return none
    # In the order in which a looser threshold takes rows in; its first `n` rows lie in the zone.
    order = np.argsort(-scores if side == "above" else scores, kind="stable")
    ranked, topics = scores[order], topics[order]
    wrongs = np.concatenate([[0], np.cumsum(~is_target[order])])
    n_topics = len(np.unique(topics))
    alone = n_topics == n_rows
    level = 1 - confidence
    starts = _starts(n_topics, level, alpha)
    best, held, begun = none, 0.0, 0
    for step in range(_STEPS - 1, -1, -1) if side == "above" else range(1, _STEPS + 1):
        t = step / _STEPS
        n = int(np.searchsorted(-ranked, -t) if side == "above" else np.searchsorted(ranked, t))
        wrong = int(wrongs[n])
        effective = float(n) if alone else effective_number(topics[:n])
        while begun < len(starts) and effective >= starts[begun]:
            held, begun = held + level / len(starts), begun + 1
        if held and p_value(wrong / n, effective, alpha) <= held:
            best = Zone(side, target, t, n, n_rows, wrong / n)
        else:
            held = 0.0
            if begun == len(starts):
                break
    if best is not none:
        return best
    why = "no threshold holds" if begun else f"{n_topics} topics are too few, {starts[0]} may be enough"
    return Zone(side, target, float("nan"), 0, n_rows, float("nan"), why)


def effective_number(topics: np.ndarray) -> float:
    """The effective number of single-answer topics of these rows: (sum n_i)^2 / sum n_i^2 (Kish 1965).

    `topics` int [rows]. That is the number of topics where all have equally many rows, and less where some have more.
    The answers to one topic are taken to be alike, which errs on the safe side where they are not.
    """
    n = np.bincount(topics).astype(float)
    return float(n.sum() ** 2 / max((n**2).sum(), 1.0))


def p_value(missed: float, effective: float, alpha: float) -> float:
    """P value of "more than alpha are missed", given the share `missed` of `effective` topics.

    P(Bin(n, alpha) <= n * missed), continued between whole numbers by the incomplete beta function; with one
    answer a topic that is the exact binomial test.
    """
    hits = missed * effective
    return 1.0 if hits >= effective else float(betainc(effective - hits, hits + 1, 1 - alpha))


def _starts(n_topics: int, level: float, alpha: float) -> list[int]:
    """The rising numbers of topics at which chains of tests start, sharing the level evenly.

    The first is the fewest that can pass, with nothing missed. So few rarely certify a zone with misses, so others
    start at two, four, ... times as many, up to a third of the topics.
    """
    found = [_fewest(level, alpha)]
    while True:
        parts = len(found) + 1
        fewest = _fewest(level / parts, alpha)
        if fewest * 2 ** (parts - 1) > n_topics / 3:
            return found
        found = [fewest * 2**part for part in range(parts)]


def _fewest(level: float, alpha: float) -> int:
    """The fewest topics that pass a test at the level if nothing is missed: (1 - alpha)^n <= level."""
    return math.ceil(math.log(level) / math.log1p(-alpha))


def _judged_jobs(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of jobs with at least one verdict; columns that distinguish answers to a topic identify a job."""
    by = [column for column in GROUP_COLUMNS if column in frame]
    judged = frame["label"].notna()
    if not by or judged.all():
        return frame if judged.any() else frame.iloc[:0]
    keys = [frame[column] for column in by]
    return frame[judged.groupby(keys, dropna=False).transform("any").to_numpy(dtype=bool)]
