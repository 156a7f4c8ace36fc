"""Errors name the columns that the file has, and not what ragauge calls them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract.datasets import Source
from ragauge.contract.errors import DataError
from ragauge.datasets import CsvDataset, SamplesDataset

DOC = {"Nummer": "1", "Inhalt": "The Aare."}
TOPIC = {"Nr": "7", "Frage": "Which?", "Antwort": "The Aare", "Belege": ["1"]}
SAMPLE = {"id": "7", "user_input": "Which?", "reference": "The Aare", "reference_contexts": ["The Aare."]}
COLUMNS = {"docno_column": "Nummer", "text_column": "Inhalt", "qid_column": "Nr", "answer_column": "Antwort"}


def lines(file: Path, *rows: Mapping[str, Any]) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def csv(folder: Path, doc: Mapping[str, Any], *topics: Mapping[str, Any]) -> Source:
    def table(name: str, *rows: Mapping[str, Any]) -> Path:
        cells = [",".join(str(value) for value in row.values()) for row in ({k: k for k in rows[0]}, *rows)]
        (folder / name).write_text("\n".join(cells) + "\n")
        return folder / name

    docs, asked = table("d.csv", doc), table("t.csv", *topics)
    return CsvDataset(docs=docs, topics=asked, query_column="Frage", evidence_column="Belege", **COLUMNS)


@pytest.mark.parametrize(
    ("doc", "topic", "told"),
    [
        ({"Nummer": ""}, {}, r"1: docno '' is empty or holds white space \(column 'Nummer'\)"),
        ({"Nummer": "1%p"}, {}, r"which marks the chunks of a document \(column 'Nummer'\)"),
        ({}, {"Nr": ""}, r"qid '' is empty or holds white space \(column 'Nr'\)"),
        ({}, {"Frage": " "}, r"1, qid '7': the query is empty \(column 'Frage'\)"),
        ({}, {"Belege": ["9"]}, r"docno '9', which is no document of the corpus \(column 'Belege'\)"),
    ],
)
def test_columns_of_the_config_are_named(
    tmp_path: Path, doc: Mapping[str, Any], topic: Mapping[str, Any], told: str
) -> None:
    with pytest.raises(DataError, match=told):
        csv(tmp_path, {**DOC, **doc}, {**TOPIC, **topic}).load()
    with pytest.raises(DataError, match=r"2, qid '7': this qid stands twice \(column 'Nr'\)"):
        csv(tmp_path, DOC, TOPIC, TOPIC).load()


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"user_input": " "}, r"the query is empty \(column 'user_input'\)"),
        ({"user_input": ["?"]}, r"'user_input' is a list that holds no messages"),
        ({"id": "a b"}, r"qid 'a b' is empty or holds white space \(column 'id'\)"),
        ({"id": ["a"]}, r"line 1: 'id' is neither a text nor a whole number"),
        ({"unanswerable": True}, r"has the reference answer 'The Aare' \(column 'reference'\)"),
    ],
)
def test_keys_of_samples_are_named(tmp_path: Path, row: Mapping[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=told):
        SamplesDataset(path=lines(tmp_path / "s.jsonl", {**SAMPLE, **row})).load()


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"user_input": "Other?"}, "'user_input'"),
        ({"reference": "Other"}, "'reference'"),
        ({"reference_contexts": ["Other."]}, "'reference_contexts'"),
    ],
)
def test_two_samples_of_a_question_that_differ_name_the_key(tmp_path: Path, row: Mapping[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=rf"line 2, qid '7': {told}: another one than in .*line 1"):
        SamplesDataset(path=lines(tmp_path / "s.jsonl", SAMPLE, {**SAMPLE, **row})).load()


def test_names_that_are_those_of_ragauge_are_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"qid '7': the query is empty \(dataset\.on_error=skip"):
        SamplesDataset(path=lines(tmp_path / "s.jsonl", {"qid": "7", "query": " "})).load()
