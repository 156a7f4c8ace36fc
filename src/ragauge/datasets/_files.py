"""Files of rows: lines, JSON, CSV and Parquet, packed by gzip or bzip2 or not."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ragauge.contract.errors import ConfigError, DataError
from ragauge.datasets._fields import BadRow, not_utf8

SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".json", ".csv", ".tsv")
_FIELD_LIMIT = 2**31 - 1  # characters of a CSV cell; csv stops at 131,072 of its own accord
_WHOLE_BYTES = 64_000_000
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"\s*")
LONGEST = 100_000_000  # bytes of one thing in a packed file, unpacked: a line, a JSON value, an element
# Times packed: a thing above LONGEST may be this much larger than its file; texts are at 3 to 8.
_TIGHTEST = 20
WHOLE = 1_000_000_000  # bytes of a whole packed file, unpacked, or _BOMB times packed where that is more
_BOMB = 100
_UNPACKED: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}


def lines(file: Path) -> Iterator[tuple[str, bytes]]:
    """Where each line stands, and its bytes: a line that is no UTF-8 is one bad row, not the file's end.

    Empty lines are passed over; a file that ends in .gz or .bz2 is unpacked.
    """
    for number, line in enumerate(every_line(file), start=1):
        if line.removeprefix(codecs.BOM_UTF8).strip():
            yield f"{file}, line {number}", line


def every_line(file: Path) -> Iterator[bytes]:
    """All lines with their ends, of .gz and .bz2 unpacked.

    DataError where that fails, where a line is too long, or all of them together are.
    """
    size, most = 0, longest(file)
    whole = most if most == float("inf") else max(WHOLE, _BOMB * file.stat().st_size)
    try:
        with _UNPACKED.get(file.suffix, open)(file, "rb") as stream:
            while line := stream.readline(-1 if most == float("inf") else int(most) + 1):
                size += len(line)
                require_short(file, len(line), most, "a line of it")
                require_short(file, size, whole, "it")
                yield line
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file}: cannot be unpacked: {error}") from None


def longest(file: Path) -> float:
    """Bytes that one thing in a packed file may have, unpacked; inf of a file that is not packed."""
    return max(LONGEST, _TIGHTEST * file.stat().st_size) if file.suffix in _UNPACKED else float("inf")


def require_short(file: Path, size: int, most: float, what: str) -> None:
    """DataError where a thing that is being unpacked is longer than `most` bytes."""
    if size > most:
        raise DataError(f"{file}: {what} unpacks to more than {most / 1e6:,.0f} MB; unpack it first if that is right")


def json_rows(file: Path) -> Iterator[tuple[str, Any]]:
    """Where each row of a JSON Lines file stands, and what `parse_json` reads it from.

    A file that is a JSON list, and one whose first object is printed over several lines, is read whole: its
    rows are values, counted from 1. Objects of more than 64 MB are not, and their lines are bad rows.
    """
    first = [line.removeprefix(codecs.BOM_UTF8).lstrip() for _, line in islice(lines(file), 2)]
    values: list[Any] | None = None
    if first and first[0].startswith(b"{") and not _is_json(first[0]):
        values = _printed_objects(file)
    elif first and first[0].startswith(b"[") and not (_is_json(first[0]) and len(first) > 1):
        values = json_list(file)
    if values is None:
        yield from lines(file)
    else:
        yield from ((f"{file}, row {number}", value) for number, value in enumerate(values, start=1))


def parse_json(row: Any) -> Any:
    """The JSON value of a line's bytes, or the value that the row is already; BadRow where it is none."""
    if not isinstance(row, bytes):
        return row
    text = text_of(row)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        goes_on = "the object goes on in the next line; write each on one (jq -c . FILE)"
        raise BadRow(f"not a line of JSON: {goes_on if text.strip() == '{' else error}") from None


def _is_json(line: bytes) -> bool:
    try:
        parse_json(line)
    except BadRow:
        return False
    return True


def _printed_objects(file: Path) -> list[Any] | None:
    """The values of a file of JSON values one after the other; None of a large one, and of anything else."""
    held: list[bytes] = []
    size = 0
    for line in every_line(file):
        held.append(line)
        size += len(line)
        if size > _WHOLE_BYTES:
            return None
    found: list[Any] = []
    try:
        text = text_of(b"".join(held)).strip()
        at = 0
        while at < len(text):
            value, end = _DECODER.raw_decode(text, at)
            found.append(value)
            at = _SPACE.match(text, end).end()  # type: ignore[union-attr]
    except (BadRow, ValueError, RecursionError):
        return None
    return found


def text_of(line: bytes, encoding: str = "utf-8") -> str:
    """The text without the last line's end and a byte order mark; BadRow where it is not of the encoding."""
    try:
        # A mark in front of the line, whatever the encoding that was named for the file.
        return line.removeprefix(codecs.BOM_UTF8).decode(encoding).removeprefix("\ufeff").rstrip("\r\n")
    except UnicodeDecodeError as error:
        if codecs.lookup(encoding).name == "utf-8":
            raise BadRow(not_utf8(line[error.start])) from None
        raise BadRow(f"not {encoding}: {error}") from None


def first_character(file: Path) -> str:
    """The first byte of a file as a character, white space and a byte order mark apart; "" of an empty file."""
    for line in every_line(file):
        if found := line.removeprefix(codecs.BOM_UTF8).lstrip():
            return chr(found[0])
    return ""


