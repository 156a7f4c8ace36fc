"""Files read line by line, packed by gzip or bzip2 or not, and what is JSON in them."""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ragauge.contract.errors import ConfigError, DataError
from ragauge.datasets._gather import BadRow, not_utf8

_UNPACKED: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}


def lines(file: Path) -> Iterator[tuple[str, bytes]]:
    """Where each line stands, and its bytes: a line that is no UTF-8 is one bad row, not the file's end.

    Empty lines are passed over; a file that ends in .gz or .bz2 is unpacked.
    """
    for number, line in enumerate(every_line(file), start=1):
        if line.strip():
            yield f"{file}, line {number}", line


def every_line(file: Path) -> Iterator[bytes]:
    """All lines with their ends, of .gz and .bz2 unpacked; DataError where that fails."""
    try:
        with _UNPACKED.get(file.suffix, open)(file, "rb") as stream:
            yield from stream
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file}: cannot be unpacked: {error}") from None


def parse_json(line: bytes) -> Any:
    """The JSON value of a line; BadRow where it is none."""
    try:
        return json.loads(text_of(line))
    except (ValueError, RecursionError) as error:
        raise BadRow(f"not a line of JSON: {error}") from None


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
    try:
        return json.loads(text_of(b"".join(every_line(file))))
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
