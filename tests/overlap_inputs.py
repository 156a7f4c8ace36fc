"""Texts for answer measures, and what a measure makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from ragauge.contract import frames

WORDS = ["the", "The", "cat", "cat,", "sat.", "on", "a", "mat", "x-ray", "4.6", "U.S.", "é", "北京", "$5", ""]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=12)
ANY_TEXT = st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), min_size=1, max_size=6)


def values(measure: Any, pairs: list[tuple[str, str]]) -> dict[str, np.ndarray]:
    none: Any = None
    answers, references = zip(*pairs, strict=True)
    return dict(measure.compared(list(answers), list(references), none))


def framed(measure: Any, answers: list[Any], references: list[list[str]], tools: Any = None) -> pd.DataFrame:
    qids = [str(i) for i in range(len(answers))]
    topics = pd.DataFrame({"qid": qids, "query": "?", "answer": [r[0] if r else None for r in references]})
    topics["answers"] = references
    given_answers = pd.DataFrame({"qid": qids, "n_tokens": 8, "answer": pd.Series(answers, dtype=object)})
    none: Any = None
    return frames.check("answer_values", measure.measure(topics, none, none, given_answers, tools))
