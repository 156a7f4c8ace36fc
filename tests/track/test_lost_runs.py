"""The run of a job that was lost with its machine is the one that its next attempt goes on with."""

from __future__ import annotations

import pytest

from ragauge.contract import provenance
from ragauge.contract.errors import RagaugeError
from ragauge.contract.interruption import lost, refuse_lost
from ragauge.track import Run, Tracker, _lost

TAGS = {"role": "job", "sweep_id": "day_time_0", "job": "3", "n_tokens": "100"}
PARAMS = {"retriever.kind": "bm25", "n_tokens": 100}
ELSEWHERE = {"ragauge.host": "other/0", "ragauge.pid": "7", "ragauge.process": "boot pid:[1] 7"}


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('lost') / 'mlflow.db'}"


@pytest.fixture
def tracker(uri: str, request: pytest.FixtureRequest) -> Tracker:
    return Tracker(uri, request.node.name)


def client_of(tracker: Tracker):
    from mlflow import MlflowClient

    return MlflowClient(tracker.uri)


def attempt(tracker: Tracker, tags: dict[str, str] = ELSEWHERE, params: dict = PARAMS) -> str:
    """The id of a run that a machine left RUNNING when it died, with half of what the job logs."""
    client = client_of(tracker)
    run_id = client.create_run(tracker.experiment_id, tags={**TAGS, **tags}, run_name="r").info.run_id
    for name, value in params.items():
        client.log_param(run_id, name, value)
    client.log_metric(run_id, "ir_score", 0.25)
    for step, value in ((100, 0.125), (200, 0.25)):
        client.log_metric(run_id, "ir_score_at_n", value, step=step)
    client.log_metric(run_id, "seconds_index", 9.0)
    return run_id


def logs_all(run: Run) -> None:
    run.metrics(
        {"ir_score": 0.25, "seconds_index": 4.0, "correct_share": 0.5},
        {"ir_score_at_n": {100: 0.125, 200: 0.25, 300: 0.5}},
    )


def test_a_job_that_is_run_again_elsewhere_has_one_run_with_each_point_once(tracker: Tracker) -> None:
    first = attempt(tracker)
    with tracker.run("r", PARAMS, TAGS) as run:
        logs_all(run)
        assert run.run_id == first
    client = client_of(tracker)
    (done,) = client.search_runs([tracker.experiment_id])
    assert done.info.status == "FINISHED"
    assert done.data.tags["ragauge.host"] == provenance.machine()
    assert done.data.params == {"retriever.kind": "bm25", "n_tokens": "100"}
    assert done.data.metrics["stage/seconds_index"] == 4.0
    curve = [(m.step, m.value) for m in client.get_metric_history(first, "chart/ir_score_at_n")]
    assert sorted(curve) == [(100, 0.125), (200, 0.25), (300, 0.5)]
    assert len(client.get_metric_history(first, "ir_score")) == 1


def test_a_job_that_came_to_its_end_keeps_its_run(tracker: Tracker) -> None:
    with tracker.run("r", PARAMS, TAGS) as first:
        logs_all(first)
    with tracker.run("r", PARAMS, TAGS, ended=first.run_id) as second:
        pass
    assert second.run_id != first.run_id


def test_only_the_latest_run_of_a_job_may_be_a_lost_one(tracker: Tracker) -> None:
    ids = []
    for ended in (None, "first", "second"):
        known = {"first": 0, "second": 1}.get(str(ended))
        with tracker.run("r", PARAMS, TAGS, ended=None if known is None else ids[known]) as run:
            ids.append(run.run_id)
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    "other",
    [{"job": "4"}, {"sweep_id": "day_time_1"}, {"role": "training"}],
    ids=lambda other: next(iter(other)),
)
def test_the_run_of_another_job_is_left_alone(tracker: Tracker, other: dict[str, str]) -> None:
    first = attempt(tracker)
    with tracker.run("r", PARAMS, {**TAGS, **other}) as run:
        assert run.run_id != first
    assert client_of(tracker).get_run(first).info.status == "RUNNING"


def test_a_run_with_other_params_is_left_alone(tracker: Tracker) -> None:
    first = attempt(tracker, params={"retriever.kind": "bm25", "n_tokens": 200})
    with tracker.run("r", PARAMS, TAGS) as run:
        assert run.run_id != first


def test_a_run_whose_process_is_alive_here_is_left_to_it(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lost, "_DYING", 0.3)
    first = attempt(tracker, tags=provenance.process_tags())
    with tracker.run("r", PARAMS, TAGS) as run:
        assert run.run_id != first


def test_a_single_job_takes_over_nothing(tracker: Tracker) -> None:
    single = {"role": "job", "n_tokens": "100"}
    with pytest.raises(KeyboardInterrupt), tracker.run("r", PARAMS, single) as first:
        raise KeyboardInterrupt
    with tracker.run("r", PARAMS, single) as second:
        assert second.run_id != first.run_id


def test_a_job_that_is_lost_for_good_fails_with_the_reason_in_its_run(tracker: Tracker) -> None:
    first = attempt(tracker)
    refuse_lost()
    with lost("lost 4 time(s)"), pytest.raises(RagaugeError), tracker.run("r", PARAMS, TAGS):
        refuse_lost()
    (run,) = client_of(tracker).search_runs([tracker.experiment_id])
    assert (run.info.run_id, run.info.status) == (first, "FAILED")
    assert run.data.tags["error"] == "RagaugeError: lost 4 time(s)"
