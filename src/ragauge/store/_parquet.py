"""Frames as Parquet files, of which neither writing nor the digest needs more than some rows in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ragauge.contract import frames
from ragauge.contract.batches import Batches
from ragauge.contract.errors import DataError


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
    rows.to_parquet(file, index=False)


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
    """DataError where a key stands in two batches: each batch was checked by itself."""
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
    """`frames.content_digest` of the frame in a file; where all columns are texts, a row group at a time."""
    with pq.ParquetFile(file) as parquet:
        columns = parquet.schema_arrow
        texts = all(pa.types.is_string(t) or pa.types.is_large_string(t) for t in columns.types)
        if not texts or parquet.num_row_groups < 2:
            return frames.content_digest(pd.read_parquet(file))

        def pieces(column: str) -> Iterator[pd.Series]:
            for group in range(parquet.num_row_groups):
                yield parquet.read_row_group(group, columns=[column]).to_pandas()[column]

        n = parquet.metadata.num_rows
        return frames.digest_of((column, n, pieces(column)) for column in columns.names)
