"""Hard negatives: passages that a retriever finds for a question and that do not answer it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.checks import require, require_choice, require_count, require_number
from ragauge.contract.errors import DataError
from ragauge.measures.located import chunk_qrels
from ragauge.plugins.training.contract import TrainingData

SAME = 0.8  # of the different words of two passages, from which one is taken for a copy of the other
SAMPLINGS = ("top", "random")
Scorer = Callable[[pd.DataFrame], np.ndarray]  # of rows [qid, docno]: how relevant each chunk is to its topic

_LIST = 5  # topics that an error names


@dataclass(frozen=True)
class Window:
    """Selects which hits of a topic may be its negatives, and how many each positive gets.

    count: negatives of a positive; 0 is none. first, last: ranks, counted from 1. margin: a negative's score
    is at most (1 - margin) times the positive's, which keeps out what is likely to be relevant and unlabelled
    (TopK-PercPos of NV-Retriever, Moreira et al. 2024). ceiling: and at most this. sampling: the first of
    them by rank, or drawn at random.
    """

    count: int = 1
    first: int = 1
    last: int = 20
    margin: float | None = None
    ceiling: float | None = None
    sampling: str = "random"

    def check(self, key: str) -> None:
        """ConfigError that names `key` and a field for values that are not allowed."""
        require_count(f"{key}.count", self.count, 0)
        require_count(f"{key}.first", self.first, note="a rank")
        require_count(f"{key}.last", self.last, note="a rank")
        require(f"{key}.last", self.last, self.last >= self.first, f"ranks from {key}.first={self.first}")
        require_number(f"{key}.margin", self.margin, 0, 1, null="any score")
        require_number(f"{key}.ceiling", self.ceiling, -1e9, null="any score")
        require_choice(f"{key}.sampling", self.sampling, SAMPLINGS)


@dataclass(frozen=True)
class Mined:
    """The positives and negatives for training.

    positives: [qid, query, docno], a row per relevant chunk of a topic that is learnt from.
    negatives: [qid, query, positive, negative, rank, score], `count` rows per positive. They are hits with their rank
        from 1 and their score; where too few hits are left, passages of other topics, without rank.
    relevant: [qid, docno, copy], all chunks that are relevant to a topic; copy is True where a chunk only has
        nearly the words of one that is.
    counts: candidates in the window, how many of them were left out for each reason, and how many passages of other
        topics filled gaps.
    """

    positives: pd.DataFrame
    negatives: pd.DataFrame
    relevant: pd.DataFrame
    counts: dict[str, int]


def mine(
    data: TrainingData,
    window: Window,
    seed: int,
    per_topic: int | None = None,
    scorer: Scorer | None = None,
    examples: int | None = None,
) -> Mined:
    """Positives and their hard negatives.

    per_topic: at most so many positives of a topic, drawn at random; None is all. examples: at most so many
    of all these, likewise. scorer: gives the scores for margin and ceiling. None is the run's own score; a positive
    that the run does not hold is then worse than every hit, so that a margin leaves it none of them. DataError where no
    topic has a relevant chunk, and where there are no two topics.
    """
    generator = np.random.default_rng(seed)
    exact = relevant_chunks(data.evidence, data.chunks)
    exact = exact[exact["qid"].isin(set(data.topics["qid"]))]
    if exact["qid"].nunique() < 2:
        raise DataError(
            f"training: {exact['qid'].nunique()} of {len(data.topics)} topics have evidence that stands in a "
            f"document (first topics: {', '.join(data.topics['qid'].head(_LIST))}); two are the least to "
            "learn from"
        )
    hits = data.run[["qid", "docno", "rank", "score"]].assign(rank=data.run["rank"] + 1)
    inside = hits[hits["rank"].between(window.first, window.last)] if window.count else hits.iloc[:0]
    relevant = with_copies(exact, np.asarray(pd.unique(pd.concat([exact["docno"], inside["docno"]]))), data.chunks)
    positives = _positives(data.topics, exact, per_topic, examples, generator)
    counts = {"topics_learnt_from": positives["qid"].nunique(), "positives": len(positives)}
    if not window.count:
        empty = _table(positives.iloc[:0].assign(negative=None, rank=None, score=None))
        return Mined(positives, empty, relevant, counts)
    found = inside.merge(relevant, on=["qid", "docno"], how="left")
    found = found[found["qid"].isin(set(positives["qid"]))]
    counts |= {
        "candidates": len(found),
        "excluded_as_evidence": int(found["copy"].eq(False).sum()),
        "excluded_as_copies": int(found["copy"].eq(True).sum()),
    }
    pairs = positives.merge(
        found[found["copy"].isna()].drop(columns="copy").rename(columns={"docno": "negative"}), on="qid"
    )
    pairs = pairs.reset_index(drop=True)
    score, of_positive = _scores(pairs, data.run, scorer)
    near = np.zeros(len(pairs), dtype=bool)
    if window.margin is not None:
        known = np.isfinite(of_positive)
        size = np.where(known, np.abs(of_positive), 0.0)
        near = ~known | (score > of_positive - window.margin * size)
    high = np.zeros(len(pairs), dtype=bool) if window.ceiling is None else score > window.ceiling
    counts |= {
        "excluded_by_margin": _hits(pairs, near),
        "excluded_by_ceiling": _hits(pairs, high & ~near),
    }
    excluded = near | high
    left = pairs.assign(score=score)[~excluded]
    by = left["rank"].to_numpy() if window.sampling == "top" else generator.random(len(left))
    left = left.assign(by=by).sort_values(["qid", "docno", "by"], kind="stable")
    left = left.groupby(["qid", "docno"], sort=False).head(window.count).drop(columns="by")
    filled = _fillers(positives, left, pairs[excluded], relevant, window.count, generator)
    counts["filled_from_other_topics"] = len(filled)
    negatives = _table(pd.concat([left, filled], ignore_index=True) if len(filled) else left)
    order = positives.reset_index(names="at")[["qid", "docno", "at"]].rename(columns={"docno": "positive"})
    negatives = negatives.merge(order, on=["qid", "positive"]).sort_values(["at", "rank"], kind="stable")
    return Mined(positives, negatives.drop(columns="at").reset_index(drop=True), relevant, counts)


def relevant_chunks(evidence: pd.DataFrame, chunks: pd.DataFrame) -> pd.DataFrame:
    """[qid, docno]: the chunks that hold a part of a topic's evidence with grade 1 or above.

    Those of `ragauge.measures.located`; of evidence that is known by its document alone, all chunks of
    that document.
    """
    if "relevance" in evidence:
        evidence = evidence[evidence["relevance"] >= 1]
    held = chunk_qrels(evidence, chunks)[["qid", "docno"]]
    whole = evidence[evidence["text"].isna() & evidence["docno"].notna()][["qid", "docno"]]
    of_documents = whole.rename(columns={"docno": "parent"}).merge(chunks[["docno", "parent"]], on="parent")
    both = pd.concat([held, of_documents[["qid", "docno"]]], ignore_index=True)
    return both.astype("str").drop_duplicates(ignore_index=True)


def with_copies(relevant: pd.DataFrame, docnos: np.ndarray, chunks: pd.DataFrame) -> pd.DataFrame:
    """[qid, docno, copy]: the relevant chunks, and near-duplicates of them among `docnos`."""
    texts = chunks.set_index("docno")["text"].reindex(docnos)
    if texts.isna().any():
        raise DataError(f"training: the run names chunk {texts.index[texts.isna()][0]!r}, which is not there")
    first, second = similar(texts.tolist())
    same = pd.DataFrame({"docno": docnos[first], "other": docnos[second]})
    copies = relevant.merge(same, on="docno")[["qid", "other"]].rename(columns={"other": "docno"})
    both = pd.concat([relevant.assign(copy=False), copies.assign(copy=True)], ignore_index=True)
    return both.drop_duplicates(["qid", "docno"], ignore_index=True)


def similar(texts: list[str], same: float = SAME) -> tuple[np.ndarray, np.ndarray]:
    """Row pairs (both directions, none with itself) whose texts have a Jaccard similarity of `same` or more.

    Jaccard's is over their different words, in lower case. Exact, without a look at every pair: two such sets
    share one of the rarest |x| - ceil(same |x|) + 1 words of each (prefix filter; Chaudhuri et al. 2006).
    """
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import CountVectorizer

    none = np.zeros(0, dtype=np.int64)
    words = CountVectorizer(binary=True, token_pattern=r"(?u)\b\w+\b", dtype=np.int32)
    try:
        held = words.fit_transform(texts).tocsr()
    except ValueError:  # no text has a word
        return none, none
    sizes = np.diff(held.indptr)
    frequency = np.bincount(held.indices, minlength=held.shape[1])
    text = np.repeat(np.arange(len(texts)), sizes)
    by_rarity = np.lexsort((held.indices, frequency[held.indices], text))
    place = np.arange(held.nnz) - held.indptr[:-1][text]
    rare = by_rarity[place < (sizes - np.ceil(same * sizes - 1e-9) + 1)[text]]
    prefix = csr_matrix((np.ones(len(rare), dtype=np.int32), (text[rare], held.indices[rare])), shape=held.shape)
    near = (prefix @ prefix.T).tocoo()
    first, second = near.row[near.row != near.col], near.col[near.row != near.col]
    # Sizes alone tell most of them apart.
    fits = np.minimum(sizes[first], sizes[second]) >= same * np.maximum(sizes[first], sizes[second]) - 1e-9
    first, second = first[fits], second[fits]
    keep = [none.astype(bool)]
    for at in range(0, len(first), 100_000):
        a, b = first[at : at + 100_000], second[at : at + 100_000]
        shared = np.asarray(held[a].multiply(held[b]).sum(axis=1)).ravel()
        keep.append(shared >= same * (sizes[a] + sizes[b] - shared) - 1e-9)
    chosen = np.concatenate(keep)
    return first[chosen], second[chosen]


def _positives(
    topics: pd.DataFrame,
    relevant: pd.DataFrame,
    per_topic: int | None,
    examples: int | None,
    generator: np.random.Generator,
) -> pd.DataFrame:
    """[qid, query, docno], topics in their order."""
    found = topics[["qid", "query"]].merge(relevant, on="qid")
    if per_topic is not None:
        drawn = found.assign(by=generator.random(len(found))).sort_values("by", kind="stable")
        kept = drawn.groupby("qid", sort=False).head(per_topic).index
        found = found.loc[np.sort(kept)].reset_index(drop=True)
    if examples is not None and examples < len(found):
        chosen = generator.choice(len(found), examples, replace=False)
        found = found.iloc[np.sort(chosen)].reset_index(drop=True)
    return found


def _scores(pairs: pd.DataFrame, run: pd.DataFrame, scorer: Scorer | None) -> tuple[np.ndarray, np.ndarray]:
    """The scores of the negatives and positives of each pair."""
    if scorer is None:
        known = run[["qid", "docno", "score"]].rename(columns={"score": "of_positive"})
        of_positive = pairs[["qid", "docno"]].merge(known, on=["qid", "docno"], how="left")["of_positive"]
        return pairs["score"].to_numpy(dtype=float), of_positive.fillna(-np.inf).to_numpy(dtype=float)
    asked = [pairs[["qid", name]].rename(columns={name: "docno"}) for name in ("negative", "docno")]
    distinct = pd.concat(asked).drop_duplicates(ignore_index=True)
    scored = distinct.assign(value=scorer(distinct))
    values = [frame.merge(scored, how="left")["value"].to_numpy(dtype=float) for frame in asked]
    return values[0], values[1]


def _hits(pairs: pd.DataFrame, excluded: np.ndarray) -> int:
    """The number of hits excluded for all positives of their topic."""
    return int(pd.Series(excluded).groupby([pairs["qid"], pairs["negative"]]).all().sum())


def _fillers(
    positives: pd.DataFrame,
    left: pd.DataFrame,
    excluded: pd.DataFrame,
    relevant: pd.DataFrame,
    count: int,
    generator: np.random.Generator,
) -> pd.DataFrame:
    """Relevant passages of other topics for the positives with fewer than `count` negatives.

    None of them is one that margin or ceiling left out.
    """
    pool = relevant["docno"].unique()
    has, out = (of.groupby(["qid", "docno"])["negative"].agg(set).to_dict() for of in (left, excluded))
    own = relevant.groupby("qid")["docno"].agg(set).to_dict()
    rows = []
    for qid, query, docno in positives[["qid", "query", "docno"]].itertuples(index=False):
        there = has.get((qid, docno), set())
        missing, barred = count - len(there), there | own[qid] | out.get((qid, docno), set())
        if missing <= 0:
            continue
        fresh = [d for d in generator.permutation(pool)[: missing + len(barred)] if d not in barred]
        rows += [(qid, query, docno, None, np.nan, negative) for negative in fresh[:missing]]
    return pd.DataFrame(rows, columns=["qid", "query", "docno", "rank", "score", "negative"])


def _table(rows: pd.DataFrame) -> pd.DataFrame:
    found = rows.rename(columns={"docno": "positive"})
    found = found[["qid", "query", "positive", "negative", "rank", "score"]]
    return found.astype({"rank": "Int64", "score": "float64", "negative": "str"}).reset_index(drop=True)
