"""JSON printed over several lines where JSON Lines are read, by every reader of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract.errors import DataError
from ragauge.contract.frames import as_frame
from ragauge.datasets import JsonlDataset, SamplesDataset, files
from ragauge.datasets.files import json_rows

DOCS = [{"docno": name, "title": "", "text": f"The {name}."} for name in ("aare", "rhine")]
TOPICS = [{"qid": qid, "query": "Which?"} for qid in ("q1", "q2")]
FORMS: dict[str, Callable[[Sequence[Any]], str]] = {
    "lines": lambda rows: "".join(json.dumps(row) + "\n" for row in rows),
    "objects": lambda rows: "\n".join(json.dumps(row, indent=2) for row in rows),
    "list": lambda rows: "\ufeff\n" + json.dumps(rows, indent=2),
    "list on a line": json.dumps,
    "one object": lambda rows: json.dumps(rows[0], indent=2),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_reader_of_json_lines_reads_what_is_printed_over_several(tmp_path: Path, form: str) -> None:
    docs, topics = tmp_path / "corpus.jsonl", tmp_path / "topics.jsonl"
    for file, rows in ((docs, DOCS), (topics, TOPICS)):
        file.write_text(FORMS[form](rows), encoding="utf-8")
        (tmp_path / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    n = 1 if form == "one object" else 2
    texts, qids = ["The aare.", "The rhine."][:n], ["q1", "q2"][:n]

    data = JsonlDataset(docs=docs, topics=topics).load()
    assert as_frame(data.docs)["text"].tolist() == texts
    assert data.topics["qid"].tolist() == qids
    assert SamplesDataset(path=topics, docs=docs).load().topics["qid"].tolist() == qids
    packed = JsonlDataset(docs=f"{docs}.gz", topics=topics).load()
    assert as_frame(packed.docs)["text"].tolist() == texts


def test_a_bad_row_of_printed_objects_is_known_by_its_number(tmp_path: Path) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_text(FORMS["objects"]([DOCS[0], {"docno": "rhine"}]))
    with pytest.raises(DataError, match=r"docs\.jsonl, row 2: key 'text' is missing"):
        JsonlDataset(docs=file, topics=file).load()


@pytest.mark.parametrize(
    "text", ['{\n "docno": "d1",\n "text": oops\n}\n', '{\n  "docno": "d1"\n}\n{\n  "docno"\n', "{\n"]
)
def test_what_cannot_be_read_says_that_an_object_is_a_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_text(text)
    told = r"line 1: not a line of JSON: the object goes on in the next line; write each on one \(jq -c"
    with pytest.raises(DataError, match=told):
        JsonlDataset(docs=file, topics=file).load()


def test_a_damaged_line_is_one_bad_row_and_a_large_file_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_text('{"docno": "d0", "te\n' + FORMS["lines"](DOCS))
    assert [where.rpartition(", ")[2] for where, _ in json_rows(file)] == ["line 1", "line 2", "line 3"]
    file.write_text(FORMS["objects"](DOCS))
    assert [row["docno"] for _, row in json_rows(file)] == ["aare", "rhine"]
    monkeypatch.setattr(files, "_WHOLE_BYTES", 100)
    with pytest.raises(DataError, match=r"line 1: not a line of JSON: the object goes on in the next line"):
        JsonlDataset(docs=file, topics=file).load()
