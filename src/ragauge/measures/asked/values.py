"""The frame `answer_values` of a measure that asks, with what its values rest on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ragauge.measures.asked.asking import FAILED, Found


@dataclass(frozen=True)
class Measured:
    """The values of one answer by the name of the measure, and what they rest on, as JSON values.

    status: why all values that are not in `values` are missing. own: why single ones are.
    """

    values: Mapping[str, float]
    status: str = "ok"
    own: Mapping[str, str] = field(default_factory=dict)
    detail: Any = None


def value_frame(answers: pd.DataFrame, names: Sequence[str], found: Sequence[Measured]) -> pd.DataFrame:
    """Frame `answer_values`: a row for every answer and every name; `detail` stands with the first name."""
    frames = []
    for name in names:
        status = ["ok" if name in one.values else one.own.get(name, one.status) for one in found]
        # ASCII alone: what a model wrote may hold half a character, which no file takes.
        shown = [None if one.detail is None or name != names[0] else json.dumps(one.detail) for one in found]
        frames.append(
            answers[["qid", "n_tokens"]].assign(
                measure=name,
                value=pd.Series([one.values.get(name) for one in found], answers.index, dtype="float64"),
                status=pd.Series(status, answers.index, dtype="str"),
                detail=pd.Series(shown, answers.index, dtype="str"),
            )
        )
    return pd.concat(frames, ignore_index=True)


def why_missing(found: Iterable[Found[Any]]) -> str | None:
    """`failed` or `unreadable` where one of what was asked for is so, which makes the whole value missing."""
    bad = {one.status for one in found if one.value is None}
    return FAILED if FAILED in bad else next(iter(bad), None)
