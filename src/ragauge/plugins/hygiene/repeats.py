"""Questions and documents that repeat others, and questions that documents or training data hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from ragauge.contract.frames import Batches, batches_of, columns_of, count_rows, rows_where
from ragauge.measures.located import documents_with
from ragauge.plugins.hygiene.found import NO_DOCUMENTS, Found, Item, QuestionSet
from ragauge.plugins.hygiene.near import Near, near_pairs
from ragauge.texts.words import words

_LEAST_WORDS = 4  # of a question that is looked for in documents


def repeated_questions(of: QuestionSet) -> Found:
    """Questions that repeat an earlier one; a group of n has n - 1 cases."""
    asked = of.questions()
    qids = [qid for qid, _ in asked]
    return Found([_repeats(pair, qids) for pair in near_pairs(text for _, text in asked)], len(asked))


def repeated_documents(of: QuestionSet) -> Found:
    """Documents whose text repeats that of another; a group of n has n - 1 cases."""
    docnos = columns_of(of.docs, ["docno"])["docno"].tolist()
    if not docnos:
        return Found(None, 0, NO_DOCUMENTS)
    pairs = near_pairs(text for _, text in of.documents())
    return Found([_repeats(pair, docnos) for pair in pairs], len(docnos))


def leaked_questions(of: QuestionSet) -> Found:
    """Questions that repeat one of a file of training questions."""
    asked = of.questions()
    if not of.against:
        return Found(None, len(asked), "--against names no file of training questions")
    every = [*of.against, *asked]
    names = [name for name, _ in every]
    pairs = near_pairs((text for _, text in every), known=len(of.against))
    return Found([_repeats(pair, names) for pair in pairs], len(asked))


def _repeats(pair: Near, ids: Sequence[str]) -> Item:
    detail = "the same words" if pair.jaccard == 1 else f"Jaccard similarity {pair.jaccard:.2f}"
    return Item(ids[pair.second], (ids[pair.first],), detail)


def questions_in_documents(of: QuestionSet) -> Found:
    """Questions whose own words stand in one piece in a document."""
    asked = {qid: _joined(text) for qid, text in of.questions() if len(words(text)) >= _LEAST_WORDS}
    if not asked or not count_rows(of.docs):
        return Found(None, len(asked), f"no question has {_LEAST_WORDS} words" if not asked else NO_DOCUMENTS)
    holders = documents_with(set(asked.values()), Batches(lambda: _in_words(of.docs)), ())
    held = rows_where(of.docs, "docno", {docno for part in asked.values() for docno in holders[part]})
    texts = {docno: _joined(text) for docno, text in zip(held["docno"], held["text"], strict=True)}
    known = of.references()
    items = []
    for qid, part in asked.items():
        behind = [texts[docno].partition(part)[2] for docno in holders[part]]
        answered = any(_joined(one)[1:] in text for one in known.get(qid, ()) for text in behind)
        if behind:
            detail = "the question, and a reference answer behind it" if answered else "the question"
            items.append(Item(qid, tuple(holders[part]), detail))
    return Found(items, len(asked))


def _joined(text: str) -> str:
    """The words of a text as |one|after|another|."""
    return f"|{'|'.join(words(text))}|"


def _in_words(docs: pd.DataFrame | Batches) -> Iterator[pd.DataFrame]:
    for batch in batches_of(docs):
        yield batch[["docno"]].assign(text=[_joined(text) for text in batch["text"]])
