"""Recorded outcomes: rows by hand, and every bad row told with its line."""

from pathlib import Path

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.outcomes.dataset import RecordedOutcomes, StudyOutcomes
from ragauge.plugins.outcomes.finding import foreseen_errors


@pytest.fixture
def recorded(tmp_path: Path):
    def write(text: str) -> RecordedOutcomes:
        (tmp_path / "outcomes.csv").write_text(text, encoding="utf-8")
        return RecordedOutcomes(path=tmp_path / "outcomes.csv")

    return write


def test_rows_with_counts_become_so_many_topics(recorded):
    rows = recorded("system,label,ir_score,count\na,5,0.5,2\na,,0.25,1\nb,,1,1\n").outcomes()
    expected = pd.DataFrame(
        {
            "qid": ["a/1", "a/2", "a/3", "b/1"],
            "system": ["a", "a", "a", "b"],
            "ir_score": [0.5, 0.5, 0.25, 1.0],
            "label": pd.array([5, 5, None, None], dtype="Int8"),
        }
    ).astype({"qid": "str", "system": "str"})
    pd.testing.assert_frame_equal(rows, expected)


def test_equal_qids_of_two_systems_are_one_topic(recorded):
    rows = recorded("qid,system,label,ir_score\nq1,a,5,0.5\nq1,b,1,0.1\n").outcomes()
    assert rows["qid"].tolist() == ["q1", "q1"]


def test_a_score_and_a_label_are_enough(recorded):
    rows = recorded("ir_score,label\n0.5,5\n").outcomes()
    assert rows[["qid", "system"]].to_numpy().tolist() == [["recorded/1", "recorded"]]


def test_clusters_are_a_column_of_the_file(recorded):
    text = "qid,system,label,ir_score,user\nq1,a,5,0.5,u\nq2,a,5,0.5,u\nq3,a,5,0.5,\nq1,b,5,0.5,u\n"
    assert recorded(text).outcomes("user")["topic_cluster"].tolist() == ["u", "u", "q3", "u"]
    with pytest.raises(
        ConfigError, match=r"cluster=document: .* no such column; there are qid, system, label, ir_score"
    ):
        recorded(text).outcomes("document")
    with pytest.raises(ConfigError, match="cluster=label: all 3 topics are one cluster"):
        recorded(text).outcomes("label")
    with pytest.raises(DataError, match="qid 'q1' is in two clusters of the column 'system'"):
        recorded(text).outcomes("system")
    assert "topic_cluster" not in recorded(text).outcomes("qid")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("label\n5\n", "column 'ir_score' is missing"),
        ("ir_score,label\n0.5,5\n1.2,5\n", "line 3: ir_score is '1.2', not a number in \\[0, 1\\]"),
        ("ir_score,label\nnan,5\n", "line 2: ir_score is 'nan'"),
        ("ir_score,label\n0.5,6\n", "line 2: label is '6', not a judge class 1 to 5, or nothing"),
        ("ir_score,label,count\n0.5,5,0\n", "line 2: count is '0', not a whole number from 1"),
        ("ir_score,label,qid\n0.5,5,\n", "line 2 \\(qid=''\\): qid is '', not a value"),
        ("ir_score,label,qid\n0.5,5,q\n0.6,5,q\n", "line 3 \\(qid='q'\\): a second row of the same qid$"),
        ("ir_score,label,qid,count\n0.5,5,q,2\n", "columns qid and count"),
        ("ir_score,label\n", "no outcome in it"),
    ],
)
def test_a_bad_row_is_told_with_its_line(recorded, text, told):
    with pytest.raises(DataError, match=told):
        recorded(text).outcomes()


def test_a_log_file_in_its_place_is_told(tmp_path):
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00log,\n1,2,3\n")
    with pytest.raises(DataError, match="no CSV file in UTF-8"):
        RecordedOutcomes(path=tmp_path / "x").outcomes()


def test_no_file_bad_shares_and_retrieval_are_refused():
    with pytest.raises(ConfigError, match=r"dataset\.path"):
        RecordedOutcomes().outcomes()
    with pytest.raises(ConfigError, match=r"dataset\.name"):
        RecordedOutcomes(name="")
    assert RecordedOutcomes(judged_shares={"sim": [0.58, 0.1, 0.1, 0.2, 0]})
    for wrong in ([0.5, 0.5], [0.4, 0, 0, 0, 0], [0.5, 0.5, 0.1, 0, 0], [1.02, 0, 0, 0, 0], [0.5, 0.6, -0.1, 0, 0]):
        with pytest.raises(ConfigError, match=r"judged_shares\.sim.*five shares"):
            RecordedOutcomes(judged_shares={"sim": wrong})
    with pytest.raises(ConfigError, match="nothing can be retrieved"):
        StudyOutcomes().load()


def test_the_study_s_file_holds_what_its_docstring_says():
    rows = StudyOutcomes().outcomes()
    assert rows.groupby("system").size().to_dict() == dict.fromkeys(["bm25", "mlq", "mmr", "reo", "sim"], 7404)
    bm25 = rows[rows["system"] == "bm25"]
    assert bm25["label"].value_counts().to_dict() == {5: 3142, 4: 3688, 1: 574}
    assert rows.loc[rows["system"] != "bm25", "label"].isna().all()
    # The figures are those of the means that the study prints, but for mlq (0.43 in its table).
    means = rows.groupby("system")["ir_score"].mean().round(2).to_dict()
    assert means == pytest.approx({"bm25": 0.62, "sim": 0.52, "mmr": 0.46, "mlq": 0.40, "reo": 0.26}, abs=0.011)


def test_errors_of_foreseen_shares_by_hand() -> None:
    table = pd.DataFrame(
        {
            "system": ["b", "b", "c", "d"],
            "share": ["right", "lack", "right", "right"],
            "predictor": [0.5, 0.1, 0.2, 0.9],
            "thresholds": [0.1, 0.0, 0.2, 0.9],
            "unchanged": [0.6, 0.1, 0.6, 0.6],
            "judged": [0.4, 0.3, 0.3, float("nan")],
        }
    )
    found = foreseen_errors(table)
    assert found["unjudged_right_mae_predictor"] == pytest.approx(0.1)
    assert found["unjudged_right_mae_thresholds"] == pytest.approx(0.2)
    assert found["unjudged_lack_mae_unchanged"] == pytest.approx(0.2)
    assert foreseen_errors(table.assign(judged=float("nan"))) == {}
