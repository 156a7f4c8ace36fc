"""A traced application measured from its traces: one command, monitoring by day, and MLflow's own pages."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from plugins.traces.traced_app import EXPERIMENT
from processes import run
from ragauge.contract.metrics import without_groups

SETTINGS = [
    "experiment=mlflow_traces", f"dataset.experiment={EXPERIMENT}", "dataset.on_error=skip", "answers=[f1]",
    "max_missing_share=0.2", "bootstrap=20", "n_tokens=500", "n_grid=[100]",
]  # fmt: skip


@pytest.fixture
def folder(traced_database: Path, tmp_path: Path) -> Path:
    """A folder with a copy of the application's store where ragauge looks for one."""
    (tmp_path / "mlruns").mkdir()
    shutil.copy(traced_database, tmp_path / "mlruns" / "mlflow.db")
    return tmp_path


def query(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(folder / "mlruns" / "mlflow.db") as database:
        return database.execute(sql).fetchall()


def metrics(folder: Path) -> list[dict[str, float]]:
    """The metrics of the jobs, the latest first."""
    jobs = query(
        folder,
        "select run_uuid from runs join tags using (run_uuid) where key = 'role' and tags.value = 'job' "
        "order by start_time desc",
    )
    of_jobs = [query(folder, f"select key, value from latest_metrics where run_uuid = '{job}'") for (job,) in jobs]
    return [without_groups(dict(rows)) for rows in of_jobs]


@pytest.mark.slow
def test_a_traced_application_is_measured_in_one_step_and_again_from_the_store(folder: Path) -> None:
    pytest.importorskip("ragauge.plugins.gate.checking")
    until = "dataset.until=2100-01-01"
    first = run(folder, *SETTINGS, until, "+gate.correct_share=0.4")
    assert first.returncode == 0, first.stderr
    assert "1 traces have no RETRIEVER span: their contexts are empty" in first.stderr
    again = run(folder, *SETTINGS, until, "+gate.correct_share={min:0.9,by:value}")
    assert again.returncode == 3  # the gate of a window that is not good enough
    assert "correct_share=0.5000 [0.0888, 0.9112] is below 0.9" in again.stderr
    later, earlier = metrics(folder)
    # Two of four judged answers are right; all evidence is in the contexts.
    assert earlier["ir_score"] == 1.0
    assert earlier["correct_share"] == 0.5
    assert (earlier["topics"], earlier["topics_skipped"], earlier["topics_without_reference"]) == (7, 1, 3)
    assert (earlier["traces_failed"], earlier["traces_without_retriever"]) == (1, 1)
    assert earlier["traces_rounds"] == 1.0
    assert earlier["recorded_prompt_tokens"] == 240
    assert earlier["llm_calls"] == 0
    assert 0 < earlier["recorded_seconds_p50"] < 60
    # The failed trace has no answer, which a rerun asks for again.
    assert later["stages_made"] <= 1 < earlier["stages_made"]
    assert len(list((folder / ".ragauge" / "traces").glob("*.jsonl"))) == 1
    days = query(folder, "select step, value, timestamp from metrics where key = 'chart/correct_share_at_day'")
    day = query(folder, "select strftime('%Y%m%d', timestamp_ms / 1000, 'unixepoch') from trace_info")[0][0]
    assert {step for step, *_ in days} == {int(day)}
    assert {value for _, value, _ in days} == {0.5}
    assert {t % 86_400_000 for *_, t in days} == {0}


@pytest.mark.slow
def test_a_rerun_of_a_config_that_points_to_the_machine_s_places_measures_the_logged_window(
    folder: Path,
) -> None:
    pytest.importorskip("ragauge.plugins.rerun")
    first = run(folder, *SETTINGS, "dataset.since=1d")
    assert first.returncode == 0, first.stderr
    job = query(folder, "select run_uuid from tags where key = 'role' and value = 'job'")[0][0]
    again = run(folder, f"rerun={job}")
    assert again.returncode == 0, again.stderr
    later, earlier = metrics(folder)
    told = ("ir_score", "correct_share", "topics", "traces_rounds", "recorded_seconds_p95", "f1")
    assert {name: later[name] for name in told} == {name: earlier[name] for name in told}
    assert "the dataset is the same" in again.stderr
    assert len(list((folder / ".ragauge" / "traces").glob("*.jsonl"))) == 1


@pytest.mark.slow
def test_answers_stand_on_the_page_of_evaluation_runs_and_people_s_labels_come_back(folder: Path) -> None:
    import mlflow
    from mlflow.entities import AssessmentSource

    done = run(folder, *SETTINGS, "tracking.evaluation=true")
    assert done.returncode == 0, done.stderr
    (evaluation,) = query(folder, "select run_uuid from tags where key = 'mlflow.runType'")[0]
    linked = query(folder, f"select source_id from entity_associations where destination_id = '{evaluation}'")
    measured = [i for (i,) in query(folder, "select request_id from trace_info order by timestamp_ms")][:7]
    assert {trace for (trace,) in linked} == set(measured)  # the application's own traces, none written
    said = query(
        folder,
        "select trace_id, name, value, rationale, source_type, run_id from assessments "
        "where assessment_type = 'feedback'",
    )
    assert {row[5] for row in said} == {evaluation}
    assert {row[4] for row in said} == {"CODE"}
    classes = {trace: (json.loads(value), why) for trace, name, value, why, *_ in said if name == "judge_class"}
    assert [classes[trace][0] for trace in measured[:4]] == [5, 5, 1, 3]
    assert classes[measured[0]][1].startswith("right")
    right = {trace: json.loads(value) for trace, name, value, *_ in said if name == "correct"}
    assert [right[trace] for trace in measured[:4]] == [True, True, False, False]
    assert {name for _, name, *_ in said} == {"judge_class", "correct", "ir_score", "f1", "truthfulness"}
    of_run = dict(query(folder, f"select key, value from latest_metrics where run_uuid = '{evaluation}'"))
    assert of_run["correct_share"] == 0.5
    # MLflow's page shows runs with a model, such as a job with a predictor, among training runs alone.
    assert query(folder, f"select count(*) from inputs where source_id = '{evaluation}'") == [(0,)]

    # A person corrects one class on the page, and labels another answer by name.
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlruns' / 'mlflow.db'}")
    try:
        person = AssessmentSource("HUMAN", "ann@example.org")
        wrong = query(
            folder,
            f"select assessment_id from assessments where name = 'judge_class' and trace_id = '{measured[3]}'",
        )[0][0]
        mlflow.override_feedback(trace_id=measured[3], assessment_id=wrong, value=4, source=person)
        mlflow.log_feedback(trace_id=measured[0], name="label", value="right", source=person)
        mlflow.log_feedback(trace_id=measured[1], name="label", value="5", source=person)
        again = run(folder, *SETTINGS, "human_labels=mlflow")
        assert again.returncode == 0, again.stderr
        newest = max((folder / "outputs").glob("*/*/outcomes.parquet"), key=lambda f: f.stat().st_mtime)
        outcomes = pd.read_parquet(newest).set_index("qid")["human_label"]
        assert outcomes.dropna().to_dict() == {measured[0]: 5, measured[1]: 5, measured[3]: 4}
        assert metrics(folder)[0]["human_labels"] == 3
        assert metrics(folder)[0]["judge_agreement"] == pytest.approx(2 / 3)
        mlflow.log_feedback(trace_id=measured[2], name="judge_class", value="good", source=person)
        bad = run(folder, *SETTINGS, "human_labels=mlflow")
        assert bad.returncode == 2
        assert f"trace {measured[2]}: judge_class is 'good', not a judge class 1..5" in bad.stderr
    finally:
        mlflow.set_tracking_uri(None)  # type: ignore[arg-type]


@pytest.mark.slow
def test_answers_of_another_dataset_get_traces_whose_labels_hold_for_equal_answers(tmp_path: Path) -> None:
    import mlflow
    from mlflow.entities import AssessmentSource

    small = ["dataset.limit=4", "chunker=none", "bootstrap=20", "n_tokens=100", "n_grid=[100]"]
    done = run(tmp_path, *small, "tracking.evaluation=true")
    assert done.returncode == 0, done.stderr
    none = run(tmp_path, *small, "human_labels=mlflow")
    assert none.returncode == 2
    assert "human_labels=mlflow: no trace of one of these answers in 'sample' has feedback by people" in none.stderr
    traces = dict(query(tmp_path, "select value, request_id from trace_tags where key = 'ragauge.qid'"))
    assert len(traces) == 4
    (qid, trace), (other, changed), *_ = traces.items()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}")
    try:
        for one in (trace, changed):
            person = AssessmentSource("HUMAN", "ann")
            mlflow.log_feedback(trace_id=one, name="judge_class", value=3, source=person)
        mlflow.set_trace_tag(changed, "ragauge.answer", "the digest of another answer")
    finally:
        mlflow.set_tracking_uri(None)  # type: ignore[arg-type]
    assert run(tmp_path, *small, "human_labels=mlflow").returncode == 0
    newest = max((tmp_path / "outputs").glob("*/*/outcomes.parquet"), key=lambda f: f.stat().st_mtime)
    outcomes = pd.read_parquet(newest).set_index("qid")["human_label"]
    assert outcomes.dropna().to_dict() == {qid: 3}
    assert other in outcomes.index


@pytest.mark.slow
def test_a_wrong_window_ends_before_any_run(folder: Path) -> None:
    for override, message in (
        ("dataset.since=yesterday", "dataset.since='yesterday': allowed are ISO times"),
        ("dataset.experiment=desk", "dataset.experiment='desk': MLflow at"),
        ("dataset.filter=3", "dataset.filter=3: allowed are MLflow's expressions on traces, and null"),
        ("dataset.filter='x ~ 3'", "dataset.filter='x ~ 3': MLflow says"),
    ):
        done = run(folder, *SETTINGS, override)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    done = run(folder, "-m", *SETTINGS, "dataset.experiment=desk", "judge=lexical,none")
    assert done.returncode == 2
    assert query(folder, "select count(*) from runs") == [(0,)]
    assert query(folder, "select name from experiments where name = 'desk'") == []
