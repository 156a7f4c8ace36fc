"""The sheet that people filled in: what is finished, whose quotes count, and one line for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.annotate.people import evidence_of, read_sheet

HEAD = "qid;docno;model_quotes;min_grade;grade;quotes\n"
DOCS = pd.DataFrame({"docno": ["a", "b"], "text": ["It is one\n text. -So are two.", "And three of them."]})
QIDS = pd.Series(["q1", "q2", "q3"])


def sheet(folder: Path, *lines: str) -> Path:
    file = folder / "sheet.csv"
    file.write_text(HEAD + "".join(f"{line}\n" for line in lines), "utf-8-sig")
    return file


def test_finished_topics_count_and_empty_quotes_are_those_of_the_evaluator(tmp_path: Path) -> None:
    found = read_sheet(
        sheet(
            tmp_path,
            "q1;a;It is one text.;2;3;",
            "q1;a;;;2;'-So are two.",
            "q1;b;And three of them.;2;1;",
            "q2;a;;2;0;",
            "q2;b;;2;3;three of them. | And three of them.",
            "q3;a;;2;;",
            "q3;b;;2;3;And three of them.",
        )
    )
    assert (sorted(found.rows), found.unfinished) == (["q1", "q2"], 1)
    evidence = evidence_of(found, DOCS, QIDS)
    assert evidence[["qid", "docno", "text"]].to_numpy().tolist() == [
        ["q1", "a", "It is one text."], ["q1", "a", "-So are two."],
        ["q2", "b", "And three of them."],  # within which the other stands
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q1;a;;2;5;", "row 1, qid 'q1': grade is '5'; allowed are 0, 1, 2, 3 and nothing"),
        ("q1;a;;9;2;", "row 1, qid 'q1': min_grade is '9'; allowed are 1, 2 and 3"),
        ("q1;a;;2;;", "no topic has a grade in every row"),
        ("q9;a;;2;1;", "row 1, qid 'q9': the dataset has no such topic"),
        ("q1;c;;2;1;", "row 1, qid 'q1': docno 'c' is no document of the dataset"),
        ("q1;a;;2;2;", "row 1, qid 'q1': grade 2 takes the sentences that answer in the column quotes"),
        ("q1;a;;2;2;It is two texts.", "'It is two texts.' does not stand in document 'a'; allowed are its sentences"),
    ],
)
def test_a_bad_row_gets_one_line(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        evidence_of(read_sheet(sheet(tmp_path, line)), DOCS, QIDS)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"human_evidence=nowhere\.csv: there is no such file"):
        read_sheet("nowhere.csv")
    (tmp_path / "x.csv").write_text("qid,docno\n", "utf-8")
    with pytest.raises(DataError, match="column 'grade' is missing; it has qid, docno"):
        read_sheet(tmp_path / "x.csv")
