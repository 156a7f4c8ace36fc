"""Tracking against a real MLflow store on SQLite."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract import provenance
from ragauge.contract.errors import ConfigError, TrackingError
from ragauge.contract.finding import Found
from ragauge.track import (
    Reader,
    Run,
    Tracker,
    close_orphans,
    connect,
    flatten,
    has_experiment,
    load_predictor,
    log_found,
    save_predictor,
    tracking_uri,
    views,
)
from servers import free_port


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


def test_a_run_holds_params_tags_metrics_curves_artifacts_and_a_table(tracker: Tracker) -> None:
    with tracker.run("bm25 · N=100", {"n_tokens": 100, "long": "x" * 9000}, {"retriever": "bm25"}, "a note") as run:
        run.metrics({"ir_score": 0.5, "undefined": float("nan")}, {"ir_score_at_n": {100: 0.25, 50: 0.125}})
        (run.folder / "figures").mkdir()
        (run.folder / "figures" / "a.txt").write_text("figure")
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
    history = client.get_metric_history(run.run_id, "chart/ir_score_at_n")
    assert [(m.step, m.value) for m in history] == [(50, 0.125), (100, 0.25)]
    artifacts = tracker_folder(tracker) / run.run_id / "artifacts"
    assert (artifacts / "figures" / "a.txt").read_text() == "figure"
    assert run.file_of("report.html") == artifacts / "report.html"
    assert all(abs(point.timestamp / 1000 - time.time()) < 600 for point in history)
    table = json.loads(Path(client.download_artifacts(run.run_id, "per_question.json")).read_text())
    assert table["data"] == [["q1", "<b>é</b>"]]


@pytest.mark.parametrize("words", ["UNIQUE constraint failed: datasets.name", "duplicate key value"])
def test_a_dataset_that_another_job_brings_at_the_same_time_is_that_of_both(
    tracker: Tracker, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    ours, errors = MlflowClient.log_inputs, [words]

    def refused_once(self: MlflowClient, *given: Any, **more: Any) -> None:
        if errors:
            raise MlflowException(f"(psycopg.errors) {errors.pop()}")
        ours(self, *given, **more)

    monkeypatch.setattr(MlflowClient, "log_inputs", refused_once)
    with tracker.run("one", {}, {}) as run:
        run.dataset("sample", "d" * 40, {"component": "sample"}, {"topics": 2})
    (logged,) = runs_of(tracker)
    assert [given.dataset.digest for given in logged.inputs.dataset_inputs] == ["d" * 36]
    errors.append("no such run")
    with pytest.raises(MlflowException, match="no such run"), tracker.run("two", {}, {}) as run:
        run.dataset("sample", "d" * 40, {"component": "sample"}, {"topics": 2})


def test_a_failing_block_leaves_a_failed_run_with_its_error_and_what_was_logged_before(tracker: Tracker) -> None:
    def log(run: Run) -> None:
        run.metrics({"ir_score": 0.5})
        (run.folder / "config.yaml").write_text("n_tokens: 100")
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"), tracker.run("bad", {}, {}) as run:
        log(run)
    (failed,) = runs_of(tracker)
    assert (failed.info.status, failed.data.tags["error"]) == ("FAILED", "ValueError: no such thing")
    assert failed.data.metrics == {"ir_score": 0.5}
    files = client_of(tracker).list_artifacts(failed.info.run_id)
    assert [file.path for file in files] == ["config.yaml"]


def test_what_is_logged_is_there_when_it_is_flushed_or_the_run_ends(tracker: Tracker) -> None:
    client = client_of(tracker)
    frame = pd.DataFrame({"qid": ["q1"]})
    with tracker.run("long", {}, {}) as run:
        run.metrics({"ir_score": 0.5})
        run.table(frame, "first.json")
        (run.folder / "a.txt").write_text("a")
        assert not client.get_run(run.run_id).data.metrics
        run.flush()
        assert client.get_run(run.run_id).data.metrics == {"ir_score": 0.5}
        assert not list(run.folder.iterdir())
        run.metrics({"correct_share": 0.25})
        run.tag({"judge": "x"})
        run.table(frame, "second.json")
    with tracker.resume(run.run_id) as again:
        again.table(frame, "third.json")
        again.table(frame, "first.json")
    logged = client.get_run(run.run_id).data
    assert logged.metrics == {"ir_score": 0.5, "correct_share": 0.25}
    assert len(client.get_metric_history(run.run_id, "ir_score")) == 1
    assert logged.tags["judge"] == "x"
    tables = json.loads(logged.tags["mlflow.loggedArtifacts"])
    assert sorted(table["path"] for table in tables) == ["first.json", "second.json", "third.json"]
    files = {file.path for file in client.list_artifacts(run.run_id)}
    assert files == {"a.txt", "first.json", "second.json", "third.json"}


def test_more_metrics_than_mlflow_takes_at_once_are_all_logged(tracker: Tracker) -> None:
    many = {f"m{i}": float(i) for i in range(2100)}
    with tracker.run("many", {}, {}) as run:
        run.tag({f"t{i}": "x" for i in range(60)})
        run.metrics(many)
    logged = client_of(tracker).get_run(run.run_id).data
    assert logged.metrics == many
    assert logged.tags["t59"] == "x"


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
        assert close_orphans(tracker.uri) == 1
        assert client.get_run(orphan.info.run_id).info.status == "KILLED"
        assert client.get_run(alive.run_id).info.status == "RUNNING"


def test_a_run_is_closed_although_another_process_has_its_process_id_by_now(tracker: Tracker) -> None:
    mark = provenance.process_mark(os.getpid())
    if not mark:
        pytest.skip("the system does not tell when a process was started")
    boot, space, ticks = mark.split(" ")
    marks = {
        "restarted": f"{boot} {space} {int(ticks) - 1}",  # an earlier process of this number
        "rebooted": f"another-boot {space} {ticks}",
        "alive": mark,
        "container": f"{boot} pid:[1] {int(ticks) - 1}",  # what lives there cannot be seen from here
    }
    with tracker.run("r", {}, {}) as run:
        client = client_of(tracker)
        made = {
            name: client.create_run(run.experiment_id, tags=provenance.process_tags() | {"ragauge.process": text})
            for name, text in marks.items()
        }
        assert close_orphans(tracker.uri) == 2
        ended = {name for name, r in made.items() if client.get_run(r.info.run_id).info.status == "KILLED"}
        assert ended == {"restarted", "rebooted"}


def test_the_first_use_of_a_store_closes_runs_of_all_experiments_whose_process_is_gone(
    tmp_path: Path,
) -> None:
    from mlflow import MlflowClient

    gone = subprocess.Popen([sys.executable, "-c", "pass"])
    gone.wait()
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    client = MlflowClient(uri)
    experiment = client.create_experiment("another", artifact_location=tmp_path.as_uri())
    tags = {"ragauge.pid": str(gone.pid), "ragauge.host": provenance.machine()}
    orphan = client.create_run(experiment, tags=tags)
    with Tracker(uri, "the next job's").run("r", {}, {}):
        assert client.get_run(orphan.info.run_id).info.status == "KILLED"


def test_only_runs_with_all_of_the_tags_are_replaced(tracker: Tracker) -> None:
    for role, sweep_id in (("sweep", "a"), ("sweep", "b"), ("job", "a")):
        with tracker.run("r", {}, {"role": role, "sweep_id": sweep_id}):
            pass
    tracker.replace_runs({"role": "sweep", "sweep_id": "a"})
    left = {(run.data.tags["role"], run.data.tags["sweep_id"]) for run in runs_of(tracker)}
    assert left == {("sweep", "b"), ("job", "a")}


def test_the_predictor_comes_back_as_a_model_with_a_signature(tracker: Tracker, tmp_path: Path) -> None:
    import mlflow
    from sklearn.linear_model import LogisticRegression

    x = pd.DataFrame({"ir_score": np.linspace(0, 1, 20)})
    model = LogisticRegression().fit(x, [1] * 10 + [5] * 10)
    with tracker.run("fit", {}, {}) as run:
        log_found(run, Found(model=(model, x.head(3))), settings={"n_tokens": [100]})
    mlflow.set_tracking_uri(tracker.uri)
    again, settings = load_predictor(tracker.uri, f"runs:/{run.run_id}/predictor")
    assert settings == {"n_tokens": [100]}
    (logged,) = client_of(tracker).search_logged_models([run.experiment_id])
    assert (logged.name, logged.status, logged.source_run_id) == ("predictor", "READY", run.run_id)
    assert logged.tags["mlflow.source.name"] == "run.py"
    np.testing.assert_allclose(again.predict_proba(x), model.predict_proba(x))
    loaded = mlflow.pyfunc.load_model(f"runs:/{run.run_id}/predictor")
    assert [column.name for column in loaded.metadata.signature.inputs] == ["ir_score"]
    np.testing.assert_allclose(loaded.predict(x), model.predict_proba(x))
    with tracker.run("fit", {}, {}) as other:
        log_found(other, Found(model=(model, x.head(3))))
    assert load_predictor(tracker.uri, f"runs:/{other.run_id}/predictor")[1] == {}
    save_predictor(tmp_path / "model", model, x.head(3), {"n_tokens": [300]})
    with tracker.run("fit", {}, {}) as saved:
        log_found(saved, Found(model=tmp_path / "model"))
    assert load_predictor(tracker.uri, f"runs:/{saved.run_id}/predictor")[1] == {"n_tokens": [300]}


def test_an_experiment_is_there_from_its_first_use_until_it_is_deleted(tracker: Tracker, tmp_path: Path) -> None:
    assert not has_experiment(tracker.uri, tracker.experiment)
    experiment_id = tracker.experiment_id
    assert has_experiment(tracker.uri, tracker.experiment)
    client_of(tracker).delete_experiment(experiment_id)
    assert not has_experiment(tracker.uri, tracker.experiment)
    assert not has_experiment(f"sqlite:///{tmp_path / 'mlflow.db'}", "any")
    assert not list(tmp_path.iterdir())


def test_a_finding_is_logged_with_its_metrics_tables_and_files(tracker: Tracker) -> None:
    frame = pd.DataFrame({"system": ["=a"], "share": [0.5]})
    found = Found(
        None, metrics={"share": 0.5}, tables={"shares": frame}, logged={"kept": frame},
        files={"figures/a.txt": lambda path: path.write_text("drawn")},
    )  # fmt: skip
    with tracker.run("a job", {}, {}) as run:
        log_found(run, found)
    reader = Reader(tracker.uri)
    assert reader.metrics(run.run_id)["share"] == 0.5
    assert reader.text(run.run_id, "figures/a.txt") == "drawn"
    assert reader.text(run.run_id, "tables/shares.csv").splitlines() == ["system,share", "'=a,0.5"]
    assert reader.table(run.run_id, "kept.json").to_dict("records") == [{"system": "=a", "share": 0.5}]


@pytest.mark.slow
def test_four_processes_at_once_make_one_database_without_harm(tmp_path: Path) -> None:
    code = (
        "import sys; from ragauge.track import Tracker\n"
        "with Tracker(sys.argv[1], 'sample').run('r', {'a': 1}, {}) as run: run.metrics({'m': 1.0})\n"
    )
    uri = f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}"
    workers = [subprocess.Popen([sys.executable, "-c", code, uri]) for _ in range(4)]
    assert [worker.wait(timeout=1200) for worker in workers] == [0] * 4
    assert [run.info.status for run in runs_of(Tracker(uri, "sample"))] == ["FINISHED"] * 4


def test_views_and_description_are_kept_up_to_date_but_a_human_s_words_stay(tracker: Tracker) -> None:
    def tags() -> dict[str, str]:
        return client_of(tracker).get_experiment(tracker.experiment_id).tags

    tracker.present([views.jobs_view()], "of a job", replace=False)
    tracker.present([views.jobs_view(), views.charts_view("s1", 100)], "of a sweep")
    assert tags()["mlflow.note.content"] == "of a sweep"
    first = tags()["mlflow.sharedViewState.ragauge-charts"]
    tracker.present([views.charts_view("s9", 9)], "of another job", replace=False)
    assert tags()["mlflow.note.content"] == "of a sweep"
    assert tags()["mlflow.sharedViewState.ragauge-charts"] == first
    client_of(tracker).set_experiment_tag(tracker.experiment_id, "mlflow.note.content", "by hand")
    tracker.present([views.charts_view("s2", 100)], "of the next sweep")
    assert tags()["mlflow.note.content"] == "by hand"
    assert tags()["mlflow.sharedViewState.ragauge-charts"] != first


def test_the_charts_of_groups_that_the_latest_sweep_does_not_have_are_gone(tracker: Tracker) -> None:
    def saved() -> set[str]:
        tags = client_of(tracker).get_experiment(tracker.experiment_id).tags
        return {key for key in tags if key.startswith("mlflow.sharedViewState.")}

    tracker.present([views.jobs_view()], "")
    client = client_of(tracker)
    client.set_experiment_tag(tracker.experiment_id, "mlflow.sharedViewState.of-a-user", "x")
    charts = [views.charts_view("s1", 100, f"judge={j}", n) for n, j in enumerate("abc", 1)]
    tracker.present([views.jobs_view(), *charts], "")
    assert len(saved()) == 5
    tracker.present([], "", replace=False)  # by a job
    assert len(saved()) == 5
    tracker.present([views.jobs_view(), views.charts_view("s2", 100)], "")
    assert {key.rpartition(".")[2] for key in saved()} == {"ragauge-jobs", "ragauge-charts", "of-a-user"}


# --- a server that is away, refuses, or goes away ---------------------------------------------------


class FakeServer(ThreadingHTTPServer):
    """As much of MLflow's server as opens a run; `answers` holds [status, body] by the path's end."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        experiment = {"experiment": {"experiment_id": "1", "name": "e", "lifecycle_stage": "active"}}
        run = {"run": {"info": {"run_id": "r" * 32, "experiment_id": "1", "status": "RUNNING"}, "data": {}}}
        self.answers: dict[str, list[tuple[int, dict]]] = {
            "experiments/get-by-name": [(200, experiment)],
            "runs/create": [(200, run)],
        }
        self.asked: list[str] = []
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


