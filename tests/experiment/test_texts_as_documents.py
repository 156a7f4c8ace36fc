"""Texts that a system brought are documents by what they say; what is not known has no measure, and no score of 0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.findings.lacking import lacking, lacking_text
from ragauge.retrieval.chunkers import NoChunker
from ragauge.retrieval.retrievers import RecordedRetrieval
from small_pipeline import DOCS, SmallPipelines

ONE, TWO, THREE, FOUR = (str(doc["text"]) for doc in DOCS)


def recorded(small: SmallPipelines, folder: Path, contexts: dict[str, Any], **how: Any) -> Pipeline:
    """A job of contexts by qid; a list of contexts, or a whole row."""
    rows = [{"qid": qid, **(of if isinstance(of, dict) else {"contexts": of})} for qid, of in contexts.items()]
    file = folder / "recorded.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    chunker = how.pop("chunker", NoChunker())
    return small(16, retriever=RecordedRetrieval(path=file, **how), chunker=chunker, measures=("nDCG@10", "RR", "P@1"))


def values(job: Pipeline, measure: str = "rr") -> dict[str, float]:
    rows = job.frame("answer_values").query("measure == @measure")
    return {qid: value for qid, value in zip(rows["qid"], rows["value"], strict=True) if not pd.isna(value)}


def told(job: Pipeline) -> list[str]:
    return [line for line in lacking_text([lacking(job)]) if "contexts" in line]


@pytest.mark.parametrize("chunked", [False, True])
def test_texts_that_are_documents_are_measured_as_these(small: SmallPipelines, tmp_path: Path, chunked: bool) -> None:
    how = {} if not chunked else {"chunker": small.components().chunker}
    spaced = ONE.replace(" ", "\n ")
    texts = {"q1": [TWO, spaced], "q2": [f"Bridge {TWO}", TWO], "q3": [FOUR, FOUR, THREE]}
    job = recorded(small, tmp_path, texts, **how)
    # A document that comes twice is ranked once, so that the third text is the second document.
    assert values(job) == {"q1": 0.5, "q2": 1.0, "q3": 0.5}
    assert values(job, "p_at_1") == {"q1": 0.0, "q2": 1.0, "q3": 0.0}
    assert told(job) == []
    assert job.frame("run").groupby("qid").size().tolist() == [2, 2, 3]
    assert job.contexts["n_used"].gt(0).all()


def test_a_text_that_is_a_chunk_is_this_chunk(small: SmallPipelines, tmp_path: Path) -> None:
    chunker = small.components().chunker
    chunks = small().frame("chunks")
    first = chunks[chunks["parent"] == "d1"].iloc[0]
    texts = {"q1": [FOUR, str(first["text"])], "q2": [], "q3": []}
    job = recorded(small, tmp_path, texts, chunker=chunker)
    assert job.frame("run")["docno"].tolist()[1] == first["docno"]
    assert values(job) == {"q1": 0.5, "q2": 0.0, "q3": 0.0}


def test_a_text_of_no_document_has_no_measure_of_the_ranking_and_it_is_said(
    small: SmallPipelines, tmp_path: Path
) -> None:
    job = recorded(small, tmp_path, {"q1": [ONE], "q2": ["The bridge stands in Linz."], "q3": ["", THREE]})
    assert values(job) == {"q1": 1.0, "q3": 0.5}
    statuses = job.frame("answer_values").query("measure == 'rr'")["status"].tolist()
    assert statuses == ["ok", "no document", "ok"]
    assert job.retrieved["ir_score"].tolist() == [1.0, 1.0, 1.0]
    (line,) = told(job)
    assert line == (
        "1 of 3 topics have contexts that are no documents of the corpus word for word: no nDCG, RR and such (q2)"
    )


def test_names_of_another_system_are_no_names_of_other_documents(small: SmallPipelines, tmp_path: Path) -> None:
    named = {"contexts": [ONE, "else"], "docnos": ["uuid-1", "uuid-2"]}
    # The text says which document it is; one that is named, and is no document, is not relevant.
    assert values(recorded(small, tmp_path, {"q1": named, "q2": [], "q3": []})) == {"q1": 1.0, "q2": 0.0, "q3": 0.0}
    nowhere = {qid: {"contexts": [f"else {qid}"], "docnos": [f"uuid-{qid}"]} for qid in ("q1", "q2", "q3")}
    job = recorded(small, tmp_path, nowhere)
    assert values(job) == {}
    assert told(job)[0].startswith("3 of 3 topics have contexts that are no documents")


@pytest.mark.parametrize("rest", [{}, {"q3": {"contexts": None}}])
def test_contexts_that_nobody_recorded_have_no_score(
    small: SmallPipelines, tmp_path: Path, rest: dict[str, Any]
) -> None:
    job = recorded(small, tmp_path, {"q1": [ONE], "q2": [], **rest}, on_missing="missing")
    scores = job.retrieved.set_index("qid")["ir_score"]
    assert scores[["q1", "q2"]].tolist() == [1.0, 0.0]
    assert pd.isna(scores["q3"])
    assert values(job) == {"q1": 1.0, "q2": 0.0}
    assert told(job) == [
        "1 of 3 topics have no contexts that are known: they have no IR score and no measure of the ranking (q3)"
    ]
    empty = recorded(small, tmp_path, {"q1": [ONE], "q2": [], **rest}, on_missing="empty")
    assert empty.retrieved["ir_score"].tolist() == [1.0, 0.0, 0.0]
    assert values(empty) == {"q1": 1.0, "q2": 0.0, "q3": 0.0}


def test_a_topic_without_a_line_in_a_run_is_missing_or_has_no_hits(small: SmallPipelines, tmp_path: Path) -> None:
    file = tmp_path / "some.run"
    file.write_text("q1 Q0 d1 1 2.0 t\nq2 Q0 d1 1 1.0 t\n", encoding="utf-8")
    missing = small(retriever=RecordedRetrieval(path=file, on_missing="missing"), n_tokens=16)
    assert missing.retrieved["ir_score"].isna().tolist() == [False, False, True]
    empty = small(retriever=RecordedRetrieval(path=file, on_missing="empty"), n_tokens=16)
    assert empty.retrieved["ir_score"].tolist() == [1.0, *empty.retrieved["ir_score"].tolist()[1:2], 0.0]
    with pytest.raises(ConfigError, match=r"retriever\.on_missing=.zero.: allowed are raise, missing, empty"):
        RecordedRetrieval(path=file, on_missing="zero")
