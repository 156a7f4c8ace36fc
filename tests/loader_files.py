"""Files that tests of loaders write, and the check that a bad row is named or dropped."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract import frames
from ragauge.contract.datasets import Dataset
from ragauge.contract.errors import DataError


def json_lines(file: Path, rows: Iterable[Any]) -> Path:
    """A JSON Lines file, compressed where its name says so."""
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    packed = {".gz": gzip.compress, ".bz2": bz2.compress}.get(file.suffix, bytes)(lines)
    file.write_bytes(packed)
    return file


def checked(data: Dataset) -> Dataset:
    """The dataset, whose frames hold what the data model says and whose docnos are stable names."""
    for name in ("docs", "topics", "evidence"):
        frames.check(name, getattr(data, name))
    assert not data.docs["docno"].str.contains(r"\s|%p").any()
    text = dict(zip(data.docs["docno"], data.docs["text"], strict=True))
    for part in data.evidence.itertuples():
        assert part.text in text[part.docno]
    return data


def named_or_dropped(source: Callable[..., Any], where: str, field: str, left: list[str]) -> None:
    """The source's one bad row is an error that names where it stands and the field; skipped, it is gone.

    source: makes the loader with on_error as given; left: the qids without the bad row.
    """
    with pytest.raises(DataError) as caught:
        source(on_error="raise").load()
    assert where in str(caught.value)
    assert field in str(caught.value)
    assert "\n" not in str(caught.value)
    data = checked(source(on_error="skip").load())
    assert data.topics["qid"].tolist() == left
    assert len(data.skipped) == 1
    assert where in data.skipped[0]
