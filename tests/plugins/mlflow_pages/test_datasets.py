"""Topics as an evaluation dataset of MLflow and back: what people edit there counts, the rest stays as it is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlflow
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from answer_inputs import generator
from chat_server import ChatServer
from ragauge.answering.judges import ChatJudge
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.settings import Settings, Tracking
from ragauge.datasets import JsonlDataset
from ragauge.plugins.mlflow_pages.dataset import (
    DIGEST_TAG,
    MlflowDataset,
    dataset_named,
    evaluation_datasets,
    write_records,
)
from ragauge.plugins.mlflow_pages.dataset_command import main
from ragauge.plugins.mlflow_pages.dataset_link import Linked
from ragauge.plugins.mlflow_pages.records import records_of
from ragauge.track import Tracker, connect
from servers import database, mlflow_server
from small_pipeline import DOCS, SmallPipelines
from sweep_records import record_of

EVIDENCE = [{"docno": "d2", "text": "The bridge stands in Linz."}]
TOPICS: list[dict[str, Any]] = [
    {"qid": "a1", "query": "Who built it?", "answers": ["Anna", "she"], "history": ["Is there a tower?", "Yes."]},
    {"qid": "a2", "query": "Where is it?", "answer": "Linz", "evidence": EVIDENCE, "hops": 2, "type": "chain"},
    {"qid": "a3", "query": "Where is it?", "unanswerable": True, "type": "a", "wrong_answers": ["Rome"], "y": 0.1},
    {"qid": "a4", "query": "Grades?", "evidence": [{"docno": "d1", "relevance": 2}, "Snow covers them."]},
]


def written(source: Any, uri: str, name: str = "towers") -> int:
    data = source.load()
    return write_records(uri, name, "towers", records_of(data.topics, data.evidence))[0]


def edit(uri: str, question: str, name: str = "towers", **expectations: Any) -> None:
    """What MLflow's page does when a person saves a record."""
    with evaluation_datasets(uri, "towers") as client:
        dataset = client.get_dataset(dataset_named(client, name).dataset_id)
        records = [one for one in dataset.records if one.inputs["question"] == question]
        given = records[0].inputs if records else {"question": question}
        dataset.merge_records([{"inputs": given, "expectations": expectations}])


@pytest.fixture
def source(small: SmallPipelines) -> JsonlDataset:
    return small.source(DOCS, TOPICS)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'mlflow.db'}"


def check_round_trip(source: JsonlDataset, uri: str, folder: Path) -> None:
    """Writes topics, reads them, edits one, and reads them again."""

    def read() -> MlflowDataset:
        return MlflowDataset("towers", documents=source, uri=uri, folder=folder)

    connect(uri)
    assert [written(source, uri), written(source, uri)] == [4, 0]
    whole, before = source.load(), read()
    assert_frame_equal(before.load().topics, whole.topics)
    assert_frame_equal(before.load().evidence, whole.evidence)
    assert_frame_equal(before.load().docs, whole.docs)
    assert before.files()["records"] == read().files()["records"]
    edit(uri, "Grades?", expected_response="It has two.", expected_retrieved_context=[{"content": "Anna built it."}])
    edit(uri, "New?", expected_facts=["One.", "Two."])
    after = read()
    assert after.files()["records"] != before.files()["records"]
    topics, evidence = after.load().topics.set_index("qid"), after.load().evidence
    assert_frame_equal(topics[:3], whole.topics.set_index("qid")[:3])
    assert topics["answer"]["a4"] == "It has two."
    assert evidence.loc[evidence["qid"] == "a4", "text"].tolist() == ["Anna built it."]
    assert topics.iloc[4][["query", "answer"]].tolist() == ["New?", "One.\nTwo."]
    assert written(source, uri) == 0  # and what people edited is as they left it
    assert read().files()["records"] == after.files()["records"]
    with evaluation_datasets(uri, "towers") as client:
        assert len(dataset_named(client, "towers").tags[DIGEST_TAG]) == 64


def test_topics_come_back_as_they_were_but_for_what_was_edited(source: JsonlDataset, uri: str, tmp_path: Path) -> None:
    check_round_trip(source, uri, tmp_path / "kept")


@pytest.mark.slow
def test_a_server_on_postgresql_holds_what_sqlite_holds(source: JsonlDataset, postgres: str, tmp_path: Path) -> None:
    with (
        database(postgres) as backend,
        mlflow_server(
            backend.replace("postgresql://", "postgresql+psycopg://"), tmp_path / "artifacts", tmp_path / "log"
        ) as url,
    ):
        check_round_trip(source, url, tmp_path / "kept")


