"""Datasets whose file of questions is not set: their documents are the same as with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.datasets import CsvDataset, JsonlDataset, SampleDataset
from ragauge.plugins.synthesis.documents_alone import DocumentsAlone, documents_of
from ragauge.plugins.synthesis.documents_alone import questions_of as read_questions

Folder = pytest.importorskip("ragauge.plugins.folders.dataset").Folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs.jsonl").write_text('{"docno": "d1", "title": "T", "text": "One mill."}\n', "utf-8")
    (tmp_path / "docs.csv").write_text("id,title,text\nd1,T,One mill.\n", "utf-8")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "d1.txt").write_text("One mill.", "utf-8")
    (tmp_path / "topics.jsonl").write_text('{"qid": "q", "query": "How many mills?"}\n', "utf-8")
    (tmp_path / "topics.csv").write_text('question,answer,text_ids\nHow many mills?,one,["d1"]\n', "utf-8")
    return tmp_path


def sources(folder: Path, with_topics: bool) -> list[Any]:
    jsonl = folder / "topics.jsonl" if with_topics else None
    table = folder / "topics.csv" if with_topics else None
    return [
        JsonlDataset(docs=folder / "docs.jsonl", topics=jsonl),
        CsvDataset(docs=folder / "docs.csv", topics=table),
        Folder(path=folder / "files", topics=jsonl),
    ]


@pytest.mark.parametrize("number", range(3), ids=["jsonl", "csv", "folder"])
def test_the_documents_are_those_of_the_dataset_with_questions(number: int, folder: Path) -> None:
    whole, alone = sources(folder, True)[number], documents_of(sources(folder, False)[number])
    assert isinstance(alone, DocumentsAlone)
    pd.testing.assert_frame_equal(alone.load().docs, whole.load().docs)
    assert list(alone.files()) == [role for role in whole.files() if role != "topics"]
    assert alone.name == whole.name
    json.dumps(identity(alone))
    assert documents_of(whole) is whole


def test_a_dataset_that_brings_its_questions_stays_as_it_is() -> None:
    sample = SampleDataset()
    assert documents_of(sample) is sample


def test_what_lacks_is_told_as_ever(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.docs is not set"):
        documents_of(JsonlDataset()).files()
    (folder / "docs.jsonl").write_text("\n", "utf-8")
    with pytest.raises(DataError, match="no document in it"):
        documents_of(sources(folder, False)[0]).load()
    (folder / "docs.jsonl").write_text('{"docno": "d1"}\n', "utf-8")
    with pytest.raises(DataError, match="line 1: key 'text' is missing"):
        documents_of(sources(folder, False)[0]).load()


def test_questions_are_read_from_what_holds_them(folder: Path) -> None:
    for name in ("topics.jsonl", "topics.csv"):
        assert read_questions("against", folder / name) == ["How many mills?"]
    rows = [{"query": "Which?"}, {"question": "Where?"}]
    for number, text in enumerate((json.dumps(rows, indent=2), "\n".join(json.dumps(one, indent=2) for one in rows))):
        (folder / f"{number}.jsonl").write_text(text, "utf-8")
        assert read_questions("against", folder / f"{number}.jsonl") == ["Which?", "Where?"]
