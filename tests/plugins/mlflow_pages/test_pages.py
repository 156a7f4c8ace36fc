"""What MLflow's pages hold of a job: traces with steps, costs, expectations and feedback, and runs of evaluations."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
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
from ragauge.contract.finding import Found
from ragauge.contract.jobs import Jobs
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.record import JobRecord
from ragauge.contract.settings import Settings, Tracking
from ragauge.plugins.mlflow_pages.finding import Pages, write_evaluation
from ragauge.plugins.mlflow_pages.side_by_side import SideBySide
from ragauge.plugins.mlflow_pages.topics import Feedback, TopicTrace
from ragauge.plugins.mlflow_pages.writing import write_traces
from ragauge.track import Run, Tracker
from servers import mlflow_server
from sweep_records import record_of

NAN, N = float("nan"), 20
CODE = AssessmentSource("CODE", "words")
TOPIC = TopicTrace("q1", "Who did it?", [], "", "her", {}, {}, feedback={"ir_score": Feedback(0.5, "half")})
MEASURES = [AnswerMeasureInfo("f1", "F1"), AnswerMeasureInfo("length", "Words", compared=False)]

# Of "b" the documents say nothing, "d" was not sampled, the answer to "c" failed; "e" and "f" are one conversation.
OUTCOMES = pd.DataFrame(
    [
        ("a", "Who  built it?", "Anna", "ok", None, 5, "ok", "5", "as it says", 0.75, 0.5, False, None),
        ("b", "Who painted it?", "Nobody", "ok", None, 1, "ok", "it is 1", None, NAN, NAN, True, None),
        ("c", "Where is it?", None, "failed", "HTTP 500", pd.NA, "no answer", None, None, 0.0, NAN, False, None),
        ("d", "How high is it?", None, "not sampled", None, pd.NA, "no answer", None, None, 1.0, NAN, False, None),
        ("e", "When was it?", "1901", "ok", None, 4, "ok", "4", None, 1.0, 0.0, False, "k"),
        ("f", "In May?", "No", "ok", None, pd.NA, "unreadable", "?", None, NAN, 1.0, False, "k"),
    ],
    columns=[
        "qid", "query", "answer", "answer_status", "answer_error", "label", "judge_status", "judge_raw", "reason",
        "ir_score", "f1", "unanswerable", "conversation",
    ],
).assign(length=9.0)  # fmt: skip
USED = ["qid", "prompt_tokens", "completion_tokens", "cost_usd", "seconds"]
FRAMES: dict[str, pd.DataFrame] = {
    "topics": pd.DataFrame(
        [("a", ["Anna", "she"]), ("b", []), ("c", []), ("d", ["40 m"]), ("e", ["1900"]), ("f", [])],
        columns=["qid", "answers"],
    ).assign(query="?", answer=None),
    "evidence": pd.DataFrame(
        [("a", 1, "d1", "Anna built it."), ("a", 0, None, "It stands."), ("c", 0, "d2", "In Graz."),
         ("c", 1, "d3", None), ("e", 0, "d1", "In 1900.")],
        columns=["qid", "part", "docno", "text"],
    ),
    "part_scores": pd.DataFrame(
        [("a", 0, N, 1.0), ("a", 1, N, 0.5), ("a", 0, 100, 0.0), ("a", 1, 100, 0.0), ("c", 0, N, 0.0),
         ("e", 0, N, 1.0), ("e", 0, 100, 0.5)],
        columns=["qid", "part", "n_tokens", "value"],
    ),
    "layouts": pd.DataFrame(
        [("a", 0, "Anna. It.", ["d1", "d9"], [0, 6]), ("a", 1, "It. Anna.", ["d9", "d1"], [0, 4]),
         ("b", 0, "", [], []), ("c", 0, "Graz", ["d2"], [0]), ("d", 0, "x", ["d2"], [0]),
         ("e", 0, "1. 2. 3.", ["d1", "d2", "d3"], [0, 3, 6]), ("f", 0, "May", ["d1"], [0])],
        columns=["qid", "layout", "text", "docnos", "starts"],
    ),
    "prefixes": pd.DataFrame(
        [("a", N, 1, 7, 2), ("a", 100, 0, 9, 2), ("b", N, 0, 0, 0), ("c", N, 0, 4, 1), ("d", N, 0, 1, 1),
         ("e", N, 0, 5, 2), ("e", 100, 0, 8, 3), ("f", N, 0, 3, 1)],
        columns=["qid", "n_tokens", "layout", "end", "n_chunks"],
    ),
    "answers": pd.DataFrame(
        [("a", 120, 10, 0.004, 1.5), ("b", 0, 0, 0.0, 0.25), ("e", 7, 0, 0.0, 0.0), ("f", 0, 9, 0.002, 0.0)],
        columns=USED,
    ),
    "verdicts": pd.DataFrame(
        [("a", 30, 5, 0.01, 0.5), ("b", 0, 0, 0.0, 0.0), ("e", 40, 6, 0.0, 0.0), ("f", 1, 1, 1.0, 0.0)], columns=USED
    ),
}  # fmt: skip
# As `Answered.of` reads it of the config: a completion's token costs four times a prompt's.
LLM = {"chat": {"model": "m"}, "price": {"prompt": 1.0, "completion": 4.0}}


@dataclass
class StandIn:
    """What a finding asks of a pipeline: who judged, and where frames are stored."""

    folder: Path
    judge: str

    @property
    def components(self) -> Any:
        return SimpleNamespace(judge=SimpleNamespace(kind=self.judge), dataset=None, llm=None)

    def entries_of(self, names: Any) -> dict[str, str]:
        """Stores the frames; the directories of each."""
        for name in names:
            (self.folder / f"e-{name}").mkdir(parents=True, exist_ok=True)
            FRAMES[name].to_parquet(self.folder / f"e-{name}" / f"{name}.parquet")
        return {name: f"e-{name}" for name in names}


def job_of(
    run: Run, tracker: Tracker, folder: Path, outcomes: pd.DataFrame = OUTCOMES, judge: str = "chat", **more: Any
) -> Any:
    """The job, as its findings read it; `more` goes into its record, or into `tracking`."""
    asked = {"uri": tracker.uri, "evaluation": more.pop("evaluation", True)}
    record = {
        "run_id": run.run_id, "experiment_id": run.experiment_id, "experiment": tracker.experiment, "sweep_id": None,
        "tracking_uri": tracker.uri, "n_tokens": N, "choices": {"judge": "openai"}, "folder": folder,
        "store": str(folder / "store"), "dataset_digest": "d",
        "metrics": {"correct_share": 0.5, "f1": 0.25, "other": 1.0}, **more,
    }  # fmt: skip
    return SimpleNamespace(
        record=record_of(record), outcomes=outcomes, n_tokens=N, frame=FRAMES.__getitem__, answer_measures=MEASURES,
        pipeline=StandIn(folder / "store", judge),
        settings=Settings(llm=LLM, tracking=Tracking(**asked)),
    )  # fmt: skip


def traces_of(tracker: Tracker, run_id: str) -> list[Trace]:
    """The traces of a run, by topic."""
    client = MlflowClient(tracker.uri)
    found = client.search_traces(locations=[tracker.experiment_id], filter_string=f"run_id = '{run_id}'")
    return sorted(found, key=lambda trace: str(trace.info.client_request_id))


def feedback_on(trace: Trace) -> dict[str, Any]:
    """The feedback on a trace: its value, its reason and the metadata beside the run."""
    return {
        one.name: (
            one.feedback.value,
            one.rationale,
            {key.rsplit(".", 1)[1]: value for key, value in one.metadata.items() if not key.endswith("sourceRunId")},
        )
        for one in trace.info.assessments
        if one.feedback is not None
    }


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('pages') / 'mlflow.db'}"


@pytest.fixture
def tracker(uri: str, request: pytest.FixtureRequest) -> Tracker:
    return Tracker(uri, request.node.name)


ESTIMATES: Any = {"estimates": Found(metrics={"correct_share": 0.5, "judge_share_1": 0.25, "f1": 0.5, "gap": 9.0})}
# The trace of each topic: state, answer or error, milliseconds, tokens (of prompt, of completion, both), US dollars
# (of prompt, of completion, both), and the passages as far as they stand in the context.
TRACES = {
    "a": ("OK", "Anna", 1500, (120, 10, 130), (0.003, 0.001, 0.004), [("d9", "It."), ("d1", "Ann")]),
    "b": ("OK", "Nobody", 250, None, None, []),
    "c": ("ERROR", "HTTP 500", 0, None, None, [("d2", "Graz")]),
    "e": ("OK", "1901", 0, (7, 0, 7), None, [("d1", "1."), ("d2", "2.")]),
    "f": ("OK", "No", 0, (0, 9, 9), (0.0, 0.002, 0.002), [("d1", "May")]),
}
EXPECTED: dict[str, dict[str, Any]] = {
    "a": {
        "expected_response": "Anna",
        "expected_retrieved_context": [{"content": "It stands."}, {"doc_uri": "d1", "content": "Anna built it."}],
    },
    "b": {},
    "c": {
        "expected_facts": ["In Graz."],
        "expected_retrieved_context": [{"doc_uri": "d2", "content": "In Graz."}, {"doc_uri": "d3"}],
    },
    "e": {
        "expected_response": "1900",
        "expected_retrieved_context": [{"doc_uri": "d1", "content": "In 1900."}],
    },
    "f": {},
}
ALL_THERE = "The context holds every part of the evidence."
FEEDBACK: dict[str, dict[str, Any]] = {
    "a": {
        "judge_class": (
            5, "right: as it says", {"judgeInputTokens": "30", "judgeOutputTokens": "5", "judgeCost": "0.01"}
        ),
        "correct": (True, "right: as it says", {}),
        "ir_score": (0.75, "The context lacks evidence: part 2 of 2 at 0.50: Anna built it.", {}),
        "f1": (0.5, None, {}),
    },
    "b": {
        "judge_class": (1, "lack of information: it is 1", {}),
        "correct": (True, "lack of information: it is 1", {}),
    },
    "c": {"ir_score": (0.0, "The context lacks evidence: part 1 of 1 at 0.00: In Graz.", {})},
    "e": {
        "judge_class": (4, "wrong: 4", {"judgeInputTokens": "40", "judgeOutputTokens": "6"}),
        "correct": (False, "wrong: 4", {}),
        "ir_score": (1.0, ALL_THERE, {}),
        "f1": (0.0, None, {}),
    },
    "f": {"f1": (1.0, None, {})},
}  # fmt: skip


def check_page(tracker: Tracker, folder: Path) -> None:
    """Writes the page of the job and reads all that it shows."""
    client = MlflowClient(tracker.uri)
    with tracker.run("bm25", {}, {}) as run:
        run.dataset("world", "abc", {}, {"topics": 6})
        found = Pages().compute(job_of(run, tracker, folder), ESTIMATES)
    assert found is not None
    page = client.get_run(found.value)
    assert client.get_run(run.run_id).data.tags["evaluation_run"] == found.value == found.record["evaluation_run"]
    assert (page.info.status, page.info.run_name) == ("FINISHED", "bm25")
    assert page.data.tags["mlflow.runType"] == "genai_evaluate"
    assert page.data.tags["evaluation_of"] == run.run_id
    assert [one.dataset.name for one in page.inputs.dataset_inputs] == ["world"]
    shown = {name.rsplit("/", 1)[-1]: value for name, value in page.data.metrics.items()}
    # The score of the topics that have one: 0.75, 0, 1 and 1.
    assert shown == {"ir_score": 0.6875, "correct_share": 0.5, "judge_share_1": 0.25, "f1": 0.5, "topics": 6}

    traces = {str(trace.info.client_request_id): trace for trace in traces_of(tracker, found.value)}
    assert [trace.info.trace_id for trace in traces_of(tracker, run.run_id)] == [
        trace.info.trace_id for trace in traces.values()
    ]
    assert {qid: row_of(trace) for qid, trace in traces.items()} == TRACES
    assert {qid: feedback_on(trace) for qid, trace in traces.items()} == FEEDBACK
    given = {
        qid: {one.name: one.expectation.value for one in trace.info.assessments if one.expectation is not None}
        for qid, trace in traces.items()
    }
    assert given == EXPECTED
    sources = {
        (one.source.source_type, one.source.source_id, one.metadata["mlflow.assessment.sourceRunId"])
        for trace in traces.values()
        for one in trace.info.assessments
        if one.feedback is not None
    }
    assert sources == {("LLM_JUDGE", "openai", found.value)}
    sessions = [trace.info.trace_metadata.get("mlflow.trace.session") for trace in traces.values()]
    assert sessions == [None, None, None, *[f"k {run.run_id[:8]}"] * 2]
    times = [trace.info.request_time for trace in traces.values()]
    assert times == sorted(set(times))

    assert traces["a"].info.tags["mlflow.traceName"] == "Who built it?"
    assert traces["a"].info.request_preview == "Who  built it?"
    assert steps_of(traces["a"]) == [
        ("CHAIN", 1.5, {"question": "Who  built it?"}, {"answer": "Anna"}, "OK", None),
        ("RETRIEVER", 0, {"query": "Who  built it?"}, ["d9", "d1"], "OK", 0.75),
        ("LLM", 1.5, {"question": "Who  built it?", "context": "It. Ann"}, "Anna", "OK", "m"),
        ("EVALUATOR", 0, {"answer": "Anna", "expected_response": "Anna"},
         {"label": 5, "class": "right", "status": "ok", "reason": "as it says"}, "OK", None),
    ]  # fmt: skip
    assert steps_of(traces["c"]) == [
        ("CHAIN", 0, {"question": "Where is it?"}, {"answer": None}, "ERROR HTTP 500", None),
        ("RETRIEVER", 0, {"query": "Where is it?"}, ["d2"], "OK", 0.0),
        ("LLM", 0, {"question": "Where is it?", "context": "Graz"}, None, "ERROR HTTP 500", "m"),
        ("EVALUATOR", 0, {"answer": None}, {"label": None, "class": None, "status": "no answer"}, "OK", None),
    ]


def row_of(trace: Trace) -> tuple[Any, ...]:
    """As a row of `TRACES`; tokens and cost stand on the trace and on the call of the LLM alike."""
    spans = {span.span_type: span for span in trace.data.spans}
    info, llm = trace.info, spans["LLM"]
    tokens, cost = info.token_usage, info.cost
    assert (llm.get_attribute("mlflow.chat.tokenUsage"), llm.get_attribute("mlflow.llm.cost")) == (tokens, cost)
    return (
        info.state.value,
        info.response_preview,
        info.execution_duration,
        tokens and tuple(tokens[f"{of}_tokens"] for of in ("input", "output", "total")),
        cost and tuple(pytest.approx(cost[f"{of}_cost"]) for of in ("input", "output", "total")),
        [(one["metadata"]["doc_uri"], one["page_content"]) for one in spans["RETRIEVER"].outputs],
    )


def steps_of(trace: Trace) -> list[tuple[Any, ...]]:
    """Of every span its type, seconds, what came in and out, its status, and the score or the model."""
    return [
        (
            span.span_type,
            (span.end_time_ns - span.start_time_ns) / 1e9,
            span.inputs,
            [one["id"] for one in span.outputs] if span.span_type == "RETRIEVER" else span.outputs,
            " ".join(filter(None, (span.status.status_code.value, span.status.description))),
            span.get_attribute("ir_score" if span.span_type == "RETRIEVER" else "mlflow.llm.model"),
        )
        for span in trace.data.spans
    ]


def test_a_job_shows_every_answered_topic_with_steps_costs_expectations_and_feedback(
    tracker: Tracker, tmp_path: Path
) -> None:
    check_page(tracker, tmp_path)


@pytest.mark.slow
def test_a_server_holds_what_sqlite_holds(tmp_path: Path) -> None:
    with mlflow_server(f"sqlite:///{tmp_path / 'm.db'}", tmp_path / "artifacts", tmp_path / "log") as url:
        check_page(Tracker(url, "pages"), tmp_path)


# Another system lacks "f", and its answer to "e" failed, too.
OTHER = OUTCOMES[OUTCOMES["qid"] != "f"].assign(
    label=[3, 1, pd.NA, pd.NA, pd.NA], answer=["She", "Nobody", None, None, None], ir_score=[1.0, NAN, 0.0, 1.0, 1.0]
)


def swept(tracker: Tracker, folder: Path, judge: str = "chat") -> Jobs:
    """Three systems of a sweep at the budget, and at one of 100 tokens; none has an evaluation run yet."""
    records, rows = [], []
    for system, outcomes in (("worse", OTHER), ("worst", OTHER), ("better", OUTCOMES)):
        for n_tokens in (100, N):
            with tracker.run(system, {}, {}) as run:
                own = folder / f"{system} {n_tokens}"
                asked = {"topics": 3, "n_tokens": N}
                job = job_of(run, tracker, own, outcomes, judge, evaluation=asked, sweep_id="s", system=system)
                found = Pages().compute(job, ESTIMATES)
            assert found is not None
            records.append(job.record)
            records[-1].take({**found.record, "n_tokens": n_tokens})
            records[-1].write()
            rows.append(outcomes.assign(system=system, n_tokens=n_tokens))
    return Jobs("s", tracker.experiment, records, [], pd.concat(rows))


BOARD: Any = {"leaderboard": SimpleNamespace(frame=pd.DataFrame({"system": ["better", "worse", "worst"]}))}


def evaluation_runs(tracker: Tracker) -> set[str]:
    tagged = "tags.`mlflow.runType` = 'genai_evaluate'"
    return {run.info.run_id for run in MlflowClient(tracker.uri).search_runs([tracker.experiment_id], tagged)}


def test_a_sweep_writes_the_best_two_systems_at_its_end_once_and_reads_them_from_the_store(
    tracker: Tracker, tmp_path: Path
) -> None:
    jobs = swept(tracker, tmp_path)
    assert evaluation_runs(tracker) == set()
    assert SideBySide().compute(jobs, BOARD) is None  # a report of the sweep writes nothing
    pair = SideBySide().compute(replace(jobs, tracked=True), BOARD)
    assert pair is not None
    assert (pair.value.systems, pair.value.n_tokens, pair.value.missing) == (("better", "worse"), N, "")
    better, worse = (jobs.records[place].added["evaluation_run"] for place in (5, 1))
    shown_at = (
        f"#/experiments/{tracker.experiment_id}/evaluation-runs?selectedRunUuid={better}&compareToRunUuid={worse}"
    )
    told = SideBySide().show(jobs, pair.value, {})
    assert list(told.lines) == [
        "better and worse, question by question (sort by agrees): make ui, or ragauge ui; then "
        f"http://127.0.0.1:5000/{shown_at}"
    ]
    assert told.sections[0].blocks[1].page == f"http://127.0.0.1:5000/{shown_at}"
    assert SideBySide().compute(replace(jobs, records=jobs.records[4:], tracked=True), BOARD) is None
    assert evaluation_runs(tracker) == {better, worse}

    # Of each system three topics: `sha256sum` sorts d, f, c, b, e, a, of which "d" has no answer.
    shown = {run: {str(one.info.client_request_id): one for one in traces_of(tracker, run)} for run in (better, worse)}
    assert {run: [*traces] for run, traces in shown.items()} == {better: ["b", "c", "f"], worse: ["b", "c", "e"]}
    agreed = {
        run: {qid: feedback_on(one).get("agrees") for qid, one in traces.items()} for run, traces in shown.items()
    }
    both = "better: lack of information; worse: lack of information"
    assert agreed == {
        better: {"b": (True, both, {}), "c": None, "f": None},
        worse: {"b": (True, both, {}), "c": None, "e": (False, "better: wrong; worse: no answer", {})},
    }
    assert {qid: row_of(one) for qid, one in shown[better].items()} == {qid: TRACES[qid] for qid in "bcf"}
    means = {run: MlflowClient(tracker.uri).get_run(run).data.metrics for run in (better, worse)}
    assert [means[run]["ir_score"] for run in (better, worse)] == [0.6875, 0.75]

    # A report, and the same sweep again, link what is there.
    kept = [replace(JobRecord.read(one.folder / "job.json"), system=one.system) for one in jobs.records]
    again = [
        replace(one, added={key: value for key, value in one.added.items() if key != "evaluation_run"}) for one in kept
    ]
    for records, tracked in ((kept, False), (again, True)):
        linked = SideBySide().compute(replace(jobs, records=records, tracked=tracked), BOARD)
        assert linked is not None
        assert linked.value == pair.value
    assert evaluation_runs(tracker) == {better, worse}


def test_a_sweep_whose_store_is_gone_ends_with_a_line(tracker: Tracker, tmp_path: Path) -> None:
    jobs = replace(swept(tracker, tmp_path, "lexical"), tracked=True)
    store = tmp_path / f"better {N}" / "store"
    (store / "e-evidence" / "evidence.parquet").unlink()
    found = SideBySide().compute(jobs, BOARD)
    assert found is not None
    assert list(SideBySide().show(jobs, found.value, {}).lines) == [
        f"MLflow has no page of the answers of better and worse: the store {store} no longer holds evidence"
    ]


def test_a_job_alone_writes_its_page_once_and_with_false_none(tracker: Tracker, tmp_path: Path) -> None:
    pages = []
    for number, asked in enumerate(("auto", "auto", "auto", False)):
        with tracker.run("system", {}, {}) as run:
            job = job_of(run, tracker, tmp_path / str(number), judge="lexical", evaluation=asked)
            pages.append(Pages().compute(job, ESTIMATES))
            if number == 0:  # one that shows the same and was not written to its end does not count
                MlflowClient(tracker.uri).set_terminated(pages[0].value, status="FAILED")
    _, first, second, none = pages
    assert none is None
    assert first == second
    assert first is not None
    assert evaluation_runs(tracker) == {pages[0].value, first.value}
    shown = traces_of(tracker, first.value)
    assert [one.info.client_request_id for one in shown] == [*TRACES]
    assert {one.source.source_type for one in shown[0].info.assessments} == {"CODE"}


def test_a_job_with_traces_alone_has_them_on_its_run_and_no_evaluation(tracker: Tracker, tmp_path: Path) -> None:
    with tracker.run("system", {}, {}) as run:
        job = job_of(run, tracker, tmp_path, evaluation=False)
        job.settings.trace = True
        assert Pages().compute(job, ESTIMATES) is None
        unanswered = job_of(run, tracker, tmp_path, OUTCOMES.assign(answer=None), evaluation="auto")
        assert Pages().compute(unanswered, ESTIMATES) is None
    assert [one.info.client_request_id for one in traces_of(tracker, run.run_id)] == [*TRACES]
    assert evaluation_runs(tracker) == set()


def test_more_topics_than_one_request_takes_are_all_linked(tracker: Tracker, tmp_path: Path) -> None:
    client, topics = MlflowClient(tracker.uri), [TopicTrace(f"q{n:03}", "?", [], "", "a", {}, {}) for n in range(101)]
    with tracker.run("many", {}, {}) as run:
        page = write_evaluation(client, run.experiment_id, run.run_id, topics, CODE, {})
    linked = client.search_traces(
        locations=[tracker.experiment_id], filter_string=f"run_id = '{page}'", max_results=200, include_spans=False
    )
    assert {one.info.client_request_id for one in linked} == {one.qid for one in topics}


def test_a_fixed_seed_repeats_no_id_of_a_trace_or_span(tracker: Tracker) -> None:
    client = MlflowClient(tracker.uri)
    traces, spans = [], []
    with tracker.run("seeded", {}, {}) as run:
        for _ in range(2):
            random.seed(1)
            traces += write_traces(client, run.experiment_id, run.run_id, [TOPIC], CODE).values()
    for trace in traces_of(tracker, run.run_id):
        spans += [span.span_id for span in trace.data.spans]
    assert (len(set(traces)), len(set(spans))) == (2, 8)


def test_traces_and_evaluation_of_a_lost_attempt_are_gone(tracker: Tracker) -> None:
    client, tags = MlflowClient(tracker.uri), {"role": "job", "sweep_id": "s1", "job": "0", "ragauge.host": "elsewhere"}
    ids = []

    def fails(run: Run) -> None:
        ids.append(run.run_id)
        write_evaluation(client, run.experiment_id, run.run_id, [TOPIC], CODE, {})
        raise ValueError("cut")

    with pytest.raises(ValueError, match="cut"), tracker.run("r", {}, tags) as run:
        fails(run)
    with tracker.run("r", {}, tags) as again:
        pass
    (done,) = client.search_runs([tracker.experiment_id])
    assert [done.info.run_id] == [again.run_id] == ids
    assert "evaluation_run" not in done.data.tags
    assert traces_of(tracker, again.run_id) == []


def test_feedback_on_a_measured_trace_is_added_to_it(tracker: Tracker) -> None:
    client = MlflowClient(tracker.uri)
    with tracker.run("r", {}, {}) as run:
        (theirs,) = write_traces(client, run.experiment_id, run.run_id, [replace(TOPIC, feedback={})], CODE).values()
        mlflow.set_tracking_uri(tracker.uri)
        measured = [replace(TOPIC, trace_id=theirs), replace(TOPIC, qid="q2")]
        page = write_evaluation(client, run.experiment_id, run.run_id, measured, CODE, {})
    first, second = traces_of(tracker, page)
    assert (first.info.trace_id, second.info.client_request_id) == (theirs, "q2")
    assert feedback_on(first) == feedback_on(second) == {"ir_score": (0.5, "half", {})}


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
