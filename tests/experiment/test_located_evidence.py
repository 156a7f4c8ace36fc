"""A folder of twenty files, and questions whose evidence holds the errors that people make."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from ragauge.contract.record import JobRecord
from ragauge.experiment.job import execute
from ragauge.experiment.request import JobFolder, Request
from ragauge.experiment.setup import config
from ragauge.experiment.stages.components import make_pipeline
from ragauge.findings.lacking import lacking, lacking_text
from ragauge.measures import qrels_of

CONF = Path(__file__).resolve().parents[2] / "conf"
TOWNS = [
    "Arbon", "Baden", "Brig", "Bulle", "Chur", "Davos", "Flims", "Glarus", "Horgen", "Ilanz",
    "Jona", "Kloten", "Lugano", "Morges", "Nyon", "Olten", "Pully", "Renens", "Sion", "Thun",
]  # fmt: skip

Configure = Callable[..., DictConfig]


@pytest.fixture
def configured(tmp_path: Path) -> Iterator[Configure]:
    """Composes a job over the twenty files and these topics."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number, town in enumerate(TOWNS):
        text = f"{town} lies by\nthe water. The bridge of {town} has {number + 3} arches. Ships stop there."
        (corpus / f"{town}.txt").write_text(text, encoding="utf-8")
    config.register()

    def with_topics(topics: list[dict[str, Any]], *overrides: str) -> DictConfig:
        (tmp_path / "topics.jsonl").write_text("\n".join(map(json.dumps, topics)), encoding="utf-8")
        return composed(tmp_path, corpus, *overrides)

    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield with_topics


def said_by(cfg: DictConfig, folder: Path, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the job logs, each line after its level."""
    folder.mkdir(exist_ok=True)
    caplog.clear()
    with caplog.at_level(logging.INFO):
        assert execute(cfg, job_folder(folder)) == 0
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records]


def composed(here: Path, corpus: Path, *overrides: str) -> DictConfig:
    pytest.importorskip("ragauge.plugins.folders")
    return compose(
        "config",
        overrides=[
            "dataset=folder", f"dataset.path={corpus}", f"dataset.topics={here / 'topics.jsonl'}",
            "chunker=none", "tokenizer=words", "llm=none", "judge=none", "retriever=bm25",
            "n_tokens=50", "n_grid=[50]", "bootstrap=20",
            f"store={here / 'store'}", f"tracking.uri=sqlite:///{here / 'mlflow.db'}", *overrides,
        ],
    )  # fmt: skip


def job_folder(path: Path) -> JobFolder:
    return JobFolder(path, None, 0, {"retriever": "bm25", "llm": "none"}, ())


def clean() -> list[dict[str, Any]]:
    """A topic for each town; of every other one the evidence does not name its document."""
    return [
        {
            "qid": f"q{number}",
            "query": f"How many arches has the bridge of {town}?",
            "answer": str(number + 3),
            "evidence": [
                {
                    "text": f"{town} lies by the  water. The bridge of {town} has {number + 3} arches.",
                    **({"docno": f"{town}.txt"} if number % 2 else {}),
                }
            ],
        }
        for number, town in enumerate(TOWNS)
    ]


def with_errors() -> list[dict[str, Any]]:
    """Nonsense in q3, a typo in q6, another document's name in q8; and q12 has no evidence."""
    topics = clean()
    topics[3]["evidence"][0]["text"] = "Colourless ideas sleep furiously."
    topics[6]["evidence"][0]["text"] = "The brigde of Flims has 9 arches."
    topics[8]["evidence"] = [{"docno": "Jona.txt", "text": "The bridge of Horgen has 11 arches."}]
    del topics[12]["evidence"]
    return topics


LOST = "3 of 20 topics have evidence that is in no document, or not in the one it names (q3, q6, q8)"
NEAREST = [
    "WARNING qid 'q3', part 0: 'Colourless ideas sleep furiously.' is not in document 'Bulle.txt', which it "
    "names; no sentence there is like it",
    "WARNING qid 'q6', part 0: 'The brigde of Flims has 9 arches.' is in no document; nearest, in "
    "'Flims.txt': 'The bridge of Flims has 9 arches.'",
    "WARNING qid 'q8', part 0: 'The bridge of Horgen has 11 arches.' is not in document 'Jona.txt', which it "
    "names; document 'Horgen.txt' holds it",
]


def test_evidence_of_no_document_is_told_with_its_topic_and_the_nearest_sentence(
    configured: Configure, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = said_by(configured(with_errors(), "dry_run=true"), tmp_path / "job", caplog)
    assert [line for line in said if line.startswith("WARNING")] == NEAREST
    assert f"INFO {LOST}" in said
    assert "INFO 1 of 20 topics have no evidence: the IR score is of the others (q12)" in said
    said = said_by(configured(clean(), "dry_run=true"), tmp_path / "job", caplog)
    assert not [line for line in said if "WARNING" in line or "evidence that" in line]


def test_evidence_is_located_where_only_its_text_is_given(configured: Configure, tmp_path: Path) -> None:
    job = make_pipeline(Request(configured(clean()), job_folder(tmp_path / "job")))
    documents = [f"{town}.txt" for town in TOWNS]
    assert qrels_of(job.frame("evidence"))["docno"].tolist() == documents
    assert set(job.frame("evidence_in_corpus")["corpus"]) == {1}
    assert set(job.frame("ranking_values")["qid"]) == {topic["qid"] for topic in clean()}
    assert lacking_text([lacking(job)]) == []


def test_ten_topics_and_ten_parts_are_named_and_the_others_counted(
    configured: Configure, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topics = clean()
    for topic in topics[:12]:
        topic["evidence"][0]["text"] = "Colourless ideas sleep furiously."
    said = said_by(configured(topics, "dry_run=true"), tmp_path / "job", caplog)
    assert any(line.endswith("names (q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, …)") for line in said)
    assert sum("part 0" in line for line in said) == 10
    assert "WARNING 2 more such parts are in lost_evidence.json" in said


@pytest.mark.slow
def test_a_job_counts_lost_evidence_and_logs_it(
    configured: Configure, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = said_by(configured(with_errors()), tmp_path / "job", caplog)
    assert [line for line in said if line.startswith("WARNING qid")] == NEAREST
    record = JobRecord.read(tmp_path / "job" / "job.json")
    assert record.metrics["topics_lost_evidence"] == 3
    assert LOST in lacking_text([record])  # of the report
    (table,) = tmp_path.glob("**/lost_evidence.json")
    assert [row[0] for row in json.loads(table.read_text(encoding="utf-8"))["data"]] == ["q3", "q6", "q8"]
