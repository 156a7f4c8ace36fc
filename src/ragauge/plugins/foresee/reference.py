"""The training rows in a predictor's file, used to compare and correct a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.estimate.outcomes import topic_codes

KEY = "training"  # of a predictor's settings
READ_BY = "read_by"  # of a predictor's settings: digests of the components that computed its features
_MOST = 40_000  # numbers that are kept: a file of a predictor holds a megabyte at most
_DIGITS = 6


@dataclass(frozen=True)
class Reference:
    """Training rows of a predictor.

    rows: [qid (a number of the topic), label, the features, weight where rows stand for several]; of whole topics.
    how: spline, calibrate and penalty of the fit. n_topics: how many topics the fit had; the rows may be
    a sample of them.
    transfer: {what was left out: mean absolute error of class shares}.
    """

    rows: pd.DataFrame
    how: Mapping[str, Any]
    n_topics: int
    transfer: Mapping[str, float]


def as_settings(
    rows: pd.DataFrame, features: Sequence[str], how: Mapping[str, Any], transfer: Mapping[str, float], seed: int
) -> dict[str, Any]:
    """The entry of a predictor's settings for `read`.

    rows: [qid, label, the features, weight where there is one], all with a label and every feature. If rows are too
    many, the seed draws whole topics. Numbers keep six digits; questions and other texts are not kept.
    """
    codes, n_topics = topic_codes(rows["qid"])
    numbers = [*features, *(["weight"] if "weight" in rows else [])]
    most = _MOST // (len(numbers) + 2)
    if len(rows) > most:
        order = np.random.default_rng(seed).permutation(n_topics)
        ends = np.cumsum(np.bincount(codes, minlength=n_topics)[order])
        kept = np.isin(codes, order[ends <= most])
        rows, codes = rows[kept], codes[kept]
    return {
        KEY: {
            "topic": codes.tolist(),
            "label": rows["label"].astype(int).tolist(),
            "columns": {name: [float(f"{v:.{_DIGITS}g}") for v in rows[name].astype(float)] for name in numbers},
            "how": dict(how),
            "n_topics": n_topics,
            "transfer": {by: float(error) for by, error in transfer.items()},
        }
    }


def read(settings: Mapping[str, Any], features: Sequence[str]) -> Reference | None:
    """The training rows in a predictor's settings; None if it has none, DataError if they are damaged."""
    found = settings.get(KEY)
    if found is None:
        return None
    try:
        rows = pd.DataFrame(
            {"qid": found["topic"], "label": pd.array(found["label"], dtype="Int8"), **found["columns"]}
        )
        rows[[*features]] = rows[[*features]].astype("float64")
        whole = len(rows) > 1 and bool(np.isfinite(rows[[*features]].to_numpy()).all())
        of = Reference(rows, found["how"], int(found["n_topics"]), found["transfer"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"predictor: its settings.{KEY} cannot be read: {type(error).__name__}: {error}") from None
    if not whole or not rows["label"].between(1, 5).all():
        raise DataError(f"predictor: its settings.{KEY} needs two rows or more of finite numbers and classes 1 to 5")
    return of
