"""Labels of people on MLflow's traces, as they come to the answers that they were given to."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest
from omegaconf import OmegaConf

from ragauge import track
from ragauge.findings.per_question import with_labels_of_people


@pytest.mark.parametrize("reverse", [False, True])
def test_of_several_labels_for_one_answer_the_newest_counts(monkeypatch: pytest.MonkeyPatch, reverse: bool) -> None:
    """Each job wrote a trace of the same answer; MLflow lists the latest trace first, whenever it was labelled."""
    yes, no = map(track.answer_digest, ("yes", "no"))
    rows = [("t3", "q0", yes, 1, 10), ("t2", "q0", yes, 5, 30), ("t1", "q0", yes, 3, 20), ("t0", "q1", no, 2, 40)]
    columns = ["trace_id", "qid", "answer", "label", "labelled_ms"]
    labels = pd.DataFrame(rows[::-1] if reverse else rows, columns=columns)
    monkeypatch.setattr(track, "labels_of_people", lambda uri, experiment: labels)
    pipeline = SimpleNamespace(components=SimpleNamespace(dataset=None))
    cfg = OmegaConf.create({"human_labels": "mlflow", "tracking": {"uri": "sqlite:///none.db"}})
    outcomes = pd.DataFrame({"qid": ["q0", "q1"], "answer": ["yes", "yes"]})
    found = with_labels_of_people(outcomes, pipeline, cfg, "helpdesk")["human_label"]
    assert found.iloc[0] == 5
    assert found.isna().tolist() == [False, True]  # the other answer to q1 was labelled
