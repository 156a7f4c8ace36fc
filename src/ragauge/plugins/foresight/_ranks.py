"""Compiled rank statistics of many measures in many resamples of topics (numba); the kernel holds no GIL."""

# pyrefly: ignore-errors[unannotated-return, implicit-any-parameter]

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def associations(orders, ties, systems, y_order, y_ties, y_systems, topic, weight, right, lack, drawn, found):
    """Writes found [resamples, measures, 3] of every resample of `drawn` [resamples, topics]: the AUC of
    right answers, that of lacking ones, and Spearman's correlation.

    orders [measures, rows]: the rows by system, and by value within it; ties, systems: where a run of equal
    values, and a system, ends in that order. y_order, y_ties, y_systems: the same of the target. weight: the weight of
    every row; right, lack: whether the answer is of that class.
    """
    n_rows = topic.size
    w = np.empty(n_rows)
    y_rank = np.empty(n_rows)
    for b in range(drawn.shape[0]):
        for row in range(n_rows):
            w[row] = weight[row] * drawn[b, topic[row]]
        _midranks(y_order, y_ties, y_systems, w, y_rank)
        for m in range(orders.shape[0]):
            _associations(orders[m], ties[m], systems[m], w, y_rank, right, lack, found[b, m])


@njit(cache=True, nogil=True)
def _midranks(order, ties, systems, w, rank):
    """The midrank of every row within its system: the weight below it, plus half of that of its ties."""
    below = block = 0.0
    first = 0
    for i in range(order.size):
        block += w[order[i]]
        if ties[i]:
            for j in range(first, i + 1):
                rank[order[j]] = below + block / 2
            below += block
            block = 0.0
            first = i + 1
            if systems[i]:
                below = 0.0


@njit(cache=True, nogil=True)
def _associations(order, ties, systems, w, y_rank, right, lack, found):
    won_right = won_lack = pairs_right = pairs_lack = 0.0
    rho = rho_weight = 0.0
    below = block = y_block = 0.0
    right_below = right_block = lack_below = lack_block = 0.0
    xx = xy = yy = 0.0
    for i in range(order.size):
        row = order[i]
        own = w[row]
        block += own
        y_block += own * y_rank[row]
        yy += own * y_rank[row] * y_rank[row]
        if right[row]:
            right_block += own
        if lack[row]:
            lack_block += own
        if not ties[i]:
            continue
        mid = below + block / 2
        xx += block * mid * mid
        xy += mid * y_block
        # Pairs of a row of the class and one that is not: those below it are won, equal ones by half.
        won_right += right_block * (below - right_below + (block - right_block) / 2)
        won_lack += lack_block * (below - lack_below + (block - lack_block) / 2)
        below += block
        right_below += right_block
        lack_below += lack_block
        block = y_block = right_block = lack_block = 0.0
        if systems[i]:
            pairs_right += right_below * (below - right_below)
            pairs_lack += lack_below * (below - lack_below)
            if below > 0:
                middle = below * below / 4
                x_spread, y_spread = xx / below - middle, yy / below - middle
                if x_spread > 1e-9 * middle and y_spread > 1e-9 * middle:
                    rho += below * (xy / below - middle) / np.sqrt(x_spread * y_spread)
                    rho_weight += below
            below = right_below = lack_below = xx = xy = yy = 0.0
    found[0] = won_right / pairs_right if pairs_right > 0 else np.nan
    found[1] = 1 - won_lack / pairs_lack if pairs_lack > 0 else np.nan
    found[2] = rho / rho_weight if rho_weight > 0 else np.nan


@njit(cache=True, nogil=True)
def standing(orders, ties, systems, unit, weights, drawn, found):
    """Writes found [draws, measures]: the AUC of right answers less 0.5, over its standard error by units.

    orders, ties, systems [measures, rows] as in `associations`. unit [rows]: the topic, or its cluster, from 0; weights
    [measures, rows]: 0 where the measure has no value. drawn [draws, rows]: 1 for a right answer, 0 for another, -1
    where it is not known. The error is the root of the sum over units of the squares of what each adds to the AUC
    less 0.5 (DeLong's structural components); 0 where there is no pair.
    """
    n_rows = unit.size
    added = np.empty(unit.max() + 1)
    for b in range(drawn.shape[0]):
        right = drawn[b]
        for m in range(orders.shape[0]):
            order, tie, ends, weight = orders[m], ties[m], systems[m], weights[m]
            added[:] = 0
            ahead = 0.0
            start = 0
            while start < n_rows:
                of_right = of_others = 0.0
                stop = start
                while True:
                    row = order[stop]
                    of_right += weight[row] * (right[row] == 1)
                    of_others += weight[row] * (right[row] == 0)
                    stop += 1
                    if ends[stop - 1]:
                        break
                right_below = others_below = right_block = others_block = 0.0
                first = start
                for i in range(start, stop):
                    row = order[i]
                    right_block += weight[row] * (right[row] == 1)
                    others_block += weight[row] * (right[row] == 0)
                    if not tie[i]:
                        continue
                    won = others_below + others_block / 2 - of_others / 2
                    lost = of_right / 2 - right_below - right_block / 2
                    for j in range(first, i + 1):
                        row = order[j]
                        if right[row] == 1:
                            added[unit[row]] += weight[row] * won
                            ahead += weight[row] * won
                        elif right[row] == 0:
                            added[unit[row]] += weight[row] * lost
                    right_below += right_block
                    others_below += others_block
                    right_block = others_block = 0.0
                    first = i + 1
                start = stop
            squares = (added * added).sum()
            found[b, m] = ahead / np.sqrt(squares) if squares > 0 else 0.0