class _Answer(BaseHTTPRequestHandler):
    server: FakeServer

    def do_GET(self) -> None:
        asked = self.path.split("?")[0].split("/mlflow/")[-1]
        self.server.asked.append(asked)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        queue = self.server.answers.get(asked, [(200, {})])
        status, body = queue.pop(0) if len(queue) > 1 else queue[0]
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET

    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    server = FakeServer()
    yield server
    server.stop()


def test_a_server_that_is_away_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    uri = f"http://127.0.0.1:{free_port()}"
    start = time.monotonic()
    says = rf"MLflow at {uri} does not answer \(.*refused.*MLFLOW_TRACKING_URI"
    with pytest.raises(ConfigError, match=says), Tracker(uri, "e").run("r", {}, {}):
        pytest.fail("the block is not entered")
    with pytest.raises(ConfigError, match=says):
        load_predictor(uri, "models:/ours/1")
    assert time.monotonic() - start < 60  # MLflow's own client tries for minutes
    assert not caplog.records


def test_a_server_that_wants_a_password_is_told_with_where_to_put_it(fake: FakeServer) -> None:
    refusal = {"error_code": "UNAUTHENTICATED", "message": "You are not authenticated."}
    fake.answers["experiments/search"] = [(401, refusal)]
    with pytest.raises(ConfigError, match=r"not authenticated.*MLFLOW_TRACKING_USERNAME"):
        connect(fake.url)


