"""The drawn answers in MLflow's review queue, and people's labels back from there."""

from __future__ import annotations

from pathlib import Path

import mlflow
import pandas as pd
import pytest
from mlflow.entities import AssessmentSource
from mlflow.genai import review_queues

from ragauge.contract.errors import DataError
from ragauge.plugins.labels.queue import in_queue
from ragauge.track import answer_digest, connect, drawn_answers, labels_of_people
from servers import mlflow_server


def test_answers_go_into_a_queue_of_a_database_and_their_labels_come_back(tmp_path: Path) -> None:
    check_queue(f"sqlite:///{tmp_path / 'mlflow.db'}", tmp_path)


@pytest.mark.slow
def test_answers_go_into_a_queue_of_a_server_and_their_labels_come_back(tmp_path: Path) -> None:
    with mlflow_server(f"sqlite:///{tmp_path / 'm.db'}", tmp_path / "artifacts", tmp_path / "log") as url:
        check_queue(url, None)
    mlflow.set_tracking_uri(None)  # type: ignore[arg-type]


def check_queue(uri: str, folder: Path | None) -> None:
    """Fills a queue at the address, labels its items, and reads the labels back; a server has a place for artifacts."""
    client = connect(uri)
    experiment = client.create_experiment("towers", artifact_location=None if folder is None else str(folder / "a"))
    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment(experiment_id=experiment)
    for qid, answer in (("q1", "324 m"), ("q2", "1889"), ("q3", "iron")):
        with mlflow.start_span("question"):
            mlflow.update_current_trace(tags={"ragauge.qid": qid, "ragauge.answer": answer_digest(answer)})
    mlflow.flush_trace_async_logging()
    table = pd.DataFrame({"qid": ["q2", "q1"], "answer": ["1889", "324 m"], "label": pd.array([None, 4], dtype="Int8")})
    table = table.assign(n_tokens=300, probability=[1 / 3, 0.1])
    assert in_queue(table, "November", uri, "towers")["label"].isna().tolist() == [True, False]
    [queue] = review_queues.list_review_queues(experiment_id=experiment)
    items = review_queues.list_review_queue_items(queue.queue_id)
    assert (queue.name, len(items)) == ("November", 2)
    person = AssessmentSource(source_type="HUMAN", source_id="ann")
    for item in items:
        mlflow.log_feedback(trace_id=item.item_id, name="label", value="right", source=person)
    # The same queue again, with one answer more.
    third = pd.DataFrame({"qid": ["q3"], "answer": ["iron"], "n_tokens": [300], "probability": [0.5]})
    more = pd.concat([table, third], ignore_index=True)
    assert in_queue(more, "November", uri, "towers")["label"].tolist() == [5, 5, pd.NA]
    assert len(review_queues.list_review_queue_items(queue.queue_id)) == 3
    drawn = drawn_answers(uri, "towers").set_index("qid").sort_index()
    assert drawn["probability"].to_dict() == {"q1": 0.1, "q2": 1 / 3, "q3": 0.5}
    assert drawn.loc["q2", ["answer", "queue", "n_tokens"]].tolist() == [answer_digest("1889"), "November", 300]
    # What human_labels=mlflow reads: of two people the latest counts.
    second = AssessmentSource(source_type="HUMAN", source_id="bob")
    mlflow.log_feedback(trace_id=items[0].item_id, name="label", value="wrong", source=second)
    read = labels_of_people(uri, "towers").set_index("trace_id")["label"]
    assert [read[item.item_id] for item in items] == [4, 5]
    with pytest.raises(DataError, match=r"1 of 2 answers have no trace in 'towers' \(the first: qid 'q1'\)"):
        in_queue(table.assign(answer=["1889", "330 m"]), "November", uri, "towers")
