"""CRAG's score of an answer from its judge class.

Source: Yang et al., CRAG: Comprehensive RAG Benchmark, NeurIPS 2024, section 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ragauge.contract.protocols import AnswerMeasureInfo

TRUTHFULNESS = AnswerMeasureInfo(
    "truthfulness",
    "truthfulness",
    unit="signed",
    section="Truthfulness (CRAG)",
    of="verdict",
    on_terminal=False,
)
# Perfect: correct and without made-up content (5). Acceptable: useful, with minor errors at most (3: right as
# far as it goes). Missing (1). Incorrect: wrong or irrelevant (4), and what is made up beside something right
# (2), since that class does not say that its wrong statements are minor.
SCORES = {5: 1.0, 3: 0.5, 1: 0.0, 2: -1.0, 4: -1.0}
_UNANSWERABLE = {**SCORES, 1: 1.0}  # that there is no answer is the right answer


def truthfulness(label: pd.Series, unanswerable: pd.Series | None = None) -> np.ndarray:
    """float64 [rows] in [-1, 1]: CRAG's score of every judge class, missing where the verdict is.

    unanswerable: bool by row; there class 1 is perfect.
    """
    found = _of(label, SCORES)
    if unanswerable is not None:
        marked = unanswerable.eq(True).to_numpy(dtype=bool)
        found[marked] = _of(label[marked], _UNANSWERABLE)
    return found


def _of(label: pd.Series, scores: Mapping[int, float]) -> np.ndarray:
    known = label.astype("Int64").astype(object)
    return np.array([scores.get(one, np.nan) if one is not pd.NA else np.nan for one in known], dtype=float)
