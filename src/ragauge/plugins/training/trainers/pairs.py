"""Pairs of question and passage, labelled 1 or 0, to train a reranker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.checks import require, require_choice, require_count, require_number
from ragauge.contract.errors import DataError
from ragauge.contract.progress import working
from ragauge.plugins.training.contract import TrainingData
from ragauge.plugins.training.trainers.mining import Mined, Window, mine

NEGATIVES = ("hard", "random")
COLUMNS = ["qid", "query", "docno", "label", "rank", "score"]


@dataclass(frozen=True)
class PairSource:
    """Chooses the pairs.

    neg_ratio: negatives for every positive of a topic. negatives: hard are hits of the topic, of the ranks
    first to last (from 1), that are not relevant to it; random are any passages that are not.
    positives_per_topic: at most so many; None is all. margin, ceiling: bounds of scores, as in `mining.Window`.
    """

    neg_ratio: int = 3
    negatives: str = "hard"
    first: int = 1
    last: int = 20
    positives_per_topic: int | None = None
    margin: float | None = None
    ceiling: float | None = None

    def check(self, key: str) -> None:
        """ConfigError that names `key` and a field for values that are not allowed."""
        require_count(f"{key}.neg_ratio", self.neg_ratio, note="negatives per positive")
        require_choice(f"{key}.negatives", self.negatives, NEGATIVES)
        require_count(f"{key}.first", self.first, note="a rank")
        require_count(f"{key}.last", self.last, note="a rank")
        require(f"{key}.last", self.last, self.last >= self.first, f"ranks from {key}.first={self.first}")
        require_count(f"{key}.positives_per_topic", self.positives_per_topic, null="all")
        require_number(f"{key}.margin", self.margin, 0, 1, null="any score")
        require_number(f"{key}.ceiling", self.ceiling, -1e9, null="any score")


@dataclass(frozen=True)
class Pairs:
    """The pairs for training a reranker.

    table: [qid, query, docno, label, rank, score], each pair of a topic and a chunk once. rank (from 1) and score are
        those of the run, missing where it does not hold the chunk. A topic's positives come first.
    counts: topics, positives and negatives; the hits that mining left out, by reason; and the hard negatives that had
        to be random passages, since the window held too few hits.
    """

    table: pd.DataFrame
    counts: dict[str, int]


def training_pairs(data: TrainingData, source: PairSource, seed: int) -> Pairs:
    """Every relevant chunk of a topic with label 1, and `neg_ratio` times as many others with label 0.

    Negatives of a topic are drawn without replacement, so none stands twice. DataError where fewer than two
    topics have evidence in the chunks, and where all pairs have one label.
    """
    generator = np.random.default_rng(seed)
    hard = source.negatives == "hard"
    width = source.last - source.first + 1 if hard else 0
    window = Window(width, source.first, source.last, source.margin, source.ceiling, "top")
    with working(f"mining negatives of {len(data.topics):,} topics"):
        mined = mine(data, window, seed, source.positives_per_topic)
    wanted = mined.positives.groupby("qid", sort=False).size() * source.neg_ratio
    drawn = _drawn(mined.negatives[mined.negatives["rank"].notna()], wanted, generator)
    missing = wanted.sub(drawn.groupby("qid").size(), fill_value=0).astype(int)
    others = _others(data.chunks["docno"].to_numpy(dtype=object), mined, drawn, missing, generator)
    negatives = pd.concat([drawn, others], ignore_index=True)
    pairs = pd.concat([mined.positives[["qid", "docno"]].assign(label=1), negatives.assign(label=0)], ignore_index=True)
    if pairs["label"].nunique() < 2:
        raise DataError(
            "trainer.negatives: every passage that could be a negative is evidence of its topic, so all "
            f"{len(pairs):,} pairs have the label 1; a reranker is learnt from both labels"
        )
    order = {qid: at for at, qid in enumerate(data.topics["qid"])}
    pairs = pairs.assign(at=pairs["qid"].map(order)).sort_values("at", kind="stable").drop(columns="at")
    hits = data.run[["qid", "docno", "rank", "score"]].assign(rank=data.run["rank"] + 1)
    table = pairs.merge(data.topics[["qid", "query"]], on="qid").merge(hits, on=["qid", "docno"], how="left")
    counts = {name: n for name, n in mined.counts.items() if name != "filled_from_other_topics"}
    counts |= {
        "negatives": len(negatives),
        "positives_not_found": int(table["rank"][table["label"] == 1].isna().sum()),
    }
    counts |= {"negatives_drawn_at_random": len(others)} if hard else {}
    return Pairs(table.astype({"rank": "Int64"})[COLUMNS].reset_index(drop=True), counts)


def _drawn(hits: pd.DataFrame, wanted: pd.Series, generator: np.random.Generator) -> pd.DataFrame:
    """[qid, docno]: a random sample, of the wanted size, of each topic's possible negatives."""
    distinct = hits[["qid", "negative"]].drop_duplicates().rename(columns={"negative": "docno"})
    shuffled = distinct.assign(by=generator.random(len(distinct))).sort_values("by", kind="stable")
    place = shuffled.groupby("qid").cumcount().to_numpy()
    kept = shuffled[place < wanted.reindex(shuffled["qid"]).to_numpy(dtype=float)]
    return kept.sort_index()[["qid", "docno"]].astype("str").reset_index(drop=True)


def _others(
    docnos: np.ndarray, mined: Mined, drawn: pd.DataFrame, missing: pd.Series, generator: np.random.Generator
) -> pd.DataFrame:
    """[qid, docno]: random chunks to fill up a topic, neither relevant to it nor chosen already."""
    barred = pd.concat([mined.relevant[["qid", "docno"]], drawn], ignore_index=True)
    own = barred.groupby("qid")["docno"].agg(set).to_dict()
    rows = []
    for qid, n in missing[missing > 0].items():
        not_these = own.get(qid, set())
        asked = min(len(docnos), int(n) + len(not_these))
        fresh = [d for d in generator.choice(docnos, asked, replace=False) if d not in not_these]
        rows += [(str(qid), str(docno)) for docno in fresh[: int(n)]]
    return pd.DataFrame(rows, columns=["qid", "docno"]).astype("str")
