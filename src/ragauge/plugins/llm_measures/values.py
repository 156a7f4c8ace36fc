"""A measure's results for every answer, as the frame `answer_values`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.llms.json_replies import OK, Found
from ragauge.plugins.llm_measures.claims import first_lost, one_line

_RAW = 2000  # characters of a reply that could not be read that are kept


@dataclass(frozen=True)
class Measured:
    """The result for one answer: a value per info, or None and the reason; detail: the grounds.

    statuses: why single values are missing, where others are there; status holds for the rest of the missing.
    """

    values: tuple[float | None, ...] | None
    status: str = OK
    detail: Mapping[str, Any] | None = None
    statuses: tuple[str, ...] | None = None

    def status_of(self, i: int) -> str:
        """The status of the value of the i-th info."""
        return self.status if self.statuses is None else self.statuses[i]


def lost(*found: Found[Any] | None) -> Measured | None:
    """The missing value if one of the needed replies is missing; None if all are there."""
    first = first_lost(*found)
    if first is None:
        return None
    return Measured(None, first.status, {first.status: one_line((first.raw or "")[:_RAW])})


def value_frame(
    answers: pd.DataFrame, infos: Sequence[AnswerMeasureInfo], measured: Sequence[Measured]
) -> pd.DataFrame:
    """Frame `answer_values`, a row per row of `answers` and info.

    `measured` has an entry for every row of `answers`. The detail stands at the first info.
    """
    frames = []
    for i, info in enumerate(infos):
        values = [None if one.values is None else one.values[i] for one in measured]
        details = [None if one.detail is None or i else _json(one.detail) for one in measured]
        frames.append(
            answers[["qid", "n_tokens"]].assign(
                measure=info.name,
                value=pd.Series(values, index=answers.index, dtype="float64"),
                status=pd.Series([one.status_of(i) for one in measured], index=answers.index, dtype="str"),
                detail=pd.Series(details, index=answers.index, dtype="str"),
            )
        )
    return pd.concat(frames, ignore_index=True)


def _json(detail: Mapping[str, Any]) -> str:
    return json.dumps(detail, ensure_ascii=False)
