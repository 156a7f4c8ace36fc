"""The frame `answer_values` from a function of one answer."""

from __future__ import annotations

from collections.abc import Callable, Container

import pandas as pd

from ragauge.contract.answer_measures import NO_ANSWER, NO_REFERENCE
from ragauge.contract.errors import DataError


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
    status = [status_of(qid, answer, qid not in without) for qid, answer in pairs]
    found = [value(qid, answer) if known == "ok" else None for (qid, answer), known in zip(pairs, status, strict=True)]
    return answers[["qid", "n_tokens"]].assign(
        measure=name,
        value=pd.Series(found, index=answers.index, dtype="float64"),
        status=status,
    )


def status_of(qid: str, answer: object, has_reference: bool) -> str:
    """Why an answer has no value, or "ok"; DataError for an answer that is no text."""
    if not has_reference:
        return NO_REFERENCE
    if isinstance(answer, str):
        return "ok"
    if pd.isna(answer):  # type: ignore[call-overload]
        return NO_ANSWER
    raise DataError(f"answers frame: the answer to qid {qid!r} is no text: {answer!r:.80}")