def test_only_what_was_edited_is_asked_again(small: SmallPipelines, uri: str, tmp_path: Path) -> None:
    source = small.source()
    connect(uri)
    written(source, uri)

    def measured(dataset: Any, url: str) -> pd.DataFrame:
        model = {"_target_": "langchain_openai.ChatOpenAI", "model": "m", "base_url": f"{url}/v1", "api_key": "none"}
        return small(dataset=dataset, llm=generator(url), judge=ChatJudge(model)).outcomes

    with ChatServer(lambda prompt: '{"label": 5, "reason": "so"}') as server:
        of_file = measured(source, server.url)
        asked = server.whole.total()
        read = measured(MlflowDataset("towers", documents=source, uri=uri, folder=tmp_path / "kept"), server.url)
        assert_frame_equal(read, of_file)
        assert server.whole.total() == asked
        edit(uri, "Where is the bridge?", expected_response="Steyr")
        measured(MlflowDataset("towers", documents=source, uri=uri, folder=tmp_path / "kept"), server.url)
        again = [prompt for prompt in server.whole if "Steyr" in prompt]
    assert (server.whole.total() - asked, len(again)) == (1, 1)


def test_of_a_question_that_was_edited_the_later_record_counts(source: JsonlDataset, uri: str, tmp_path: Path) -> None:
    connect(uri)
    written(source, uri)
    with evaluation_datasets(uri, "towers") as client:
        dataset = client.get_dataset(dataset_named(client, "towers").dataset_id)
        [old] = [one for one in dataset.records if one.inputs["question"] == "Grades?"]
        dataset.merge_records([{"inputs": {"question": "Degrees?"}, "expectations": {}, "tags": old.tags}])
    data = MlflowDataset("towers", documents=source, uri=uri, folder=tmp_path / "kept").load()
    assert data.topics["query"].tolist() == ["Who built it?", "Where is it?", "Where is it?", "Degrees?"]
    [left_out] = data.skipped
    assert left_out == (
        f"MLflow's dataset 'towers', record {old.dataset_record_id}, qid 'a4': a later record has another question "
        "for it"
    )


def test_the_job_links_the_evaluation_dataset(source: JsonlDataset, uri: str, tmp_path: Path) -> None:
    tracker = Tracker(uri, "towers")
    written(source, uri)
    read = MlflowDataset("towers", documents=source, uri=uri, folder=tmp_path / "kept")
    with tracker.run("bm25", {}, {}) as run:
        pipeline = SimpleNamespace(components=SimpleNamespace(dataset=read))
        settings = Settings(tracking=Tracking(uri=uri))
        job: Any = SimpleNamespace(pipeline=pipeline, settings=settings, record=record_of(run_id=run.run_id))
        found = Linked().compute(job, {})
    assert found is not None
    [logged] = mlflow.MlflowClient(uri).get_run(run.run_id).inputs.dataset_inputs
    assert (logged.dataset.name, logged.dataset.source) == ("towers", f'{{"dataset_id": "{found.value}"}}')


def test_what_is_wrong_is_an_error_of_one_line(source: JsonlDataset, uri: str, tmp_path: Path) -> None:
    connect(uri)
    written(source, uri)

    def read(name: str = "towers", where: str = uri, **others: Any) -> Any:
        return MlflowDataset(name, documents=source, uri=where, folder=tmp_path / "kept", **others).load()

    with pytest.raises(ConfigError, match=r"has no evaluation dataset of this name; the nearest are 'towers'$"):
        read("towrs")
    with pytest.raises(ConfigError, match="no MLflow database at"):
        read(where=f"sqlite:///{tmp_path / 'none.db'}")
    with pytest.raises(ConfigError, match=r"dataset\.name=None: allowed are names of MLflow's evaluation datasets"):
        MlflowDataset(None, documents=source)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="has no documents: name a dataset that has them"):
        MlflowDataset("towers")
    edit(uri, "", expected_response="1889")
    with pytest.raises(DataError, match=r"'towers', record dr-\w+: inputs hold no question: \{'question': ''\}"):
        read()
    assert len(read(on_error="skip").topics) == 4
    edit(uri, "Grades?", expected_response=1889)
    with pytest.raises(DataError, match=r"qid 'a4': 'expected_response' is not a string: 1889"):
        read()
    edit(uri, "Grades?", expected_response="x", expected_retrieved_context=[{"doc_uri": "d9"}])
    with pytest.raises(DataError, match="evidence names docno 'd9', which is no document of the corpus"):
        read()
    edit(uri, "Grades?", expected_retrieved_context="d1")
    with pytest.raises(DataError, match="'expected_retrieved_context' is no list: 'd1'"):
        read()


def test_the_command_writes_a_dataset_and_says_how_it_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    given = ["dataset=sample", "dataset.limit=3", f"tracking.uri={uri}"]
    assert main(["towers", *given]) == 0
    first, where, then = capsys.readouterr().out.splitlines()
    assert first == "towers: 3 of 3 topics added to MLflow's evaluation dataset; the others were there"
    assert where.endswith("/#/experiments/1/datasets")
    assert then == (
        "then: python run.py dataset=mlflow dataset.name=towers dataset@dataset.documents=sample "
        "dataset.documents.limit=3"
    )
    assert main(["dataset=sample"]) == 2
    assert "the first argument is the name of the evaluation dataset" in capsys.readouterr().err
