"""Labels that people gave, as a CSV file: what is read, and how a bad cell is named."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.outcomes import DRAWN_WITH, LABEL_OF
from ragauge.contract.topics import QUESTIONS, labelled_as
from ragauge.datasets.labels import read_human_labels, read_texts, require_columns, with_human_labels

FIRST, *_ = QUESTIONS


def labels(folder: Path, text: str) -> Path:
    path = folder / "labels.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_classes_questions_and_what_a_label_is_of(tmp_path: Path) -> None:
    found = read_human_labels(labels(tmp_path, f"qid,n_tokens,retriever,label,{FIRST}\n1,100,bm25,5,1\nNA,300,sim,,\n"))
    assert found["qid"].tolist() == ["1", "NA"]
    assert found["n_tokens"].tolist() == [100, 300]
    assert found["retriever"].tolist() == ["bm25", "sim"]
    assert found["label"].dtype == "Int64"
    assert found["label"].isna().tolist() == [False, True]
    assert found[FIRST].dtype == "float64"
    assert found[FIRST].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("qid\n1\n", "column 'label' is missing; there must be qid and label, or one of"),
        ("label\n5\n", "column 'qid' is missing"),
        ("qid,label,colour\n1,5,red\n", "column 'colour' is unknown"),
        ("qid,label\n1,5\n2,6\n", "line 3 (qid='2'): label is '6', not a judge class 1..5"),
        ("qid,label\n1,\n", "line 2 (qid='1'): label is '', not a judge class"),
        ("qid,label,n_tokens\n1,5,many\n", "line 2 (qid='1'): n_tokens is 'many', not a number of tokens"),
        ("qid,label,retriever\n1,5,\n", "line 2 (qid='1'): retriever is '', not a value"),
        (f"qid,{FIRST}\n1,2\n", f"line 2 (qid='1'): {FIRST} is '2', not 1, 0 or empty"),
        ("qid,label\n1,5\n2,4\n1,3\n", "line 4 (qid='1'): a second row of the same qid"),
    ],
)
def test_what_is_wrong_is_named_by_its_line(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_human_labels(labels(tmp_path, text))
    assert told in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "labels.csv"))


def test_a_file_that_is_not_there_is_a_mistake_of_the_config(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"human_labels: no file .*nowhere"):
        read_human_labels(tmp_path / "nowhere")


# A sheet as a spreadsheet saves it: of the job are the rows of bm25 at 100 tokens with its own answers. c has no label.
SHEET = """qid;retriever;n_tokens;query;answer;probability;label
a;bm25;100;Who?;Berta built it;0,5;1
a;bm25;100;Who?;Anna built it;0,5;5
a;bm25;300;Who?;Anna built it;0,5;2
a;sim;100;Who?;Anna built it;0,5;3
b;bm25;100;When?; In  1901 ;0,25;4
c;bm25;100;Where?;Graz;1;
'=d;bm25;100;Sum?;'=1+1;0,25;2
"""


def test_a_sheet_by_hand(tmp_path: Path) -> None:
    of = {"qid": ["a", "b", "c", "=d", "e"], "answer": ["Anna built it", "In\n1901", "Graz", "=1+1", None]}
    outcomes = pd.DataFrame({**of, "n_tokens": 100, "retriever": "bm25"})
    found = with_human_labels(outcomes, labels(tmp_path, SHEET))
    assert found["human_label"].tolist() == [5, 4, pd.NA, 2, pd.NA]
    assert found["human_label"].dtype == "Int8"
    # Three of the job's four rows have a label.
    assert found[DRAWN_WITH].fillna(0).tolist() == [0.375, 0.1875, 0, 0.1875, 0]
    digest = hashlib.sha256(b"In 1901").hexdigest()[:12]
    assert found[LABEL_OF][1] == f"n_tokens=100, retriever=bm25, answer {digest}"
    other = outcomes.assign(answer=["Carla", "In May", "Graz", "=1+1", None])
    with pytest.raises(DataError, match=r"qid 'a' has another answer in this job than those .* \(3 of 5 rows\)"):
        with_human_labels(other, tmp_path / "labels.csv")
    # Without answers the columns that the file names decide, and a topic that the job has not is an error.
    outcomes = outcomes.drop(columns="answer")
    path = labels(tmp_path, f"qid,n_tokens,label,{FIRST}\na,100,5,1\nb,300,1,0\nc,100,,0\n")
    found = with_human_labels(outcomes, path)
    assert found["human_label"].tolist() == [5, *[pd.NA] * 4]
    assert found[labelled_as(FIRST)].fillna(-1).tolist() == [1, -1, 0, -1, -1]
    assert found[LABEL_OF].tolist() == ["n_tokens=100"] * 5
    with pytest.raises(DataError, match="qid 'z' is no topic of the dataset"):
        with_human_labels(outcomes, labels(tmp_path, "qid,label\nz,5\n"))
    assert "human_label" not in with_human_labels(outcomes, labels(tmp_path, f"qid,{FIRST}\na,1\n"))
    with pytest.raises(DataError, match=r"line 3 \(qid='b'\): probability is 'half', not from 0\.000000001 to 1"):
        read_human_labels(labels(tmp_path, "qid,probability,label\na,1,5\nb,half,5\n"))


def test_cells_of_a_table_are_texts_whatever_they_look_like(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"\xef\xbb\xbfname,value\nNA,007\n,nan\n")
    table = read_texts(path)
    assert table.to_dict("list") == {"name": ["NA", ""], "value": ["007", "nan"]}
    require_columns(path, table, ["name"], None, "any other may be there")
    require_columns(path, table, ["name"], ("name", "value"), "these")
    with pytest.raises(DataError, match="column 'x' is missing; the rule"):
        require_columns(path, table, ["x"], None, "the rule")
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(DataError, match="no CSV file in UTF-8"):
        read_texts(path)
