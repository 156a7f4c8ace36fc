"""Frames that are written in batches are the frames that they would be in one piece."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from ragauge.contract import frames
from ragauge.contract.errors import DataError
from ragauge.contract.frames import Batches
from ragauge.store import Key, Store
from ragauge.store._parquet import frame_digest

KEY = Key("dataset", 1)


def docs(n: int, start: int = 0) -> pd.DataFrame:
    numbers = range(start, start + n)
    rows = {"docno": [f"d{i}" for i in numbers], "title": "", "text": [f"text ü {i}" for i in numbers]}
    return pd.DataFrame(rows).astype("str")


def in_batches(*batches: pd.DataFrame) -> Batches:
    return Batches(lambda: iter(batches))


def test_same_rows_have_the_same_digest_in_batches_and_in_one_piece(tmp_path: Path) -> None:
    whole = Store(tmp_path / "a").get_frames(KEY, lambda: {"docs": docs(100)})
    batches = [docs(30), docs(1, 30), docs(69, 31)]
    parts = Store(tmp_path / "b").get_frames(KEY, lambda: {"docs": in_batches(*batches)})
    assert pq.ParquetFile(parts.path / "docs.parquet").num_row_groups == 3
    assert parts.frame_digest("docs") == whole.frame_digest("docs") == frames.content_digest(docs(100))
    pd.testing.assert_frame_equal(parts.frame("docs"), whole.frame("docs"))


def test_digest_by_row_groups_knows_missing_texts(tmp_path: Path) -> None:
    frame = docs(10).assign(text=["x", None] * 5)
    frame["text"] = frame["text"].astype("str")
    frame.to_parquet(tmp_path / "f.parquet", row_group_size=3, index=False)
    assert pq.ParquetFile(tmp_path / "f.parquet").num_row_groups == 4
    read = pd.read_parquet(tmp_path / "f.parquet")
    assert frame_digest(tmp_path / "f.parquet") == frames.content_digest(read)


@pytest.mark.parametrize(
    ("batches", "what"),
    [
        ([docs(3), docs(2, 2)], "'docno': 'd2'"),
        ([docs(3), docs(2, 3).drop(columns="title")], "title missing"),
        ([], "it has no rows"),
    ],
)
def test_batches_are_checked_and_leave_nothing_behind(tmp_path: Path, batches: list[pd.DataFrame], what: str) -> None:
    store = Store(tmp_path)
    with pytest.raises(DataError, match=what):
        store.get_frames(KEY, lambda: {"docs": in_batches(*batches)})
    assert store.find(KEY) is None
    assert not list(tmp_path.rglob("*.parquet"))
