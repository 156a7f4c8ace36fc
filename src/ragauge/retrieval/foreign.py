"""What components of other libraries return, checked: errors name the component, the topic and the chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError


def transformed(name: str, pipeline: Callable[..., Any], rows: pd.DataFrame) -> pd.DataFrame:
    """The run that a PyTerrier pipeline makes of topics, or of a run, with qid, docno and score.

    DataError for a stage that misses columns, for no frame, and for a run without these columns.
    """
    from pyterrier.validate import InputValidationError

    try:
        found = pipeline(rows)
    except InputValidationError as error:
        misses = " or ".join(", ".join(mode.missing_columns) for mode in error.modes)
        raise DataError(f"{name}: column {misses} is missing for a stage of it: {error.args[0]}") from error
    if not isinstance(found, pd.DataFrame):
        raise DataError(f"{name}: returned a {type(found).__name__}, not a frame")
    for column in ("qid", "docno", "score"):
        if column not in found.columns:
            has = ", ".join(map(str, found.columns))
            raise DataError(f"{name}: column {column} is missing from its run; it has {has}")
    return found


def check_hits(name: str, qids: pd.Series, docnos: pd.Series, score: np.ndarray) -> None:
    """DataError for a score that is no finite number, and for a hit that is returned twice."""
    twice = pd.DataFrame({"qid": qids, "docno": docnos}).duplicated().to_numpy()
    for wrong, what in ((~np.isfinite(score), "has no finite score"), (twice, "is returned twice")):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(f"{name}: qid={qids.iloc[row]!r}, docno={docnos.iloc[row]!r} {what}")


def docno_of(name: object, document: Any) -> str:
    """The docno that a returned LangChain Document carries; DataError where it carries none."""
    docno = document.metadata.get("docno")
    if docno is None:
        keys = ", ".join(document.metadata) or "nothing"
        raise DataError(f"{name}: a returned Document has no metadata['docno']; its metadata has {keys}")
    return str(docno)
