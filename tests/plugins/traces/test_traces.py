"""Windows of real traces in a real MLflow store: what a LangChain application left, what people expect."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from mlflow.entities import SpanEvent, SpanType
from omegaconf import OmegaConf

from plugins.traces.traced_app import DOCUMENTS, EXPERIMENT, QUESTIONS
from processes import clean_environment
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.datasets import SampleDataset
from ragauge.experiment.job import pin_window
from ragauge.experiment.request import JobFolder
from ragauge.plugins.traces import components
from ragauge.plugins.traces.components import MlflowTraces, TracedAnswers, TracedContexts
from ragauge.plugins.traces.window import iso, milliseconds, process_start
from ragauge.track.connection import at

DAY = 86_400 * 10**9  # nanoseconds
FIRST = 1_750_000_000 * 10**9  # 2025-06-15 15:06:40 UTC


@pytest.fixture(autouse=True)
def own_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test stands for a process of its own: windows are read anew, MLflow knows no URI, and waits."""
    components._taken.cache_clear()
    process_start.cache_clear()
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
    mlflow.set_tracking_uri(None)  # type: ignore[arg-type]
    yield
    mlflow.set_tracking_uri(None)  # type: ignore[arg-type]


@pytest.fixture
def uri(traced_database: Path, tmp_path: Path) -> str:
    """A copy of the application's store."""
    return f"sqlite:///{shutil.copy(traced_database, tmp_path / 'mlflow.db')}"


@pytest.fixture
def window(uri: str, tmp_path: Path) -> Callable[..., MlflowTraces]:
    def make(**settings: Any) -> MlflowTraces:
        given = {"experiment": EXPERIMENT, "on_error": "skip", "folder": tmp_path / "traces", **settings}
        components._taken.cache_clear()
        return MlflowTraces(uri=uri, **given)

    return make


def write(uri: str, experiment: str, question: Any, day: int, **outputs: Any) -> str:
    """One trace at noon or so of the day-th day, which took two seconds.

    found: what each RETRIEVER span gave; calls: the attributes of each call of an LLM. Later ones are written first.
    """
    with at(uri) as client:
        found = client.get_experiment_by_name(experiment)
        experiment_id = found.experiment_id if found else client.create_experiment(experiment)
        start = FIRST + day * DAY
        root = mlflow.start_span_no_context(
            "ask", inputs=question, experiment_id=experiment_id, start_time_ns=start, tags=outputs.get("tags")
        )
        for number, documents in reversed([*enumerate(outputs.get("found", ()))]):
            times = {"start_time_ns": start + number * 1000}
            span = mlflow.start_span_no_context("find", SpanType.RETRIEVER, root, **times)
            span.end(outputs=documents, end_time_ns=start + number * 1000 + 500)
        for number, attributes in reversed([*enumerate(outputs.get("calls", ()))]):
            times = {"start_time_ns": start + number * 1000}
            span = mlflow.start_span_no_context("call", SpanType.LLM, root, attributes=attributes, **times)
            span.end(end_time_ns=start + number * 1000 + 500)
        if outputs.get("going"):
            return str(root.trace_id)
        if failure := outputs.get("failure"):
            root.add_event(SpanEvent.from_exception(failure))
        status = "ERROR" if failure else "OK"
        root.end(outputs=outputs.get("answer", "So."), status=status, end_time_ns=start + 2_000_000_000)
        for name, value in outputs.get("expected", ()):
            mlflow.log_expectation(trace_id=str(root.trace_id), name=name, value=value)
            time.sleep(0.002)  # MLflow's times are milliseconds, and the later one counts
        return str(root.trace_id)


def call(model: str, prompt: int, completion: int, cost: float) -> dict[str, Any]:
    """The attributes of a call of an LLM, as MLflow's autologging writes them."""
    tokens = {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}
    costs = {"input_cost": 0.0, "output_cost": cost, "total_cost": cost}
    return {"mlflow.llm.model": model, "mlflow.chat.tokenUsage": tokens, "mlflow.llm.cost": costs}


def passage(document: str, text: str) -> dict[str, Any]:
    return {"page_content": text, "metadata": {"source": document}}


