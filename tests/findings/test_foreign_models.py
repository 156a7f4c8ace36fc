"""A model for other languages than the texts are in has a sentence; one for them, or unknown, has none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hash_embedder import HashEmbedder
from ragauge.findings.lacking import lacking, lacking_text
from ragauge.retrieval.retrievers import BM25, Sim
from small_pipeline import SmallPipelines

GERMAN = [
    {"docno": "d1", "title": "Turm", "text": "Der Turm wurde von Anna gebaut. Er steht auf dem Berg."},
    {"docno": "d2", "title": "Brücke", "text": "Die Brücke steht in Linz. Sie ist aus Stein gebaut."},
]
QUESTIONS = [
    {"qid": "q1", "query": "Wer hat den Turm gebaut?", "answer": "Anna", "evidence": [GERMAN[0]]},
    {"qid": "q2", "query": "Wo steht die Brücke?", "answer": "Linz", "evidence": [GERMAN[1]]},
]


@dataclass(frozen=True)
class Named(HashEmbedder):
    model: str = "all-MiniLM-L6-v2"


def told(folder: Path, model: str, retriever: Any, **data: Any) -> list[str]:
    value = lacking(SmallPipelines(folder, Named(model=model))(retriever=retriever, **data))
    return lacking_text([value, value])  # as of two jobs of a sweep


def test_an_english_embedder_of_german_texts_is_told_once(tmp_path: Path) -> None:
    german: dict[str, Any] = {"docs": GERMAN, "topics": QUESTIONS}
    assert told(tmp_path / "a", "all-MiniLM-L6-v2", Sim(), **german) == [
        "embedder.model=all-MiniLM-L6-v2 is for English, and the texts are in German; "
        "choose one for German, or for many languages"
    ]
    assert told(tmp_path / "b", "multilingual-e5-small", Sim(), **german) == []
    assert told(tmp_path / "c", "all-MiniLM-L6-v2", BM25(), **german) == []  # no part of the job embeds
    assert told(tmp_path / "d", "all-MiniLM-L6-v2", Sim()) == []  # English texts


def test_a_text_whose_language_is_not_recognised_is_no_alarm(tmp_path: Path) -> None:
    docs = [{"docno": "d1", "title": "x", "text": "Kisiwa kina mnara 1807."}]
    topics = [{"qid": "q1", "query": "Lena Holt?", "answer": "1807", "evidence": docs}]
    assert told(tmp_path, "all-MiniLM-L6-v2", Sim(), docs=docs, topics=topics) == []
