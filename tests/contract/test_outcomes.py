"""The columns of outcomes: what the guide says of them, and what a frame is refused for."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.contract.metrics import spelled
from ragauge.contract.outcomes import COLUMNS, FEATURES, RESERVED, Column, UndeclaredColumn, check, names

GUIDE = Path(__file__).parents[2] / "docs" / "library.md"
FILES = {"job": "outcomes", "table": "questions", "both": "both", "pooled": "of a sweep"}


def row(column: Column) -> str:
    """The line of a column in docs/library.md."""
    single = spelled([column.names])
    shown = f"`{single[0]}`" + (f" … `{single[-1]}`" if len(single) > 1 else "")
    unit = {"": "", "share": "in [0, 1]"}.get(column.unit, column.unit)
    what = column.what + (f", {unit}" if unit else "") + ("" if column.always else " ◦")
    return f"| {shown} | {what} | {column.by} | {FILES[column.of]} |"


def test_the_guide_lists_the_columns() -> None:
    text = GUIDE.read_text(encoding="utf-8").partition("### The columns of outcomes")[2].partition("\n## ")[0]
    assert [line for line in text.splitlines() if re.match(r"\| `", line)] == [row(column) for column in COLUMNS]


def test_a_name_belongs_to_one_column() -> None:
    assert len(set(names())) == len(names())
    assert FEATURES == ("ir_score", "evidence_best", "evidence_worst", "answer_in_context", "n_used", "score_gap")


def test_attributes_have_names_of_their_own() -> None:
    assert {"label", "p3", "label_32", "human_label_of", "text", "status", "system", "retriever"} <= RESERVED
    assert not {"type", "cited_answer", "seconds", "label_33"} & RESERVED


def outcomes(**changes: object) -> pd.DataFrame:
    """A row with every column that each job has."""
    values = {"str": "a", "str?": None, "float?": float("nan"), "float": 1.0, "int": 1, "label": 5}
    of_job = [column for column in COLUMNS if column.of in ("job", "both") and column.always]
    row = {name: values[column.kind] for column in of_job for name in spelled([column.names])}
    return pd.DataFrame([{**row, **changes}])


def test_a_column_that_nobody_declares_is_an_error_in_tests() -> None:
    check(outcomes(type="easy", f1=0.5, **{"slice:type": "easy"}), {"type", "f1"})
    with pytest.raises(UndeclaredColumn, match="column 'n_passages' has no line in"):
        check(outcomes(n_passages=3), ())


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (outcomes(label=6), r"outcomes: column label, row 0 \(qid='a'\): 6 is not a judge class 1..5 or nothing"),
        (outcomes(n_used="many"), "column n_used, row 0 .*'many' is not a number"),
        (outcomes().drop(columns="ir_score"), r"column\(s\) ir_score missing"),
    ],
)
def test_a_frame_of_other_values_is_refused(frame: pd.DataFrame, told: str) -> None:
    with pytest.raises(DataError, match=told):
        check(frame, ())
