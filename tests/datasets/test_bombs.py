"""Files that unpack to much more than they seem to hold: no more of them is read than a good one may have."""

from __future__ import annotations

import bz2
import gzip
import json
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract.errors import DataError
from ragauge.contract.frames import as_frame
from ragauge.datasets import JsonlDataset, packing
from ragauge.datasets.files import json_value, lines, table_rows

MB = 1_000_000
UNPACKED = 64 * MB


@contextmanager
def little_memory(most: int = 12 * MB) -> Iterator[None]:
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < most


@pytest.mark.parametrize(
    ("read", "begin", "piece", "what"),
    [
        (lambda file: list(lines(file)), b'{"text": "', b"word ", "a line of it"),
        (json_value, b"[", b"[]," * 100 + b"\n", "it"),
    ],
    ids=["lines", "json"],
)
@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_of_a_packed_file_no_thing_is_longer_than_a_document_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], Any], begin: bytes, piece: bytes,
    what: str, suffix: str, pack: Callable[[bytes], bytes],
) -> None:  # fmt: skip
    monkeypatch.setattr(packing, "LONGEST", 2 * MB)
    file = tmp_path / f"bomb{suffix}"
    file.write_bytes(pack(begin + piece * (4 * MB // len(piece))))
    with little_memory(), pytest.raises(DataError, match=f"bomb{suffix}: {what} unpacks to more than 2 MB"):
        read(file)


def test_a_packed_cell_of_many_lines_is_no_longer_than_a_document_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "LONGEST", 2 * MB)
    file = tmp_path / "bomb.csv.gz"
    file.write_bytes(gzip.compress(b'question,answer\na,"' + b"word\n" * MB))
    with little_memory(), pytest.raises(DataError, match=r"bomb\.csv\.gz, after row 0: .* larger than field limit"):
        list(table_rows(file))


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_many_short_files_together_are_no_more_than_a_file_may_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(packing, "WHOLE", 2 * MB)
    docs, topics = tmp_path / f"bomb.jsonl{suffix}", tmp_path / "topics.jsonl"
    rows = (json.dumps({"docno": f"d{n}", "title": "", "text": "word " * 20_000}) + "\n" for n in range(80))
    docs.write_bytes(pack("".join(rows).encode()))
    topics.write_text('{"qid": "q", "query": "?"}')
    told = f"bomb.jsonl{suffix}: it unpacks to more than 2 MB; unpack it first if that is right"
    with little_memory(), pytest.raises(DataError, match=told):
        JsonlDataset(docs=docs, topics=topics).load()
    monkeypatch.setattr(packing, "_BOMB", 10_000)  # as a large file is packed
    assert len(as_frame(JsonlDataset(docs=docs, topics=topics).load().docs)) == 80


def test_many_files_and_what_is_packed_as_texts_are_may_be_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "good.jsonl.gz"
    row = json.dumps({"text": bytes(range(1, 128)).decode("ascii") * 8}).encode()
    file.write_bytes(gzip.compress(b"\n".join([row] * 1000)))
    monkeypatch.setattr(packing, "LONGEST", len(row) + 1)
    monkeypatch.setattr(packing, "_TIGHTEST", 0)
    assert sum(1 for _ in lines(file)) == 1000
    monkeypatch.setattr(packing, "LONGEST", 1)
    monkeypatch.setattr(packing, "_TIGHTEST", 1000)
    assert sum(1 for _ in lines(file)) == 1000


def test_what_is_as_long_as_it_may_be_is_read_and_a_byte_more_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "some.txt.gz"
    for limit in ("LONGEST", "WHOLE"):
        monkeypatch.setattr(packing, "LONGEST", 1000)
        monkeypatch.setattr(packing, "WHOLE", 1000)
        monkeypatch.setattr(packing, "_TIGHTEST", 0)
        monkeypatch.setattr(packing, "_BOMB", 0)
        monkeypatch.setattr(packing, limit, 20)
        file.write_bytes(gzip.compress(b"x" * 19 + b"\n"))
        assert len(list(lines(file))) == 1
        file.write_bytes(gzip.compress(b"x" * 20 + b"\n"))
        with pytest.raises(DataError, match="unpacks to more than 0 MB"):
            list(lines(file))
