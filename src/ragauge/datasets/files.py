"""Files of rows: lines, JSON, CSV and Parquet, packed or not."""

from __future__ import annotations

import codecs
import csv
import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ragauge.contract.errors import ConfigError, DataError
from ragauge.datasets.fields import BadRow, not_utf8, short, valid_string
from ragauge.datasets.packing import every_line, kind, longest, opened_text, require_short
from ragauge.texts.surrogates import without_surrogates

log = logging.getLogger(__name__)

PARQUET = (".parquet", ".pq")
DIVIDED = {".csv": ",", ".tsv": "\t"}  # what stands between two cells
SUFFIXES = (*PARQUET, ".jsonl", ".ndjson", ".json", *DIVIDED)  # of tables; a suffix of packing may follow
_FIELD_LIMIT = 2**31 - 1  # characters of a CSV cell; csv stops at 131,072 of its own accord
_WHOLE_BYTES = 64_000_000
_TOO_DEEP = "its values are nested too deep"
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"\s*")
_ESCAPED_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # may be a lone surrogate


def lines(file: Path) -> Iterator[tuple[str, bytes]]:
    """Place and bytes of each line, so that invalid UTF-8 makes one bad row, not a bad file.

    Skips empty lines; unpacks a packed file.
    """
    for number, line in enumerate(every_line(file), start=1):
        if line.removeprefix(codecs.BOM_UTF8).strip():
            yield f"{file}, line {number}", line


def json_rows(file: Path) -> Iterator[tuple[str, Any]]:
    """Place of each row of a JSON Lines file, and the input of `parse_json`.

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
    """The JSON value of a line's bytes, or the row itself if it is a value; BadRow for invalid JSON.

    Lone surrogates become U+FFFD. BadRow for a number that is infinite; NaN stays, as a value that is not known.
    """
    try:
        return _sound(_decoded(row) if isinstance(row, bytes) else row)
    except RecursionError:
        raise BadRow(_TOO_DEEP) from None


def _decoded(line: bytes) -> Any:
    text = text_of(line)
    try:
        return json.loads(text)
    except RecursionError:
        raise BadRow(_TOO_DEEP) from None
    except ValueError as error:
        goes_on = "the object goes on in the next line; write each on one (jq -c . FILE)"
        raise BadRow(f"not a line of JSON: {goes_on if text.strip() == '{' else error}") from None


def _sound(value: Any, key: str = "") -> Any:
    """The value without lone surrogates at any depth; BadRow for an infinite number."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, dict):
        return {without_surrogates(str(name)): _sound(one, key or repr(name)) for name, one in value.items()}
    if isinstance(value, list):
        return [_sound(one, key) for one in value]
    if isinstance(value, float) and math.isinf(value):
        raise BadRow(f"{key or 'the row'} holds an infinite number; leave out what is not known")
    return value


def _is_json(line: bytes) -> bool:
    try:
        _decoded(line)
    except BadRow:
        return False
    return True


def _printed_objects(file: Path) -> list[Any] | None:
    """The values of a file of consecutive JSON values; None for a large file and any other."""
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
    """The decoded line without line end and byte order mark; BadRow if it is not in the encoding."""
    try:
        # A mark in front of the line, whatever the encoding that was named for the file.
        return line.removeprefix(codecs.BOM_UTF8).decode(encoding).removeprefix("\ufeff").rstrip("\r\n")
    except UnicodeDecodeError as error:
        if codecs.lookup(encoding).name == "utf-8":
            raise BadRow(not_utf8(line[error.start])) from None
        raise BadRow(f"not {encoding}: {error}") from None


def first_character(file: Path) -> str:
    """The first byte of a file as a character, after white space and a byte order mark; "" for an empty file."""
    for line in every_line(file):
        if found := line.removeprefix(codecs.BOM_UTF8).lstrip():
            return chr(found[0])
    return ""


def begins_list(file: Path) -> bool:
    """Whether a file begins with `[`, after white space and a byte order mark."""
    return first_character(file) == "["


def json_value(file: Path) -> Any:
    """The content of a JSON file; DataError where it is none."""
    data, most = bytearray(), longest(file)
    for line in every_line(file):
        data += line
        require_short(file, len(data), most, "it")
    text = ""
    try:
        text = text_of(bytes(data))
        found = json.loads(text)
        return _sound(found) if _ESCAPED_HALF.search(data) else found
    except BadRow as bad:
        raise DataError(f"{file}: {bad}") from None
    except RecursionError:
        raise DataError(f"{file}{_deep_row(text)}: {_TOO_DEEP}") from None
    except ValueError as error:
        raise DataError(f"{file}: not a JSON file: {error}") from None


