"""What MLflow's pages hold of a job's topics: spans, expectations, feedback, costs; ids whatever the seed."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlflow
import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow.entities import AssessmentSource, Trace
from omegaconf import OmegaConf

from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import rows_where
from ragauge.contract.jobs import Jobs
from ragauge.contract.records import OUTCOMES_FILE, RECORD_FILE
from ragauge.experiment.folder import write_json
from ragauge.plugins.mlflow_pages.finding import Pages, write_evaluation
from ragauge.plugins.mlflow_pages.side_by_side import SideBySide, agreeing
from ragauge.plugins.mlflow_pages.topics import (
    Answered,
    Feedback,
    TopicTrace,
    Usage,
    expectations_of,
    feedback_of,
    topics_of,
    why_score,
)
from ragauge.plugins.mlflow_pages.writing import write_traces
from ragauge.retrieval.retrievers import NoRetrieval, Sim
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


def job_of(pipeline: Any) -> Answered:
    return Answered(
        pipeline.outcomes,
        pipeline.n_tokens,
        pipeline.answer_measures,
        lambda name, qids: rows_where(pipeline.frame(name), "qid", qids),
    )


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
    assert expanded.chunks == [("d1%p0", expanded.context)]
    assert DOCS[0]["text"].startswith(expanded.context)
    [bare, *_] = topics_of(job_of(small(retriever=NoRetrieval())))
    assert (bare.context, bare.chunks) == ("", [])


def test_of_many_topics_all_systems_show_the_same_sample(small: SmallPipelines) -> None:
    drawn = [[one.qid for one in topics_of(job_of(small(retriever=Sim(top_k=k))), most=2)] for k in (1, 2)]
    assert drawn[0] == drawn[1] == ["q2", "q3"]


def measured(small: SmallPipelines, run: Run, tracker: Tracker, folder: Path, top_k: int, **tracking: Any) -> Any:
    """A job of a sweep, or alone where `sweep_id` is None, as its findings read it; its record is on disk."""
    pipeline = small(retriever=Sim(top_k=top_k))
    folder.mkdir()
    pipeline.outcomes.assign(n_tokens=pipeline.n_tokens).to_parquet(folder / OUTCOMES_FILE)
    record = {
        "run_id": run.run_id, "experiment_id": run.experiment_id, "experiment": tracker.experiment, "sweep_id": "s",
        "tracking_uri": tracker.uri, "n_tokens": pipeline.n_tokens, "choices": {"judge": "lexical"},
        "system": str(top_k), "folder": str(folder), "store": str(pipeline.store.root),
        "metrics": {"correct_share": 0.5},
    }  # fmt: skip
    llm = {"chat": {"model": "m"}, "price": {"prompt": 1.0, "completion": 4.0}}
    cfg = OmegaConf.create(
        {"llm": llm, "trace": False, "tracking": {"uri": tracker.uri, "evaluation": "auto"} | tracking}
    )
    return SimpleNamespace(
        pipeline=pipeline, outcomes=pipeline.outcomes, cfg=cfg, answer_measures=pipeline.answer_measures,
        record=record, n_tokens=pipeline.n_tokens, frame=pipeline.frame,
    )  # fmt: skip


def evaluation_runs(tracker: Tracker) -> list[str]:
    tagged = "tags.`mlflow.runType` = 'genai_evaluate'"
    return [run.info.run_id for run in MlflowClient(tracker.uri).search_runs([tracker.experiment_id], tagged)]


def test_a_sweep_writes_the_best_two_systems_at_its_end_once_and_reads_them_from_the_store(
    small: SmallPipelines, tracker: Tracker, tmp_path: Path
) -> None:
    estimates = {"estimates": SimpleNamespace(metrics={})}
    records, rows = [], []
    for top_k in (1, 2, 3):
        with tracker.run(f"system {top_k}", {}, {}) as run:
            run.dataset("world", "abc", {}, {"topics": 3})
            job = measured(small, run, tracker, tmp_path / str(top_k), top_k, evaluation={"topics": 2})
            found = Pages().compute(job, estimates)
            assert found is not None
            records.append({**job.record, **found.record})
            write_json(tmp_path / str(top_k) / RECORD_FILE, records[-1])
            rows.append(job.outcomes.assign(system=str(top_k), n_tokens=job.n_tokens))
    assert evaluation_runs(tracker) == []

    board = {"leaderboard": SimpleNamespace(frame=pd.DataFrame({"system": ["2", "1", "3"]}))}
    jobs = Jobs("s", tracker.experiment, records, [], pd.concat(rows))
    assert SideBySide().compute(jobs, board) is None  # a report of the sweep writes nothing
    pair = SideBySide().compute(replace(jobs, tracked=True), board)
    assert pair is not None
    assert (pair.value.systems, pair.value.missing) == (("2", "1"), "")
    second, first = (records[place]["evaluation_run"] for place in (0, 1))
    assert f"selectedRunUuid={first}&compareToRunUuid={second}" in pair.value.where
    assert sorted(evaluation_runs(tracker)) == sorted([first, second])
    shown = read(tracker, first)
    assert [trace.info.client_request_id for trace in shown] == ["q2", "q3"]
    assert [trace.info.client_request_id for trace in read(tracker, second)] == ["q2", "q3"]
    told = {one.name: one for one in shown[0].info.assessments}
    assert (told["agrees"].feedback.value, told["agrees"].rationale) == (True, "2: right; 1: right")
    passages = next(span.outputs for span in shown[0].data.spans if span.span_type == "RETRIEVER")
    assert passages[0]["page_content"] == "The bridge stands in Linz."
    # A report, and the same sweep again, link what is there.
    kept = [json.loads((tmp_path / name / RECORD_FILE).read_text("utf-8")) for name in "123"]
    reported = SideBySide().compute(replace(jobs, records=kept), board)
    again = [{key: value for key, value in one.items() if key != "evaluation_run"} for one in kept]
    repeated = replace(jobs, records=again, tracked=True)
    linked = SideBySide().compute(repeated, board)
    assert reported is not None
    assert linked is not None
    assert reported.value == linked.value == pair.value
    assert len(evaluation_runs(tracker)) == 2


def test_two_systems_agree_on_a_topic_where_its_answers_are_of_one_class_or_without_verdicts_equal() -> None:
    first = pd.DataFrame({"qid": list("abcde"), "label": [5, 1, *[None] * 3], "answer": ["x", "", "y", None, None]})
    second = first.assign(label=[5, 4, *[None] * 3], answer=["other", "z", "y", None, "z"])
    found = agreeing(first, second, ["bm25", "sim"])
    assert {qid: told.value for qid, told in found.items()} == {"a": True, "b": False, "c": True, "e": False}
    assert found["b"].rationale == "bm25: lack of information; sim: wrong"
    assert found["c"].rationale == "bm25: y; sim: y"
    assert found["e"].rationale == "bm25: no answer; sim: z"


def test_a_job_alone_writes_its_page_once_and_with_false_none(
    small: SmallPipelines, tracker: Tracker, tmp_path: Path
) -> None:
    estimates = {"estimates": SimpleNamespace(metrics={"correct_share": 0.5})}
    pages = []
    for number, asked in enumerate(("auto", "auto", False)):
        with tracker.run("system", {}, {}) as run:
            job = measured(small, run, tracker, tmp_path / str(number), 1, evaluation=asked)
            job.record["sweep_id"] = None
            pages.append(Pages().compute(job, estimates))
    first, second, none = pages
    assert none is None
    assert first == second
    assert first is not None
    assert evaluation_runs(tracker) == [first.value]
    assert [trace.info.client_request_id for trace in read(tracker, first.value)] == ["q1", "q2", "q3"]


def test_a_sweep_whose_store_is_gone_ends_with_a_line(tmp_path: Path) -> None:
    page = {"n_tokens": None, "topics": 9, "model": None, "price": None, "judge": ("lexical", False), "frames": {}}
    place = {"experiment_id": "1", "tracking_uri": "sqlite://", "folder": str(tmp_path), "store": str(tmp_path)}
    records = [{"system": name, "n_tokens": 300, "page": page, "metrics": {}, **place} for name in "ab"]
    outcomes = pd.DataFrame({"system": ["a", "b"], "n_tokens": 300, "qid": "q", "answer_status": "ok"})
    outcomes = outcomes.assign(label=5, answer="x")
    jobs = Jobs("s", "e", records, [], outcomes, tracked=True)
    found = SideBySide().compute(jobs, {"leaderboard": SimpleNamespace(frame=pd.DataFrame({"system": ["a", "b"]}))})
    assert found is not None
    assert list(SideBySide().show(jobs, found.value, {}).lines) == [
        f"MLflow has no page of the answers of a and b: the store {tmp_path} no longer holds evidence"
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("some", "evaluation=some: allowed are auto, true, false and {topics: 50}"),
        ({"topics": 0}, "evaluation.topics=0: allowed are n_tokens and topics, positive integers"),
        ({"size": 9}, "evaluation.size=9: allowed are n_tokens and topics, positive integers"),
    ],
)
def test_a_value_that_is_not_allowed_is_named(value: Any, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        Pages().check(OmegaConf.create({"tracking": {"evaluation": value}}), [])
    assert said in str(error.value)


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
    assert list(shown.lines) == [f"c and a, question by question (sort by agrees): {page}"]
    assert shown.sections[0].blocks[1].page == page
    assert SideBySide().compute(Jobs("s", "e", records[:2], [], outcomes[:2]), {"leaderboard": board}) is None