def test_an_experiment_that_another_machine_made_meanwhile_is_taken(fake: FakeServer) -> None:
    absent = {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "none"}
    fake.answers["experiments/get-by-name"].insert(0, (404, absent))
    fake.answers["experiments/create"] = [(400, {"error_code": "RESOURCE_ALREADY_EXISTS", "message": "there"})]
    with Tracker(fake.url, "e").run("r", {}, {}) as run:
        assert run.experiment_id == "1"
    assert fake.asked[-1] == "runs/update"


def test_a_server_that_goes_away_during_a_run_is_told_and_asked_anew_by_the_next(fake: FakeServer) -> None:
    start = time.monotonic()

    def lose() -> None:
        with Tracker(fake.url, "e").run("r", {}, {}) as run:
            fake.stop()
            run.metrics({"m": 1.0})

    with pytest.raises(TrackingError, match=r"stopped answering .*the same command logs it"):
        lose()
    with pytest.raises(ConfigError, match="does not answer"), Tracker(fake.url, "e").run("r", {}, {}):
        pytest.fail("the block is not entered")
    assert time.monotonic() - start < 60  # MLflow's own client tries for minutes


def test_what_a_server_does_not_take_meanwhile_is_logged_at_the_end(
    fake: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    with Tracker(fake.url, "e").run("r", {}, {}) as run:
        run.metrics({"m": 1.0})
        fake.answers["runs/log-batch"] = [(503, {})]
        assert not run.flushed()
        assert "MLflow does not answer" in caplog.text
        fake.answers["runs/log-batch"] = [(200, {})]
        fake.asked.clear()
        assert run.flushed()
        assert fake.asked == ["runs/log-batch"]
        assert run.flushed()
    assert fake.asked == ["runs/log-batch", "runs/update"]


def test_the_error_of_a_job_is_told_even_where_its_run_cannot_be_ended(
    fake: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:

    def fail() -> None:
        with Tracker(fake.url, "e").run("r", {}, {}):
            fake.stop()
            raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        fail()
    assert "stays open" in caplog.text


def test_a_run_that_failed_ends_well_where_its_rest_is_logged(tracker: Tracker) -> None:
    with pytest.raises(ValueError, match="silence"), tracker.run("judged later", {}, {}) as run:
        raise ValueError("silence")
    with tracker.resume(run.run_id) as again:
        again.metrics({"m": 1.0})
    assert [run.info.status for run in runs_of(tracker)] == ["FINISHED"]
