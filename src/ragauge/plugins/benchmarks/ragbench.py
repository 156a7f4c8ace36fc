"""RAGBench: documents with sentences marked as relevant, without reference answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragauge.contract.datasets import Dataset
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.datasets.fields import Attribute, BadRow, listed, optional_string, string, strings
from ragauge.datasets.files import parsed, rows
from ragauge.datasets.gather import Gatherer, OneFile, Paragraphs, identifier

_SCORES = ("relevance_score", "utilization_score", "completeness_score", "adherence_score")


@dataclass(frozen=True)
class _Question:
    """A question of the file: its first place, its evidence (docno, text) and its attributes."""

    where: str
    query: str
    evidence: list[tuple[str, str]]
    attributes: Mapping[str, Attribute]


@option("dataset/ragbench")
class RAGBench(OneFile):
    """One subset of RAGBench (Friel et al., 2024) from `path`, Parquet as published or JSON Lines.

    The documents are the distinct ones of all questions, the evidence the sentences that
    `all_relevant_sentence_keys` names. `response` is a generator's answer, not a reference.
    """

    component = "ragbench"
    version = 1

    name: str = runtime(CONF)

    def load(self) -> Dataset:
        """The collection; DataError names file, row, qid and error."""
        file = self.files()["path"]
        gather = Gatherer(self)
        corpus = Paragraphs(gather)
        questions: dict[str, _Question] = {}
        responses: dict[str, int] = {}
        for where, line in rows(file):
            with gather.row(where) as at:
                row = parsed(line)
                at.qid = qid = identifier(string(row, "id"))
                query = string(row, "question")
                listed(row, "documents")
                texts = strings(row, "documents")
                docnos = [corpus.add("", text, f"{qid}-{number}") for number, text in enumerate(texts)]
                if qid not in questions:
                    questions[qid] = _Question(where, query, _relevant(row, docnos), _attributes(row))
                elif query != questions[qid].query:
                    raise BadRow("this id stands twice, with two questions")
                responses[qid] = responses.get(qid, 0) + 1
        for qid, question in questions.items():
            if gather.full:
                break
            with gather.row(question.where) as at:
                at.qid = qid
                attributes = {**question.attributes, "responses": responses[qid]}
                gather.add_topic(qid, question.query, None, question.evidence, attributes)
        return gather.dataset(file, file)


def _attributes(row: Mapping[str, Any]) -> dict[str, Attribute]:
    scores = {name: _score(row, name) for name in _SCORES}
    return {"dataset_name": optional_string(row, "dataset_name"), **scores}


def _relevant(row: Mapping[str, Any], docnos: list[str]) -> list[tuple[str, str]]:
    """Docno and text of the relevant sentences, in the documents' order."""
    documents = listed(row, "documents_sentences")
    if len(documents) != len(docnos):
        raise BadRow(f"'documents_sentences' is of {len(documents)} documents, 'documents' has {len(docnos)}")
    wanted = dict.fromkeys(strings({"keys": listed(row, "all_relevant_sentence_keys")}, "keys"))
    found: dict[str, tuple[str, str]] = {}
    for number, (docno, sentences) in enumerate(zip(docnos, documents, strict=True)):
        for pair in sentences if isinstance(sentences, list) else [sentences]:
            if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, str) for x in pair)):
                raise BadRow(f"'documents_sentences' of document {number}: {pair!r:.60} is no [key, text]")
            key, sentence = pair
            if key in found:
                raise BadRow(f"'documents_sentences' has the key {key!r} twice")
            found[key] = (docno, sentence)
    unknown = [key for key in wanted if key not in found]
    if unknown:
        raise BadRow(f"'all_relevant_sentence_keys' names {unknown[0]!r}, which is no key of a sentence")
    return [part for key, part in found.items() if key in wanted]


def _score(row: Mapping[str, Any], name: str) -> Attribute:
    """A score of the row, None if it is absent, null or NaN; adherence is true or false."""
    value = row.get(name)
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, (int, float)):
        raise BadRow(f"key {name!r} is no number: {value!r}")
    return None if isinstance(value, float) and math.isnan(value) else value
