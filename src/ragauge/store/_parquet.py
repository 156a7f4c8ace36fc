"""Frames as Parquet files, written and hashed some rows at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ragauge.contract import frames
from ragauge.contract.errors import DataError
from ragauge.contract.frames import BATCH_ROWS, Batches


def write_frame(folder: Path, name: str, rows: pd.DataFrame | Batches, source: str) -> None:
    """Writes `<name>.parquet`, checked where the name has a schema; batches become row groups.

    `source` (a stage) is named in the DataError of a frame that does not fit its schema.
    """
    file = folder / f"{name}.parquet"
    if isinstance(rows, Batches):
        _write_batches(file, name, rows, source)
        return
    if name in frames.SCHEMAS:
        frames.check(name, rows, source)
    rows.to_parquet(file, index=False, row_group_size=BATCH_ROWS)


def _write_batches(file: Path, name: str, rows: Batches, source: str) -> None:
    writer: pq.ParquetWriter | None = None
    try:
        for frame in rows:
            if name in frames.SCHEMAS:
                frames.check(name, frame, source)
            schema = None if writer is None else writer.schema
            table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise DataError(f"{name} frame from {source}: it has no rows")
    if name in frames.SCHEMAS:
        _check_keys(file, name, source)


def _check_keys(file: Path, name: str, source: str) -> None:
    """DataError for a key in two batches; each batch is checked by itself before."""
    key = list(frames.SCHEMAS[name].key)
    keys = pq.read_table(file, columns=key)
    if len(key) == 1 and pc.count_distinct(keys[key[0]]).as_py() == len(keys):
        return
    frame = keys.to_pandas()
    twice = frame.duplicated(key)
    if twice.any():
        row = frame[twice].iloc[0].to_dict()
        raise DataError(f"{name} frame from {source}: {row} stands in more than one row")


def frame_digest(file: Path) -> str:
    """`frames.content_digest` of the frame in a file, by row group where the digest is the same."""
    with pq.ParquetFile(file) as parquet:
        if parquet.num_row_groups < 2 or not _same_dtypes(parquet):
            return frames.content_digest(pd.read_parquet(file))

        def pieces(column: str) -> Iterator[pd.Series]:
            for group in range(parquet.num_row_groups):
                yield parquet.read_row_group(group, columns=[column]).to_pandas()[column]

        n = parquet.metadata.num_rows
        return frames.digest_of((column, n, pieces(column)) for column in parquet.schema_arrow.names)


def _same_dtypes(parquet: pq.ParquetFile) -> bool:
    """Whether every row group has the whole frame's dtypes: missing values change integer and boolean columns."""
    if any(pa.types.is_nested(column) for column in parquet.schema_arrow.types):
        return False
    for number, column in enumerate(parquet.schema_arrow.types):
        if pa.types.is_string(column) or pa.types.is_large_string(column) or pa.types.is_floating(column):
            continue
        if not (pa.types.is_integer(column) or pa.types.is_boolean(column)):
            return False
        for group in range(parquet.num_row_groups):
            statistics = parquet.metadata.row_group(group).column(number).statistics
            if statistics is None or statistics.null_count != 0:
                return False
    return True


def read_rows(file: Path) -> StoredRows | None:
    """The frame in a file as one batch per row group; None for a single row group."""
    with pq.ParquetFile(file) as parquet:
        sizes = [parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups)]
    return StoredRows(lambda: _row_groups(file), file, tuple(sizes)) if len(sizes) > 1 else None


def _row_groups(file: Path) -> Iterator[pd.DataFrame]:
    with pq.ParquetFile(file) as parquet:
        for group in range(parquet.num_row_groups):
            yield parquet.read_row_group(group).to_pandas()


@dataclass(frozen=True)
class StoredRows(Batches):
    """The rows of a Parquet file; a search reads only the row groups that hold them.

    sizes: the rows of every row group.
    """

    file: Path = field(default=Path())
    sizes: tuple[int, ...] = ()

    @property
    def n_rows(self) -> int:
        return sum(self.sizes)

    def columns(self, names: Sequence[str]) -> pd.DataFrame:
        return pq.read_table(self.file, columns=list(names)).to_pandas()

    def where(self, column: str, values: Collection[str]) -> pd.DataFrame:
        with pq.ParquetFile(self.file) as parquet:
            wanted = pa.array(list(values), type=parquet.schema_arrow.field(column).type)
            return self._taken(
                parquet,
                (
                    pc.is_in(parquet.read_row_group(group, columns=[column])[column], value_set=wanted)
                    for group in range(len(self.sizes))
                ),
            )

    def at(self, rows: np.ndarray) -> pd.DataFrame:
        ends = np.cumsum(self.sizes)

        def chosen() -> Iterator[pa.Array]:
            for end, size in zip(ends, self.sizes, strict=True):
                mask = np.zeros(size, dtype=bool)
                mask[rows[(rows >= end - size) & (rows < end)] - (end - size)] = True
                yield pa.array(mask)

        with pq.ParquetFile(self.file) as parquet:
            return self._taken(parquet, chosen()).loc[rows]

    def _taken(self, parquet: pq.ParquetFile, masks: Iterator[pa.Array]) -> pd.DataFrame:
        """The rows chosen by one mask per row group; the index is the row number."""
        tables = [parquet.schema_arrow.empty_table()]
        numbers: list[np.ndarray] = []
        first = 0
        for group, (mask, size) in enumerate(zip(masks, self.sizes, strict=True)):
            chosen = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
            if len(chosen):
                tables.append(parquet.read_row_group(group).take(chosen))
                numbers.append(first + chosen)
            first += size
        index = np.concatenate([np.empty(0, dtype=np.int64), *numbers])
        return pa.concat_tables(tables).to_pandas().set_axis(index)
