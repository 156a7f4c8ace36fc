"""Documents of a large corpus come in batches, of so many characters at most."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import DataError
from ragauge.datasets import FileSource, Gatherer, Rows, stream_documents


class Source(FileSource):
    """Documents come from the tests."""

    def files(self) -> dict[str, Path]:
        return {}

    def load(self) -> Dataset:
        raise NotImplementedError


def test_documents_of_many_characters_make_more_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragauge.datasets.gather._BATCH_CHARACTERS", 120)
    sizes = [40, 40, 40, 250, 1, 1]
    readings = 0

    def read() -> Iterator[tuple[str, tuple[str, str, str]]]:
        nonlocal readings
        readings += 1
        for number, size in enumerate(sizes):
            yield f"row {number}", (f"d{number}", "", "x" * size)

    gather = Gatherer(Source("x"))
    found = stream_documents(gather, Rows("rows", read, lambda row: row), {"d1"})
    assert [len(frame) for frame in found] == [3, 1, 2]
    assert found.frame()["text"].str.len().tolist() == sizes
    assert readings == 3
    assert [gather.document_text(f"d{i}") for i in range(2)] == ["", "x" * 40]


def test_rows_that_are_others_at_the_next_reading_are_an_error() -> None:
    rows = [("row 1", ("d1", "", "one")), ("row 2", ("d2", "", "two"))]
    found = stream_documents(Gatherer(Source("x")), Rows("rows", lambda: iter(rows), lambda row: row))
    assert found.frame()["docno"].tolist() == ["d1", "d2"]
    rows.pop()
    with pytest.raises(DataError, match="rows: it changed while it was read; run it again"):
        found.frame()


def test_a_row_that_was_dropped_is_in_no_batch() -> None:
    rows = [("row 1", ("d1", "", "one")), ("row 2", ("d1", "", "again")), ("row 3", ("d2", "", "two"))]
    gather = Gatherer(Source("x", on_error="skip"))
    found = stream_documents(gather, Rows("rows", lambda: iter(rows), lambda row: row))
    assert found.frame()["text"].tolist() == ["one", "two"]


def test_documents_without_a_text_are_counted_and_named(caplog: pytest.LogCaptureFixture) -> None:
    gather = Gatherer(Source("x"))
    for number in range(5):
        gather.add_document(f"d{number}", "a title", "text" if number == 4 else " ")
    gather.end_of_documents("docs")
    gather.documents("docs")
    assert "docs: 4 of 5 documents have no text and are never retrieved: 'd0', 'd1', 'd2', …" in caplog.text
    caplog.clear()
    three = Gatherer(Source("x"))
    for number in range(4):
        three.add_document(f"d{number}", "", "text" if number == 3 else "")
    three.documents("docs")
    assert caplog.text.rstrip().endswith("never retrieved: 'd0', 'd1', 'd2'")
