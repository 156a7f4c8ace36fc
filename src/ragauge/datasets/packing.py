"""Opens users' files, and unpacks .gz, .bz2, .xz and .zst up to a bound while reading."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ragauge.contract.errors import DataError

LONGEST = 100_000_000  # bytes of one thing in a packed file, unpacked: a line, a JSON value, an element
# Times packed: a thing above LONGEST may be this much larger than its file; texts are at 3 to 8.
_TIGHTEST = 20
WHOLE = 1_000_000_000  # bytes of a whole packed file, unpacked, or _BOMB times packed where that is more
_BOMB = 100


def _zstandard(file: Path, mode: str) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.OSFile(str(file), mode), "zstd")


_UNPACKED: Mapping[str, Callable[[Path, str], Any]] = {
    ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": _zstandard,
}  # fmt: skip
PACKED = tuple(_UNPACKED)
# How files begin that are no text, whatever their name says; the remedy.
_BEGINS: Mapping[bytes, str] = {
    b"\x1f\x8b\x08": "is packed by gzip: name it {name}.gz",
    b"BZh91AY&SY": "is packed by bzip2: name it {name}.bz2",
    b"\xfd7zXZ\x00": "is packed by xz: name it {name}.xz",
    b"\x28\xb5\x2f\xfd": "is packed by Zstandard: name it {name}.zst",
    b"PK\x03\x04": "is a zip archive or an Excel sheet: unpack it, or save the sheet as CSV",
    b"PAR1": "is a Parquet file: name it {stem}.parquet",
}


def is_packed(file: Path) -> bool:
    """Whether the name ends in .gz, .bz2, .xz or .zst, in any case."""
    return file.suffix.lower() in _UNPACKED


def kind(file: Path) -> str:
    """The lower-case suffix of a file's format without its packing: `.json` of `dev.json.gz`."""
    return Path(file.stem if is_packed(file) else file.name).suffix.lower()


@contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked.

    DataError where it cannot be read or unpacked, or unpacks to more than a file may hold. DataError, too, where the
    first bytes are those of a packed file or a spreadsheet, and the name is another.
    """
    if not is_packed(file):
        with _raw(file) as plain:
            begin = plain.peek(16)[:16]  # type: ignore[attr-defined]
            said = next((text for mark, text in _BEGINS.items() if begin.startswith(mark)), None)
            if said is not None:
                raise DataError(f"{file}: {said.format(name=file.name, stem=file.stem)}")
            yield plain
        return
    with _raw(file) as packed, io.BufferedReader(_Unpacking(file, packed)) as stream:
        yield stream


def _raw(file: Path) -> Any:
    try:
        return _UNPACKED.get(file.suffix.lower(), open)(file, "rb")
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from None


class _Unpacking(io.RawIOBase):
    """The unpacked bytes of a stream; DataError if it is damaged or too long."""

    def __init__(self, file: Path, packed: Any) -> None:
        self._file, self._packed, self._size = file, packed, 0
        self._most = max(WHOLE, _BOMB * file.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            size = int(self._packed.readinto(buffer))
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise DataError(f"{self._file}: cannot be unpacked: {error}") from None
        self._size += size
        require_short(self._file, self._size, self._most, "it")
        return size


def longest(file: Path) -> float:
    """Largest unpacked size in bytes of one item in a packed file; inf for an unpacked file."""
    return max(LONGEST, _TIGHTEST * file.stat().st_size) if is_packed(file) else float("inf")


def require_short(file: Path, size: int, most: float, what: str) -> None:
    """DataError if an unpacked item is longer than `most` bytes."""
    if size > most:
        raise DataError(f"{file}: {what} unpacks to more than {most / 1e6:,.0f} MB; unpack it first if that is right")


def every_line(file: Path) -> Iterator[bytes]:
    """All unpacked lines with their ends; DataError as in `opened`, and for a line that is too long."""
    most = longest(file)
    with opened(file) as stream:
        while line := stream.readline(-1 if most == float("inf") else int(most) + 1):
            require_short(file, len(line), most, "a line of it")
            yield line


@contextmanager
def opened_text(file: Path, encoding: str, errors: str = "strict") -> Iterator[Iterator[str]]:
    """The decoded lines of a file with their ends (\\n, \\r\\n or \\r); DataError as `every_line`."""
    most = longest(file)
    with opened(file) as stream, io.TextIOWrapper(stream, encoding, errors, newline="") as text:

        def lines() -> Iterator[str]:
            while line := text.readline(-1 if most == float("inf") else int(most) + 1):
                require_short(file, len(line), most, "a line of it")
                yield line

        yield lines()
