"""Slices of a job's topics: reads them from the config, computes and logs them."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from ragauge.contract.errors import ConfigError
from ragauge.contract.outcomes import PREFIX
from ragauge.contract.topics import attributes_of, is_unanswerable
from ragauge.estimate.slices import (
    Weights,
)
from ragauge.estimate.slicing import ANSWERABLE, NOT_KNOWN, UNANSWERABLE, SliceBy, in_order, slice_labels, text_of
from ragauge.measures.questions import DERIVED, EVIDENCE_DOCUMENTS, LANGUAGE, LEXICAL_OVERLAP, RARITY

log = logging.getLogger(__name__)

WEIGHTS_TAG = "ragauge.slice_weights"  # of an MLflow run: the weights as JSON
_MAX_BINS = 20
_MAX_LISTED = 12  # names in a message
_DECIMALS = 4  # of derived attributes
_FORMS = "name, {name: number of bins} and {name: [inner edges of bins, ascending]}"


def read_slices(entries: Any) -> tuple[SliceBy, ...]:
    """The config's `slices`; ConfigError for an entry that is neither a name nor a name with its bins."""
    found: dict[str, SliceBy] = {}
    for entry in entries:
        named = {entry: None} if isinstance(entry, str) else entry
        if not isinstance(named, Mapping) or len(named) != 1:
            raise ConfigError(f"slices: {entry!r}: allowed are {_FORMS}")
        ((name, bins),) = named.items()
        name = str(name)
        if not name.strip() or name in found:
            raise ConfigError(f"slices: {name!r} {'is there twice' if name in found else 'is no name'}")
        found[name] = SliceBy(name, _bins(name, bins))
    return tuple(found.values())


def _bins(name: str, bins: Any) -> int | tuple[float, ...] | None:
    if bins is None:
        return None
    if isinstance(bins, int) and not isinstance(bins, bool) and 2 <= bins <= _MAX_BINS:
        return bins
    if isinstance(bins, list) and 1 <= len(bins) < _MAX_BINS:
        numbers = [x for x in bins if isinstance(x, (int, float)) and not isinstance(x, bool)]
        finite = len(numbers) == len(bins) and all(map(math.isfinite, numbers))
        if finite and sorted(set(numbers)) == numbers:
            return tuple(map(float, numbers))
    raise ConfigError(
        f"slices: {name!r} has the bins {bins!r}: allowed are a number of bins from 2 to {_MAX_BINS}, and "
        f"their inner edges, ascending numbers, at most {_MAX_BINS - 1}"
    )


def read_weights(weights: Any, slices: Sequence[SliceBy]) -> dict[str, dict[str, float]]:
    """The config's `slice_weights`; ConfigError for unknown slicings or invalid weights."""
    names = [by.name for by in slices]
    found: dict[str, dict[str, float]] = {}
    for by, given in weights.items():
        if str(by) not in names:
            raise ConfigError(f"slice_weights: {by!r} is not among slices, which are {', '.join(names)}")
        if not isinstance(given, Mapping):
            raise ConfigError(f"slice_weights.{by}={given!r}: allowed is {{slice: weight}}, numbers from 0")
        for label, weight in given.items():
            number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
            if not (number and math.isfinite(weight) and weight >= 0):
                raise ConfigError(f"slice_weights.{by}: {label!r} has {weight!r}: allowed are numbers from 0")
        found[str(by)] = {text_of(label): float(weight) for label, weight in given.items()}
        if sum(weight > 0 for weight in found[str(by)].values()) < 2:
            raise ConfigError(f"slice_weights.{by}: an average takes two slices with a weight above 0")
    return found


def slices_of_topics(
    topics: pd.DataFrame,
    slices: Sequence[SliceBy],
    weights: Weights,
    derived: Callable[[], pd.DataFrame],
) -> pd.DataFrame | None:
    """The slices of every topic: [qid, slice:<name> ...]; None for no slices.

    Where the dataset marks topics as unanswerable, `unanswerable` is among them without being named. A
    dataset's own attribute goes before a derived one of its name; `derived` gives these, row by row as topics
    (`ragauge.measures.questions`). ConfigError for a name that is neither, and where weights do not fit the
    slices.
    """
    if not slices:
        return None
    marked = is_unanswerable(topics)
    attributes = [name for name in attributes_of(topics) if not name.startswith(PREFIX)]
    there = [*attributes, *([UNANSWERABLE] if marked.any() else []), *DERIVED]
    by_name = {by.name: by for by in slices}
    for name in by_name:
        if name not in there:
            raise ConfigError(
                f"slices: the topics of this dataset have no {name!r}; there are "
                f"{_some(attributes) or 'no attributes'}; derived: {', '.join(there[len(attributes) :])}"
            )
    if marked.any():
        by_name.setdefault(UNANSWERABLE, SliceBy(UNANSWERABLE))
    found = {"qid": topics["qid"]}
    for name, by in by_name.items():
        if name in attributes:
            labels = slice_labels(topics[name], by)
        elif name == UNANSWERABLE:
            labels = marked.map({True: UNANSWERABLE, False: ANSWERABLE}).astype("str")
        else:
            values = derived().round(_DECIMALS)[name]
            if values.isna().all():
                raise ConfigError(
                    f"slices: {name} is known of no topic: {LEXICAL_OVERLAP} takes evidence texts, "
                    f"{RARITY} documents, {EVIDENCE_DOCUMENTS} evidence, {LANGUAGE} sentences in one that is known"
                )
            labels = slice_labels(values, by)
        _check_weights(name, labels, weights.get(name))
        found[PREFIX + name] = labels
    return pd.DataFrame(found)


def _check_weights(by: str, labels: pd.Series, weights: Mapping[str, float] | None) -> None:
    if weights is None:
        return
    there = [label for label in in_order(labels) if label != NOT_KNOWN]
    for label in [*there, *weights]:
        if label not in weights or label not in there:
            what = "has no weight" if label in there else "is no slice"
            raise ConfigError(f"slice_weights.{by}: {label!r} {what}; the slices are {_some(there)}")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


def with_slices(outcomes: pd.DataFrame, slices: pd.DataFrame | None) -> pd.DataFrame:
    """The outcomes with the columns of `slices_of_topics`, which replace attributes of the same names."""
    own = outcomes.drop(columns=[c for c in map(str, outcomes.columns) if c.startswith(PREFIX)])
    return own if slices is None else own.merge(slices, on="qid", how="left", validate="one_to_one")
