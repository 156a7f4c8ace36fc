"""Test collections: documents, queries, and relevance judgements (qrels)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ragauge.contract.checks import require_choice, require_count
from ragauge.contract.datasets import Dataset
from ragauge.contract.identity import later
from ragauge.datasets.fields import BadRow
from ragauge.datasets.gather import Document, FileSource, Gatherer, Part, Rows, stream_documents

Query = tuple[str, str]  # qid, text
Judgement = tuple[str, str, int]  # qid, docno, grade


@dataclass(frozen=True)
class JudgedSource(FileSource):
    """The parameters shared by all test collections.

    evidence: "documents" takes the text of every relevant document as a part of the evidence, "none" the
        judgements alone. min_relevance: the lowest grade that counts as relevant.
    own_document: "drop" leaves a document out of the ranking of the query that it is (same id, same text), as BEIR's
        evaluator does; "keep" does not.
    """

    evidence: str = "documents"
    min_relevance: int = 1
    own_document: str = later("drop")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("dataset.evidence", self.evidence, ("documents", "none"))
        require_count("dataset.min_relevance", self.min_relevance)
        require_choice("dataset.own_document", self.own_document, ("drop", "keep"))


def judged_dataset(
    source: JudgedSource,
    corpus: Rows[Document],
    queries: Rows[Query],
    qrels: Rows[Judgement],
    *,
    highest: bool = False,
) -> Dataset:
    """The queries with a relevant document as topics, in order, and all documents, in batches.

    Documents and topics that only the judgements name are left out and counted. A pair that is judged twice differently
    is a bad row; with `highest` the highest grade counts.
    """
    gather = Gatherer(source)
    relevant = _relevant(source, gather, qrels, highest)
    wanted = {docno for graded in relevant.values() for docno in graded}
    docs = stream_documents(gather, corpus, wanted if source.evidence == "documents" else ())
    gather.end_of_documents(corpus.source)
    _note_absent(gather, qrels.source, relevant, wanted)
    absent = set(relevant)
    for where, row in queries.read():
        if gather.full:
            break
        with gather.row(where, queries.columns) as at:
            qid, text = queries.parse(row)
            at.qid = qid
            if qid not in relevant:
                continue
            absent.discard(qid)
            there = {docno: grade for docno, grade in relevant[qid].items() if gather.has_document(docno)}
            parts = [_part(source, gather, docno, grade) for docno, grade in there.items()]
            if not parts:
                gather.note(f"{where}, qid {qid!r}: none of its relevant documents is in the corpus")
                continue
            gather.add_topic(qid, text, None, parts)
    if absent and not gather.full:
        of = f"{len(absent)} judged queries are not in {queries.source}"
        gather.note(f"{qrels.source}: {of}, such as {min(absent)!r}")
    return gather.dataset(corpus.source, queries.source, docs)


def _relevant(
    source: JudgedSource, gather: Gatherer, qrels: Rows[Judgement], highest: bool
) -> dict[str, dict[str, int]]:
    """Grades of the relevant documents by query."""
    grades: dict[str, dict[str, int]] = {}
    for where, row in qrels.read():
        with gather.row(where) as at:
            qid, docno, grade = qrels.parse(row)
            at.qid = qid
            known = grades.setdefault(qid, {}).setdefault(docno, grade)
            if highest:
                grades[qid][docno] = max(known, grade)
            elif known != grade:
                raise BadRow(f"docno {docno!r} is judged twice, with {known} and {grade}")
    found = {
        qid: {docno: grade for docno, grade in graded.items() if grade >= source.min_relevance}
        for qid, graded in grades.items()
    }
    without = [qid for qid, graded in found.items() if not graded]
    if without:
        gather.note(
            f"{qrels.source}: {len(without)} queries have no document of relevance {source.min_relevance} or "
            f"more, such as {min(without)!r}"
        )
    return {qid: graded for qid, graded in found.items() if graded}


def _note_absent(gather: Gatherer, qrels: str, relevant: dict[str, dict[str, int]], wanted: set[str]) -> None:
    absent = {docno for docno in wanted if not gather.has_document(docno)}
    if absent:
        n = sum(docno in absent for graded in relevant.values() for docno in graded)
        gather.note(f"{qrels}: {n} relevant documents are not in the corpus, such as {min(absent)!r}")


def _part(source: JudgedSource, gather: Gatherer, docno: str, grade: int) -> Part:
    """A relevant document as evidence; without a text if its own is empty, which cannot be found."""
    text = gather.document_text(docno) if source.evidence == "documents" else ""
    return docno, text if text.strip() else None, grade


def searched_text(title: str, text: str, title_in_text: bool) -> str:
    """The searchable text of a document: with its title before it, or without."""
    return f"{title} {text}".strip() if title_in_text else text


def grade_of(text: str) -> int:
    """The grade of a judgement; BadRow unless it is a whole number of at most nine digits."""
    if re.fullmatch(r"\s*[+-]?[0-9]{1,9}\s*", text) is None:
        raise BadRow(f"the relevance {text!r} is no whole number")
    return int(text)
