"""A byte order mark in front of a text file is no part of what stands first in it, whatever the format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragauge.datasets import recordings
from ragauge.datasets.files import begins_list, csv_rows, json_rows, json_value, lines, parse_json, table_rows, text_of
from ragauge.datasets.labels import read_texts
from ragauge.llms.prompts import load_prompt
from ragauge.retrieval.retrievers.recorded import read_trec_run


def rows_of(file: Path) -> list[Any]:
    return [entry.read() for entry in recordings.entries(file)]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("1 Q0 d 1 2.5 t\n", lambda file: read_trec_run(file).to_dict("list")),
        ("a\tb\n", lambda file: [text_of(line) for _, line in lines(file)]),
        ("a\tb\n", lambda file: [text_of(line, "cp1252") for _, line in lines(file)]),
        ("a,b\n1,2\n", lambda file: list(csv_rows(file))),
        ("a,b\n1,2\n", lambda file: read_texts(file).to_dict("list")),
        ("a\tb\n1\t2\n", lambda file: [row for _, row in table_rows(file.rename(file.with_suffix(".tsv")))]),
        ('{"a": 1}\n{"a": 2}\n', lambda file: [parse_json(row) for _, row in json_rows(file)]),
        ('{\n"a": 1}\n', lambda file: [parse_json(row) for _, row in json_rows(file)]),
        ('[{"a": 1}]', lambda file: (begins_list(file), json_value(file))),
        ("qid,answer\n1,a\n", lambda file: rows_of(file.rename(file.with_suffix(".csv")))),
        ("Answer $question", lambda file: load_prompt(str(file), "", ("question",))),
    ],
)  # fmt: skip
def test_a_byte_order_mark_changes_nothing(text: str, read: Callable[[Path], Any], tmp_path: Path) -> None:
    found = []
    for mark in ("", "\ufeff"):
        folder = tmp_path / f"with{len(mark)}"
        folder.mkdir()
        (folder / "file.txt").write_text(mark + text, encoding="utf-8")
        found.append(read(folder / "file.txt"))
    assert str(found[1]).replace("with1", "with0") == str(found[0])
