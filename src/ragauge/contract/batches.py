"""A frame that need not fit into memory: its rows come in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pandas as pd


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


def as_frame(rows: pd.DataFrame | Batches) -> pd.DataFrame:
    """The rows as one frame, whichever way they come."""
    return rows.frame() if isinstance(rows, Batches) else rows
