"""What MLflow's pages hold of a job's topics: spans, expectations, feedback, costs; ids whatever the seed."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlflow
import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow.entities import AssessmentSource, Trace

from ragauge.contract.errors import ConfigError
from ragauge.contract.jobs import Jobs
from ragauge.plugins.mlflow_pages.finding import Pages, at_largest_budget, write_evaluation
from ragauge.plugins.mlflow_pages.side_by_side import SideBySide
from ragauge.plugins.mlflow_pages.topics import (
    Feedback,
    TopicTrace,
    Usage,
    expectations_of,
    feedback_of,
    topics_of,
    why_score,
)
from ragauge.plugins.mlflow_pages.writing import write_traces
from ragauge.retrieval.retrievers import Sim
from ragauge.track import Run, Tracker
from servers import mlflow_server
from small_pipeline import DOCS, SmallPipelines
from whole import Whole

CODE = AssessmentSource("CODE", "words")
EXPECTED = {"expected_response": "her", "expected_retrieved_context": [{"doc_uri": "d", "content": "She did."}]}


def topic(qid: str = "q1", **others: Any) -> TopicTrace:
    given: dict[str, Any] = {
        "qid": qid, "query": f"Who did {qid}?", "chunks": [("d%p0", "She did.")], "context": "She did.",
        "answer": "her", "verdict": {"label": 5}, "scores": {"ir_score": 0.5}, "model": "m",
        "price": {"prompt": 1.0, "completion": 4.0}, "usage": Usage(8, 2, 0.002, 1.5), "expectations": EXPECTED,
        "feedback": {"judge_class": Feedback(5, "right", Usage(20, 3, 0.01)), "ir_score": Feedback(0.5, "half")},
    }  # fmt: skip
    return TopicTrace(**(given | others))


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('pages') / 'mlflow.db'}"


@pytest.fixture
def tracker(uri: str, request: pytest.FixtureRequest) -> Tracker:
    return Tracker(uri, request.node.name)


def read(tracker: Tracker, run_id: str) -> list[Trace]:
    """The traces of a run, by topic."""
    client = MlflowClient(tracker.uri)
    found = client.search_traces(locations=[tracker.experiment_id], filter_string=f"run_id = '{run_id}'")
    return sorted(found, key=lambda trace: str(trace.info.client_request_id))


def check_page(tracker: Tracker) -> None:
    """Writes an evaluation run and reads it back."""
    client = MlflowClient(tracker.uri)
    with tracker.run("bm25", {}, {}) as run:
        run.dataset("world", "abc", {}, {"topics": 2})
        topics = [topic("q1"), topic("q2", answer=None, error="busy", usage=Usage(), feedback={})]
        page = write_evaluation(client, run.experiment_id, run.run_id, topics, CODE, {"ir_score": 0.5})
    of_page = client.get_run(page)
    assert of_page.data.tags["mlflow.runType"] == "genai_evaluate"
    assert of_page.data.metrics == {"ir_score": 0.5}
    assert [one.dataset.name for one in of_page.inputs.dataset_inputs] == ["world"]
    assert client.get_run(run.run_id).data.tags["evaluation_run"] == page
    first, second = read(tracker, page)
    assert [trace.info.trace_id for trace in read(tracker, run.run_id)] == [first.info.trace_id, second.info.trace_id]
    spans = {span.span_type: span for span in first.data.spans}
    assert spans["CHAIN"].inputs == {"question": "Who did q1?"}
    assert spans["CHAIN"].outputs == {"answer": "her"}
    assert spans["RETRIEVER"].outputs[0]["metadata"] == {"doc_uri": "d%p0"}
    llm = spans["LLM"]
    assert llm.get_attribute("mlflow.chat.tokenUsage") == {"input_tokens": 8, "output_tokens": 2, "total_tokens": 10}
    assert llm.get_attribute("mlflow.llm.cost") == {"input_cost": 0.001, "output_cost": 0.001, "total_cost": 0.002}
    assert llm.get_attribute("mlflow.llm.model") == "m"
    assert (llm.end_time_ns - llm.start_time_ns) / 1e9 == 1.5
    assert first.info.token_usage["total_tokens"] == 10
    assert first.info.cost["total_cost"] == 0.002
    told = {one.name: one for one in first.info.assessments}
    assert {name: told[name].expectation.value for name in EXPECTED} == EXPECTED
    assert (told["judge_class"].feedback.value, told["judge_class"].rationale) == (5, "right")
    assert told["judge_class"].metadata == {
        "mlflow.assessment.sourceRunId": page,
        "mlflow.assessment.judgeInputTokens": "20",
        "mlflow.assessment.judgeOutputTokens": "3",
        "mlflow.assessment.judgeCost": "0.01",
    }
    assert told["ir_score"].rationale == "half"
    assert (second.info.state.value, second.info.response_preview) == ("ERROR", "busy")
    assert second.info.token_usage is None
    failed = {span.span_type: span.status for span in second.data.spans}["LLM"]
    assert (failed.status_code.value, failed.description) == ("ERROR", "busy")


def test_an_evaluation_run_holds_dataset_costs_expectations_and_feedback(tracker: Tracker) -> None:
    check_page(tracker)


@pytest.mark.slow
def test_a_server_holds_what_sqlite_holds(tmp_path: Path) -> None:
    with mlflow_server(f"sqlite:///{tmp_path / 'm.db'}", tmp_path / "artifacts", tmp_path / "log") as url:
        check_page(Tracker(url, "pages"))


def test_turns_of_a_conversation_are_a_session_of_their_run(tracker: Tracker) -> None:
    client = MlflowClient(tracker.uri)
    with tracker.run("bm25", {}, {}) as run:
        turns = [topic("c1-1", conversation="c1"), topic("c1-2", conversation="c1"), topic("q")]
        page = write_evaluation(client, run.experiment_id, run.run_id, turns, CODE, {})
    found = [trace.info for trace in read(tracker, page)]
    sessions = [info.trace_metadata.get("mlflow.trace.session") for info in found]
    assert sessions == [f"c1 {run.run_id[:8]}"] * 2 + [None]
    assert found[0].request_time < found[1].request_time


def test_a_fixed_seed_repeats_no_id_of_a_trace_or_span(tracker: Tracker) -> None:
    client = MlflowClient(tracker.uri)
    traces, spans = [], []
    with tracker.run("seeded", {}, {}) as run:
        for _ in range(2):
            random.seed(1)
            traces += write_traces(client, run.experiment_id, run.run_id, [topic()], CODE).values()
    for trace in read(tracker, run.run_id):
        spans += [span.span_id for span in trace.data.spans]
    assert (len(set(traces)), len(set(spans))) == (2, 8)


def test_traces_and_evaluation_of_a_lost_attempt_are_gone(tracker: Tracker) -> None:
    client, tags = MlflowClient(tracker.uri), {"role": "job", "sweep_id": "s1", "job": "0", "ragauge.host": "elsewhere"}
    ids = []

    def fails(run: Run) -> None:
        ids.append(run.run_id)
        write_evaluation(client, run.experiment_id, run.run_id, [topic()], CODE, {})
        raise ValueError("cut")

    with pytest.raises(ValueError, match="cut"), tracker.run("r", {}, tags) as run:
        fails(run)
    with tracker.run("r", {}, tags) as again:
        pass
    (done,) = client.search_runs([tracker.experiment_id])
    assert [done.info.run_id] == [again.run_id] == ids
    assert "evaluation_run" not in done.data.tags
    assert read(tracker, again.run_id) == []


def test_feedback_on_a_measured_trace_is_added_to_it(tracker: Tracker) -> None:
    client = MlflowClient(tracker.uri)
    with tracker.run("r", {}, {}) as run:
        (theirs,) = write_traces(
            client, run.experiment_id, run.run_id, [topic(feedback={}, expectations={})], CODE
        ).values()
        mlflow.set_tracking_uri(tracker.uri)
        page = write_evaluation(client, run.experiment_id, run.run_id, [topic(trace_id=theirs)], CODE, {})
    (only,) = read(tracker, page)
    assert only.info.trace_id == theirs
    assert {one.name for one in only.info.assessments} == {"judge_class", "ir_score"}


def job_of(pipeline: Any) -> Any:
    cfg = SimpleNamespace(llm={})
    return SimpleNamespace(pipeline=pipeline, outcomes=pipeline.outcomes, cfg=cfg, answer_measures=[])


def test_topics_show_passages_references_evidence_and_what_is_missed(small: SmallPipelines) -> None:
    [first, *others] = topics_of(job_of(small(retriever=Sim(top_k=1))))
    assert [one.qid for one in others] == ["q2", "q3"]
    assert first.chunks == [("d1%p0", "Anna built the tower. It")]
    assert first.expectations == {
        "expected_response": "Anna",
        "expected_retrieved_context": [{"doc_uri": "d1", "content": "Anna built the tower."}],
    }
    assert first.feedback["ir_score"].rationale == "The context holds every part of the evidence."
    assert first.feedback["correct"].value is (first.feedback["judge_class"].value == 5)
    [expanded, *_] = topics_of(job_of(small(retriever=Sim(top_k=1), expander=Whole())))
    assert expanded.chunks == [("d1%p0", DOCS[0]["text"])]


def test_of_many_topics_all_systems_show_the_same_sample(small: SmallPipelines) -> None:
    drawn = [[one.qid for one in topics_of(job_of(small(retriever=Sim(top_k=k))), most=2)] for k in (1, 2)]
    assert drawn[0] == drawn[1] == ["q2", "q3"]


def test_auto_writes_at_the_largest_budget_of_a_sweep_and_nothing_when_it_runs_again(tmp_path: Path) -> None:
    def chosen(task: str, n_tokens: int) -> bool:
        (tmp_path / "multirun.yaml").write_text(f"hydra: {{overrides: {{task: [{task}]}}}}")
        return at_largest_budget(tmp_path / "runs" / "7", n_tokens)

    assert not at_largest_budget(tmp_path / "0", 300)
    assert [chosen("'n_tokens=100,200,300'", n) for n in (100, 300)] == [False, True]
    assert [chosen("'n_tokens=range(100,1100,100)'", n) for n in (900, 1000)] == [False, True]
    assert chosen("'retriever=bm25,sim', n_tokens=300", 300)
    assert not chosen("'rerun=job_0,job_1'", 300)


def test_a_value_that_is_not_allowed_is_named() -> None:
    with pytest.raises(ConfigError, match="evaluation=some: allowed are auto, true and false"):
        Pages().check(SimpleNamespace(tracking=SimpleNamespace(evaluation="some")), [])


def test_facts_stand_for_a_reference_answer_that_is_not_known() -> None:
    topics = pd.DataFrame({"qid": ["a", "b", "c"], "query": "?", "answer": [None, "x", None]})
    topics["answers"] = [[], ["x", "y"], []]
    evidence = pd.DataFrame({"qid": ["a", "a"], "part": [1, 0], "docno": [None, "d"], "text": ["two", "one"]})
    assert expectations_of(topics, evidence) == {
        "a": {
            "expected_facts": ["one", "two"],
            "expected_retrieved_context": [{"doc_uri": "d", "content": "one"}, {"content": "two"}],
        },
        "b": {"expected_response": "x"},
        "c": {},
    }


def test_feedback_on_a_trace_is_the_class_with_its_reason_and_nothing_where_there_is_no_verdict() -> None:
    judged = Usage(9, 1)
    found = feedback_of({"label": 5, "reason": "as the reference", "ir_score": 0.5, "f1": 0.25}, ["f1"], None, judged)
    values = {name: given.value for name, given in found.items()}
    assert values == {"judge_class": 5, "correct": True, "ir_score": 0.5, "f1": 0.25}
    assert found["correct"].rationale == "right: as the reference"
    assert (found["judge_class"].usage, found["correct"].usage) == (judged, None)
    assert feedback_of({"label": pd.NA, "ir_score": float("nan")}, [], None, Usage()) == {}


def test_the_rationale_of_a_score_names_the_least_covered_part_first() -> None:
    assert why_score([("whole", 1.0), ("half", 0.5), ("x" * 200, 0.0)]) == (
        f"The context lacks evidence: part 3 of 3 at 0.00: {'x' * 160}…; part 2 of 3 at 0.50: half"
    )


def test_the_best_two_systems_with_a_page_are_linked() -> None:
    def record(system: str, n_tokens: int, **more: Any) -> dict[str, Any]:
        place = {"experiment_id": "7", "tracking_uri": "http://mlflow.example/"}
        return {"system": system, "n_tokens": n_tokens, **place, **more}

    records = [record("a", 300, evaluation_run="pa"), record("b", 300), record("c", 300, evaluation_run="pc"),
               record("c", 100, evaluation_run="other")]  # fmt: skip
    outcomes = pd.DataFrame({"system": ["a", "b", "c", "c"], "n_tokens": [300, 300, 300, 100]})
    jobs = Jobs("s", "e", records, [], outcomes)
    board = SimpleNamespace(frame=pd.DataFrame({"system": ["c", "b", "a"]}))
    found = SideBySide().compute(jobs, {"leaderboard": board})
    assert found is not None
    shown = SideBySide().show(jobs, found.value, {})
    page = "http://mlflow.example/#/experiments/7/evaluation-runs?selectedRunUuid=pc&compareToRunUuid=pa"
    assert list(shown.lines) == [f"c and a, question by question: {page}"]
    assert shown.sections[0].blocks[1].page == page
    assert SideBySide().compute(Jobs("s", "e", records[:2], [], outcomes[:2]), {"leaderboard": board}) is None
