"""Searches with a rewriter's queries: any retriever, one ranked list per search, one run per topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract import frames
from ragauge.contract.component import Embedder, Tools
from ragauge.contract.errors import DataError
from ragauge.contract.retrieval import Retriever, Rewriter
from ragauge.retrieval.fusion import first_seen, reciprocal_rank_fusion
from ragauge.retrieval.ranking import ranked

QUESTIONS = ("question", "failed")  # the origins of a query that is the question itself
_USUAL = {"weight": 1.0, "space": "any", "role": "query"}
_SPACES = ("any", "dense", "lexical")


def queries_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Frame `queries` of rows with qid, search, query, origin and optional weight, space and role.

    They are 1, "any" and "query" then; `query_id` numbers the rows of a topic.
    """
    found = pd.DataFrame([{**_USUAL, **row} for row in rows])
    if found.empty:
        return frames.empty("queries")
    found["query_id"] = found.groupby("qid", sort=False).cumcount()
    return found[list(frames.SCHEMAS["queries"].columns)].astype({"search": "int64", "weight": "float64"})


def check_queries(queries: pd.DataFrame, topics: pd.DataFrame, who: str) -> pd.DataFrame:
    """The queries, if every topic has searchable ones; else DataError, which names `who`.

    A query has a text, unless it is the question itself, a weight above 0, and a space and a role as the
    frame's schema names them.
    """
    frames.check("queries", queries, who)
    lost = set(topics["qid"]) ^ set(queries["qid"])
    if lost:
        raise DataError(f"{who}: {len(lost)} topic(s) without a query or unknown, such as {min(lost)!r}")
    blank = queries["query"].str.strip().eq("") & ~queries["origin"].isin(QUESTIONS)
    checks = {
        "a query without text": blank,
        "a weight that is not above 0": queries["weight"] <= 0,
        f"a space that is none of {', '.join(_SPACES)}": ~queries["space"].isin(_SPACES),
        "a role that is neither query nor passage": ~queries["role"].isin(["query", "passage"]),
    }
    for what, wrong in checks.items():
        if wrong.any():
            raise DataError(f"{who}: qid={queries.loc[wrong, 'qid'].iloc[0]!r}: {what}")
    return queries


def searched_by(retriever: Retriever, queries: pd.DataFrame) -> pd.DataFrame:
    """The queries for a retriever: those for any space and for its own."""
    return queries if retriever.space == "several" else queries[queries["space"].isin(["any", retriever.space])]


def search(
    retriever: Retriever,
    topics: pd.DataFrame,
    queries: pd.DataFrame,
    rewriter: Rewriter,
    chunks: pd.DataFrame,
    folder: Path,
    tools: Tools,
) -> pd.DataFrame:
    """Frame `run`: the fused hits of the retriever for every topic's searches.

    A retriever's `space` decides how several rows are searched. "dense" ones get the weighted sum of the rows' vectors
    (`query_vec`), "lexical" ones the rows with their weights (`query_parts`), others the texts one after the other.
    Where every topic has one search the run is the retriever's own, scores included; else lists are united as the
    rewriter says.
    """
    if retriever.space == "several":
        return retriever.search(topics, queries, rewriter, chunks, folder, tools)
    space, own = retriever.space, searched_by(retriever, queries)
    lost = set(topics["qid"]) - set(own["qid"])
    if lost:
        who = type(retriever).__name__
        raise DataError(
            f"{who}: the rewriter wrote no query for it, as for qid={min(lost)!r}: its queries are for "
            f"{' and '.join(sorted(set(queries['space'])))} retrievers, this one is {space}"
        )
    topic = {qid: row for row, qid in enumerate(topics["qid"])}
    own = own.assign(topic=own["qid"].map(topic)).sort_values(["topic", "search", "query_id"], kind="stable")
    searches = _searches(own.reset_index(drop=True), space, tools)
    asked = searches.assign(qid=[f"search-{row}" for row in range(len(searches))])
    found = retriever.transformer(chunks, folder, tools)(asked.drop(columns="topic"))
    lists = found[["qid", "docno", "score", "rank"]].assign(
        topic=found["qid"].map(dict(zip(asked["qid"], searches["topic"], strict=True)))
    )
    run = lists if len(searches) == len(topics) else _united(lists.reset_index(drop=True), rewriter)
    names = topics[["qid", "query"]].iloc[run["topic"]].reset_index(drop=True)
    return ranked(names.assign(docno=run["docno"].to_numpy(), score=run["score"].to_numpy()))


def _searches(own: pd.DataFrame, space: str, tools: Tools) -> pd.DataFrame:
    """A row per search: topic, query (the joined texts), and the input of the space for several rows."""
    by = own.groupby(["topic", "search"], sort=False)
    found = by["query"].agg(" ".join).reset_index().drop(columns="search")
    if space == "dense" and len(found) < len(own):
        found["query_vec"] = list(_vectors(own, by.ngroup().to_numpy(), tools))
    elif space == "lexical" and len(found) < len(own):
        parts = [list(zip(rows["query"], rows["weight"], strict=True)) for _, rows in by]
        found["query_parts"] = pd.Series(parts, dtype=object)
    return found


def _vectors(own: pd.DataFrame, group: np.ndarray, tools: Tools) -> np.ndarray:
    """Weighted sum of each search's vectors, normalised to length 1, float32 [searches, dimensions].

    A search of one row has its vector as it is.
    """
    vectors: np.ndarray | None = None
    for role in own["role"].unique():
        rows = np.flatnonzero(own["role"] == role)
        found = tools.embedder.embed(own["query"].iloc[rows].tolist(), role)
        if vectors is None:
            vectors = np.empty((len(own), found.shape[1]), dtype=np.float64)
        vectors[rows] = found
    assert vectors is not None
    sums = np.zeros((group.max() + 1, vectors.shape[1]))
    np.add.at(sums, group, vectors * own["weight"].to_numpy()[:, None])
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    sums = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0)
    alone = np.bincount(group)[group] == 1
    sums[group[alone]] = vectors[alone]
    return sums.astype(np.float32)


def _united(lists: pd.DataFrame, rewriter: Rewriter) -> pd.DataFrame:
    by = ("topic", "docno")
    if rewriter.union == "first_seen":
        return first_seen(lists, by).reset_index()
    return reciprocal_rank_fusion(lists, by, rewriter.rrf_constant).reset_index()


def query_checks(
    topics: pd.DataFrame, queries: pd.DataFrame, run: pd.DataFrame, found_by_question: pd.DataFrame, embedder: Embedder
) -> pd.DataFrame:
    """A row per topic: qid, similarity, new_hits, failed.

    similarity: mean cosine of the texts of a topic's queries to its question, the question left out; single
        words for lexical retrievers have none. Missing where there is no text.
    new_hits: the share of the topic's first hits, as many as the question itself finds, that the question does not
        find. Missing where nothing is found; 1 where the question finds nothing.
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
