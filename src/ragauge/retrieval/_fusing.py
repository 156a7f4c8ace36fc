"""Compiled fusion (numba): imported only where runs are fused, and kept compiled on disk.

The lists of a topic meet in a hash table of its documents; the best of them are then selected and sorted.
"""

# pyrefly: ignore-errors[unannotated-return, implicit-any-parameter]

from __future__ import annotations

import numpy as np
from numba import njit

RRF, SUM, MNZ, ISR, MAX = range(5)
MIN_MAX, Z_SCORE = range(2)
# Beyond this a sum depends on the order of its terms: rounded, equal sums are ties.
_UNITS = 1e12
_DIGIT = 11  # bits of a pass of the radix sort
_MASK, _KEYS = (1 << _DIGIT) - 1, 1 << 2 * _DIGIT
_FEW = 32  # as many as are sorted by insertion
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: spreads neighbouring numbers


@njit(nogil=True, cache=True)
def fuse_topics(
    first, last, items, scores, starts, order, weights, fusion, normalise, constant,
    out_item, out_score, out_n,
):  # fmt: skip
    """Fuses topics first to last - 1 into rows of out_item and out_score, and writes their numbers to out_n.

    items, scores, starts: the documents of every list, their scores, and where each topic begins (a place more than
    there are topics). order: the place of every document among ties. Rows are as long as what is kept at most.
    """
    n_lists, top_k = len(items), out_item.shape[1]
    largest = 1
    for topic in range(first, last):
        n = 0
        for at in range(n_lists):
            n += starts[at][topic + 1] - starts[at][topic]
        largest = max(largest, n)
    bits = 1
    while (1 << bits) < 2 * largest:
        bits += 1
    mask, shift = np.uint64((1 << bits) - 1), np.uint64(64 - bits)
    table = np.empty(1 << bits, dtype=np.int32)
    doc, count = np.empty(largest, dtype=np.int64), np.empty(largest, dtype=np.int64)
    value = np.empty(largest, dtype=np.float64)
    bins, key = np.empty(_MASK + 2, dtype=np.int64), np.empty(largest, dtype=np.int64)
    here, there = np.empty(largest, dtype=np.int64), np.empty(largest, dtype=np.int64)
    for topic in range(first, last):
        table[:] = -1
        n = 0
        for at in range(n_lists):
            item, score = items[at], scores[at]
            begin, end = starts[at][topic], starts[at][topic + 1]
            low, scale = 0.0, 0.0
            if fusion not in (RRF, ISR):
                low, scale = _scale(score, begin, end, normalise)
            for i in range(begin, end):
                if fusion == RRF:
                    term = weights[at] / (constant + (i - begin) + 1)
                elif fusion == ISR:
                    term = weights[at] / ((i - begin + 1.0) * (i - begin + 1.0))
                elif scale > 0:
                    term = weights[at] * (score[i] - low) * scale
                else:
                    term = weights[at]
                slot = (np.uint64(item[i]) * _GOLDEN) >> shift
                while table[slot] >= 0 and doc[table[slot]] != item[i]:
                    slot = (slot + np.uint64(1)) & mask
                place = table[slot]
                if place < 0:
                    table[slot] = n
                    doc[n], value[n], count[n] = item[i], term, 1
                    n += 1
                else:
                    value[place] = max(value[place], term) if fusion == MAX else value[place] + term
                    count[place] += 1
        for i in range(n):
            if fusion in (MNZ, ISR):
                value[i] *= count[i]
            value[i] = np.rint(value[i] * _UNITS) / _UNITS
        out_n[topic] = _best(
            doc[:n], value[:n], order, out_item[topic], out_score[topic], top_k, bins, here, there, key
        )


@njit(nogil=True, cache=True)
def _scale(score, begin, end, normalise):
    """The lowest score of a list, and the scale of differences from it; 0 if all are equal."""
    low, high, total = np.inf, -np.inf, 0.0
    for i in range(begin, end):
        low, high, total = min(low, score[i]), max(high, score[i]), total + score[i]
    if not high > low:
        return low, 0.0
    if normalise == MIN_MAX:
        return low, 1.0 / (high - low)
    mean, squares = total / (end - begin), 0.0
    for i in range(begin, end):
        squares += (score[i] - mean) ** 2
    return low, 1.0 / np.sqrt(squares / (end - begin))


@njit(nogil=True, cache=True)
def _best(doc, value, order, out_item, out_score, top_k, bins, here, there, key):
    """Writes the top_k documents of highest value, ties in their order; returns their number.

    Two passes of a radix sort over the value as 22 bits, then insertion among those of the same bits.
    """
    n, highest = len(doc), 0.0
    for i in range(n):
        highest = max(highest, value[i])
    scale = (_KEYS - 1) / highest if highest > 0 else 0.0
    for i in range(n):
        key[i], here[i] = _KEYS - 1 - np.int64(value[i] * scale), i
    for digit in range(2):
        bins[:] = 0
        for i in range(n):
            bins[((key[i] >> (_DIGIT * digit)) & _MASK) + 1] += 1
        for i in range(len(bins) - 1):
            bins[i + 1] += bins[i]
        for i in range(n):
            at = (key[here[i]] >> (_DIGIT * digit)) & _MASK
            there[bins[at]] = here[i]
            bins[at] += 1
        here, there = there, here
    longest = alike = 0
    for i in range(1, n):
        alike = alike + 1 if key[here[i]] == key[here[i - 1]] else 0
        longest = max(longest, alike)
    if longest > _FEW:
        by_order = np.argsort(order[doc], kind="mergesort")
        here = by_order[np.argsort(-value[by_order], kind="mergesort")]
    else:
        for i in range(1, n):
            this, j = here[i], i
            while j > 0 and _after(here[j - 1], this, doc, value, order):
                here[j] = here[j - 1]
                j -= 1
            here[j] = this
    n = min(n, top_k)
    for i in range(n):
        out_item[i], out_score[i] = doc[here[i]], value[here[i]]
    return n


@njit(nogil=True, cache=True, inline="always")
def _after(one, other, doc, value, order):
    if value[one] == value[other]:
        return order[doc[one]] > order[doc[other]]
    return value[one] < value[other]