A1, A2, B1 = passage("a.md", "A 1."), passage("a.md", "A 2."), passage("b c.md", "B 1.")
# Question, day, and what the trace holds; the window begins at the first day and ends before the fourth.
SHOP: list[tuple[Any, int, dict[str, Any]]] = [
    ("Before?", -1, {}),
    ("How?", 0, {
        "found": [[A1, A2], [A2, B1]], "calls": [call("small", 7, 1, 0.25), call("big", 30, 4, 0.5)],
        "expected": [("expected_response", "Old."), ("expected_response", "New."),
                     ("expected_retrieved_context", [{"doc_uri": "a.md", "content": "A 2."}, {"doc_uri": "z"}])],
        "tags": {"version": "3", "mlflow.trace.session": "s"},
    }),
    ("Why?", 1, {"tags": {"mlflow.trace.session": "s"}, "expected": [
        ("expected_response", " "), ("expected_response", 5), ("expected_facts", ["One.", " ", "Two."])
    ]}),
    ("Own?", 1, {"tags": {"ragauge.qid": "q"}}),
    ("Judged?", 1, {"tags": {"mlflow.trace.sourceScorer": "correctness"}}),
    ({"texts": ["One", "two"]}, 1, {"answer": [[0.5]]}),
    ("When?", 2, {
        "found": [[B1]], "failure": TimeoutError("no\nreply"), "tags": {"version": "4", "mlflow.trace.session": "s"},
        "expected": [("unanswerable", True), ("expected_response", "Never.")],
    }),
    ("Going?", 2, {"found": [[A1]], "going": True}),
    ("After?", 3, {}),
]  # fmt: skip


