"""How far a rewriter's queries are from the question: too close brings nothing, too free another subject."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.contract.protocols import Embedder
from ragauge.retrieval.searching import QUESTIONS


def query_checks(
    topics: pd.DataFrame,
    queries: pd.DataFrame,
    run: pd.DataFrame,
    found_by_question: pd.DataFrame,
    embedder: Embedder,
) -> pd.DataFrame:
    """A row per topic: qid, similarity, new_hits, failed.

    similarity: mean cosine of the texts of a topic's queries to its question, the question left out; single
        words for lexical retrievers have none. Missing where there is no text.
    new_hits: of the topic's first hits, as many as the question itself finds, the share that is not among
        those. Missing where nothing is found; 1 where the question finds nothing.
    failed: whether the topic's rewrite failed, so that its question was searched.
    """
    failed = set(queries.loc[queries["origin"].eq("failed"), "qid"])
    return pd.DataFrame(
        {
            "qid": topics["qid"],
            "similarity": topics["qid"].map(_similarity(topics, queries, embedder)).astype("float64"),
            "new_hits": topics["qid"].map(_new_hits(run, found_by_question)).astype("float64"),
            "failed": topics["qid"].isin(failed),
        }
    )


def _similarity(topics: pd.DataFrame, queries: pd.DataFrame, embedder: Embedder) -> pd.Series:
    texts = queries[~queries["origin"].isin(QUESTIONS) & queries["space"].ne("lexical")]
    if texts.empty:
        return pd.Series(dtype="float64")
    asked = topics[topics["qid"].isin(texts["qid"])].reset_index(drop=True)
    questions = embedder.embed(asked["query"].tolist(), "query").astype(np.float64)
    of = texts["qid"].map(dict(zip(asked["qid"], asked.index, strict=True))).to_numpy()
    cosine = np.empty(len(texts))
    for role in texts["role"].unique():
        rows = np.flatnonzero(texts["role"] == role)
        vectors = embedder.embed(texts["query"].iloc[rows].tolist(), role).astype(np.float64)
        cosine[rows] = np.einsum("ij,ij->i", vectors, questions[of[rows]])
    return pd.Series(cosine, index=texts["qid"].to_numpy()).groupby(level=0).mean()


def _new_hits(run: pd.DataFrame, found_by_question: pd.DataFrame) -> pd.Series:
    depth = run["qid"].map(found_by_question.groupby("qid").size()).fillna(np.inf)
    best = run[run["rank"] < depth]
    known = pd.MultiIndex.from_frame(found_by_question[["qid", "docno"]])
    new = ~pd.MultiIndex.from_frame(best[["qid", "docno"]]).isin(known)
    return pd.Series(new, index=best["qid"].to_numpy(), dtype="float64").groupby(level=0).mean()
