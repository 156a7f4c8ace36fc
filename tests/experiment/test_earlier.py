"""Which verdicts of an earlier run a judged sample takes, and which run it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from logged_runs import LoggedRuns, questions
from processes import run
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.outcomes import PROBABILITY_COLUMNS
from ragauge.contract.settings import Settings, Tracking
from ragauge.experiment.earlier import earlier_labels

LABELS = {"a": 5, "b": 1, "c": None}
TOPICS = questions(dict.fromkeys([*LABELS, "d"], 0.5))[["qid", "query"]]


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., pd.Series | None]:
    """What is taken of a run with these questions, judging `sample` topics of TOPICS."""
    uri = f"sqlite:///{tmp_path_factory.mktemp('earlier') / 'mlflow.db'}"

    def take(rows: pd.DataFrame, sample: int | None = 2, source: str | None = None) -> pd.Series | None:
        run_id = LoggedRuns(uri, "e").job(rows)
        judge = {"sample": sample, "earlier": source or run_id}
        return earlier_labels(Settings(judge=judge, llm={}, tracking=Tracking(uri=uri)), TOPICS)

    return take


def test_every_shared_topic_has_its_earlier_class_and_others_are_left_out(taken) -> None:
    found = taken(questions(dict.fromkeys([*LABELS, "unknown"], 0.5), {**LABELS, "unknown": 2}))
    assert found.to_dict() == {"a": 5, "b": 1}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (questions(dict.fromkeys(LABELS, 0.5)), "this run has no verdicts"),
        (questions({"x": 0.5}, {"x": 5}), "this run has none of the 4 topics"),
        (
            questions(dict.fromkeys(LABELS, 0.5), LABELS).replace("What is b?", "Who is b?"),
            "qid 'b' is another topic there, with the question 'Who is b?' in place of 'What is b?'",
        ),
        (
            questions(dict.fromkeys(LABELS, 0.5), LABELS).assign(
                judged=[True, True, False], **dict.fromkeys(PROBABILITY_COLUMNS, 0.2)
            ),
            "this run judged 2 of 3 topics; allowed is one that judged all: a shared sample has no verdicts on the "
            "other topics",
        ),
    ],
)
def test_a_run_that_cannot_serve_is_refused_in_one_line(taken, rows: pd.DataFrame, message: str) -> None:
    with pytest.raises(DataError) as caught:
        taken(rows)
    assert str(caught.value).startswith("judge.earlier=")
    assert str(caught.value).endswith(message)
    assert "\n" not in str(caught.value)


def test_a_run_that_is_not_there_and_a_job_without_a_sample_are_refused(taken) -> None:
    rows = questions(dict.fromkeys(LABELS, 0.5), LABELS)
    with pytest.raises(ConfigError, match=r"^judge\.earlier=fff: MLflow at .* holds no run fff"):
        taken(rows, source="fff")
    with pytest.raises(ConfigError, match=r"give judge\.sample"):
        taken(rows, sample=None)


@pytest.mark.slow
def test_the_same_answers_judged_before_leave_nothing_to_guess(tmp_path: Path) -> None:
    options = ["chunker=none", "bootstrap=50", "retriever=bm25", "n_tokens=300", "dataset.limit=60"]
    first = run(tmp_path, *options, "hydra.run.dir=first")
    assert first.returncode == 0, first.stderr
    every = pd.read_parquet(tmp_path / "first" / "outcomes.parquet").set_index("qid")["label"]
    second = run(tmp_path, *options, "judge.sample=30", "judge.earlier=first", "hydra.run.dir=second")
    assert second.returncode == 0, second.stderr
    rows = pd.read_parquet(tmp_path / "second" / "outcomes.parquet").set_index("qid")
    assert rows["earlier_label"].equals(every.rename("earlier_label").astype("Int8"))
    alone = run(tmp_path, *options, "judge.sample=30", "hydra.run.dir=alone")
    assert alone.returncode == 0, alone.stderr
    guess = pd.read_parquet(tmp_path / "alone" / "outcomes.parquet").set_index("qid")["p5"]
    right = every.eq(5).astype(float)
    assert (rows["p5"] - right).abs().mean() < 0.5 * (guess - right).abs().mean()
