"""Compiled matching (numba): imported only where scores are computed, and kept compiled on disk.

Symbols are uint32: code points, or numbers of words. A *part* is one evidence text, a *text* is a context,
`ends` are rising lengths of prefixes of a text, and one pass over a text serves all of them. A batch lies in flat
arrays. Text i is texts[text_at[i] : text_at[i + 1]], its ends likewise. Its parts are those numbered first_part[i] to
first_part[i + 1], and part j is parts[part_at[j] :] up to its size. The kernels do not hold the GIL.
"""

# pyrefly: ignore-errors[unannotated-return, implicit-any-parameter]

from __future__ import annotations

import numpy as np
from numba import njit

_LAST_SPACE = 0x3000
_IS_SPACE = np.array([chr(c).isspace() for c in range(_LAST_SPACE + 1)], dtype=np.uint8)
# The longest q-gram that is looked up, in parts up to and above a length. Measured: 3 to 5 are equally fast
# for sentences of 100 to 200 characters, 6 is the fastest for passages of 2,000.
_GRAM, _GRAM_OF_LONG, _LONG = 4, 6, 512
# Extended characters per character of both texts before the automaton takes over: about what it costs.
_WORK = 16


@njit(cache=True, nogil=True)
def fold(texts, text_at, sizes):
    """Folds the white space of every text in place; sizes[i] is the length of text i before and after."""
    whole = np.empty(1, np.int64)
    for i in range(sizes.size):
        text = texts[text_at[i] : text_at[i + 1]]
        _fold(text, sizes[i : i + 1], text, whole)
        sizes[i] = whole[0]


@njit(cache=True, nogil=True)
def _fold(text, ends, folded, folded_ends):
    """Writes the text with its white space folded, and its ends as those of the folded prefixes.

    Every run of white space becomes one space, none stands at the start, and none at the end of a prefix:
    folded[: folded_ends[k]] is what the prefix text[: ends[k]] becomes, folded by itself. `folded` may be the
    text.
    """
    # Unsigned, so that no index is checked for being negative: that halves the time.
    one = np.uint64(1)
    size = i = np.uint64(0)
    after_space = one  # as if a space came before, so that none is written at the start
    for k in range(ends.size):
        end = np.uint64(ends[k])
        while i < end:
            c = text[i]
            space = np.uint64(_IS_SPACE[c]) if c <= _LAST_SPACE else np.uint64(0)
            folded[size] = np.uint32(32) if space else c
            size += one - (space & after_space)
            after_space = space
            i += one
        folded_ends[k] = np.int64(size - after_space) if size > 0 else 0


@njit(cache=True, nogil=True)
def _longest(at):
    """The greatest length of items with starts `at`."""
    longest = 0
    for i in range(at.size - 1):
        longest = max(longest, at[i + 1] - at[i])
    return longest


@njit(cache=True, nogil=True)
def substrings(parts, part_at, part_sizes, first_part, texts, text_at, ends, ends_at, out):
    """Writes the longest common substring for every end into the flat `out`, by text and part.

    The parts are folded, the texts not.
    """
    longest = _longest(part_at)
    chain = np.empty(longest, np.int32)
    heads = np.empty(_table_size(longest), np.int32)
    folded = np.empty(_longest(text_at), np.uint32)
    folded_ends = np.empty(_longest(ends_at), np.int64)
    row = 0
    for job in range(text_at.size - 1):
        text_ends = folded_ends[: ends_at[job + 1] - ends_at[job]]
        _fold(texts[text_at[job] : text_at[job + 1]], ends[ends_at[job] : ends_at[job + 1]], folded, text_ends)
        for part in range(first_part[job], first_part[job + 1]):
            pattern = parts[part_at[part] : part_at[part] + part_sizes[part]]
            head = heads[: _table_size(pattern.size)]
            _longest_substrings(pattern, folded, text_ends, head, chain, out[row : row + text_ends.size])
            row += text_ends.size


@njit(cache=True, nogil=True)
def _table_size(symbols):
    """A power of two, sixteen times as large as the symbols as long as that is small."""
    size = 1024
    while size < 16 * symbols and size < 65536:
        size *= 2
    return size


@njit(cache=True, nogil=True)
def subsequences(parts, part_at, part_sizes, first_part, texts, text_at, ends, ends_at, cut, folds, out):
    """Writes the longest common subsequence for every end into the flat `out`, by text and part.

    cut[k] is one more symbol that the prefix of end k has after those before it (a word that the end may cut). It is a
    symbol of no part where there is none. `folds` says that the symbols are characters, the parts folded, the texts
    not.
    """
    folded = np.empty(_longest(text_at) if folds else 0, np.uint32)
    folded_ends = np.empty(_longest(ends_at), np.int64)
    row = 0
    for job in range(text_at.size - 1):
        text = texts[text_at[job] : text_at[job + 1]]
        text_ends = ends[ends_at[job] : ends_at[job + 1]]
        text_cut = cut[ends_at[job] : ends_at[job + 1]]
        whole = folded_ends[: text_ends.size]
        if folds:
            _fold(text, text_ends, folded, whole)
        else:
            whole[:] = text_ends
        for part in range(first_part[job], first_part[job + 1]):
            pattern = parts[part_at[part] : part_at[part] + part_sizes[part]]
            into = out[row : row + text_ends.size]
            if folds:
                _longest_subsequences(pattern, folded, whole, text_cut, into)
            else:
                _longest_subsequences(pattern, text, whole, text_cut, into)
            row += text_ends.size


