"""A query that is a document of the corpus, as in ArguAna, does not find itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.plugins.benchmarks.beir import Beir
from ragauge.retrieval.retrievers import RecordedRetrieval
from small_pipeline import SmallPipelines

ARGUMENT = "School uniforms reduce bullying, and all pupils look the same."
CORPUS = [
    {"_id": "a1", "title": "Uniforms", "text": ARGUMENT},
    {"_id": "a2", "title": "", "text": "Pupils who look the same find other reasons for bullying."},
    {"_id": "7", "title": "", "text": "Zoos keep rare animals alive."},
]
# The second query has the number of a document, and is another text.
QUERIES = [{"_id": "a1", "text": ARGUMENT.replace(", ", ",\n")}, {"_id": "7", "text": "Which animals do zoos keep?"}]


def beir(folder: Path, **how: Any) -> Beir:
    (folder / "qrels").mkdir(exist_ok=True)
    for name, rows in (("corpus", CORPUS), ("queries", QUERIES)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\na1\ta2\t1\n7\t7\t1\n")
    return Beir(path=folder, **how)


def found(job: Pipeline) -> tuple[list[tuple[str, str, int]], dict[str, float]]:
    values = job.frame("answer_values").query("measure == 'rr'")
    hits = job.frame("run")[["qid", "docno", "rank"]].itertuples(index=False, name=None)
    return list(hits), dict(zip(values["qid"], values["value"], strict=True))


@pytest.mark.parametrize("title_in_text", [True, False])
def test_the_document_that_a_query_is_leaves_its_ranking(
    small: SmallPipelines, tmp_path: Path, title_in_text: bool
) -> None:
    run = tmp_path / "some.run"
    run.write_text("a1 Q0 a1 1 3 t\na1 Q0 7 2 2 t\na1 Q0 a2 3 1 t\n7 Q0 7 1 3 t\n")
    parts = {"retriever": RecordedRetrieval(path=run), "measures": ("RR",)}
    job = small(dataset=beir(tmp_path, title_in_text=title_in_text), **parts)
    hits, rr = found(job)
    assert [(qid, docno.partition("%")[0]) for qid, docno, _ in hits] == [
        ("a1", "7"), ("a1", "a2"), ("a1", "a2"), ("7", "7"),
    ]  # fmt: skip
    assert [rank for *_, rank in hits] == [0, 1, 2, 0]
    assert rr == {"a1": 0.5, "7": 1.0}
    assert job.frame("own_documents")["qid"].tolist() == ["a1"]
    assert ARGUMENT not in job.contexts["text"].iloc[0]
    kept = small(dataset=beir(tmp_path, title_in_text=title_in_text, own_document="keep"), **parts)
    assert found(kept)[1] == {"a1": pytest.approx(1 / 3), "7": 1.0}
    # The time that this takes is none of the system's.
    of_system = job.question_stages
    assert "without_own" not in [stage.name for stage in of_system]
    assert not any(read.name == "docs" for stage in of_system for read in stage.reads)


def test_another_choice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.own_document='no': allowed are drop, keep"):
        Beir(path=tmp_path, own_document="no")
