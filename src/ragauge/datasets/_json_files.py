"""Rows of whichever of JSON, JSON Lines and Parquet a file is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragauge.datasets._lines import begins_list, json_list, json_rows
from ragauge.datasets._tables import parquet_rows


def kind(file: Path) -> str:
    """The suffix that says what a file holds, without that of its packing: `.json` of `dev.json.gz`."""
    return Path(file.stem).suffix if file.suffix in (".gz", ".bz2") else file.suffix


def rows(file: Path) -> Iterator[tuple[str, Any]]:
    """Where each row stands, and the row: a JSON value, or a line of JSON as bytes.

    The file is Parquet by its name (rows from 1), else a JSON list where it begins with `[` (rows from 0),
    else JSON Lines (lines from 1). DataError where it cannot be read as what it is.
    """
    if file.suffix == ".parquet":
        yield from parquet_rows(file)
    elif begins_list(file):
        for number, row in enumerate(json_list(file)):
            yield f"{file}, row {number}", row
    else:
        yield from json_rows(file)