def test_a_window_by_hand(uri: str, window: Callable[..., MlflowTraces], caplog: pytest.LogCaptureFixture) -> None:
    for question, day, outputs in SHOP:
        write(uri, "shop", question, day, **outputs)
    source = window(experiment="shop", since=iso(FIRST // 10**6), until=iso((FIRST + 3 * DAY) // 10**6),
                    tags=["version"], on_error="raise")  # fmt: skip
    with caplog.at_level("INFO", "ragauge"):
        data = source.load()
    assert caplog.messages[-1].endswith(
        ": 1 trace(s) still going; 2 trace(s) of ragauge or of MLflow's judges; 1 trace(s) without question, "
        "retrieval and answer, such as those of building an index: left out"
    )
    topics = data.topics.astype(object).where(data.topics.notna(), None)
    shown = ["query", "answer", "answers", "unanswerable", "day", "model", "rounds", "state", "version", "turn"]
    assert [tuple(row) for row in topics[shown].itertuples(index=False)] == [
        ("How?", "New.", ["New.", "Old."], False, "2025-06-15", "big", 2, "OK", "3", 1),
        ("Why?", "One.\nTwo.", ["One.\nTwo."], False, "2025-06-16", None, 0, "OK", None, 2),
        ("When?", None, [], True, "2025-06-17", None, 1, "ERROR", "4", 3),
    ]
    assert [list(said) for said in topics["history"]] == [[], ["How?", "So."], ["How?", "So.", "Why?", "So."]]
    evidence = data.evidence.astype(object).where(data.evidence.notna(), None)
    assert [*zip(evidence["qid"], evidence["docno"], evidence["text"], strict=True)] == [
        (topics["qid"][0], "a.md", "A 2."), (topics["qid"][0], "z", None)
    ]  # fmt: skip

    asked = data.topics[["qid", "query"]]
    run, texts = TracedContexts(source).bring(asked, pd.DataFrame({"docno": []}, dtype="str"), None)  # type: ignore[arg-type]
    text = texts.set_index("docno")["text"]
    found = [(docno.split("%p")[0], text[docno], rank) for docno, rank in zip(run["docno"], run["rank"], strict=True)]
    assert found == [("a.md", "A 1.", 0), ("a.md", "A 2.", 1), ("b%20c.md", "B 1.", 2), ("b%20c.md", "B 1.", 0)]
    assert run.groupby("qid", sort=False).size().to_dict() == {topics["qid"][0]: 3, topics["qid"][2]: 1}
    assert sorted(text) == ["A 1.", "A 2.", "B 1."]
    known, _ = TracedContexts(source).bring(asked, texts.iloc[:1], None), None  # type: ignore[arg-type]
    assert known[1]["docno"].tolist() == texts["docno"].tolist()[1:]
    answers = TracedAnswers(source).answer(asked, asked[["qid"]].assign(n_tokens=9, text=""), None)  # type: ignore[arg-type]
    columns = ["answer", "error", "prompt_tokens", "completion_tokens", "cost_usd", "seconds", "cached"]
    told = answers.astype(object).where(answers.notna(), None)[columns]
    assert [tuple(row) for row in told.itertuples(index=False)] == [
        ("So.", None, 37, 5, 0.75, 2.0, True),
        ("So.", None, 0, 0, 0.0, 2.0, True),
        (None, "TimeoutError: no reply", 0, 0, 0.0, 2.0, True),
    ]
    counts = source.window_metrics(data.topics)
    assert counts == {"traces_failed": 1, "traces_without_retriever": 1, "traces_rounds": 1.0}
    assert source.window_warnings(counts) == ["1 traces have no RETRIEVER span: their contexts are empty"]
    assert source.window_warnings({**counts, "traces_without_retriever": 0}) == []
    last = window(experiment="shop", contexts="last").files()["traces"]
    assert [row["retrieved_contexts"] for row in components.read_rows(last)][1] == ["A 2.", "B 1."]


def frames(source: MlflowTraces) -> tuple[pd.DataFrame, pd.DataFrame]:
    data = source.load()
    return data.topics.set_index("query"), data.evidence


def test_questions_references_evidence_and_attributes_of_a_langchain_application(
    window: Callable[..., MlflowTraces],
) -> None:
    data = window(tags=["version"]).load()
    topics = data.topics
    assert topics["query"].tolist() == [
        *(question for question, *_ in QUESTIONS),
        "How long are backups kept?", "Are you there?", "Why is it slow?",
    ]  # fmt: skip
    assert topics["answer"].tolist()[:4] == [expected for _, _, expected, _ in QUESTIONS]
    assert topics["answer"].isna().tolist() == [False] * 4 + [True] * 3
    assert topics["rounds"].tolist() == [1, 1, 1, 1, 2, 0, 1]
    assert topics["state"].tolist() == ["OK"] * 6 + ["ERROR"]
    assert topics["version"].tolist()[:4] == ["3", "3", "4", "4"]
    assert topics["version"].isna().sum() == 3
    assert data.evidence["docno"].tolist() == ["ports.md", "backup%20guide.md", "mail.md", "users.md"]
    sources = [source for *_, source in QUESTIONS]
    assert all(text in DOCUMENTS[s] for text, s in zip(data.evidence["text"], sources, strict=True))
    assert len(data.skipped) == 1
    assert re.fullmatch(
        "mlflow_traces, trace tr-[0-9a-f]+, qid 'tr-.*': no question in the usual places of the root "
        r"span's inputs \(dataset.question_path says where it is\)",
        data.skipped[0],
    )


def test_contexts_and_answers_are_those_that_the_application_had(window: Callable[..., MlflowTraces]) -> None:
    rows = {row["user_input"]: row for row in components.read_rows(window().files()["traces"])}
    first, rounds, greeting = (rows[q] for q in (QUESTIONS[0][0], "How long are backups kept?", "Are you there?"))
    assert (first["retrieved_docnos"][0], first["retrieved_contexts"][0]) == ("ports.md", DOCUMENTS["ports.md"])
    # Two rounds of two passages, of which the second found one again.
    assert rounds["retrieved_docnos"] == ["backup%20guide.md", "users.md", "mail.md"]
    assert greeting["retrieved_contexts"] == []
    assert [rows[question]["response"] for question, *_ in QUESTIONS] == [answer for _, answer, *_ in QUESTIONS]
    failed = rows["Why is it slow?"]
    assert [(row["prompt_tokens"], row["completion_tokens"]) for row in rows.values() if row is not failed][:6] == [
        (40, 5)
    ] * 6
    assert (failed["response"], failed["error"]) == (None, "TimeoutError: the model did not answer; key ***")


def test_a_retriever_within_a_retriever_is_no_round(uri: str, window: Callable[..., MlflowTraces]) -> None:
    with at(uri) as client:
        experiment_id = client.create_experiment("nested")
        root = mlflow.start_span_no_context("ask", inputs="Why?", experiment_id=experiment_id)
        outer = mlflow.start_span_no_context("hybrid", SpanType.RETRIEVER, root)
        for text in ("a", "b"):
            arm = mlflow.start_span_no_context("arm", SpanType.RETRIEVER, outer)
            arm.end(outputs=[{"page_content": text}])
        outer.end(outputs=[{"page_content": "b"}])
        root.end(outputs="So.")
    row = next(components.read_rows(window(experiment="nested").files()["traces"]))
    assert (row["rounds"], row["retrieved_contexts"]) == (1, ["b"])


def test_a_window_that_is_read_again_is_the_same_file_until_its_content_changes(
    uri: str, window: Callable[..., MlflowTraces], tmp_path: Path
) -> None:
    ids = [write(uri, "closed", f"question {day}?", day) for day in range(4)]
    first = window(experiment="closed", since="2025-06-15", until="2025-06-18")
    topics, file = first.load().topics, first.files()["traces"]
    assert topics["query"].tolist() == ["question 0?", "question 1?", "question 2?"]
    assert topics["day"].tolist() == ["2025-06-15", "2025-06-16", "2025-06-17"]
    assert topics["qid"].tolist() == ids[:3]
    write(uri, "closed", "later?", 9)
    with at(uri):  # what ragauge or a judge of MLflow's says is not read
        mlflow.log_feedback(trace_id=ids[0], name="judge_class", value=5)
    again = window(experiment="closed", since="2025-06-15T00:00", until="2025-06-18T02:00+02:00")
    assert again.files()["traces"] == file
    assert identity(again) == identity(first)
    assert window(experiment="closed", until="2025-06-30").files()["traces"] != file
    with at(uri):
        mlflow.log_expectation(trace_id=ids[0], name="expected_response", value="So.")
    later = window(experiment="closed", since="2025-06-15", until="2025-06-18")
    assert later.files()["traces"] != file
    kept = MlflowTraces(snapshot=file, experiment="closed", folder=tmp_path)
    assert kept.load().topics["answer"].isna().all()


def test_a_window_that_moves_ends_now(uri: str, window: Callable[..., MlflowTraces]) -> None:
    assert len(window(since="1h").load().topics) == 7
    assert window(since="1h").window.until is not None
    with pytest.raises(ConfigError, match=r"no trace in experiment 'helpdesk' since 2.* until 2"):
        window(since="4w", until="3w").files()


def test_times_are_utc_unless_they_say_otherwise() -> None:
    assert milliseconds("since", "2025-06-15", 0) == 1_749_945_600_000
    assert milliseconds("since", "2025-06-15T02:00:00+02:00", 0) == 1_749_945_600_000
    assert milliseconds("since", "36h", 200_000) == 70_400_000
    assert milliseconds("since", None, 0) is None
    assert iso(1_749_945_600_000) == "2025-06-15T00:00:00+00:00"
    assert milliseconds("since", iso(1_749_945_600_123), 0) == 1_749_945_600_123
    for wrong in ("yesterday", "7y", "-1d", ""):
        with pytest.raises(ConfigError, match=re.escape(f"dataset.since={wrong!r}: allowed are ISO times")):
            milliseconds("since", wrong, 0)


def test_questions_and_answers_at_paths(uri: str, window: Callable[..., MlflowTraces]) -> None:
    write(uri, "odd", {"payload": {"ask": "Why?"}, "n": 1}, 0, answer={"x": {"say": "So."}, "y": 1})
    source = {"experiment": "odd", "question_path": "payload.ask", "answer_path": "x.say"}
    row = next(components.read_rows(window(**source).files()["traces"]))
    assert (row["user_input"], row["response"]) == ("Why?", "So.")
    with pytest.raises(DataError, match=r"trace tr-.*: no question at payload.asked of the root span's inputs"):
        window(**{**source, "question_path": "payload.asked"}, on_error="raise").load()
    with pytest.raises(ConfigError, match=r"dataset.question_path='a\[' is no JMESPath expression"):
        window(question_path="a[")


def test_an_evaluation_dataset_says_what_is_expected_of_the_same_questions(
    uri: str, window: Callable[..., MlflowTraces]
) -> None:
    with at(uri) as client:
        experiment_id = client.get_experiment_by_name(EXPERIMENT).experiment_id
        dataset = mlflow.genai.datasets.create_dataset(name="golden", experiment_id=[experiment_id])
        dataset.merge_records(
            [
                {"inputs": {"question": "Are you there?"}, "expectations": {"expected_response": "Hello."}},
                {"inputs": {"question": "Never asked?"}, "expectations": {"expected_response": "No."}},
            ]
        )
    topics, _ = frames(window(evaluation_dataset="golden"))
    assert topics.loc["Are you there?", "answer"] == "Hello."
    with pytest.raises(ConfigError, match=r"dataset.evaluation_dataset='silver': .* has no evaluation dataset"):
        window(evaluation_dataset="silver").files()


def test_a_topic_is_named_by_the_client_s_request_where_that_is_asked_for(
    uri: str, window: Callable[..., MlflowTraces]
) -> None:
    with at(uri) as client:
        mlflow.set_experiment(experiment_id=client.create_experiment("requests"))
        for question in ("Why?", "Why?", None):
            with mlflow.start_span("ask") as root:
                root.set_inputs(question or "How?")
                if question:
                    mlflow.update_current_trace(client_request_id="r1")
    source = window(experiment="requests", qid="client_request_id")
    data = source.load()
    assert data.topics["qid"].tolist() == ["r1"]
    assert [message.partition(": ")[2] for message in data.skipped] == [
        "this qid stands twice",
        "it has no client request id (dataset.qid=trace_id takes the trace's own)",
    ]
    assert source.trace_ids(data.topics)["r1"] == next(components.read_rows(source.files()["traces"]))["trace_id"]


_BUILDS_AN_INDEX = """
import sys
import mlflow
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM
mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_experiment("index")
mlflow.llama_index.autolog()
documents = [Document(text=text) for text in ("Port 4711.", "At two.")]
index = VectorStoreIndex.from_documents(documents, embed_model=MockEmbedding(embed_dim=8))
index.insert(Document(text="One text alone."))
index.as_query_engine(llm=MockLLM(max_tokens=8)).query("On which port?")
"""


@pytest.mark.slow
def test_traces_of_building_an_index_of_llamaindex_are_left_out_and_counted(
    uri: str, window: Callable[..., MlflowTraces], caplog: pytest.LogCaptureFixture
) -> None:
    # A process of its own: autologging patches LlamaIndex for the whole process.
    subprocess.run([sys.executable, "-c", _BUILDS_AN_INDEX, uri], check=True, env=clean_environment())
    with caplog.at_level("INFO", "ragauge"):
        data = window(experiment="index", on_error="raise").load()
    assert data.topics["query"].tolist() == ["On which port?"]
    # The splitter and the embedder, for two documents and for one.
    assert "4 trace(s) without question, retrieval and answer" in caplog.text


def test_a_filter_is_mlflow_s_and_what_is_wrong_with_it_is_said_in_one_line(
    window: Callable[..., MlflowTraces],
) -> None:
    assert len(window(filter="tags.version = '3'").load().topics) == 2
    with pytest.raises(ConfigError) as told:
        window(filter="tags.version ~ 3").files()
    message = str(told.value)
    assert message.startswith("dataset.filter='tags.version ~ 3': MLflow says: ")
    assert "\n" not in message
    with pytest.raises(ConfigError, match=r"no trace in experiment 'helpdesk' .* that pass \"tags.version = '9'\""):
        window(filter="tags.version = '9'").files()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"experiment": "desk"},
            "dataset.experiment='desk': MLflow at .* has no such experiment; it has Default, helpdesk$",
        ),
        ({"experiment": None}, "dataset.experiment=None: allowed are names of MLflow's experiments"),
        ({"since": "7 days"}, "dataset.since='7 days': allowed are ISO times"),
        (
            {"since": "2025-06-02", "until": "2025-06-01"},
            "dataset.since='2025-06-02' is not before dataset.until",
        ),
        ({"contexts": "first"}, "dataset.contexts='first': allowed are union, last"),
        ({"qid": "id"}, "dataset.qid='id': allowed are trace_id, client_request_id"),
        ({"tags": ["label"]}, "dataset.tags='label': allowed are names of tags that no other column"),
        ({"tags": ["rounds"]}, "dataset.tags='rounds': allowed"),
        ({"snapshot": "none.jsonl"}, "dataset.snapshot=none.jsonl: there is no such file"),
    ],
)
def test_bad_input_names_the_key_and_what_is_allowed(
    window: Callable[..., MlflowTraces], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        window(**settings).files()


def test_a_store_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    source = MlflowTraces(experiment="app", uri=f"sqlite:///{tmp_path / 'none.db'}", folder=tmp_path)
    with pytest.raises(ConfigError, match=r"no MLflow database at .*none\.db"):
        source.files()
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_that_is_none_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    for text, message in (
        ('{"id": "q1"}\n', "line 1: 'trace_id' is missing: no snapshot of traces"),
        ("a log file\n", "line 1: not a line of a snapshot of traces"),
    ):
        file.write_text(text)
        with pytest.raises(DataError, match=message):
            MlflowTraces(experiment="app", snapshot=file).load()


def test_secrets_in_tags_are_not_kept_and_the_texts_that_are_measured_stay(
    uri: str, window: Callable[..., MlflowTraces]
) -> None:
    key = "sk-" + "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    trace_id = write(uri, "keys", f"Is {key} a key?", 0, found=[[{"page_content": f"{key} is one."}]])
    with at(uri):
        mlflow.set_trace_tag(trace_id, "caller", f"bearer {key}")
    text = window(experiment="keys", tags=["caller"]).files()["traces"].read_text()
    row = json.loads(text)
    assert row["user_input"] == f"Is {key} a key?"
    assert row["retrieved_contexts"] == [f"{key} is one."]
    assert key not in row["caller"]


def test_other_datasets_have_no_traces_to_take_contexts_and_answers_of() -> None:
    for part, name in ((TracedContexts, "retriever"), (TracedAnswers, "llm")):
        with pytest.raises(ConfigError, match=f"{name}=mlflow_traces gives what dataset=mlflow_traces recorded"):
            part(SampleDataset())


def test_mlflow_s_own_functions_look_where_they_did_before(uri: str, window: Callable[..., MlflowTraces]) -> None:
    window().files()
    assert "MLFLOW_TRACKING_URI" not in os.environ  # or runs would go where the traces are
    mlflow.set_tracking_uri("sqlite:///elsewhere.db")
    window().files()
    assert mlflow.get_tracking_uri() == os.environ["MLFLOW_TRACKING_URI"] == "sqlite:///elsewhere.db"


def test_every_job_of_a_sweep_ends_where_the_sweep_began_and_a_kept_window_stays(uri: str, tmp_path: Path) -> None:
    began, sweep = int(time.time()) + 60, tmp_path / "sweep"
    (sweep / "3").mkdir(parents=True)
    (sweep / "multirun.yaml").write_text("", encoding="utf-8")
    os.utime(sweep / "multirun.yaml", (began, began))
    job = JobFolder(sweep / "3", sweep, 3, {}, ())

    def pinned(**given: Any) -> tuple[Any, Any]:
        target = {"_target_": "ragauge.plugins.traces.components.MlflowTraces", "experiment": EXPERIMENT, "uri": uri}
        cfg = OmegaConf.create({"dataset": {**target, "folder": str(tmp_path / "kept"), **given}})
        OmegaConf.set_struct(cfg, True)
        return pin_window(cfg, job), cfg.dataset

    for there in ({}, {"until": None}):
        made, dataset = pinned(since="1d", **there)
        assert (dataset.since, dataset.until) == (iso((began - 86_400) * 1000), iso(began * 1000))
    kept, dataset = pinned(since="1d", snapshot=made)
    assert kept == made == str(next((tmp_path / "kept").iterdir()))
    assert (dataset.since, "until" in dataset) == ("1d", False)
    for other in ("ragauge.datasets.SampleDataset", "nowhere.at.All"):
        assert pin_window(OmegaConf.create({"dataset": {"_target_": other}}), job) == ""
