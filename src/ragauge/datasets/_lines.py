"""Files read line by line, packed by gzip or bzip2 or not, and what is JSON in them."""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from ragauge.contract.errors import ConfigError, DataError
from ragauge.datasets._gather import BadRow, not_utf8

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
        return line.decode(encoding).removeprefix("\ufeff").rstrip("\r\n")
    except UnicodeDecodeError as error:
        if codecs.lookup(encoding).name == "utf-8":
            raise BadRow(not_utf8(line[error.start])) from None
        raise BadRow(f"not {encoding}: {error}") from None


def begins_list(file: Path) -> bool:
    """Whether the first character of a file, white space and a byte order mark apart, is `[`."""
    for line in every_line(file):
        if found := line.removeprefix(codecs.BOM_UTF8).lstrip():
            return found.startswith(b"[")
    return False


def json_value(file: Path) -> Any:
    """What a JSON file holds; DataError where it is none."""
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


def existing_folder(key: str, value: str | Path | None) -> Path:
    """The path of a folder that is there; ConfigError names the config key otherwise."""
    if value is None or not str(value).strip():
        raise ConfigError(f"dataset.{key} is not set: give the path of a folder")
    path = Path(value).expanduser()
    if not path.is_dir():
        raise ConfigError(f"dataset.{key}={value}: there is no such folder")
    return path


def is_encoding(name: object) -> bool:
    """Whether Python knows an encoding of the name."""
    try:
        return isinstance(name, str) and bool(codecs.lookup(name))
    except LookupError:
        return False
