"""Systems as models of MLflow, prompts in its registry: once each, whoever logs them, linked with runs and metrics."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow.entities import LoggedModelOutput

from ragauge.contract.finding import Found
from ragauge.contract.groups import GROUPS
from ragauge.contract.identity import identity
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.settings import Settings, Tracking
from ragauge.plugins.mlflow_pages.prompts import braces, linked_prompts
from ragauge.plugins.mlflow_pages.registry import dollars, with_prompts
from ragauge.plugins.mlflow_pages.systems import Systems, model_of
from ragauge.track import Tracker
from servers import mlflow_server
from sweep_records import record_of


@dataclass(frozen=True)
class Judge:
    """A judge that is asked by prompts, which no test asks."""

    prompt: str | None = "$question: is $answer as good as $reference?"
    prompts: tuple[str, ...] | dict[str, str] | None = None
    model: str = "m"


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('systems') / 'mlflow.db'}"


@pytest.fixture
def tracker(uri: str, request: pytest.FixtureRequest) -> Tracker:
    return Tracker(uri, request.node.name)


def components(judge: Any) -> Any:
    return SimpleNamespace(**dict.fromkeys(GROUPS) | {"judge": judge, "answers": {}})


def log_job(
    folder: Path, tracker: Tracker, prompt: str | None, n_tokens: int, score: float, **more: Any
) -> tuple[str, str]:
    """The ids of a run and of the model of a system with this prompt of the judge, logged as a job logs them."""
    client = MlflowClient(tracker.uri)
    [text] = with_prompts({"prompt": prompt}, tracker.uri, "judge").values()
    tracking = Tracking(uri=tracker.uri, models=True)
    with tracker.run("bm25", {}, {}) as run:
        run.dataset("world", "abc", {}, {"topics": 2})
        if predictor := more.get("predictor"):
            client.log_outputs(run.run_id, [LoggedModelOutput(predictor, 0)])
        record = {
            "run_id": run.run_id, "name": f"bm25/sparse · N={n_tokens} · x",
            "choices": {"judge": "openai", "dataset": "world"},
        }  # fmt: skip
        job: Any = SimpleNamespace(
            pipeline=SimpleNamespace(
                components=components(Judge(text or Judge.prompt)), store=SimpleNamespace(root=folder),
                identity_of=lambda part: {} if part is None else identity(part),
                making={"answers": SimpleNamespace(seconds=3.0, cost_usd=0.5), "index": SimpleNamespace()},
                contexts=pd.DataFrame({"n_used": [10, 30]}),
                question_stages=[SimpleNamespace(name="answers"), SimpleNamespace(name="reranked")],
            ),
            settings=Settings(judge={"prompt": prompt}, tracking=tracking), record=record_of(record),
            n_tokens=n_tokens, outcomes=pd.DataFrame({"ir_score": [score - 0.25, score + 0.25]}),
            answer_measures=[AnswerMeasureInfo("f1", "F1")],
        )  # fmt: skip
        found = Systems().compute(job, {"estimates": Found(metrics={"f1": float("nan"), "other": 1.0})})
        job.settings.tracking.models = False
        assert Systems().compute(job, {}) is None
    assert found is not None
    assert found.record == {"model": found.value}
    return run.run_id, found.value


def check_systems(tracker: Tracker, folder: Path) -> None:
    """Four jobs of two systems, written and read back."""
    client = MlflowClient(tracker.uri)
    _, first = log_job(folder, tracker, None, 300, 0.25)
    run, same = log_job(folder, tracker, None, 600, 0.75, predictor=first)
    [linked] = json.loads(client.get_run(run).data.tags["mlflow.linkedPrompts"])
    assert same == first
    assert linked["name"] == "ragauge-judge"
    uri = f"prompts:/ragauge-judge/{linked['version']}"
    # By its URI the text is the same, so is the system.
    again, by_uri = log_job(folder, tracker, uri, 900, 0.75)
    assert by_uri == first
    assert json.loads(client.get_run(again).data.tags["mlflow.linkedPrompts"]) == [linked]
    _, other = log_job(folder, tracker, "$question $reference $evidence $answer", 300, 0.5)
    models = {one.model_id: one for one in client.search_logged_models([tracker.experiment_id])}
    assert set(models) == {first, other}
    assert (models[first].name, models[first].model_type) == ("bm25-sparse · x", "system")
    params = {key: value for key, value in models[first].params.items() if value != "{}"}
    assert params == {"judge": "openai", "judge.model": "m", "judge.prompt": uri}
    assert json.loads(models[first].tags["mlflow.linkedPrompts"]) == [linked]
    assert models[first].tags["ragauge.predictor"] == first
    assert "ragauge.predictor" not in models[other].tags
    logged = [(one.key, one.dataset_name, one.dataset_digest, one.value) for one in models[first].metrics or ()]
    scores = ((300, 0.25), (600, 0.75), (900, 0.75))
    # Two topics took 3 seconds and half a dollar.
    rest = {"topics": 2, "context_tokens": 20, "seconds_per_topic": 1.5, "cost_usd_per_topic": 0.25}
    assert sorted((name.rsplit("/", 1)[-1], *others) for name, *others in logged) == sorted(
        (name, f"world, N={n}", "abc", value) for n, v in scores for name, value in {"ir_score": v, **rest}.items()
    )
    prompt = client.get_prompt("ragauge-judge")
    assert prompt is not None
    assert f",{tracker.experiment_id}," in prompt.tags["_mlflow_experiment_ids"]


def test_a_system_is_one_model_with_the_metrics_of_all_its_jobs(tracker: Tracker, tmp_path: Path) -> None:
    check_systems(tracker, tmp_path)


@pytest.mark.slow
def test_a_server_holds_systems_and_prompts_as_sqlite_does(tmp_path: Path) -> None:
    with mlflow_server(f"sqlite:///{tmp_path / 'm.db'}", tmp_path / "artifacts", tmp_path / "log") as url:
        check_systems(Tracker(url, "systems"), tmp_path)
        check_at_once(Tracker(url, "at once"), [tmp_path / f"lock {job}" for job in range(4)])


def check_at_once(tracker: Tracker, locks: list[Path]) -> None:
    """Jobs that wait for one another only where they share a lock log one system."""
    client = MlflowClient(tracker.uri)
    with tracker.run("bm25", {}, {}) as run, ThreadPoolExecutor(4) as threads:
        logged = client.get_run(run.run_id)
        [model_id] = set(threads.map(lambda lock: model_of(client, logged, "bm25", "d", {}, lock), locks))
    assert [one.model_id for one in client.search_logged_models([tracker.experiment_id])] == [model_id]


def test_jobs_at_the_same_time_make_one_model(tracker: Tracker, tmp_path: Path) -> None:
    check_at_once(tracker, [tmp_path / "lock"] * 4)


def test_prompts_are_found_in_lists_and_under_the_names_of_their_keys(tracker: Tracker) -> None:
    client = MlflowClient(tracker.uri)
    judge = Judge("Grade $answer", ("Grade $answer", "Is $answer right?"))
    found = linked_prompts(client, Settings(judge={"prompts": list(judge.prompts or ())}), components(judge), "1")
    assert list(found) == ["judge.prompts[0]", "judge.prompts[1]"]
    assert {name for name, _ in found.values()} == {"ragauge-judge"}
    texts = [client.get_prompt_version(name, version).template for name, version in found.values()]
    assert [dollars(text) for text in texts] == list(judge.prompts or ())


def test_the_prompts_of_a_measure_are_registered_under_their_names(tracker: Tracker) -> None:
    of = components(Judge("Grade $answer"))
    of.answers["faithful"] = Judge(None, {"claims": "List claims of $answer"})
    found = linked_prompts(MlflowClient(tracker.uri), Settings(judge={"prompt": None}), of, "1")
    name, version = found["answers.faithful.prompts.claims"]
    assert name == "ragauge-answers-faithful-claims"
    assert dollars(MlflowClient(tracker.uri).get_prompt_version(name, version).template) == "List claims of $answer"


def test_every_shipped_prompt_comes_back_from_the_registry_as_it_was() -> None:
    shipped = [
        file.read_text(encoding="utf-8")
        for file in files("ragauge.llms.prompts").iterdir()
        if file.name.endswith(".txt")
    ]
    assert len(shipped) > 5
    for text in [*shipped, "Costs $$5: $question", "${question}s and $answer"]:
        assert dollars(braces(text)) == text
        assert "{{question}}" in braces(text)
    assert braces("{{x}} of $question") == "{{x}} of $question"
