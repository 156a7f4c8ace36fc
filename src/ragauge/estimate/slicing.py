"""Assigns topics to slices by values, and names and orders the slices.

The slices of a topic are columns of its outcomes: `slice:<name>` holds the slice's label, for every topic.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.errors import ConfigError
from ragauge.contract.outcomes import PREFIX

NOT_KNOWN = "not known"  # the slice of topics without a value
UNANSWERABLE, ANSWERABLE = "unanswerable", "answerable"
MAX_SLICES = 200  # of one attribute: more are names of topics, and no slices
FEW_TOPICS = 10  # a slice with fewer is called small
_FEW_VALUES = 6  # a number with more distinct values is binned
_BINS = 4
_DIGITS = (1, 2, 3, 4, 6, 9, 12)  # of an edge that is rounded
_MOVED = 0.01  # the share of topics that rounding an edge may move into the next bin
_NUMBER = r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?"
_PLAIN = re.compile(rf"(?!-?0\d){_NUMBER}")  # no number: 007
_BIN = re.compile(rf"(under )?({_NUMBER})(?: to {_NUMBER}| and more)?")


@dataclass(frozen=True)
class SliceBy:
    """A slicing: the column's name and, for numbers, the bins (their number or inner edges)."""

    name: str
    bins: int | tuple[float, ...] | None = None


def slicings(frame: pd.DataFrame) -> list[str]:
    """The frame's slicings in the order of its columns, without columns with gaps."""
    columns = [c for c in map(str, frame.columns) if c.startswith(PREFIX)]
    return [c.removeprefix(PREFIX) for c in columns if len(frame) and frame[c].notna().all()]


def slice_labels(values: pd.Series, by: SliceBy) -> pd.Series:
    """The slice of every value, str; "not known" for a missing value or empty text.

    A number with at most six distinct values is its own slice. One with more is binned: by its quantiles into four bins
    of about equal size, or as `by.bins` says. A bin holds its lower edge: "under 3", "3 to 7" (7 not among them), "7
    and more". White space of texts is folded. Raises ConfigError for bins of what is no number, and for more than 200
    slices.
    """
    known = values.notna()
    numbers = _numbers(values[known], by)
    found = pd.Series(NOT_KNOWN, index=values.index, dtype="str")
    if numbers is None:
        texts = values[known].map(text_of)
        found[known] = texts.where(texts.ne(""), NOT_KNOWN)
    elif len(numbers):
        found[known] = _binned(numbers, by.bins)
    count = found.nunique()
    if count > MAX_SLICES:
        raise ConfigError(
            f"slices: {by.name!r} has {count:,} slices, and allowed are {MAX_SLICES}: choose an attribute of "
            f"fewer values, or bins of one that is a number, such as {{{by.name}: 4}}"
        )
    return found


def in_order(labels: Iterable[str]) -> list[str]:
    """The labels of slices in display order: numbers and bins by size, texts, missing."""

    def place(label: str) -> tuple[int, float, int, str]:
        found = _BIN.fullmatch(label)
        last = {UNANSWERABLE: 1, NOT_KNOWN: 2}.get(label, 0)
        return (last, float(found[2]) if found else math.inf, 0 if found and found[1] else 1, label)

    return sorted(set(labels), key=place)


def text_of(value: object) -> str:
    """A value as the label of its slice."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, float, np.number)):
        return _shown(float(value))
    return " ".join(str(value).split())


def _numbers(known: pd.Series, by: SliceBy) -> np.ndarray | None:
    """The values as numbers, parsed from texts (as in a CSV file) if needed; None if any is no number.

    ConfigError where such values are to have bins.
    """
    texts = known.map(text_of).tolist()
    wrong = [text for text in texts if not (_PLAIN.fullmatch(text) and math.isfinite(float(text)))]
    if not wrong:
        return np.array(texts, dtype=float)
    if by.bins is not None:
        raise ConfigError(f"slices: {by.name!r} has the value {wrong[0][:60]!r}: bins are for numbers alone")
    return None


def _binned(numbers: np.ndarray, bins: int | tuple[float, ...] | None) -> np.ndarray:
    distinct = np.unique(numbers)
    if bins is None and len(distinct) <= _FEW_VALUES:
        return np.array([_shown(x) for x in numbers], dtype=object)
    edges = np.array(bins, dtype=float) if isinstance(bins, tuple) else _quantiles(numbers, bins or _BINS)
    if not len(edges):
        return np.full(len(numbers), _shown(distinct[0]), dtype=object)
    shown = [_shown(edge) for edge in edges]
    between = [f"{lo} to {hi}" for lo, hi in itertools.pairwise(shown)]
    names = [f"under {shown[0]}", *between, f"{shown[-1]} and more"]
    return np.array(names, dtype=object)[np.searchsorted(edges, numbers, side="right")]


def _quantiles(numbers: np.ndarray, bins: int) -> np.ndarray:
    """Rounded inner edges of non-empty bins of about equal size.

    An edge has as few digits as move at most one number in a hundred into another bin.
    """
    distinct = np.unique(numbers)
    exact = np.quantile(numbers, np.linspace(0, 1, bins + 1)[1:-1])
    # An edge lies on a value that occurs, above the lowest: then no bin is empty, however many are equal.
    at = np.unique(np.searchsorted(distinct, exact))
    at = at[at > 0] if at.any() else np.arange(1, min(2, len(distinct)))
    of_bin = np.searchsorted(distinct[at], numbers, side="right")
    for digits in _DIGITS:
        edges = np.unique([float(f"{edge:.{digits}g}") for edge in distinct[at]])
        found = np.searchsorted(edges, numbers, side="right")
        if len(np.unique(found)) == len(at) + 1 and (found != of_bin).mean() <= _MOVED:
            return edges
    return np.asarray(distinct[at])


def _shown(number: float) -> str:
    """A number with all of its digits, integers without a point."""
    number = float(number)
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)