# The suffix automaton of a pattern: the columns of its states and of its edges. An edge lies in an open hash
# table by state and symbol (`slots`), and in a list of its state's edges.
_LINK, _LENGTH, _FIRST_EDGE = 0, 1, 2
_FROM, _SYMBOL, _TO, _NEXT_EDGE = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def _suffix_automaton(pattern):
    """The states, edges and slots of the smallest automaton that reads every substring of the pattern.

    Time and memory grow with the pattern's length, not with the alphabet. Source: Blumer et al., The smallest
    automaton recognizing the subwords of a text, TCS 1985.
    """
    m = pattern.size
    states = np.empty((2 * m + 1, 3), np.int64)
    edges = np.empty((3 * m + 4, 4), np.int64)
    size = 16
    while size < 6 * m:
        size *= 2
    slots = np.full(size, -1, np.int64)
    states[0] = -1, 0, -1
    n_states, n_edges, last = 1, 0, 0
    for at in range(m):
        symbol = np.int64(pattern[at])
        new = n_states
        n_states += 1
        states[new] = 0, states[last, _LENGTH] + 1, -1
        p = last
        edge = _edge(p, symbol, edges, slots)
        while p != -1 and edge == -1:
            n_edges = _add_edge(p, symbol, new, n_edges, states, edges, slots)
            p = states[p, _LINK]
            if p != -1:
                edge = _edge(p, symbol, edges, slots)
        if p != -1:
            q = edges[edge, _TO]
            if states[p, _LENGTH] + 1 == states[q, _LENGTH]:
                states[new, _LINK] = q
            else:
                clone = n_states
                n_states += 1
                states[clone] = states[q, _LINK], states[p, _LENGTH] + 1, -1
                copied = states[q, _FIRST_EDGE]
                while copied != -1:
                    n_edges = _add_edge(
                        clone, edges[copied, _SYMBOL], edges[copied, _TO], n_edges, states, edges, slots
                    )
                    copied = edges[copied, _NEXT_EDGE]
                while p != -1 and edges[edge, _TO] == q:
                    edges[edge, _TO] = clone
                    p = states[p, _LINK]
                    if p != -1:
                        edge = _edge(p, symbol, edges, slots)
                states[q, _LINK] = clone
                states[new, _LINK] = clone
        last = new
    return states, edges, slots


@njit(cache=True, nogil=True, inline="always")
def _slot(state, symbol, slots):
    h = np.uint64(state) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(symbol) * np.uint64(0xC2B2AE3D27D4EB4F)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(h >> np.uint64(32)) & (slots.size - 1)


@njit(cache=True, nogil=True)
def _edge(state, symbol, edges, slots):
    """The number of the state's edge for the symbol, or -1."""
    slot = _slot(state, symbol, slots)
    while True:
        edge = slots[slot]
        if edge == -1 or (edges[edge, _FROM] == state and edges[edge, _SYMBOL] == symbol):
            return edge
        slot = (slot + 1) & (slots.size - 1)


@njit(cache=True, nogil=True)
def _add_edge(state, symbol, to, n_edges, states, edges, slots):
    edges[n_edges] = state, symbol, to, states[state, _FIRST_EDGE]
    states[state, _FIRST_EDGE] = n_edges
    slot = _slot(state, symbol, slots)
    while slots[slot] != -1:
        slot = (slot + 1) & (slots.size - 1)
    slots[slot] = n_edges
    return n_edges + 1


@njit(cache=True, nogil=True)
def _longest_substrings_by_automaton(pattern, text, ends, start, k, best, out):
    """Like `_longest_substrings`, in time linear in both texts for any content.

    Reads text[start:] and fills out[k:]; `best` is the longest match that is known before.
    """
    states, edges, slots = _suffix_automaton(pattern)
    state = 0
    matched = 0
    i = start
    while k < ends.size:
        while i < ends[k]:
            symbol = np.int64(text[i])
            edge = _edge(state, symbol, edges, slots)
            while edge == -1 and state != 0:
                state = states[state, _LINK]
                matched = states[state, _LENGTH]
                edge = _edge(state, symbol, edges, slots)
            if edge != -1:
                state = edges[edge, _TO]
                matched += 1
                best = max(best, matched)
            i += 1
        out[k] = best
        k += 1


