"""N-gram matches and longest common subsequences of many text pairs at once, compiled (numba)."""

# pyrefly: ignore-errors[unannotated-return, implicit-any-parameter]

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def ngram_matches(texts, text_at, others, other_at, first_other, max_n):
    """Matched n-grams of each text, each clipped to its highest count in one of the text's others.

    texts, others: int64, symbols (at least 0 and under 2**31) one text after the other. Text i is texts[text_at[i] :
        text_at[i + 1]], and its others are those from first_other[i] to before first_other[i + 1]. Returns int64
        [texts, max_n], column n - 1 for n-grams.
    """
    n_texts = text_at.size - 1
    found = np.zeros((n_texts, max_n), np.int64)
    largest = 0
    for i in range(n_texts):
        size = other_at[first_other[i + 1]] - other_at[first_other[i]]
        largest = max(largest, size)
    slots = 64
    while slots < 2 * largest:
        slots *= 2
    # A table of the n-grams of one order: an n-gram is the number of the (n - 1)-gram it begins with, and its
    # last symbol; so equal keys are equal n-grams. `most` is what one of the others has, `now` what this has.
    keys = np.full(slots, -1, np.int64)
    numbers = np.zeros(slots, np.int64)
    most = np.zeros(slots, np.int64)
    now = np.zeros(slots, np.int64)
    used = np.empty(slots, np.int64)
    begins = np.empty(largest, np.int64)  # of every place of the others, the number of the n-gram there
    own = np.empty(np.diff(text_at).max() if n_texts else 0, np.int64)
    for i in range(n_texts):
        start, end = text_at[i], text_at[i + 1]
        first, last = first_other[i], first_other[i + 1]
        base = other_at[first]
        size = other_at[last] - base
        width = 64
        while width < 2 * size:
            width *= 2
        mask = width - 1
        begins[:size] = 0
        own[: end - start] = 0
        for n in range(1, max_n + 1):
            n_used = 0
            for other in range(first, last):
                a, b = other_at[other], other_at[other + 1]
                for j in range(a, b - n + 1):
                    key = (begins[j - base] << 31) | others[j + n - 1]
                    at = _place(key, keys, mask)
                    if keys[at] < 0:
                        keys[at] = key
                        numbers[at] = n_used
                        most[at] = now[at] = 0
                        used[n_used] = at
                        n_used += 1
                    now[at] += 1
                    begins[j - base] = numbers[at]
                for k in range(n_used):
                    at = used[k]
                    most[at] = max(most[at], now[at])
                    now[at] = 0
            for j in range(start, end - n + 1):
                if own[j - start] < 0:
                    continue
                key = (own[j - start] << 31) | texts[j + n - 1]
                at = _place(key, keys, mask)
                if keys[at] < 0:
                    own[j - start] = -1
                    continue
                own[j - start] = numbers[at]
                if most[at] > 0:
                    most[at] -= 1
                    found[i, n - 1] += 1
            for k in range(n_used):
                keys[used[k]] = -1
    return found


@njit(cache=True, nogil=True)
def _place(key, keys, mask):
    """The key's slot in the table, or its free slot."""
    at = ((key ^ (key >> 29)) * 0x9E3779B97F4A7C1 >> 17) & mask
    while keys[at] >= 0 and keys[at] != key:
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def common_subsequences(texts, text_at, others, other_at):
    """Length of the longest common subsequence of text i and other i, laid out as above, int64 [pairs]."""
    n_pairs = text_at.size - 1
    found = np.zeros(n_pairs, np.int64)
    row = np.zeros((np.diff(other_at).max() if n_pairs else 0) + 1, np.int64)
    for i in range(n_pairs):
        a, b = other_at[i], other_at[i + 1]
        row[: b - a + 1] = 0
        for j in range(text_at[i], text_at[i + 1]):
            symbol = texts[j]
            before = 0  # of the row above, one place to the left
            for k in range(b - a):
                above = row[k + 1]
                if others[a + k] == symbol:
                    row[k + 1] = before + 1
                elif row[k] > above:
                    row[k + 1] = row[k]
                before = above
        found[i] = row[b - a]
    return found
