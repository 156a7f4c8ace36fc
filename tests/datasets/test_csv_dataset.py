from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.datasets import CsvDataset

DATA = Path(__file__).resolve().parents[2] / "../shared/data"

DOCS = ',id,text\n0,7,"  Seven, a number.\nOdd."\n0,8,Eight.\n0,9,\n'
TOPICS = ",id,text_ids,question,answer\n3,1,[7 8],Which are numbers?,both\n4,2,[8],Which is even?,eight\n"


def write(folder: Path, docs: str = DOCS, topics: str = TOPICS, **fields: Any) -> CsvDataset:
    (folder / "docs.csv").write_text(docs, encoding="utf-8")
    (folder / "topics.csv").write_text(topics, encoding="utf-8")
    return CsvDataset(docs=folder / "docs.csv", topics=folder / "topics.csv", **fields)


def test_relevant_passages_are_the_evidence(tmp_path: Path) -> None:
    data = write(tmp_path).load()
    for name in ("docs", "topics", "evidence"):
        frames.check(name, getattr(data, name))
    assert data.docs.values.tolist() == [
        ["7", "", "  Seven, a number.\nOdd."],
        ["8", "", "Eight."],
        ["9", "", ""],
    ]
    assert data.topics.values.tolist() == [
        ["1", "Which are numbers?", "both"],
        ["2", "Which is even?", "eight"],
    ]
    assert data.evidence.values.tolist() == [
        ["1", 0, "7", "Seven, a number.\nOdd."],
        ["1", 1, "8", "Eight."],
        ["2", 0, "8", "Eight."],
    ]


def test_columns_have_the_names_that_the_config_gives(tmp_path: Path) -> None:
    docs = "docno,body,title\nd1,Text.,First\n"
    topics = "q,a,rel,n\nWhat?,That,\"['d1']\",x9\n"
    data = write(
        tmp_path, docs, topics, docno_column="docno", text_column="body", qid_column="n",
        query_column="q", answer_column="a", evidence_column="rel",
    ).load()  # fmt: skip
    assert data.docs.values.tolist() == [["d1", "First", "Text."]]
    assert data.topics.values.tolist() == [["x9", "What?", "That"]]


@pytest.mark.parametrize(
    ("printed", "ids"),
    [
        ("[7 8]", ["7", "8"]),
        ("[ 7\n  8]", ["7", "8"]),
        ("[7, 8]", ["7", "8"]),
        ('["7", "8"]', ["7", "8"]),
        ("['7', '8']", ["7", "8"]),
        ("['7' '8']", ["7", "8"]),
        ("[8, 8]", ["8"]),
    ],
)
def test_lists_as_json_python_and_numpy_print_them(tmp_path: Path, printed: str, ids: list[str]) -> None:
    cell = '"' + printed.replace('"', '""') + '"'
    data = write(tmp_path, topics=f"text_ids,question,answer\n{cell},q,a\n").load()
    assert data.evidence["docno"].tolist() == ids


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("1,7,q,a", "holds no list of ids"),
        ("1,[7,q,a", "holds no list of ids"),
        ("1,[7.5 [8]],q,a", "holds no list of ids"),
        ('1,"[7, null]",q,a', "holds no list of ids"),
        ('1,"{""7"": 8}",q,a', "holds no list of ids"),
        ("1,__import__('os'),q,a", "holds no list of ids"),
        ("1,[5],q,a", "'5', which is no document"),
        ("1,[9],q,a", "evidence part 0 (docno '9') is empty"),
        ("1,[7],,a", "query is empty"),
        ("1,[7],q", "3 cells where the header names 4 columns"),
        ("2,[7],q,a,b", "5 cells where the header names 4 columns"),
        ("0,[7],q,a", "stands twice"),
    ],
)
def test_bad_topic_is_named_or_dropped(tmp_path: Path, row: str, what: str) -> None:
    topics = f"id,text_ids,question,answer\n0,[7],q,a\n{row}\n9,[8],q,a\n"
    with pytest.raises(DataError) as caught:
        write(tmp_path, topics=topics, qid_column="id").load()
    assert f"{tmp_path / 'topics.csv'}, row 2" in str(caught.value)
    assert what in str(caught.value)
    data = write(tmp_path, topics=topics, qid_column="id", on_error="skip").load()
    assert data.topics["qid"].tolist() == ["0", "9"]
    assert len(data.skipped) == 1


