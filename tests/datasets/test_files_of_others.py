"""Files as spreadsheets and other programs write them: read, or refused in a line that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.datasets import CsvDataset
from ragauge.datasets.labels import read_human_labels

TOPICS = "question,answer,text_ids\nWho is Zoë?,Zoë,[1]\n"
DOCS = "id,title,text\n1,One,It was Zoë.\n"


def csv(folder: Path, docs: str = DOCS, topics: str = TOPICS, write: str = "utf-8", **keys: str) -> CsvDataset:
    (folder / "docs.csv").write_text(docs, encoding=write)
    (folder / "topics.csv").write_text(topics, encoding=write)
    return CsvDataset(docs=folder / "docs.csv", topics=folder / "topics.csv", **keys)


def test_semicolons_between_columns_are_named_and_not_a_missing_column(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"docs\.csv: its columns are separated by ';', and ',' is expected"):
        csv(tmp_path, DOCS.replace(",", ";")).load()
    found = csv(tmp_path, DOCS.replace(",", ";"), TOPICS.replace(",", ";"), separator=";").load()
    assert found.evidence["text"].tolist() == ["It was Zoë."]
    with pytest.raises(ConfigError, match=r"dataset\.separator=';;': allowed are one character"):
        csv(tmp_path, separator=";;")


def test_a_spreadsheet_may_save_labels_with_its_own_separator_and_decimal_comma(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text('qid;probability;label\n1;0,25;5\n"a;b";1;\n')
    found = read_human_labels(tmp_path / "labels.csv")
    assert found["qid"].tolist() == ["1", "a;b"]
    assert found["probability"].tolist() == [0.25, 1]
    (tmp_path / "labels.csv").write_text("qid\tlabel\n1\t5\n")
    assert read_human_labels(tmp_path / "labels.csv")["label"].tolist() == [5]


def test_latin_1_is_named_by_its_byte_and_read_when_it_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"row 1: 'text' is not UTF-8: it holds the byte 0xeb; save the file"):
        csv(tmp_path, write="latin-1").load()
    found = csv(tmp_path, write="latin-1", encoding="latin-1").load()
    assert found.topics["query"].tolist() == ["Who is Zoë?"]
    with pytest.raises(ConfigError, match=r"dataset\.encoding='latin-99': allowed are utf-8, latin-1"):
        csv(tmp_path, encoding="latin-99")


def test_separator_and_encoding_at_their_default_leave_stored_results_valid(tmp_path: Path) -> None:
    assert not {"separator", "encoding"} & set(identity(csv(tmp_path)))
    assert identity(csv(tmp_path, separator=";"))["separator"] == ";"


@pytest.mark.parametrize(
    ("docs", "told"),
    [
        ("id,title,text\n", r"docs\.csv: no document in it"),
        ("id,title,text\n1,One,  \n2,Two,\n", r"docs\.csv: none of its 2 documents has a text"),
    ],
)
def test_an_empty_corpus_is_blamed_and_not_the_evidence_of_a_question(docs: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=told):
        csv(tmp_path, docs).load()
