"""Tracking against a real MLflow store on SQLite."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge.errors import ConfigError, DataError
from ragauge.track import Reader, TopicTrace, Tracker, flatten, load_predictor, tracking_uri


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tracking") / "mlruns"


@pytest.fixture
def tracker(folder: Path, request: pytest.FixtureRequest) -> Tracker:
    """An experiment of the test's own in a database of the module's (making one takes seconds)."""
    return Tracker(f"sqlite:///{folder / 'mlflow.db'}", request.node.name)


def client_of(tracker: Tracker):
    from mlflow import MlflowClient

    return MlflowClient(tracker.uri)


def runs_of(tracker: Tracker):
    client = client_of(tracker)
    return client.search_runs([client.get_experiment_by_name(tracker.experiment).experiment_id])


def tracker_folder(tracker: Tracker) -> Path:
    return Path(tracker.uri.removeprefix("sqlite:///")).parent / "artifacts" / tracker.experiment


def test_the_config_comes_before_the_environment_and_that_before_sqlite(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert tracking_uri() == f"sqlite:///{tmp_path}/mlruns/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    assert tracking_uri() == "http://127.0.0.1:5000"
    assert tracking_uri("sqlite:///other.db") == "sqlite:///other.db"


def test_nested_config_becomes_dotted_params() -> None:
    config = {
        "n_tokens": 100,
        "retriever": {"top_k": 5, "chat": {"model": "m"}},
        "n_grid": [1, 2],
        "gate": {},
    }
    assert flatten(config) == {
        "n_tokens": 100,
        "retriever.top_k": 5,
        "retriever.chat.model": "m",
        "n_grid": [1, 2],
        "gate": {},
    }


def test_a_run_holds_params_tags_metrics_curves_artifacts_and_a_table(tracker: Tracker, tmp_path) -> None:
    (tmp_path / "out" / "figures").mkdir(parents=True)
    (tmp_path / "out" / "figures" / "a.txt").write_text("figure")
    with tracker.run(
        "bm25 · N=100", {"n_tokens": 100, "long": "x" * 9000}, {"retriever": "bm25"}, "a note"
    ) as run:
        run.metrics({"ir_score": 0.5, "undefined": float("nan")}, {"ir_score_at_n": {100: 0.25, 50: 0.125}})
        run.artifacts(tmp_path / "out")
        run.table(pd.DataFrame({"qid": ["q1"], "answer": ["<b>é</b>"]}), "per_question.json")
    client = client_of(tracker)
    logged = client.get_run(run.run_id)
    assert logged.info.status == "FINISHED"
    assert logged.data.params["n_tokens"] == "100"
    assert len(logged.data.params["long"]) == 6000
    assert logged.data.tags["retriever"] == "bm25"
    assert logged.data.tags["mlflow.note.content"] == "a note"
    assert logged.data.metrics["ir_score"] == 0.5
    assert "undefined" not in logged.data.metrics
    history = client.get_metric_history(run.run_id, "ir_score_at_n")
    assert [(m.step, m.value) for m in history] == [(50, 0.125), (100, 0.25)]
    artifacts = tracker_folder(tracker) / run.run_id / "artifacts"
    assert (artifacts / "figures" / "a.txt").read_text() == "figure"
    table = json.loads(Path(client.download_artifacts(run.run_id, "per_question.json")).read_text())
    assert table["data"] == [["q1", "<b>é</b>"]]


def test_a_failing_block_leaves_a_failed_run_with_its_error(tracker: Tracker) -> None:
    with pytest.raises(ValueError, match="no such thing"), tracker.run("bad", {}, {}):
        raise ValueError("no such thing")
    (run,) = runs_of(tracker)
    assert run.info.status == "FAILED"
    assert run.data.tags["error"] == "ValueError: no such thing"


def test_an_interrupted_block_leaves_a_killed_run(tracker: Tracker) -> None:
    with pytest.raises(KeyboardInterrupt), tracker.run("stopped", {}, {}):
        raise KeyboardInterrupt
    assert [run.info.status for run in runs_of(tracker)] == ["KILLED"]


def test_runs_of_a_process_that_is_gone_are_closed_and_those_of_a_living_one_left(tracker: Tracker) -> None:
    gone = subprocess.Popen([sys.executable, "-c", "pass"])
    gone.wait()
    with tracker.run("alive", {}, {}) as alive:
        client = client_of(tracker)
        orphan = client.create_run(
            alive.experiment_id,
            tags={
                "ragauge.pid": str(gone.pid),
                "ragauge.host": client.get_run(alive.run_id).data.tags["ragauge.host"],
            },
        )
        assert tracker.close_orphans() == 1
        assert client.get_run(orphan.info.run_id).info.status == "KILLED"
        assert client.get_run(alive.run_id).info.status == "RUNNING"


def test_only_runs_with_all_of_the_tags_are_replaced(tracker: Tracker) -> None:
    for role, sweep_id in (("sweep", "a"), ("sweep", "b"), ("job", "a")):
        with tracker.run("r", {}, {"role": role, "sweep_id": sweep_id}):
            pass
    tracker.replace_runs({"role": "sweep", "sweep_id": "a"})
    left = {(run.data.tags["role"], run.data.tags["sweep_id"]) for run in runs_of(tracker)}
    assert left == {("sweep", "b"), ("job", "a")}


def test_the_predictor_comes_back_as_a_model_with_a_signature(tracker: Tracker) -> None:
    import mlflow
    from sklearn.linear_model import LogisticRegression

    x = pd.DataFrame({"ir_score": np.linspace(0, 1, 20)})
    model = LogisticRegression().fit(x, [1] * 10 + [5] * 10)
    with tracker.run("fit", {}, {}) as run:
        run.predictor(model, x.head(3), {"n_tokens": [100]})
    mlflow.set_tracking_uri(tracker.uri)
    again, settings = load_predictor(tracker.uri, f"runs:/{run.run_id}/predictor")
    assert settings == {"n_tokens": [100]}
    np.testing.assert_allclose(again.predict_proba(x), model.predict_proba(x))
    loaded = mlflow.pyfunc.load_model(f"runs:/{run.run_id}/predictor")
    assert [column.name for column in loaded.metadata.signature.inputs] == ["ir_score"]
    np.testing.assert_allclose(loaded.predict(x), model.predict_proba(x))


def test_a_reader_finds_runs_by_the_beginning_of_their_id_and_by_tags(tracker: Tracker) -> None:
    frame = pd.DataFrame({"qid": ["q1", "q2"], "ir_score": [1 / 3, 1.0], "answer": ["a", None]})
    with tracker.run("first", {"k": 1}, {"role": "job", "sweep_id": "s"}) as run:
        run.metrics({"ir_score": 2 / 3}, {"ir_score_at_n": {100: 0.5, 200: 2 / 3}})
        run.table(frame, "per_question.json")
    with tracker.run("second", {}, {"role": "job", "sweep_id": "s"}) as second:
        pass
    with tracker.run("pooled", {}, {"role": "sweep", "sweep_id": "s"}) as pooled:
        pass
    reader = Reader(tracker.uri)
    found = reader.run(run.run_id[:12])
    assert (found.run_id, found.name, found.status) == (run.run_id, "first", "FINISHED")
    assert (found.params, found.experiment) == ({"k": "1"}, tracker.experiment)
    assert found.metrics["ir_score"] == 2 / 3
    assert found.tags["sweep_id"] == "s"
    jobs = reader.search({"sweep_id": "s", "role": "job"}, found.experiment_id)
    assert {job.name for job in jobs} == {"first", "second"}
    assert reader.history(run.run_id, "ir_score_at_n") == {100: 0.5, 200: 2 / 3}
    pd.testing.assert_frame_equal(reader.table(run.run_id, "per_question.json"), frame, check_dtype=False)
    with pytest.raises(DataError, match=r"has no artifact per_question\.json"):
        reader.text(second.run_id, "per_question.json")
    client_of(tracker).delete_run(pooled.run_id)
    with pytest.raises(ConfigError, match=f"(?s)holds no run {pooled.run_id}; the newest are .*: second"):
        reader.run(pooled.run_id)
    with pytest.raises(ConfigError, match="holds no run %"):
        reader.run("%")


def test_a_reader_says_where_no_database_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no MLflow database at .*nowhere\.db; name yours"):
        Reader(f"sqlite:///{tmp_path / 'nowhere.db'}")


@pytest.mark.slow
def test_four_processes_at_once_make_one_database_without_harm(tmp_path: Path) -> None:
    code = (
        "import sys; from ragauge.track import Tracker\n"
        "with Tracker(sys.argv[1], 'sample').run('r', {'a': 1}, {}) as run: run.metrics({'m': 1.0})\n"
    )
    uri = f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}"
    workers = [subprocess.Popen([sys.executable, "-c", code, uri]) for _ in range(4)]
    assert [worker.wait(timeout=120) for worker in workers] == [0] * 4
    assert [run.info.status for run in runs_of(Tracker(uri, "sample"))] == ["FINISHED"] * 4


def test_a_trace_per_topic_has_retrieval_generation_and_judge_spans(tracker: Tracker) -> None:
    import mlflow

    chunks, verdict = [("a%p0", "text")], {"label": 5}
    topics = [TopicTrace(f"q{i}", f"question {i}?", chunks, "text", "answer", verdict, {}) for i in range(5)]
    with tracker.run("traced", {}, {}) as run:
        assert run.traces(topics) == 5
    mlflow.set_tracking_uri(tracker.uri)
    found = mlflow.search_traces(
        locations=[run.experiment_id], run_id=run.run_id, return_type="list", include_spans=True
    )
    assert len(found) == 5
    spans = {span.name for span in found[0].data.spans}
    assert {"retrieval", "generation", "judge"} < spans
