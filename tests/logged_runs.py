"""MLflow runs as ragauge logs them, without the jobs: tags, metrics and questions are what a test says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from ragauge import track
from ragauge.contract import comparable
from ragauge.contract.groups import GROUPS
from ragauge.estimate.summary import quality


def questions(scores: Mapping[str, float], labels: Mapping[str, int | None] | None = None) -> pd.DataFrame:
    """The table of a run's questions, by qid; without labels no answer has a verdict."""
    given = labels or dict.fromkeys(scores)
    return pd.DataFrame(
        {
            "qid": list(scores),
            "query": [f"What is {qid}?" for qid in scores],
            "answer": [f"It is {qid}." for qid in scores],
            "ir_score": list(scores.values()),
            "label": pd.array([given.get(qid) for qid in scores], dtype="Int8"),
            "n_used": 10.0,
        }
    )


@dataclass(frozen=True)
class LoggedRuns:
    """An MLflow store of SQLite and one of its experiments."""

    uri: str
    experiment: str

    def job(self, rows: pd.DataFrame, name: str = "job", params: Mapping[str, str] | None = None, **tags: str) -> str:
        """Logs the run of a job; its id. Tags are those of components and whatever else a job has."""
        means = comparable.digests({"measure": {"component": "substring"}, "judge": {"component": "chat"}})
        every = {**dict.fromkeys(GROUPS, "none"), "role": "job", "n_tokens": "100"}
        every |= {"dataset_digest": "0" * 64} | comparable.as_tag(means) | tags
        metrics = {"topics": len(rows), **quality(rows)}
        with track.Tracker(self.uri, self.experiment).run(name, params or {}, every) as run:
            run.table(rows, "per_question.json")
            run.metrics(metrics)
        return str(run.run_id)

    def sweep(self, sweep_id: str, metrics: Mapping[str, float] | None = None, **tags: str) -> str:
        """Logs the run of a sweep, whose jobs have the tag sweep_id."""
        tags |= {"role": "sweep", "sweep_id": sweep_id}
        with track.Tracker(self.uri, self.experiment).run("sweep", {}, tags) as run:
            run.metrics(metrics or {})
        return str(run.run_id)
