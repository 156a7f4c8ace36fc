"""Recognises a system's own texts as documents and chunks of the corpus by content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pandas as pd

from ragauge.contract.frames import Batches, batches_of
from ragauge.retrieval.passages import MARK, document_of
from ragauge.texts.folding import fold_space


def recognised(
    run: pd.DataFrame, texts: pd.DataFrame, chunks: pd.DataFrame, docs: pd.DataFrame | Batches
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The run and the texts [docno, text], with the corpus's docnos for verbatim texts.

    White space is folded on both sides. A text that is a chunk gets the docno of the chunk. A text that is a whole
    document, with or without its title in front, gets a docno `<document>%p…`. So does a chunk that a topic has twice.
    The first of several equal documents counts. A text whose docno is that of a document keeps it.
    """
    parents = set(chunks["parent"])
    named = [document_of(docno) in parents for docno in texts["docno"]]
    unknown = texts[[not known and bool(text.strip()) for known, text in zip(named, texts["text"], strict=True)]]
    if unknown.empty or not parents:
        return run, texts
    folded = {docno: fold_space(text) for docno, text in unknown.itertuples(index=False)}
    wanted = set(folded.values())
    of_chunk: dict[str, tuple[str, str]] = {}
    for docno, text, parent in zip(chunks["docno"], chunks["text"], chunks["parent"], strict=True):
        if (words := fold_space(text)) in wanted:
            of_chunk.setdefault(words, (docno, parent))
    of_document = _documents(docs, wanted - of_chunk.keys())
    chunk_of = {docno: of_chunk[text][0] for docno, text in folded.items() if text in of_chunk}
    parent_of = {
        docno: of_chunk[text][1] if text in of_chunk else of_document[text]
        for docno, text in folded.items()
        if text in of_chunk or text in of_document
    }
    passage_of = {docno: _passage(docno, parent) for docno, parent in parent_of.items()}
    used = set(run[["qid", "docno"]].itertuples(index=False, name=None))
    found = []
    for qid, docno in run[["qid", "docno"]].itertuples(index=False):
        chunk = chunk_of.get(docno)
        if chunk is not None and (qid, chunk) not in used:
            used.add((qid, chunk))
            found.append(chunk)
        else:
            found.append(passage_of.get(docno, docno))
    renamed = texts.assign(docno=texts["docno"].map(lambda docno: passage_of.get(docno, docno)).astype("str"))
    return (
        run.assign(docno=pd.Series(found, index=run.index, dtype="str")),
        renamed[renamed["docno"].isin(found)].reset_index(drop=True),
    )


def of_no_document(run: pd.DataFrame, chunks: pd.DataFrame, texts: pd.DataFrame) -> list[str]:
    """The topics with unknown documents, in the order of the run.

    run, texts: as `recognised` gives them. Such a topic has a text that is not blank, has no name and is no document.
    Where no docno of the whole run is one of the corpus, the system calls documents otherwise, and it is all topics.
    """
    known = set(chunks["parent"])
    if not known or run.empty:
        return []
    blank = set(texts.loc[texts["text"].str.strip() == "", "docno"])
    document = run["docno"].map(document_of)
    unnamed = document.str.startswith(MARK) & ~document.isin(known) & ~run["docno"].isin(blank)
    elsewhere = not unnamed.all() and not document.isin(known).any()
    found = run["qid"] if elsewhere else run.loc[unnamed, "qid"]
    return [str(qid) for qid in found.unique()]


def _documents(docs: pd.DataFrame | Batches, wanted: set[str]) -> Mapping[str, str]:
    """The first document of each of these texts: {text: docno}."""
    found: dict[str, str] = {}
    for batch in batches_of(docs) if wanted else ():
        for docno, title, text in batch[["docno", "title", "text"]].itertuples(index=False):
            for words in spellings(title, text):
                if words in wanted:
                    found.setdefault(words, docno)
    return found


def spellings(title: str, text: str) -> list[str]:
    """Variants of a text with folded white space: plain, with its title in front, without a leading title."""
    heading, words = fold_space(title), fold_space(text)
    return list(dict.fromkeys((words, f"{heading} {words}".strip(), words.removeprefix(f"{heading} "))))


def _passage(docno: str, parent: str) -> str:
    return f"{parent}%p{hashlib.sha256(docno.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
