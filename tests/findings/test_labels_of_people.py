"""Labels of people on MLflow's traces, as they come to the answers that they were given to."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from ragauge import track
from ragauge.contract.errors import DataError
from ragauge.contract.settings import Settings, Tracking
from ragauge.datasets.labels import with_human_labels
from ragauge.estimate.human import human_shares
from ragauge.findings.per_question import with_labels_of_people
from sweep_records import record_of


def job_without_traces() -> Any:
    """A job whose dataset is none of traces."""
    settings = Settings(human_labels="mlflow", tracking=Tracking(uri="sqlite:///none.db"))
    pipeline = SimpleNamespace(components=SimpleNamespace(dataset=None))
    return SimpleNamespace(pipeline=pipeline, settings=settings, record=record_of(experiment="helpdesk"))


@pytest.mark.parametrize("reverse", [False, True])
def test_of_several_labels_for_one_answer_the_newest_counts(monkeypatch: pytest.MonkeyPatch, reverse: bool) -> None:
    """Each job wrote a trace of the same answer; MLflow lists the latest trace first, whenever it was labelled."""
    yes, no = map(track.answer_digest, ("yes", "no"))
    rows = [("t3", "q0", yes, 1, 10), ("t2", "q0", yes, 5, 30), ("t1", "q0", yes, 3, 20), ("t0", "q1", no, 2, 40)]
    columns = ["trace_id", "qid", "answer", "label", "labelled_ms"]
    labels = pd.DataFrame(rows[::-1] if reverse else rows, columns=columns)
    monkeypatch.setattr(track, "labels_of_people", lambda uri, experiment: labels)
    monkeypatch.setattr(track, "drawn_answers", lambda uri, experiment: pd.DataFrame())
    job = job_without_traces()
    outcomes = pd.DataFrame({"qid": ["q0", "q1"], "answer": ["yes", "yes"]})
    found = with_labels_of_people(outcomes, job)["human_label"]
    assert found.iloc[0] == 5
    assert found.isna().tolist() == [False, True]  # the other answer to q1 was labelled


def test_labels_of_a_queue_weigh_as_those_of_its_sheet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The answer to q1 was drawn at another budget, and that to q3 has a label outside of the queue."""
    qids = [f"q{i}" for i in range(8)]
    outcomes = pd.DataFrame({"qid": qids, "answer": [f"answer {q}" for q in qids], "n_tokens": 300, "retriever": "sim"})
    outcomes["label"] = pd.array([5, 5, 4, 5, 4, 4, 5, 5], dtype="Int8")
    outcomes["ir_score"] = [0.9, 0.8, 0.1, 0.7, 0.2, 0.3, 0.6, 1.0]
    sheet = outcomes[["qid", "n_tokens", "retriever", "answer"]].iloc[[0, 2, 4, 5, 6]]
    sheet = sheet.assign(label=pd.array([5, 4, 5, None, 1], dtype="Int8"), probability=[0.1, 0.7, 1 / 3, 0.9, 0.35])
    sheet.to_csv(tmp_path / "labels.csv", index=False)
    digests = sheet["answer"].map(track.answer_digest)
    rows = sheet.assign(answer=digests, queue="November", drawn_ms=20).drop(columns="label")
    before = rows.assign(queue="October", drawn_ms=10, probability=0.5)
    other = pd.DataFrame({"qid": ["q1"], "answer": [track.answer_digest("answer q1")]})
    elsewhere = other.assign(n_tokens=900, retriever="sim", queue="December", drawn_ms=30, probability=0.2)
    said = sheet.assign(answer=digests).dropna(subset="label")[["qid", "answer", "label"]]
    beside = pd.DataFrame({"qid": ["q3"], "answer": [track.answer_digest("answer q3")]})
    people = pd.concat([said, other.assign(label=1), beside.assign(label=1)], ignore_index=True)
    people = people.assign(labelled_ms=range(len(people)), trace_id="t")
    monkeypatch.setattr(track, "labels_of_people", lambda uri, experiment: people)
    monkeypatch.setattr(track, "drawn_answers", lambda uri, experiment: pd.concat([rows, before, elsewhere]))
    job = job_without_traces()
    found = with_labels_of_people(outcomes, job)
    by_file = with_human_labels(outcomes, tmp_path / "labels.csv")
    assert_frame_equal(found, by_file, check_exact=True)
    assert by_file["human_probability"].dropna().tolist() == [0.8 * p for p in (0.1, 0.7, 1 / 3, 0.35)]
    shares = [human_shares(rows.assign(label=rows["label"].astype("Int8"))) for rows in (found, by_file)]
    assert_frame_equal(*shares, check_exact=True)
    with pytest.raises(DataError, match=r"human_labels=mlflow: qid 'q0' has another answer in this job"):
        with_labels_of_people(outcomes.assign(answer="another"), job)
    of_900 = with_labels_of_people(outcomes.assign(n_tokens=900), job)
    assert of_900["human_label"].notna().tolist() == [qid == "q1" for qid in qids]
    alone = with_labels_of_people(outcomes.assign(retriever="bm25"), job)
    assert alone["human_label"].notna().tolist() == [qid == "q3" for qid in qids]
    assert "human_probability" not in alone
