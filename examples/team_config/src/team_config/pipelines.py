"""`retriever=team_pipeline`: BM25 with a bonus for phrases, fused with a search for the question's names."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pyterrier as pt

from ragauge.retrieval.retrievers import BM25

_WORD = re.compile(r"\w+")


def build_index(chunks: pd.DataFrame, folder: Path) -> None:
    """Writes the BM25 index; called once for a set of chunks."""
    BM25().build_index(chunks, folder)


def team_pipeline(
    chunks: pd.DataFrame, folder: Path, depth: int, phrase_bonus: float, name_weight: float
) -> pt.Transformer:
    """A transformer of topics to the best `depth` chunks.

    phrase_bonus: how much of its score a chunk gains that has all neighbouring words of the question.
    name_weight: weight of the search for names beside that for the whole question.
    """
    bm25 = BM25(top_k=depth).transformer(chunks, folder)
    texts = pt.apply.generic(lambda run: run.merge(chunks[["docno", "text"]], on="docno"))
    phrases = pt.apply.doc_score(lambda hit: hit["score"] * (1 + phrase_bonus * shared_pairs(hit)))
    names = pt.apply.query(lambda topic: names_in(topic["query"]) or topic["query"])
    return ((bm25 >> texts >> phrases) + name_weight * (names >> bm25)) % depth


def shared_pairs(hit: pd.Series) -> float:
    """Share of the pairs of neighbouring words in `query` that stand in `text`, in [0, 1]."""
    query, text = (_WORD.findall(hit[column].casefold()) for column in ("query", "text"))
    wanted = set(pairwise(query))
    return len(wanted & set(pairwise(text))) / max(1, len(wanted))


def names_in(question: str) -> str:
    """The capitalised words of a question but its first."""
    return " ".join(word for word in _WORD.findall(question)[1:] if word[0].isupper())