@njit(cache=True, nogil=True, inline="always")
def _gram(symbols, at, q):
    h = np.uint32(0)
    for i in range(at, at + q):
        h = h * np.uint32(0x01000193) + symbols[i]
    h = h * np.uint32(0x9E3779B1)
    return h ^ (h >> np.uint32(15))


@njit(cache=True, nogil=True)
def _longest_substrings(pattern, text, ends, head, chain, out):
    """Writes the length of the longest common substring of the pattern and text[: ends[k]] to out[k].

    Only matches longer than the best so far matter. Each of them covers one of the text's q-grams that are
    sampled at a stride which grows with the best length, so most of the text is never read. A sampled q-gram
    that stands in the pattern is extended to both sides. Where the texts repeat themselves so much that
    extending costs more than a few steps per symbol, the suffix automaton takes over, which is linear.
    head: int32 [power of two] and chain: int32 [at least pattern.size] are scratch. They hold the first place of every
        q-gram of the pattern by its hash, and the next place with the same hash.
    """
    m = pattern.size
    longest_gram = _GRAM if m <= _LONG else _GRAM_OF_LONG
    best = 0
    q = 0
    a = 0  # every match that starts before a and ends within the prefix is no longer than best
    mask = np.uint32(head.size - 1)
    budget = _WORK * (m + ends[-1]) if ends.size else 0
    for k in range(ends.size):
        end = ends[k]
        if best < m:
            a = max(0, min(a, ends[k - 1] - best)) if k > 0 else 0
            while best < m:
                want = best + 1
                if a + want > end:
                    break
                new_q = min(want, longest_gram)
                if new_q != q:
                    q = new_q
                    head[:] = -1
                    for j in range(m - q + 1):
                        h = _gram(pattern, j, q) & mask
                        chain[j] = head[h]
                        head[h] = j
                g = a + want - q
                j = head[_gram(text, g, q) & mask]
                while j != -1:
                    right = 0
                    while g + right < end and j + right < m and text[g + right] == pattern[j + right]:
                        right += 1
                    left = 0
                    if right >= q:
                        while g - left > a and j - left > 0 and text[g - left - 1] == pattern[j - left - 1]:
                            left += 1
                    best = max(best, left + right)
                    budget -= left + right + 1
                    j = chain[j]
                a = g + 1
                if budget < 0:
                    start = max(0, min(a, end - best))
                    _longest_substrings_by_automaton(pattern, text, ends, start, k, best, out)
                    return
        out[k] = best


@njit(cache=True, nogil=True, inline="always")
def _zeros(bits):
    """Number of zero bits of a 64-bit word."""
    x = ~bits
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, nogil=True, inline="always")
def _row_of(symbol, keys, rows):
    """The row of the symbol in an open hash table, or -1 - place of its free slot."""
    mask = keys.size - 1
    place = np.int64((np.uint64(symbol) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)) & mask
    while rows[place] != -1:
        if keys[place] == symbol:
            return rows[place]
        place = (place + 1) & mask
    return -1 - place


@njit(cache=True, nogil=True, inline="always")
def _read(symbol_bits, state):
    """Reads one symbol of the text; each bit of `state` that turns 0 marks one more matched symbol."""
    carry = np.uint64(0)
    for w in range(state.size):
        old = state[w]
        hit = old & symbol_bits[w]
        total = old + hit
        overflow = total < old
        total_carried = total + carry
        carry = np.uint64(overflow | (total_carried < total))
        state[w] = total_carried | (old - hit)


@njit(cache=True, nogil=True)
def _longest_subsequences(pattern, text, ends, cut, out):
    """Writes the length of the longest common subsequence of the pattern and text[: ends[k]] to out[k].

    A column of the dynamic programme is a bit vector over the pattern; a symbol of the text costs one
    addition per 64 pattern symbols. Source: Hyyro, Bit-parallel LCS-length computation revisited, AWOCA 2004.
    """
    m = pattern.size
    words = (m + 63) // 64
    size = 64
    while size < 4 * m:
        size *= 2
    keys = np.empty(size, np.uint32)
    rows = np.full(size, -1, np.int32)
    distinct = 0
    for symbol in pattern:
        row = _row_of(symbol, keys, rows)
        if row < 0:
            keys[-1 - row] = symbol
            rows[-1 - row] = distinct
            distinct += 1
    bits = np.zeros((distinct, words), np.uint64)
    for j in range(m):
        bits[_row_of(pattern[j], keys, rows), j >> 6] |= np.uint64(1) << np.uint64(j & 63)
    state = np.full(words, ~np.uint64(0), np.uint64)
    i = 0
    for k in range(ends.size):
        while i < ends[k]:
            row = _row_of(text[i], keys, rows)
            if row >= 0:
                _read(bits[row], state)
            i += 1
        at_end = state
        row = _row_of(cut[k], keys, rows)
        if row >= 0:
            at_end = state.copy()
            _read(bits[row], at_end)
        matched = 0
        for w in range(words):
            matched += _zeros(at_end[w])
        out[k] = matched
