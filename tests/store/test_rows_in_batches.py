"""Rows that are looked for in a stored frame are those of the whole frame, and little more is read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.contract import frames
from ragauge.contract.frames import (
    Batches,
    columns_of,
    count_rows,
    in_pieces,
    rows_at,
    rows_where,
)
from ragauge.store import Entry, Key, Store, _parquet
from ragauge.store._parquet import StoredRows, frame_digest


def chunks(n: int) -> pd.DataFrame:
    text = [f"text ü {i}" for i in range(n)]
    return pd.DataFrame(
        {
            "docno": pd.Series([f"d{i // 2}%p{i % 2}" for i in range(n)], dtype="str"),
            "text": pd.Series(text, dtype="str"),
            "parent": pd.Series([f"d{i // 2}" for i in range(n)], dtype="str"),
            "start": np.arange(n),
            "end": np.arange(n) + [len(one) for one in text],
        }
    )


def stored(folder: Path, frame: pd.DataFrame, size: int) -> Entry:
    """The frame as an entry whose row groups have so many rows."""
    some = Batches(lambda: iter([frame.iloc[at : at + size] for at in range(0, len(frame), size)]))
    return Store(folder).get_frames(Key("chunks", 1), lambda: {"chunks": some})


@pytest.mark.parametrize("size", [3, 7, 100])
def test_what_is_looked_for_is_that_of_the_whole_frame(tmp_path: Path, size: int) -> None:
    frame = chunks(20)
    rows = stored(tmp_path, frame, size).rows("chunks")
    assert isinstance(rows, StoredRows) == (size < 20)
    plain = Batches(lambda: iter([frame.iloc[:5], frame.iloc[5:5], frame.iloc[5:]]))
    numbers = np.array([19, 0, 7, 8])
    for one in (rows, plain, frame):
        assert count_rows(one) == 20
        pd.testing.assert_frame_equal(columns_of(one, ["parent", "end"]), frame[["parent", "end"]])
        pd.testing.assert_frame_equal(rows_at(one, numbers), frame.iloc[numbers])
        assert rows_at(one, numbers[:0]).dtypes.equals(frame.dtypes)
        for names in (["d9", "d0", "d77"], [], ["nowhere"]):
            expected = frame[frame["parent"].isin(names)]
            pd.testing.assert_frame_equal(rows_where(one, "parent", names), expected, check_index_type=False)
        whole = pd.concat(in_pieces(one, 6), ignore_index=True)
        pd.testing.assert_frame_equal(whole, frame)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=6), st.integers(1, 7))
def test_pieces_have_their_size_whatever_the_batches(sizes: list[int], size: int) -> None:
    frame = pd.DataFrame({"n": np.arange(sum(sizes))})
    ends = np.cumsum([0, *sizes])
    parts = [frame.iloc[a:b] for a, b in pairwise(ends)]
    found = list(in_pieces(Batches(lambda: iter(parts)), size))
    assert [len(one) for one in found[:-1]] == [size] * max(len(found) - 1, 0)
    assert [n for one in found for n in one["n"]] == list(range(len(frame)))
    assert all(0 < len(one) <= size for one in found)


def test_row_groups_without_a_row_that_is_looked_for_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = stored(tmp_path, chunks(20), 4).rows("chunks")
    read: list[int] = []
    real = pq.ParquetFile.read_row_group

    def noted(self: pq.ParquetFile, group: int, columns: list[str] | None = None) -> object:
        if columns is None or "text" in columns:
            read.append(group)
        return real(self, group, columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    assert rows_where(rows, "docno", ["d3%p1", "d9%p0"])["start"].tolist() == [7, 18]
    assert rows_at(rows, np.array([5]))["docno"].tolist() == ["d2%p1"]
    assert read == [1, 4, 1]


def test_digest_of_numbers_is_taken_a_row_group_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = chunks(20).assign(share=[0.5, None] * 10, whole=True)
    frame.to_parquet(tmp_path / "f.parquet", row_group_size=6, index=False)
    expected = frames.content_digest(pd.read_parquet(tmp_path / "f.parquet"))

    def refused(*_: object) -> None:
        raise AssertionError("the whole frame was read")

    monkeypatch.setattr(_parquet.pd, "read_parquet", refused)
    assert frame_digest(tmp_path / "f.parquet") == expected


@pytest.mark.parametrize("values", [[1, None] * 10, [True] * 19 + [None], [[1], [2, 3]] * 10])
def test_digest_of_a_column_with_other_dtypes_by_row_group_is_that_of_the_whole(
    tmp_path: Path, values: list[object]
) -> None:
    frame = chunks(20).assign(other=pd.Series(values, dtype=object))
    frame.to_parquet(tmp_path / "f.parquet", row_group_size=6, index=False)
    read = pd.read_parquet(tmp_path / "f.parquet")
    assert frame_digest(tmp_path / "f.parquet") == frames.content_digest(read)


def test_a_frame_in_one_piece_is_written_in_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_parquet, "BATCH_ROWS", 6)
    whole = Store(tmp_path / "a").get_frames(Key("chunks", 1), lambda: {"chunks": chunks(20)})
    assert [len(one) for one in whole.rows("chunks")] == [6, 6, 6, 2]
    assert whole.frame_digest("chunks") == frames.content_digest(chunks(20))


def test_rows_read_from_memory_where_the_frame_was_read_before(tmp_path: Path) -> None:
    entry = stored(tmp_path, chunks(20), 4)
    assert isinstance(entry.rows("chunks"), Batches)
    entry.frame("chunks")
    assert isinstance(entry.rows("chunks"), pd.DataFrame)


def test_whole_numbers_of_which_one_is_missing_have_the_digest_of_the_whole_beside_lists(tmp_path: Path) -> None:
    table = pa.table({"n": [1, 2, None], "parts": [["a"], ["b"], ["c"]]})
    pq.write_table(table, file := tmp_path / "rows.parquet", row_group_size=2)
    assert frame_digest(file) == frames.content_digest(pd.read_parquet(file))