def begins_list(file: Path) -> bool:
    """Whether the first character of a file, white space and a byte order mark apart, is `[`."""
    return first_character(file) == "["


def json_value(file: Path) -> Any:
    """The content of a JSON file; DataError where it is none."""
    data, most = bytearray(), longest(file)
    for line in every_line(file):
        data += line
        require_short(file, len(data), most, "it")
    try:
        return json.loads(text_of(bytes(data)))
    except BadRow as bad:
        raise DataError(f"{file}: {bad}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: not a JSON file: {error}") from None


def json_list(file: Path) -> list[Any]:
    """The list that a JSON file holds; DataError where it holds none."""
    found = json_value(file)
    if not isinstance(found, list):
        raise DataError(f"{file}: expected a JSON list of objects, found {type(found).__name__}")
    return found


def kind(file: Path) -> str:
    """The suffix that says what a file holds, without that of its packing: `.json` of `dev.json.gz`."""
    return Path(file.stem).suffix if file.suffix in (".gz", ".bz2") else file.suffix


def rows(file: Path) -> Iterator[tuple[str, Any]]:
    """Where each row stands, and the row: a JSON value, or a line of JSON as bytes.

    The file is Parquet by its name (rows from 1), else a JSON list where it begins with `[` (rows from 0),
    else JSON Lines (lines from 1). DataError where it cannot be read as that format.
    """
    if file.suffix == ".parquet":
        yield from parquet_rows(file)
    elif begins_list(file):
        for number, row in enumerate(json_list(file)):
            yield f"{file}, row {number}", row
    else:
        yield from json_rows(file)


def parsed(row: Any) -> dict[str, Any]:
    """The columns of a row; BadRow where it is no mapping."""
    row = parse_json(row) if isinstance(row, bytes) else row
    if not isinstance(row, dict):
        raise BadRow(f"expected an object with named columns, found {type(row).__name__}")
    return row


def table_rows(file: Path) -> Iterator[tuple[str, Any]]:
    """Where each row of a file of one of SUFFIXES stands, and the row: a mapping, or a line of JSON as bytes.

    An empty cell of CSV is missing; a row of another length than the header is a list, which `parsed` refuses.
    """
    if file.suffix == ".parquet":
        yield from parquet_rows(file)
    elif file.suffix in (".csv", ".tsv"):
        for number, header, cells in csv_rows(file, separator="\t" if file.suffix == ".tsv" else ","):
            pairs = zip(header, cells, strict=False)
            row = {key: cell or None for key, cell in pairs} if len(cells) == len(header) else cells
            yield f"{file}, row {number}", row
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
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{file}, after row {number}: not a Parquet file: {error}") from None


def csv_rows(
    file: Path,
    check: Callable[[list[str]], None] = lambda header: None,
    separator: str = ",",
    encoding: str = "utf-8",
    advice: str = "save it with commas",
) -> Iterator[tuple[int, list[str], list[str]]]:
    """Number (from 1, without header and empty lines), header and cells of each row of a CSV file.

    check: raises DataError for a bad header. DataError for a file that is no CSV, and, with the advice, where the
    header is one cell that another separator would divide.
    """
    csv.field_size_limit(_FIELD_LIMIT)
    encoding = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    # Bytes that cannot be decoded become lone surrogates, which the check of their own cell refuses.
    with file.open(encoding=encoding, errors="surrogateescape", newline="") as stream:
        reader = csv.reader(stream, strict=True, delimiter=separator)
        number = 0
        try:
            header = next(reader, [])
            check_separator(file, header, separator, advice)
            check(header)
            for cells in reader:
                if cells:
                    number += 1
                    yield number, header, cells
        except csv.Error as error:
            raise DataError(f"{file}, after row {number}: not a CSV file: {error}") from None


def named_cells(header: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """The cells by column; BadRow where there are more or fewer of them."""
    if len(cells) != len(header):
        raise BadRow(f"{len(cells)} cells where the header names {len(header)} columns")
    return dict(zip(header, cells, strict=True))


def check_separator(
    file: Path, header: Sequence[str], separator: str = ",", advice: str = "save it with commas"
) -> None:
    """DataError where a table's header is one cell that another separator would divide; `advice` ends it."""
    others = [other for other in ",;\t|" if other != separator and len(header) == 1 and other in header[0]]
    if others:
        raise DataError(f"{file}: its columns are separated by {others[0]!r}, and {separator!r} is expected; {advice}")


def existing_file(key: str, value: str | Path | None) -> Path:
    """The path of a file that is there; ConfigError names the config key otherwise."""
    return _existing(key, value, "file", Path.is_file)


def existing_folder(key: str, value: str | Path | None) -> Path:
    """The path of a folder that is there; ConfigError names the config key otherwise."""
    return _existing(key, value, "folder", Path.is_dir)


def _existing(key: str, value: str | Path | None, kind: str, is_there: Callable[[Path], bool]) -> Path:
    if value is None or not str(value).strip():
        raise ConfigError(f"dataset.{key} is not set: give the path of a {kind}")
    path = Path(value).expanduser()
    if not is_there(path):
        raise ConfigError(f"dataset.{key}={value}: there is no such {kind}")
    return path


def is_encoding(name: object) -> bool:
    """Whether Python knows an encoding of the name."""
    try:
        return isinstance(name, str) and bool(codecs.lookup(name))
    except (LookupError, ValueError):
        return False
