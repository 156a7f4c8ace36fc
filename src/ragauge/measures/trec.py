"""Runs and truth at document level: the frames that rank documents, and the TREC files."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pandas as pd


def document_run(run: pd.DataFrame) -> pd.DataFrame:
    """The documents that a run of chunks ranks: qid, docno, rank (from 0), score.

    A document is as good as its first chunk (a chunk's docno is `<parent>%p<i>`; one without `%p` is a
    document). `score` is 1 / (1 + rank), since tools that read runs sort by score and a retriever may have
    reordered its hits.
    """
    documents = run.sort_values(["qid", "rank"], kind="stable")[["qid", "docno"]]
    documents = documents.assign(docno=documents["docno"].str.replace(r"%p[^%]*$", "", regex=True))
    documents = documents.drop_duplicates(ignore_index=True)
    rank = documents.groupby("qid").cumcount()
    return documents.assign(rank=rank, score=1.0 / (1.0 + rank))


def qrels_of(evidence: pd.DataFrame) -> pd.DataFrame:
    """The documents that the evidence stands in, once per topic: qid, docno, relevance.

    relevance is the highest of the document's parts; 1 where the evidence has no such column. Parts that name
    no document are not in it.
    """
    named = evidence[evidence["docno"].notna()]
    if "relevance" not in named:
        qrels = named[["qid", "docno"]].drop_duplicates(ignore_index=True)
        return qrels.assign(relevance=1)
    grades = named.groupby(["qid", "docno"], sort=False)["relevance"].max()
    return grades.reset_index()


def write_trec_run(run: pd.DataFrame, path: Path, tag: str) -> None:
    """Writes the document-level run as `qid Q0 docno rank score tag` lines, best first (see `document_run`).

    Documents, not chunks, so that the file fits the qrels. White space inside a qid, docno or tag, which the
    format cannot hold, is percent-encoded, here as in the qrels.
    """
    documents = document_run(run)
    fields = {name: _field(name) for name in {*documents["qid"], *documents["docno"]}}
    named = _field(tag)
    lines = [
        f"{fields[qid]} Q0 {fields[docno]} {rank} {score:.10f} {named}\n"
        for qid, docno, rank, score in documents.itertuples(index=False)
    ]
    path.write_text("".join(lines), encoding="utf-8")


def write_qrels(evidence: pd.DataFrame, path: Path) -> None:
    """Writes the evidence's documents as `qid 0 docno relevance` lines (see `qrels_of`)."""
    lines = [
        f"{_field(qid)} 0 {_field(docno)} {relevance}\n"
        for qid, docno, relevance in qrels_of(evidence).itertuples(index=False)
    ]
    path.write_text("".join(lines), encoding="utf-8")


def _field(value: str) -> str:
    return re.sub(r"\s", lambda match: quote(match.group()), value)
