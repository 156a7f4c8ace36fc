"""`retriever=trec_rag`, `llm=trec_rag`: references and answers of a participant of TREC RAG, from one file."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ragauge.answering import RecordedAnswers
from ragauge.contract.component import Tools
from ragauge.datasets.recordings import Recorded, recorded_row
from ragauge.plugins.trec_rag.answers import marked, read_answers
from ragauge.retrieval.retrievers import RecordedRetrieval
from ragauge.retrieval.retrievers.recorded import NO_TEXTS

log = logging.getLogger(__name__)

REFERENCES, RUN_ID, TOPIC_ID, METADATA = "rag_references", "rag_run_id", "rag_topic_id", "rag_metadata"


def _rows(file: Path) -> list[Recorded]:
    """The answers of the file as recorded rows; sentences and their citations are in `cited_answer`."""
    found = []
    for where, one in read_answers(file):
        row = {
            "qid": str(one.topic_id),
            "answer": one.text if one.text.strip() else None,
            "docnos": list(one.references),
            "cited_answer": marked(one.sentences),
            REFERENCES: json.dumps(one.references),
            RUN_ID: one.run_id,
            TOPIC_ID: json.dumps(one.topic_id),
            METADATA: None if one.metadata is None else json.dumps(one.metadata),
        }
        found.append(recorded_row(row, where, ""))
    return found


@dataclass(frozen=True)
class RagReferences(RecordedRetrieval):
    """The references of a participant's answers, in the order of the file: segments of the dataset's documents.

    Without documents all contexts are empty.
    """

    component = "trec_rag"

    def rows(self, file: Path) -> list[Recorded]:
        """The answers of the file."""
        return _rows(file)

    def bring(self, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The run of the references; DataError for one outside the dataset's documents."""
        if len(chunks):
            return super().bring(topics, chunks, tools)
        log.warning("contexts are empty, since the texts of the references are not known: dataset.docs=… has them")
        none = topics[["qid", "query"]].iloc[:0]
        return none.assign(docno=pd.Series(dtype="str"), score=0.0, rank=pd.Series(dtype="int64")), NO_TEXTS


@dataclass(frozen=True)
class RagAnswers(RecordedAnswers):
    """A participant's answers, each the sentences joined by a space.

    The column `cited_answer` has the citations behind each sentence: [1] is the first reference.
    """

    component = "trec_rag"
    version = 1
    cite = True

    def rows(self, file: Path) -> list[Recorded]:
        """The answers of the file."""
        return _rows(file)
