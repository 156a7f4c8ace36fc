"""Two sweeps, jobs, labels and drawn answers in a real MLflow store, and what is read of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from mlflow.entities import AssessmentSource, Feedback

from ragauge.contract.errors import ConfigError, DataError
from ragauge.track import Reader, Tracker, close_orphans_quietly, connect, drawn_answers, entries_tag, labels_of_people

# Name, experiment, tags and how it ends; `entries` are those of the store that the run used. In the order of time.
RUNS: list[tuple[str, str, dict[str, str], str]] = [
    ("old", "e", {"role": "job", "sweep_id": "s", "job": "12", "owner": "ann"}, "FINISHED"),
    *(
        (f"job {n}", "e", {"role": "job", "sweep_id": "s", "job": f"{n}", "owner": "bob"}, "FINISHED")
        for n in range(11)
    ),
    ("failed", "e", {"role": "job", "sweep_id": "s", "job": "11", "owner": "ann"}, "FAILED"),
    ("one", "e", {"role": "job", "owner": "ann", **entries_tag(["run/a1", "index/b2"])}, "FINISHED"),
    ("page", "e", {"role": "page", "owner": "ann"}, "FINISHED"),
    ("all", "e", {"role": "sweep", "sweep_id": "s", "owner": "ann"}, "FINISHED"),
    ("group", "e", {"role": "sweep", "sweep_id": "s", "group": "judge=a"}, "FINISHED"),
    ("before", "e", {"role": "sweep", "superseded_in": "s"}, "FINISHED"),
    ("elsewhere", "other", {"role": "job", "sweep_id": "s", "owner": "ann", **entries_tag(["run/a10"])}, "FINISHED"),
]  # fmt: skip


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('read') / 'mlflow.db'}"


@pytest.fixture(scope="module")
def ids(uri: str) -> dict[str, str]:
    found = {}
    for name, experiment, tags, status in RUNS:
        try:
            with Tracker(uri, experiment).run(name, {"k": 1}, tags) as run:
                found[name] = run.run_id
                run.metrics({"ir_score": 0.5})
                if status == "FAILED":
                    raise ValueError("no")
        except ValueError:
            continue
    Tracker(uri, "e").supersede({"role": "job", "sweep_id": "s", "owner": "ann"}, {found["failed"]})
    Tracker(uri, "e").colour({found["failed"]: "#0072B2"})
    Tracker(uri, "e").group({found[f"job {n}"]: "judge=a" for n in (0, 2, 10)} | {found["job 1"]: "judge=b"})
    return found


def names(runs: Any) -> list[str]:
    return [run.name for run in runs]


def test_runs_are_found_by_tag_by_entry_and_by_sweep(uri: str, ids: dict[str, str]) -> None:
    reader = Reader(uri)
    # Finished jobs and sweeps of the experiment, the newest first.
    assert names(reader.tagged("owner", "ann", "e")) == ["all", "one", "old"]
    bobs = [f"job {n}" for n in range(10, -1, -1)]
    assert names(reader.tagged("owner", None, "e")) == ["all", "one", *bobs, "old"]
    assert names(reader.tagged("owner", "ann", "other")) == ["elsewhere"]
    assert reader.tagged("owner", "ann", "nowhere") == []
    for name, value in (("a b", None), (" ", None), ("a", "it's"), ("a`", "x")):
        with pytest.raises(ConfigError, match="allowed are a name, and name=value"):
            reader.tagged(name, value, "e")
    assert names(reader.measured()) == [name for name, *_ in reversed(RUNS)]
    assert names(reader.measured("run/a1")) == ["elsewhere", "one"]  # by the beginning of its name
    assert names(reader.measured("index/b2")) == ["one"]
    assert reader.run(ids["one"]).entries == {"run/a1", "index/b2"}
    assert reader.run(ids["page"]).entries is None
    # A sweep's jobs by their number, those of a group, and those that an earlier attempt at it left.
    jobs = {name: names(reader.jobs(reader.run(ids[name]))) for name in ("all", "group", "before")}
    failed = "failed"  # is among the sweep's, and was not superseded
    assert jobs["all"] == [*bobs[::-1], failed]
    assert jobs["group"] == ["job 0", "job 2", "job 10"]
    assert jobs["before"] == ["old"]
    assert names(reader.search({"role": "job", "sweep_id": "s"}, reader.run(ids["elsewhere"]).experiment_id)) == [
        "elsewhere"
    ]


def test_a_run_is_found_by_the_beginning_of_its_id(uri: str, ids: dict[str, str]) -> None:
    reader = Reader(uri)
    found = reader.run(ids["failed"][:12])
    assert (found.run_id, found.name, found.status, found.experiment) == (ids["failed"], "failed", "FAILED", "e")
    assert found.tags["mlflow.runColor"] == "#0072B2"
    assert (found.params, found.metrics, found.tags["error"]) == ({"k": "1"}, {"ir_score": 0.5}, "ValueError: no")
    with pytest.raises(ConfigError, match="holds no run 0000000; the newest are") as error:
        reader.run("0000000")
    listed = [line.rpartition(": ")[2] for line in str(error.value).splitlines()[1:]]
    assert listed == [name for name, *_ in reversed(RUNS)][:10]
    with pytest.raises(ConfigError, match="holds no run %"):
        reader.run("%")
    shared = next(run[0] for run in ids.values() if sum(other[0] == run[0] for other in ids.values()) > 1)
    with pytest.raises(ConfigError, match=f"holds several runs {shared}…:"):
        reader.run(shared)


def test_a_store_without_ragauges_runs_says_so(tmp_path: Path) -> None:
    connect(made := f"sqlite:///{tmp_path / 'mlflow.db'}")
    with pytest.raises(ConfigError, match="holds no run ab, and none of ragauge's"):
        Reader(made).run("ab")
    with pytest.raises(ConfigError, match=r"no MLflow database at .*nowhere\.db; name yours"):
        Reader(nowhere := f"sqlite:///{tmp_path / 'nowhere.db'}")
    close_orphans_quietly(nowhere)
    assert not (tmp_path / "nowhere.db").exists()


def test_charts_are_read_point_by_point_and_tables_and_files_as_they_were_logged(uri: str) -> None:
    frame = pd.DataFrame({"qid": ["q1", "q2"], "ir_score": [1 / 3, 1.0], "answer": ["a", None]})
    with Tracker(uri, "charts").run("a job", {}, {}) as run:
        nan = float("nan")
        run.metrics(
            {"ir_score": 0.5, "best_at_10": 0.25, "none": nan}, {"ir_score_at_n": {200: 0.5, 100: 0.25, 300: nan}}
        )
        run.days({"right_at_day": {20260103: 0.75, 20260101: 0.5}})
        run.table(frame, "per_question.json")
        (run.folder / "tables" / "deep").mkdir(parents=True)
        (run.folder / "tables" / "a.csv").write_bytes(b"x\xff")
    reader = Reader(uri)
    assert list(reader.metrics(run.run_id).items()) == [
        ("best_at_10", 0.25), ("ir_score", 0.5), ("ir_score_at_n[100]", 0.25), ("ir_score_at_n[200]", 0.5),
        ("right_at_day[20260101]", 0.5), ("right_at_day[20260103]", 0.75),
    ]  # fmt: skip
    assert reader.history(run.run_id, "ir_score_at_n") == {100: 0.25, 200: 0.5}
    history = mlflow.MlflowClient(uri).get_metric_history(run.run_id, "chart/right_at_day")
    assert sorted((one.step, one.timestamp) for one in history) == [
        (20260101, 1_767_225_600_000), (20260103, 1_767_398_400_000),
    ]  # fmt: skip
    pd.testing.assert_frame_equal(reader.table(run.run_id, "per_question.json"), frame, check_dtype=False)
    assert reader.contents(run.run_id, "tables") == {"a.csv": b"x\xff"}
    assert reader.files(run.run_id, "tables") == {"a.csv": "x\ufffd"}
    assert reader.files(run.run_id, "none") == {}
    with pytest.raises(DataError, match=r"has no artifact other\.json, which is needed"):
        reader.text(run.run_id, "other.json")


# Of each trace: name, value, who said it, and when.
SAID: dict[str, list[tuple[str, Any, str, int]]] = {
    "newest first": [("label", "right", "HUMAN", 30), ("label", "1", "HUMAN", 10)],
    "newest last": [("label", 4, "HUMAN", 20), ("judge_class", "2.0", "HUMAN", 40)],
    "of a judge": [("judge_class", 5, "LLM_JUDGE", 50), ("label", 3, "HUMAN", 10)],
    "in words": [("label", " Wrong", "HUMAN", 20)],
    "another name": [("note", 5, "HUMAN", 50)],
    "by judges alone": [("label", 5, "CODE", 20)],
}  # fmt: skip
NEWEST = {"newest first": (5, 30), "newest last": (2, 40), "of a judge": (3, 10), "in words": (4, 20)}


@pytest.fixture
def traced(uri: str) -> Iterator[dict[str, str]]:
    """The traces of `SAID`, by name, in the experiment "people"."""
    mlflow.set_tracking_uri(uri)
    experiment_id = Tracker(uri, "people").experiment_id
    found = {}
    for name, said in SAID.items():
        tags = {"ragauge.qid": f"q {name}", "ragauge.answer": "digest"} if name != "of a judge" else {}
        root = mlflow.start_span_no_context("ask", experiment_id=experiment_id, tags=tags)
        root.end()
        mlflow.flush_trace_async_logging()
        found[name] = str(root.trace_id)
        for label, value, kind, at in said:
            source = AssessmentSource(kind, "somebody")
            one = Feedback(label, value, source=source, create_time_ms=at, last_update_time_ms=at)
            mlflow.log_assessment(found[name], one)
    yield found
    mlflow.set_tracking_uri(None)  # type: ignore[arg-type]


def test_of_what_people_said_the_newest_counts_on_each_trace(uri: str, traced: dict[str, str]) -> None:
    found = labels_of_people(uri, "people").set_index("trace_id")
    told = found[["label", "labelled_ms"]].itertuples(name=None)
    assert {trace: (label, at) for trace, label, at in told} == {traced[name]: want for name, want in NEWEST.items()}
    own = found.astype(object).where(found.notna(), None)
    assert own.loc[traced["in words"], ["qid", "answer"]].tolist() == ["q in words", "digest"]
    assert own.loc[traced["of a judge"], ["qid", "answer"]].tolist() == [None, None]
    assert labels_of_people(uri, "nowhere").empty

    # Two draws of one answer, one of another; the third was taken out of the queue.
    first, second, third = (traced[name] for name in ("newest first", "newest last", "in words"))
    draws = [(first, "a", 0.5), (first, "b", 0.25), (second, "a", 1.0), (third, "a", 0.1)]
    client = mlflow.MlflowClient(uri)
    for trace, queue, probability in draws:
        client.set_trace_tag(trace, f"ragauge.drawn.{queue}", json.dumps({"queue": queue, "probability": probability}))
        client.set_trace_tag(trace, "ragauge.drawn", "true" if trace != third else "false")
    drawn = drawn_answers(uri, "people")
    assert sorted(drawn.itertuples(index=False, name=None)) == [
        ("q newest first", "digest", "a", 0.5), ("q newest first", "digest", "b", 0.25),
        ("q newest last", "digest", "a", 1.0),
    ]  # fmt: skip
    assert drawn_answers(uri, "nowhere").empty
    mlflow.log_feedback(trace_id=first, name="label", value="good", source=AssessmentSource("HUMAN", "somebody"))
    with pytest.raises(DataError, match=rf"trace {first}: label is 'good', not a judge class 1\.\.5 \(lack of"):
        labels_of_people(uri, "people")
