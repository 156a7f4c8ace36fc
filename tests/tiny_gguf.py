"""A GGUF file that has a header and no weights."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

HEADER = {
    "general.architecture": "tiny", "tiny.block_count": 30, "tiny.embedding_length": 576, "tiny.context_length": 8192,
    "tiny.attention.head_count": 9, "tiny.attention.head_count_kv": 3, "tokenizer.ggml.model": "none",
}  # fmt: skip


def write_gguf(path: Path, lacking: str = "", tail: bytes = b"") -> Path:
    """Writes the file with all of HEADER but one key, and something behind it."""
    pairs = [(name, value) for name, value in HEADER.items() if name != lacking]
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs))
    for name, value in pairs:
        data += _text(name) + (
            struct.pack("<II", 4, value) if isinstance(value, int) else struct.pack("<I", 8) + _text(value)
        )
    path.write_bytes(data + tail)
    return path


def tiny_gguf() -> str:
    """The path of such a file."""
    return str(write_gguf(Path(tempfile.mkdtemp()) / "tiny.gguf"))


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()
