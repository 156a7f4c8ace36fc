"""Segments of [0, 1] on which all thresholds classify every score alike."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

Side = Literal["above", "below"]


class Segments:
    """Scores in rising order, and the segments of [0, 1] on which all thresholds classify them alike.

    With distinct scores u_1 < .. < u_m segment j runs from u_j to u_(j+1), where u_0 stands for 0 and u_(m+1)
    for 1. score > t is constant on [u_j, u_(j+1)), score < t on (u_j, u_(j+1)]; 0 and 1 belong to the outer
    segments. There is no segment 0 above u_1 = 0, since no t of [0, 1] puts a score of 0 above it, and no
    segment m below u_m = 1.
    """

    def __init__(self, scores: np.ndarray, side: Side) -> None:
        self.side = side
        self.order = np.argsort(scores, kind="stable")
        ranked = scores[self.order]
        self.last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))  # last row of each distinct score
        distinct = ranked[self.last]
        self.first = int(side == "above" and distinct[0] == 0)
        self.stop = len(distinct) + 1 - int(side == "below" and distinct[-1] == 1)
        self.lo = np.append(0.0, distinct)
        self.hi = np.append(distinct, 1.0)

    def excess(self, signed: np.ndarray) -> np.ndarray:
        """Disagreements of each segment minus those of segment 0, [replicates, segments].

        `signed` [replicates, rows], rows in rising order: the weight of each row, negative where passing it
        removes a disagreement.
        """
        counts = np.cumsum(signed, axis=1)[:, self.last]
        if counts.dtype.kind == "f":  # equal sums of weights that are no whole numbers differ in the last bits
            counts = counts.round(9)
        counts = np.concatenate([np.zeros((len(counts), 1), dtype=counts.dtype), counts], axis=1)
        return counts[:, self.first : self.stop]

    def optima(self, excess: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Replicate, first and last segment of every maximal run of optimal segments, in rising order."""
        replicate, segment = np.nonzero(excess == excess.min(axis=1, keepdims=True))
        starts = np.append(True, (replicate[1:] != replicate[:-1]) | (segment[1:] != segment[:-1] + 1))
        begin = np.flatnonzero(starts)
        end = np.append(begin[1:], len(starts)) - 1
        return replicate[begin], segment[begin] + self.first, segment[end] + self.first

    def midpoints(self, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        """Midpoints of intervals, or the closed end if no number lies strictly inside."""
        middle = lo + (hi - lo) / 2
        if self.side == "above":
            return np.where(middle >= hi, lo, middle)
        return np.where(middle <= lo, hi, middle)

    def widest(self, runs: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
        """Index of each replicate's widest run, the lowest of ties."""
        replicate, begin, end = runs
        width = self.hi[end] - self.lo[begin]
        ranked = np.lexsort((begin, -width, replicate))
        return ranked[np.append(True, replicate[ranked][1:] != replicate[ranked][:-1])]

    def not_rejected(
        self, value: float, sign: np.ndarray, codes: np.ndarray | None, level: float
    ) -> tuple[pd.Interval, ...]:
        """The thresholds that are not worse than `value` in a paired test over topics, in rising order.

        A threshold t is rejected where its disagreements less those of `value`, summed by topic to d_i, have
        (|sum d_i| - 1) / sqrt(sum d_i^2) above the normal quantile of `level`: with one row a topic that is
        McNemar's test with Edwards' (1948) continuity correction. `sign` are the rows of `excess`, of mean
        size 1, `codes` the topic of every row in rising order of the scores (None: every row is a topic).
        """
        from scipy.special import ndtri

        passed = np.append(0, self.last + 1)  # rows below each segment
        distinct = self.lo[1:]
        at = int(np.searchsorted(distinct, value, side="right" if self.side == "above" else "left"))
        start = passed[at]
        total, squares = np.zeros(len(passed)), np.zeros(len(passed))
        above, below = np.arange(at + 1, len(passed)), np.arange(at)
        for segments, steps, topics in (
            (above, sign[start:], None if codes is None else codes[start:]),
            (below, -sign[:start][::-1], None if codes is None else codes[:start][::-1]),
        ):
            if len(segments):
                rows = np.abs(passed[segments] - start) - 1  # the last row on the way to each segment
                total[segments] = np.cumsum(steps)[rows]
                squares[segments] = _running_squares(steps, topics)[rows]
        reach = float(-ndtri((1 - level) / 2))
        kept = np.flatnonzero(np.abs(total) - 1 <= reach * np.sqrt(squares))
        kept = kept[(kept >= self.first) & (kept < self.stop)]
        ends = np.flatnonzero(np.append(np.diff(kept) > 1, True))
        starts = np.append(0, ends[:-1] + 1)
        return tuple(self.interval(int(kept[b]), int(kept[e])) for b, e in zip(starts, ends, strict=True))

    def interval(self, begin: int, end: int) -> pd.Interval:
        """The thresholds of a run of segments, with its open and closed ends."""
        # The outermost segments include 0 and 1 themselves.
        left = self.side == "above" or begin == 0
        right = self.side == "below" or end == len(self.last)
        closed: Literal["both", "left", "right"] = "both" if left and right else "left" if left else "right"
        return pd.Interval(float(self.lo[begin]), float(self.hi[end]), closed=closed)


def _running_squares(steps: np.ndarray, topics: np.ndarray | None) -> np.ndarray:
    """Running sum over topics of their squared cumulative steps, [rows]."""
    steps = steps.astype(np.int64) if steps.dtype.kind == "i" else steps
    if topics is None:
        return np.cumsum(steps**2)
    order = np.argsort(topics, kind="stable")
    of_topic = topics[order]
    running = np.cumsum(steps[order])
    starts = np.flatnonzero(np.append(True, of_topic[1:] != of_topic[:-1]))
    before_topic = np.append(running[:1] * 0, running[starts[1:] - 1])
    after = running - np.repeat(before_topic, np.diff(np.append(starts, len(steps))))
    added = np.empty(len(steps), dtype=steps.dtype)
    added[order] = after**2 - (after - steps[order]) ** 2
    return np.cumsum(added)
