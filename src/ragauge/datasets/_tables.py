"""Files of rows with named columns: Parquet, JSON and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragauge.contract.errors import DataError
from ragauge.datasets._gather import BadRow, check_separator
from ragauge.datasets._lines import json_rows, parse_json

SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".json", ".csv", ".tsv")
_FIELD_LIMIT = 2**31 - 1  # characters; csv stops at 131,072 of its own accord


def parsed(row: Any) -> dict[str, Any]:
    """The columns of a row; BadRow where it is no mapping."""
    row = parse_json(row) if isinstance(row, bytes) else row
    if not isinstance(row, dict):
        raise BadRow(f"expected an object with named columns, found {type(row).__name__}")
    return row


def table_rows(file: Path) -> Iterator[tuple[str, Any]]:
    """Where each row of a file of one of SUFFIXES stands, and the row: a mapping, or a line of JSON as bytes."""
    if file.suffix == ".parquet":
        yield from parquet_rows(file)
    elif file.suffix in (".csv", ".tsv"):
        yield from _csv_rows(file)
    else:
        yield from json_rows(file)


def parquet_rows(file: Path) -> Iterator[tuple[str, Any]]:
    """Where each row of a Parquet file stands, from 1, and the row; DataError where it is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(batch_size=1_000):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{file}, row {number}", row
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{file}, after row {number}: not a Parquet file: {error}") from None


def _csv_rows(file: Path) -> Iterator[tuple[str, Any]]:
    """The cells by column, from row 1 without the header; an empty cell is missing."""
    csv.field_size_limit(_FIELD_LIMIT)
    with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        reader = csv.reader(stream, strict=True, delimiter="\t" if file.suffix == ".tsv" else ",")
        number = 0
        try:
            header = next(reader, [])
            check_separator(file, header, "\t" if file.suffix == ".tsv" else ",")
            for cells in reader:
                if cells:
                    number += 1
                    pairs = zip(header, cells, strict=False)
                    whole = len(cells) == len(header)
                    # A row of another length becomes one that `parsed` refuses.
                    yield f"{file}, row {number}", {k: v or None for k, v in pairs} if whole else cells
        except csv.Error as error:
            raise DataError(f"{file}, after row {number}: not a CSV file: {error}") from None
