"""The frame `answer_values` from a function of one answer."""

from __future__ import annotations

from collections.abc import Callable, Container

import pandas as pd

from ragauge.contract.answer_measures import NO_ANSWER, NO_REFERENCE


def measured(
    answers: pd.DataFrame,
    name: str,
    value: Callable[[str, str], float],
    without: Container[str] = (),
) -> pd.DataFrame:
    """Frame `answer_values`: value(qid, answer) for every row of `answers`, missing where there is none.

    without: qids of topics that have nothing to compare with; theirs are missing, too.
    """
    pairs = list(zip(answers["qid"], answers["answer"], strict=True))
    found = [
        value(qid, answer) if isinstance(answer, str) and qid not in without else None
        for qid, answer in pairs
    ]
    status = [
        NO_REFERENCE if qid in without else "ok" if isinstance(answer, str) else NO_ANSWER
        for qid, answer in pairs
    ]
    return answers[["qid", "n_tokens"]].assign(
        measure=name,
        value=pd.Series(found, index=answers.index, dtype="float64"),
        status=status,
    )
