"""Properties of a question before retrieval: overlap with its evidence, words, language.

A question's words are its distinct words without function words (English ones; a question of nothing else
keeps them all).
"""

from __future__ import annotations

import math

import pandas as pd

from ragauge.contract.frames import Batches, batches_of
from ragauge.texts.languages import language_of
from ragauge.texts.words import FUNCTION_WORDS, words

LEXICAL_OVERLAP, RARITY, EVIDENCE_DOCUMENTS = "lexical_overlap", "rarity", "evidence_documents"
LANGUAGE = "language"
_MANY = 5  # documents that count alike with more: few numbers are slices of their own
DERIVED = (LEXICAL_OVERLAP, RARITY, EVIDENCE_DOCUMENTS, LANGUAGE)


def content_words(question: str) -> set[str]:
    """The distinct content words of a question; all words if it has none."""
    found = set(words(question))
    return found - FUNCTION_WORDS or found


def lexical_overlap(topics: pd.DataFrame, evidence: pd.DataFrame) -> pd.Series:
    """Share of the question's words in the topic's evidence, float64 [topics] in [0, 1].

    NaN for a topic without evidence text, and for a question without a word.
    """
    texts = evidence.dropna(subset="text")
    of_topic = {qid: set(words(" ".join(part))) for qid, part in texts.groupby("qid")["text"]}
    found = []
    for qid, query in zip(topics["qid"], topics["query"], strict=True):
        asked, there = content_words(query), of_topic.get(qid)
        found.append(len(asked & there) / len(asked) if asked and there is not None else float("nan"))
    return pd.Series(found, index=topics.index, dtype="float64")


def evidence_documents(topics: pd.DataFrame, evidence: pd.DataFrame) -> pd.Series:
    """Number of documents with the topic's evidence, 1 to 4, or 5 for five and more, float64 [topics].

    Where a topic's evidence has texts, parts without one do not count; a text of no named document is one
    of its own. NaN for a topic without evidence.
    """
    known = evidence["text"].notna()
    parts = evidence[known | ~evidence["qid"].isin(evidence.loc[known, "qid"])]
    document = "d" + parts["docno"].where(parts["docno"].notna(), other=None)
    number = document.fillna("t" + parts["text"]).groupby(parts["qid"]).nunique()
    return topics["qid"].map(number.clip(upper=_MANY)).astype("float64")


def languages(topics: pd.DataFrame) -> pd.Series:
    """Name of each question's language (german), str [topics], missing if not recognised."""
    return topics["query"].map(language_of).astype("str")


def rarity(topics: pd.DataFrame, docs: pd.DataFrame | Batches) -> pd.Series:
    """Mean over the question's words of ln((N + 1) / (n + 1)), float64 [topics], at least 0.

    n of the N documents hold the word in title or text: 0 for words that stand in all documents, ln(N + 1) for words of
    none. NaN for a question without a word, and throughout without documents. Source: the average inverse document
    frequency of He & Ounis 2004, smoothed for words that occur nowhere.
    """
    questions = [content_words(query) for query in topics["query"]]
    asked = set().union(*questions)
    holding = dict.fromkeys(asked, 0)
    n_docs = 0
    for some in batches_of(docs):
        n_docs += len(some)
        for title, text in zip(some["title"], some["text"], strict=True):
            for word in asked.intersection(words(f"{title} {text}")):
                holding[word] += 1
    idf = {word: math.log((n_docs + 1) / (n + 1)) for word, n in holding.items()}
    found = [sum(idf[w] for w in own) / len(own) if own and n_docs else float("nan") for own in questions]
    return pd.Series(found, index=topics.index, dtype="float64")
