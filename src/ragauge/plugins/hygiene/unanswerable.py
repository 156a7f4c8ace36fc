"""Unanswerable topics that a passage may answer."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from ragauge.contract.frames import Batches, columns_of, count_rows, rows_where
from ragauge.contract.topics import is_unanswerable
from ragauge.plugins.hygiene.found import NO_DOCUMENTS, Found, Item, QuestionSet
from ragauge.retrieval.chunkers import TokenChunker, chunked
from ragauge.retrieval.retrievers import BM25
from ragauge.texts.languages import language_of_all
from ragauge.texts.terms import Analysis
from ragauge.texts.words import FUNCTION_WORDS, words

_TOP_K = 10
_SIZE, _OVERLAP = 200, 50  # words of a passage, and those that it shares with the one before
# Of the other content words. By names and numbers alone all 61 unanswerable topics of three generated worlds
# (dataset=fictional with seeds 0 and 5, fictional_hard) would look answerable; so 20 do, and 237 in place of 273 of
# 500 answerable ones of RAG Mini BioASQ.
_SHARE = 0.5
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def answerable_after_all(of: QuestionSet) -> Found:
    """Unanswerable topics for which BM25 finds a passage with the question's names, numbers and other words.

    Such topics have no reference answer to look for: every loader refuses one.
    """
    topics = of.topics[is_unanswerable(of.topics)]
    queries = dict(zip(topics["qid"], topics["query"], strict=True))
    named = {qid: found for qid, query in queries.items() if (found := names_and_numbers(query))}
    note = "" if queries else "no topic is marked unanswerable"
    if bare := len(queries) - len(named):
        note = f"{bare:,} of {len(queries):,} topics have no name and no number in the question"
    if not named or not count_rows(of.docs):
        return Found(None, len(named), note or NO_DOCUMENTS)
    analysis = Analysis(language_of_all(queries.values()) or "other")
    items: dict[str, Item] = {}
    for qid, docno, passage in _passages(topics[topics["qid"].isin(named)], of):
        if qid not in items and (shared := _shared(queries[qid], named[qid], analysis, passage)):
            items[qid] = Item(qid, (docno,), f"words of the question: {', '.join(shared)}")
    return Found([*items.values()], len(named), note)


def names_and_numbers(question: str) -> frozenset[str]:
    """The words of a question that have a digit, or a capital letter and are neither the first nor function words."""
    found = [
        word[0]
        for at, word in enumerate(_WORD.finditer(question))
        if any(map(str.isdigit, word[0])) or (at and word[0][0].isupper() and word[0].casefold() not in FUNCTION_WORDS)
    ]
    return frozenset(words(" ".join(found)))


def _shared(question: str, named: frozenset[str], analysis: Analysis, passage: str) -> list[str]:
    """The names, numbers and stems that question and passage share; [] where they are not enough."""
    others = {*analysis.of_query(question)} - {*analysis.of_query(" ".join(named))}
    shared = others.intersection(analysis.of_query(passage))
    enough = named <= {*words(passage)} and len(shared) >= _SHARE * len(others)
    return [*sorted(named), *sorted(shared)] if enough else []


def _passages(topics: pd.DataFrame, of: QuestionSet) -> Iterator[tuple[str, str, str]]:
    """qid, docno and text of BM25's first passages, by topic and rank."""
    chunker, docs = TokenChunker(size=_SIZE, overlap=_OVERLAP), of.docs
    chunks: pd.DataFrame | Batches
    if isinstance(docs, Batches):
        chunks = Batches(lambda: (chunked(chunker, batch, of.tools) for batch in docs))
    else:
        chunks = chunked(chunker, docs, of.tools)
    retriever = BM25(top_k=_TOP_K, language="auto")
    with tempfile.TemporaryDirectory() as folder:
        retriever.build_index(chunks, Path(folder), of.tools)
        run = retriever.transformer(columns_of(chunks, ["docno"]), Path(folder))(topics[["qid", "query"]])
    found = rows_where(chunks, "docno", set(run["docno"]))
    held = {
        docno: (parent, text)
        for docno, parent, text in zip(found["docno"], found["parent"], found["text"], strict=True)
    }
    run = run.sort_values(["qid", "rank"])
    for qid, docno in zip(run["qid"], run["docno"], strict=True):
        yield qid, *held[docno]
