"""A team's server: `mlflow server` with PostgreSQL and an artifact folder that only it can write to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from processes import run as run_forked
from processes import run_fresh
from ragauge.commands.results import report as report_main
from ragauge.llms.ledger import Ledger
from ragauge.track import labels_of_people
from ragauge.track._lost import emptied
from servers import database, mlflow_server

pytestmark = pytest.mark.slow

SMALL = ["dataset=sample", "dataset.limit=12", "chunker=none", "bootstrap=20"]
# None of the six loads an embedding model, which would take each of their processes longer than all the rest.
SIX_JOBS = [
    "-m", *SMALL, "llm.by=words", "retriever=bm25,none", "n_tokens=100,200,300", "register_predictor=ours",
]  # fmt: skip
TWO_AT_A_TIME = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]


@dataclass(frozen=True)
class Team:
    """A server that six jobs were logged to, the folder they ran in, and the store that all runs share."""

    url: str
    database: str
    folder: Path
    store: Path
    output: str


def run(folder: Path, store: Path, uri: str | None, *arguments: str) -> str:
    folder.mkdir(exist_ok=True)
    given = {"RAGAUGE_STORE": str(store), **({"MLFLOW_TRACKING_URI": uri} if uri else {})}
    # Two at a time are processes of joblib's, which only an interpreter of its own can start.
    start = run_fresh if TWO_AT_A_TIME[0] in arguments else run_forked
    done = start(folder, *arguments, **given)
    assert done.returncode == 0, done.stderr
    return done.stdout


def runs_at(uri: str) -> tuple[Any, dict[str, Any]]:
    """A client and the runs of the sample's sweep by name."""
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("sample")
    runs = client.search_runs([experiment.experiment_id], "tags.sweep_id LIKE '%'")
    return client, {run.info.run_name: run for run in runs}


def measured(run: Any) -> dict[str, float]:
    return {k: v for k, v in run.data.metrics.items() if not k.startswith(("seconds_", "stage/"))}


@pytest.fixture(scope="module")
def team(postgres: str, tmp_path_factory: pytest.TempPathFactory, bring_models: Callable[..., None]) -> Iterator[Team]:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    place = tmp_path_factory.mktemp("team")
    with database(postgres) as backend:
        uri = backend.replace("postgresql://", "postgresql+psycopg://")
        with mlflow_server(uri, place / "server" / "artifacts", place / "server.log") as url:
            folder, store = place / "work", place / "store"
            bring_models(store)
            output = run(folder, store, url, *SIX_JOBS, *TWO_AT_A_TIME)
            yield Team(url, backend, folder, store, output)


def test_six_jobs_two_at_a_time_are_logged_through_the_server_alone(team: Team) -> None:
    client, runs = runs_at(team.url)
    assert len(runs) == 7
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    assert {run.info.artifact_uri.split(":")[0] for run in runs.values()} == {"mlflow-artifacts"}
    assert not (team.folder / "mlruns").exists()
    assert "Leaderboard at N = 300 tokens" in team.output
    assert "View run" not in team.output
    (pooled,) = (run for run in runs.values() if run.data.tags["role"] == "sweep")
    page = Path(client.download_artifacts(pooled.info.run_id, "report.html")).read_text()
    assert page.lower().startswith("<!doctype html>")
    table = json.loads(
        Path(client.download_artifacts(pooled.info.run_id, "leaderboard.json")).read_text(encoding="utf-8")
    )
    assert len(table["data"]) == 2


def test_the_server_holds_the_numbers_that_sqlite_holds(team: Team, tmp_path: Path) -> None:
    run(tmp_path / "alone", team.store, None, *SIX_JOBS)
    _, on_server = runs_at(team.url)
    _, on_sqlite = runs_at(f"sqlite:///{tmp_path / 'alone' / 'mlruns' / 'mlflow.db'}")
    assert {name: measured(run) for name, run in on_server.items()} == {
        name: measured(run) for name, run in on_sqlite.items()
    }


def test_a_registered_predictor_goes_through_the_server(team: Team) -> None:
    single = ["n_tokens=100", "llm=none", "judge=none", "predictor=models:/ours/1"]
    run(team.folder, team.store, team.url, *SMALL, "predictor_mismatch=allow", *single)
    client, _ = runs_at(team.url)
    experiment = client.get_experiment_by_name("sample").experiment_id
    (logged,) = client.search_runs([experiment], "tags.llm = 'none'")
    assert "predicted_correct_share" in logged.data.metrics


def test_traces_are_searched_in_pages_that_a_server_gives(team: Team) -> None:
    client, runs = runs_at(team.url)
    experiment = next(iter(runs.values())).info.experiment_id
    lost = client.create_run(experiment)
    client.set_terminated(lost.info.run_id, status="KILLED")
    assert emptied(client, client.get_run(lost.info.run_id)) == frozenset()
    assert client.get_run(lost.info.run_id).info.status == "RUNNING"
    assert labels_of_people(team.url, "sample").empty
    client.delete_run(lost.info.run_id)


def test_a_colleague_without_the_folder_makes_the_report_of_a_run_id(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, runs = runs_at(team.url)
    (pooled,) = (run for run in runs.values() if run.data.tags["role"] == "sweep")
    monkeypatch.chdir(tmp_path)
    (team.folder / "multirun").rename(team.folder / "elsewhere")
    try:
        assert report_main([pooled.info.run_id, "--tracking-uri", team.url]) == 0
    finally:
        (team.folder / "elsewhere").rename(team.folder / "multirun")
    (page,) = tmp_path.glob("report-*.html")
    assert "bm25" in page.read_text(encoding="utf-8")


def test_the_ledger_lies_in_the_same_postgresql_server(team: Team) -> None:
    ledger = Ledger(team.database)
    assert len(ledger) == 0
    ledger.close()