def _deep_row(text: str) -> str:
    """Which entry of a JSON list cannot be read, as it is nested too deep: ", row 2"; "" of another file."""
    at, number = _SPACE.match(text).end(), 0  # type: ignore[union-attr]
    while text[at : at + 1] in ("[", ","):
        number += 1
        try:
            _, at = _DECODER.raw_decode(text, _SPACE.match(text, at + 1).end())  # type: ignore[union-attr]
        except RecursionError:
            return f", row {number}"
        except ValueError:
            break
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
    return ""


def json_list(file: Path) -> list[Any]:
    """The list that a JSON file holds; DataError where it holds none."""
    found = json_value(file)
    if not isinstance(found, list):
        raise DataError(f"{file}: expected a JSON list of objects, found {type(found).__name__}")
    return found


def rows(file: Path) -> Iterator[tuple[str, Any]]:
    """Place of each row, and the row: a JSON value, or a line of JSON as bytes.

    The file is Parquet by its name (rows from 1), else a JSON list where it begins with `[` (rows from 0),
    else JSON Lines (lines from 1). DataError where it cannot be read as that format.
    """
    if kind(file) in PARQUET:
        yield from parquet_rows(file)
    elif begins_list(file):
        for number, row in enumerate(json_list(file)):
            yield f"{file}, row {number}", row
    else:
        yield from json_rows(file)


def parsed(row: Any) -> dict[str, Any]:
    """The columns of a row of `table_rows` or `json_rows`; BadRow where it is no mapping."""
    row = row.by_column() if isinstance(row, Cells) else parse_json(row)
    if not isinstance(row, dict):
        raise BadRow(f"expected a JSON object, found {short(row)}")
    return row


def is_table(file: Path) -> bool:
    """Whether a file's suffix is one of a table that `table_rows` reads."""
    return kind(file) in SUFFIXES


def table_rows(file: Path) -> Iterator[tuple[str, Any]]:
    """Place of each row of a file, and the row: a mapping, a line of JSON as bytes, or, for CSV, `Cells`.

    The file is Parquet, CSV or TSV by its name, else JSON. `parsed` reads each of these rows.
    """
    if kind(file) in PARQUET:
        yield from parquet_rows(file)
    elif kind(file) in DIVIDED:
        for number, header, cells in csv_rows(file, partial(require_distinct, file), DIVIDED[kind(file)]):
            yield f"{file}, row {number}", Cells(header, cells)
    else:
        yield from json_rows(file)


@dataclass(frozen=True)
class Cells:
    """An unparsed row of CSV."""

    header: Sequence[str]
    cells: Sequence[str]

    def by_column(self) -> dict[str, Any]:
        """The cells by column, a blank one as None; BadRow as `named_cells`, and for one that is not UTF-8."""
        cells = named_cells(self.header, self.cells)
        return {name: valid_string(cell, repr(name)) if cell.strip() else None for name, cell in cells.items()}


def parquet_rows(file: Path) -> Iterator[tuple[str, Any]]:
    """Place (from 1) and content of each row of a Parquet file; DataError for any other file."""
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
    csv.field_size_limit(int(min(_FIELD_LIMIT, longest(file))))
    utf8 = codecs.lookup(encoding).name == "utf-8"
    number = 0
    # Bytes that cannot be decoded become lone surrogates, which the check of their own cell refuses.
    with opened_text(file, "utf-8-sig" if utf8 else encoding, "surrogateescape") as stream:
        reader = csv.reader(stream, strict=True, delimiter=separator)
        try:
            header = [name.strip() for name in next(reader, [])]
            _check_text(file, "".join(header))
            check_separator(file, header, separator, advice)
            check(header)
            if not all(header):
                log.info("%s: columns without a name in the header are not read", file)
            for cells in reader:
                if cells:
                    number += 1
                    yield number, header, cells
        except csv.Error as error:
            raise DataError(f"{file}, after row {number}: not a CSV file: {error}") from None
        except UnicodeError as error:
            raise DataError(f"{file}, after row {number}: not {encoding}: {error}") from None


def _check_text(file: Path, header: str) -> None:
    """DataError for the header of a file in another encoding."""
    if "\0" in header:
        raise DataError(f"{file}: its header holds NUL bytes, as UTF-16 does; save the file as UTF-8")
    try:
        valid_string(header, "its header")
    except BadRow as bad:
        raise DataError(f"{file}: {bad}") from None


def require_distinct(file: Path, header: Sequence[str]) -> None:
    """DataError where two columns of a table have one name."""
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise DataError(f"{file}: column {twice[0]!r} stands twice")


def named_cells(header: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """The cells by column, without columns that have no name.

    BadRow where there are more or fewer of them, or one holds a NUL byte.
    """
    if len(cells) != len(header):
        raise BadRow(f"{len(cells)} cells where the header names {len(header)} columns")
    found = {name: cell for name, cell in zip(header, cells, strict=True) if name}
    if (bad := next((name for name, cell in found.items() if "\0" in cell), None)) is not None:
        raise BadRow(f"column {bad!r} holds a NUL byte, which no text has")
    return found


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
