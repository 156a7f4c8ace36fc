"""Rows that are read as often as needed, so that a corpus need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.frames import Batches
from ragauge.datasets._gather import BadRow, Gatherer, document_frame

T = TypeVar("T")
Document = tuple[str, str, str]  # docno, title, text
_BATCH_CHARACTERS = 8_000_000
_BATCH_ROWS = 50_000


@dataclass(frozen=True)
class Rows(Generic[T]):
    """The rows of one source, such as a file.

    source: what errors about all of them name. read: where each row stands and the row as it is, from the
        first at every call. parse: what the row says, or BadRow. columns: as in `Gatherer.row`.
    """

    source: str
    read: Callable[[], Iterator[tuple[str, Any]]]
    parse: Callable[[Any], T]
    columns: Mapping[str, str | None] = field(default_factory=dict)


def stream_documents(gather: Gatherer, rows: Rows[Document], texts_of: Collection[str] = ()) -> Batches:
    """Adds all documents to the gatherer, which keeps the texts of some alone; and all of them in batches.

    The rows are read once here, where bad ones are raised or dropped, and again for each reading of the
    batches. DataError where they are others by then.
    """
    dropped: set[int] = set()
    n_good = 0
    for number, (where, row) in enumerate(rows.read()):
        dropped.add(number)
        with gather.row(where, rows.columns):
            docno, title, text = rows.parse(row)
            gather.add_document(docno, title, text, keep=docno in texts_of)
            dropped.discard(number)
            n_good += 1

    def batches() -> Iterator[pd.DataFrame]:
        batch: list[Document] = []
        n_read = characters = 0
        changed = DataError(f"{rows.source}: it changed while it was read; run it again")
        for number, (_, row) in enumerate(rows.read()):
            if number in dropped:
                continue
            try:
                batch.append(rows.parse(row))
            except BadRow:
                raise changed from None
            n_read += 1
            characters += len(batch[-1][2])
            if characters >= _BATCH_CHARACTERS or len(batch) >= _BATCH_ROWS:
                yield document_frame(batch)
                batch, characters = [], 0
        if n_read != n_good:
            raise changed
        if batch:
            yield document_frame(batch)

    return Batches(batches)
