"""A frame that need not fit into memory: its rows come in batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

BATCH_ROWS = 50_000  # of a batch, or of a row group, at most


@dataclass(frozen=True)
class Batches:
    """The rows of one frame, in order, as frames of some of them.

    read: starts again from the first row at every call, and gives frames of the same columns and dtypes. Who
        makes a Batches answers for keys that are unique over all of them.
    """

    read: Callable[[], Iterator[pd.DataFrame]]

    def __iter__(self) -> Iterator[pd.DataFrame]:
        return self.read()

    def frame(self) -> pd.DataFrame:
        """All rows as one frame; ValueError where there is no batch."""
        return pd.concat(self, ignore_index=True)

    @property
    def n_rows(self) -> int:
        """How many rows there are in all."""
        return sum(map(len, self))

    def columns(self, names: Sequence[str]) -> pd.DataFrame:
        """All rows, with these columns alone, as one frame."""
        return pd.concat([batch[list(names)] for batch in self], ignore_index=True)

    def where(self, column: str, values: Collection[str]) -> pd.DataFrame:
        """The rows whose `column` is one of `values`, in order; their index is the number of the row."""
        return _joined(batch[_is_in(batch[column], values)] for batch in _numbered(self))

    def at(self, rows: np.ndarray) -> pd.DataFrame:
        """The rows of these numbers, in the order of `rows`, which are distinct; they are the index."""
        return _joined(batch[batch.index.isin(rows)] for batch in _numbered(self)).loc[rows]


def as_frame(rows: pd.DataFrame | Batches) -> pd.DataFrame:
    """The rows as one frame, whichever way they come."""
    return rows.frame() if isinstance(rows, Batches) else rows


def batches_of(rows: pd.DataFrame | Batches) -> Iterator[pd.DataFrame]:
    """The batches of rows; a frame is one."""
    return iter(rows) if isinstance(rows, Batches) else iter([rows])


def count_rows(rows: pd.DataFrame | Batches) -> int:
    """How many rows there are."""
    return rows.n_rows if isinstance(rows, Batches) else len(rows)


def columns_of(rows: pd.DataFrame | Batches, names: Sequence[str]) -> pd.DataFrame:
    """`Batches.columns`, of a frame, too."""
    return rows.columns(names) if isinstance(rows, Batches) else rows[list(names)]


def rows_where(rows: pd.DataFrame | Batches, column: str, values: Collection[str]) -> pd.DataFrame:
    """`Batches.where`, of a frame, too: the index is the number of the row."""
    if isinstance(rows, Batches):
        return rows.where(column, values)
    at = np.flatnonzero(_is_in(rows[column], values))
    return rows.iloc[at].set_axis(at)


def rows_at(rows: pd.DataFrame | Batches, numbers: np.ndarray) -> pd.DataFrame:
    """`Batches.at`, of a frame, too: the index is the number of the row."""
    return rows.at(numbers) if isinstance(rows, Batches) else rows.iloc[numbers].set_axis(numbers)


def in_pieces(rows: pd.DataFrame | Batches, size: int) -> Iterator[pd.DataFrame]:
    """The rows in order, in frames of `size` rows and a last one of what is left; none of no rows."""
    held: list[pd.DataFrame] = []
    n_held = 0
    for batch in batches_of(rows):
        start = 0
        while start < len(batch):
            taken = batch.iloc[start : start + size - n_held]
            held.append(taken)
            start, n_held = start + len(taken), n_held + len(taken)
            if n_held == size:
                yield pd.concat(held, ignore_index=True)
                held, n_held = [], 0
    if held:
        yield pd.concat(held, ignore_index=True)


def _is_in(column: pd.Series, values: Collection[str]) -> np.ndarray:
    """bool [rows]: whether the text of a row is one of `values`, in a fifth of the time of `Series.isin`."""
    there = pc.is_in(pa.array(column, type=pa.large_string()), pa.array(list(values), type=pa.large_string()))
    return there.to_numpy(zero_copy_only=False)


def _numbered(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The batches, their index the number of the row in all of them."""
    first = 0
    for batch in batches:
        yield batch.set_axis(pd.RangeIndex(first, first + len(batch)))
        first += len(batch)


def _joined(batches: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The batches as one frame; one without rows stays out beside others, but for its columns."""
    found = list(batches)
    return pd.concat([batch for batch in found if len(batch)] or found[:1])
