"""The frame `answer_values` from a function of one answer, and what an answer is compared with."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from ragauge.contract.errors import DataError


def measured(answers: pd.DataFrame, name: str, value: Callable[[str, str], float]) -> pd.DataFrame:
    """Frame `answer_values`: value(qid, answer) for every row of `answers`, missing where there is none."""
    found = [
        value(qid, answer) if isinstance(answer, str) else None
        for qid, answer in zip(answers["qid"], answers["answer"], strict=True)
    ]
    return answers[["qid", "n_tokens"]].assign(
        measure=name,
        value=pd.Series(found, index=answers.index, dtype="float64"),
        status=["no answer" if one is None else "ok" for one in found],
    )


def references(topics: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """The reference answers of every qid: those of the column `answers` where it lists any, else `answer`."""
    found: dict[str, tuple[str, ...]] = {
        qid: (str(answer),) for qid, answer in zip(topics["qid"], topics["answer"], strict=True)
    }
    if "answers" not in topics:
        return found
    for qid, several in zip(topics["qid"], topics["answers"], strict=True):
        if isinstance(several, str):
            raise DataError(f"topics frame: column answers (qid={qid!r}): {several!r} is a text, not a list")
        listed = [] if several is None or several is pd.NA or isinstance(several, float) else list(several)
        if listed:
            found[qid] = tuple(map(str, listed))
    return found
