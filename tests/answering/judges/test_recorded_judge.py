"""judge=recorded: labels of a file, from anyone; what is no class is named."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from answer_inputs import TOPICS
from ragauge.answering.judges import RecordedJudge
from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity

ANSWERS = pd.DataFrame(
    {
        "qid": ["q1", "q2"],
        "n_tokens": 100,
        "answer": pd.array(["Anna", None], "str"),
        "status": ["ok", "missing"],
    }
)


def judged(folder: Path, text: str, tools: Tools, name: str = "labels.csv", **how: Any) -> pd.DataFrame:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    judge = RecordedJudge(path=path, **how)
    return frames.check("verdicts", judge.judge(TOPICS, pd.DataFrame(), ANSWERS, tools))


@pytest.mark.parametrize("five", ["5", "5.0"])
def test_labels_of_a_csv_file(tmp_path: Path, tools: Tools, five: str) -> None:
    found = judged(tmp_path, f"qid,label,who\nq2,1,ann\nq1,{five},bob\n", tools)
    assert found["label"].tolist() == [5, 1]  # that of an answer which is not there, too
    assert (found["status"] == "ok").all()
    assert found[["calls", "cost_usd"]].sum().sum() == 0


def test_a_null_label_is_a_missing_verdict_and_no_answer_is_said_so(tmp_path: Path, tools: Tools) -> None:
    found = judged(tmp_path, "qid,label\nq1,\nq2,\nq3,4\n", tools)
    assert found["label"].isna().all()
    assert found["status"].tolist() == ["missing", "no answer"]
    assert set(found["error"]) == {"no label in labels.csv"}


def test_missing_topics_are_an_error_or_missing_verdicts(tmp_path: Path, tools: Tools) -> None:
    text = '{"qid": "q2", "label": 4}\n'
    with pytest.raises(DataError, match=r"1 of 2 topics have no label in it \('q1'\)"):
        judged(tmp_path, text, tools, "labels.jsonl")
    found = judged(tmp_path, text, tools, "labels.jsonl", on_missing="missing")
    assert found["label"].isna().tolist() == [True, False]


@pytest.mark.parametrize("label", ["6", "0", '"right"', "true", "2.5", "[5]", '{"a": 5}'])
def test_what_is_no_class_is_named(tmp_path: Path, tools: Tools, label: str) -> None:
    text = f'{{"qid": "q2", "label": 1}}\n{{"qid": "q1", "label": {label}}}\n'
    with pytest.raises(DataError, match=r"labels\.jsonl, line 2 \(qid='q1'\): label .* allowed are 1 to 5 and null"):
        judged(tmp_path, text, tools, "labels.jsonl")


def test_a_file_without_labels_and_no_answers_for_which_none_is_read(tmp_path: Path, tools: Tools) -> None:
    none = RecordedJudge(path="nowhere.csv").judge(TOPICS, pd.DataFrame(), ANSWERS.iloc[:0], tools)
    assert len(frames.check("verdicts", none)) == 0
    with pytest.raises(DataError, match="no row has a label, a judge class 1 to 5"):
        judged(tmp_path, "qid,rating\nq1,5\nq2,4\n", tools)


def test_systems_are_compared_by_one_judge_but_their_verdicts_have_keys_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("qid,system,label\nq1,x,5\nq1,y,1\n")
    x, y = (RecordedJudge(path=path, system=name) for name in "xy")
    assert identity(x) == identity(y)
    assert x.files().keys() != y.files().keys()
    assert identity(dataclasses.replace(x, name="ann")) != identity(x)
    with pytest.raises(ConfigError, match=r"judge\.path is not set"):
        RecordedJudge().files()


@pytest.mark.parametrize("settings", [{"on_missing": "drop"}, {"system": " "}, {"system": 3}, {"name": ""}])
def test_settings_that_pick_nothing_are_refused_before_the_file_is_read(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"judge.{next(iter(settings))}="):
        RecordedJudge(path="nowhere.csv", **settings)
