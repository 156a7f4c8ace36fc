"""CSV files read whole and as texts: the columns that there must be, and what their cells may hold."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.datasets._gather import check_separator


def read_texts(file: Path) -> pd.DataFrame:
    """The table of a CSV file; every cell is a text, an empty one "". DataError where it is no such file."""
    try:
        table = pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except ValueError as error:  # UTF-8 and CSV alike
        raise DataError(f"{file}: no CSV file in UTF-8: {error}") from None
    check_separator(file, list(table.columns))
    return table


def require_columns(
    file: Path, table: pd.DataFrame, needed: Sequence[str], known: Collection[str] | None, rule: str
) -> None:
    """DataError, which ends with the rule, for a column that is not among `known`, or one that is missing."""
    unknown = [] if known is None else [column for column in table if column not in known]
    absent = [column for column in needed if column not in table]
    if unknown or absent:
        wrong = f"column {unknown[0]!r} is unknown" if unknown else f"column {absent[0]!r} is missing"
        raise DataError(f"{file}: {wrong}; {rule}")


def require_cells(file: Path, table: pd.DataFrame, column: str, good: pd.Series, allowed: str) -> None:
    """DataError for the first row whose cell is not good: it names line, qid, column, cell and what is allowed."""
    if not good.all():
        row = int(np.flatnonzero(~good.to_numpy(dtype=bool))[0])
        raise DataError(f"{_place(file, table, row)}: {column} is {table[column].iloc[row]!r}, not {allowed}")


def require_once(file: Path, table: pd.DataFrame, columns: Sequence[str]) -> None:
    """DataError for the first row that has in these columns what a row above it has."""
    twice = table.duplicated([*columns])
    if twice.any():
        row = int(np.flatnonzero(twice)[0])
        raise DataError(f"{_place(file, table, row)}: a second row of the same {', '.join(columns)}")


def _place(file: Path, table: pd.DataFrame, row: int) -> str:
    return f"{file}, line {row + 2}" + (f" (qid={table['qid'].iloc[row]!r})" if "qid" in table else "")
