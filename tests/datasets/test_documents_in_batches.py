"""Documents of a large corpus come in batches, of so many characters at most."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ragauge.datasets import FileSource, Gatherer, Rows, _gather, stream_documents


def test_documents_of_many_characters_make_more_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gather, "_BATCH_CHARACTERS", 100)
    sizes = [40, 40, 40, 250, 1, 1]
    readings = 0

    def read() -> Iterator[tuple[str, tuple[str, str, str]]]:
        nonlocal readings
        readings += 1
        for number, size in enumerate(sizes):
            yield f"row {number}", (f"d{number}", "", "x" * size)

    gather = Gatherer(FileSource("x"))
    found = stream_documents(gather, Rows("rows", read, lambda row: row), {"d1"})
    assert [len(frame) for frame in found] == [3, 1, 2]
    assert found.frame()["text"].str.len().tolist() == sizes
    assert readings == 3
    assert [gather.document_text(f"d{i}") for i in range(2)] == ["", "x" * 40]