def test_dropped_rows_do_not_renumber_the_others(tmp_path: Path) -> None:
    topics = "text_ids,question,answer\n[7],,a\n[8],q,a\n"
    data = write(tmp_path, topics=topics, on_error="skip").load()
    assert data.topics["qid"].tolist() == ["2"]
    assert "row 1, qid '1': the query is empty" in data.skipped[0]


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"text_column": "body"}, r"docs\.csv: column 'body' \(dataset\.text_column\) is missing; it has"),
        ({"title_column": "name"}, r"'name' \(dataset\.title_column\) is missing"),
        ({"qid_column": "qid"}, r"topics\.csv: column 'qid' \(dataset\.qid_column\) is missing"),
    ],
)
def test_missing_column_names_key_and_header(tmp_path: Path, fields: dict[str, str], what: str) -> None:
    with pytest.raises(DataError, match=what):
        write(tmp_path, **fields, on_error="skip").load()


def test_cell_that_is_no_utf8_and_quote_that_does_not_end(tmp_path: Path) -> None:
    source = write(tmp_path)
    with (tmp_path / "docs.csv").open("ab") as stream:
        stream.write(b"0,10,caf\xe9\n")
    with pytest.raises(DataError, match=r"docs\.csv, row 4: 'text' is not UTF-8: it holds the byte 0xe9"):
        source.load()
    with pytest.raises(DataError, match=r"after row 3: not a CSV file"):
        write(tmp_path, docs=DOCS + '0,10,"never').load()


def test_long_cell(tmp_path: Path) -> None:
    data = write(tmp_path, docs=DOCS + f"0,10,{'x' * 200_000}\n").load()
    assert len(data.docs["text"].iloc[-1]) == 200_000


def test_missing_file_and_bad_column_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.docs=.*none\.csv"):
        CsvDataset(docs=tmp_path / "none.csv", topics=tmp_path / "none.csv").load()
    with pytest.raises(ConfigError, match=r"dataset\.text_column=''"):
        CsvDataset(text_column="")


@pytest.mark.skipif(not DATA.is_dir(), reason="shared data is not there")
@pytest.mark.parametrize(("part", "topics"), [("val", 500), ("train", 1747)])
def test_real_files_as_they_stand(part: str, topics: int) -> None:
    source = CsvDataset(docs=str(DATA / "rag_mini_texts.csv"), topics=str(DATA / f"rag_mini_questions_{part}.csv"))
    data = source.load()
    assert (len(data.docs), len(data.topics)) == (13_314, topics)
    assert data.evidence.groupby("qid").size().between(2, 4).all()


def test_topics_may_lack_a_reference_or_evidence(tmp_path: Path) -> None:
    topics = "id,text_ids,question,answer,kind\n1,[7],q1,,bridge\n2,,q2,a,\n3,[],q3,a,bridge\n"
    data = write(tmp_path, topics=topics, qid_column="id", attribute_columns=["kind"]).load()
    frames.check("topics", data.topics)
    assert data.topics["answer"].isna().tolist() == [True, False, False]
    assert data.evidence["qid"].tolist() == ["1"]
    assert data.topics["kind"].tolist()[::2] == ["bridge", "bridge"]
    assert data.topics["kind"].isna().tolist() == [False, True, False]

    bare = write(tmp_path, topics="q\nwho?\n", query_column="q", answer_column=None, evidence_column=None)
    assert bare.load().evidence.empty
