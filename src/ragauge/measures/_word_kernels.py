"""Numbers words for `_kernels.subsequences`, from texts laid out as there, compiled (numba)."""

# pyrefly: ignore-errors[unannotated-return, implicit-any-parameter]

from __future__ import annotations

import numpy as np
from numba import njit

from ragauge.measures.tokens import NO_SYMBOL

_NONE = np.uint32(NO_SYMBOL)
_CODE_POINTS = np.uint32(0x110000)


@njit(cache=True, nogil=True)
def number_words(parts, part_at, first_part, texts, text_at, ends, ends_at, folds, long_folds):
    """Numbers the words of every topic's parts, from 0, and finds them in the topic's text.

    parts, texts: uint32, code points. folds: uint32 [0x110000], what a character becomes when its case is
    folded; 0 if it stands in no word, 0x110000 + i if it becomes several characters, long_folds[i] without
    its 0s. Returns
    - the words of the parts as numbers (uint32), and how many each part has (int64),
    - those words of the texts that stand in the topic's parts, and where each text begins among them,
    - for every end, how many of these its prefix has before its last word (int64), and this last word (uint32), which
      the end may have cut; NO_SYMBOL if no part has it.
    """
    topics = text_at.size - 1
    topic_at = part_at[first_part]
    part_words = np.empty(parts.size, np.uint32)
    part_sizes = np.empty(part_at.size - 1, np.int64)
    text_words = np.empty((texts.size + topics) // 2, np.uint32)  # at most, apart as they are
    text_words_at = np.zeros(topics + 1, np.int64)
    before = np.empty(ends.size, np.int64)
    last = np.full(ends.size, _NONE, np.uint32)

    longest = np.diff(topic_at).max()
    known = np.empty(longest * long_folds.shape[1], np.uint32)
    known_ends = np.empty(np.diff(first_part).max(), np.int64)
    words = np.empty((longest, 2), np.int64)
    folded = np.empty(np.diff(text_at).max() * long_folds.shape[1], np.uint32)
    folded_ends = np.empty(np.diff(ends_at).max(), np.int64)
    written = found = 0
    for topic in range(topics):
        at = topic_at[topic]
        slots = np.full(_table_size(topic_at[topic + 1] - at), _NONE, np.uint32)
        a, b = first_part[topic], first_part[topic + 1]
        part_ends = known_ends[: b - a]
        _fold_case(parts[at:], part_at[a + 1 : b + 1] - at, folds, long_folds, known, part_ends)
        written += _number(known, part_ends, words, slots, part_words[written:], part_sizes[a:b])

        a, b = ends_at[topic], ends_at[topic + 1]
        text_ends = folded_ends[: b - a]
        _fold_case(texts[text_at[topic] :], ends[a:b], folds, long_folds, folded, text_ends)
        found += _find(folded, text_ends, known, words, slots, text_words[found:], before[a:b], last[a:b])
        text_words_at[topic + 1] = found
    return part_words[:written], part_sizes, text_words[:found], text_words_at, before, last


@njit(cache=True, nogil=True)
def _table_size(words):
    """A power of two, at least twice as large as the words."""
    size = 64
    while size < 2 * words:
        size *= 2
    return size


@njit(cache=True, nogil=True)
def _fold_case(text, ends, folds, long_folds, folded, folded_ends):
    """Writes text[: ends[-1]] case folded, 0 for characters outside words, and its ends there."""
    one = np.uint64(1)  # unsigned, so that no index is checked for being negative
    size = i = np.uint64(0)
    for k in range(ends.size):
        end = np.uint64(ends[k])
        while i < end:
            c = folds[text[i]]
            if c < _CODE_POINTS:
                folded[size] = c
                size += one
            else:
                for j in range(long_folds.shape[1]):
                    c_of_many = long_folds[c - _CODE_POINTS, j]
                    if c_of_many != 0:
                        folded[size] = c_of_many
                        size += one
            i += one
        folded_ends[k] = size


@njit(cache=True, nogil=True)
def _number(known, ends, words, slots, numbers, sizes):
    """Numbers the words of a topic's folded parts, which end at `ends`; returns the number written.

    words[n] becomes where the word n stands in `known`, slots[_slot(...)] its number, sizes[k] how many words
    the part k has.
    """
    written = distinct = at = 0
    for k in range(ends.size):
        sizes[k] = -written
        while True:
            start, at, mixed = _next_word(known, at, ends[k])
            if start == at:
                break
            slot = _slot(known, start, at, mixed, known, words, slots)
            if slots[slot] == _NONE:
                slots[slot] = distinct
                words[distinct, 0] = start
                words[distinct, 1] = at
                distinct += 1
            numbers[written] = slots[slot]
            written += 1
        sizes[k] += written
    return written


@njit(cache=True, nogil=True)
def _find(folded, ends, known, words, slots, numbers, before, last):
    """Writes the numbers of a folded text's known words; returns the number written.

    before[k] becomes how many stand before the last word of folded[: ends[k]], last[k] this word's number.
    """
    found = at = 0
    for k in range(ends.size):
        while at < ends[k]:
            start, at, mixed = _next_word(folded, at, ends[k])
            number = slots[_slot(folded, start, at, mixed, known, words, slots)]
            if at == ends[k]:
                last[k] = number
                at = start  # the next prefix may have more of it
                break
            if number != _NONE:
                numbers[found] = number
                found += 1
        before[k] = found
    return found


@njit(cache=True, nogil=True)
def _next_word(folded, at, end):
    """Start and end of the first word of folded[at:end] (both `end` without one), and its hash."""
    i, stop, one = np.uint64(at), np.uint64(end), np.uint64(1)
    while i < stop and folded[i] == 0:
        i += one
    start = i
    mixed = np.uint64(0)
    while i < stop and folded[i] != 0:
        mixed = (mixed ^ np.uint64(folded[i])) * np.uint64(0x9E3779B97F4A7C15)
        i += one
    return np.int64(start), np.int64(i), mixed


@njit(cache=True, nogil=True)
def _slot(folded, start, end, mixed, known, words, slots):
    """The slot of the known word folded[start:end] with hash `mixed`, or a free slot."""
    slot = np.int64(mixed >> np.uint64(32)) & (slots.size - 1)
    number = slots[slot]
    # Without `break`: with one, numba counts references to the arrays here, and all takes twice as long.
    while number != _NONE and not _same(folded, start, end, known, words[number, 0], words[number, 1]):
        slot = (slot + 1) & (slots.size - 1)
        number = slots[slot]
    return slot


@njit(cache=True, nogil=True)
def _same(a, a_start, a_end, b, b_start, b_end):
    """Whether a[a_start:a_end] equals b[b_start:b_end]."""
    if a_end - a_start != b_end - b_start:
        return False
    i, j, stop, one = np.uint64(a_start), np.uint64(b_start), np.uint64(a_end), np.uint64(1)
    while i < stop and a[i] == b[j]:
        i += one
        j += one
    return i == stop
