"""`retriever=hybrid`: several retrievers with fused lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragauge.contract.checks import is_number, require, require_choice, require_count, require_number
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Retriever, Rewriter
from ragauge.retrieval.fusion import FUSIONS, NORMALISATIONS, Scored, fuse
from ragauge.retrieval.retrievers.arms import Arms, built, require_names
from ragauge.retrieval.retrievers.ranking import as_transformer, docno_order, run_frame
from ragauge.retrieval.searching import search


@option("retriever/hybrid")
class Hybrid(Arms):
    """The lists of two or more retrievers as one (`ragauge.retrieval.fusion.fuse` has the formulas).

    arms: their names, all of `options`: {name: mapping with _target_, or a retriever}.
    depth: how many hits of every arm are fused, at least top_k; None is each arm's own top_k.
    alpha: with two arms the weight of the second, in [0, 1]; the first has 1 - alpha. weights: for any number of arms a
        weight by name, from 0. Neither: they count alike.
    normalise, rrf_constant: how scores are made comparable, where the fusion is one of scores; and the number added to
        the ranks in rrf.

    A rewriter's queries go to every arm; lists are fused after the searches of each arm were united.
    """

    component = "hybrid"
    space = "several"

    arms: Sequence[str] = CONF
    options: Mapping[str, Any] = field(default_factory=dict)
    top_k: int = CONF
    depth: int | None = CONF
    fusion: Literal["rrf", "weighted", "mnz", "isr", "max"] = CONF
    normalise: Literal["min_max", "z_score"] = CONF
    alpha: float | None = CONF
    weights: Mapping[str, float] | None = CONF
    rrf_constant: float = CONF

    def __post_init__(self) -> None:
        require_count("retriever.top_k", self.top_k)
        note = "retriever.top_k: so many are kept"
        require_count("retriever.depth", self.depth, self.top_k, note, null="each arm's own top_k")
        require_choice("retriever.fusion", self.fusion, FUSIONS)
        require_choice("retriever.normalise", self.normalise, NORMALISATIONS)
        require_number("retriever.alpha", self.alpha, 0, 1, null="arms count alike, or by weights")
        require_number("retriever.rrf_constant", self.rrf_constant, 0)
        arms = require_names("retriever.arms", self.arms, 2)
        chosen = {name: built("retriever.arms", name, self.options, self.depth) for name in arms}
        object.__setattr__(self, "arms", arms)
        object.__setattr__(self, "options", chosen)  # what is not searched with is no part of the identity
        if self.alpha is not None and (len(arms) != 2 or self.weights is not None):
            raise ConfigError(
                f"retriever.alpha={self.alpha!r} weighs two arms; for {', '.join(arms)}"
                f"{' with weights given' if self.weights is not None else ''} leave it null"
            )
        if self.weights is not None:
            given = dict(self.weights)
            ok = set(given) == set(arms) and all(is_number(w) and w >= 0 for w in given.values())
            allowed = f"null and a number from 0 for each of {', '.join(arms)}, one of them above 0"
            require("retriever.weights", given, ok and any(given.values()), allowed)

    @property
    def retrievers(self) -> Mapping[str, Retriever]:
        """The arms, by name."""
        return self.options

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """A transformer of topics to the fused lists of all arms."""
        found = [arm.transformer(chunks, folder / name, tools) for name, arm in self.retrievers.items()]

        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            return self._fused(topics, [transformer(topics) for transformer in found], chunks)

        return as_transformer("Hybrid", rank)

    def search(
        self,
        topics: pd.DataFrame,
        queries: pd.DataFrame,
        rewriter: Rewriter,
        chunks: pd.DataFrame,
        folder: Path,
        tools: Tools,
    ) -> pd.DataFrame:
        """The fused lists of all arms for the queries of a rewriter."""
        runs = [
            search(arm, topics, queries, rewriter, chunks, folder / name, tools)
            for name, arm in self.retrievers.items()
        ]
        return self._fused(topics, runs, chunks)

    @property
    def approximate(self) -> bool:
        """Whether any arm is approximate."""
        return any(arm.approximate for arm in self.retrievers.values())

    def recall(self, topics: pd.DataFrame, chunks: pd.DataFrame, folder: Path, tools: Tools) -> float:
        """Recall of the approximate arm, the lowest of several."""
        return min(
            arm.recall(topics, chunks, folder / name, tools) for name, arm in self.retrievers.items() if arm.approximate
        )

    def _fused(self, topics: pd.DataFrame, runs: Sequence[pd.DataFrame], chunks: pd.DataFrame) -> pd.DataFrame:
        weights = [1.0 for _ in runs]
        if self.alpha is not None:
            weights = [1 - self.alpha, self.alpha]
        elif self.weights is not None:
            weights = [float(self.weights[name]) for name in self.arms]
        qids, docnos = pd.Index(topics["qid"]), pd.Index(chunks["docno"])
        topic, chunk, score = fuse(
            [_scored(name, run, qids, docnos) for name, run in zip(self.arms, runs, strict=True)],
            docno_order(chunks),
            len(topics),
            self.top_k,
            self.fusion,
            self.normalise,
            weights,
            self.rrf_constant,
        )
        return run_frame(topics[["qid", "query"]], chunks, topic, chunk, score=score)


def _scored(name: str, run: pd.DataFrame, qids: pd.Index, docnos: pd.Index) -> Scored:
    """Topic row, chunk row and score of every hit of an arm, by topic and rank.

    DataError, which names the arm, for a topic or chunk unknown here, a chunk that a topic has twice, and a
    score that is no finite number.
    """
    topic, chunk = qids.get_indexer(pd.Index(run["qid"])), docnos.get_indexer(pd.Index(run["docno"]))
    score = run["score"].to_numpy(dtype=float)
    twice = pd.Series(topic * len(docnos) + chunk).duplicated().to_numpy()
    for bad, what in (
        ((topic < 0) | (chunk < 0), "is unknown here"),
        (twice, "stands twice"),
        (~np.isfinite(score), "has no finite score"),
    ):
        if bad.any():
            hit = run.iloc[int(np.argmax(bad))]
            raise DataError(f"retriever.options.{name}: qid={hit['qid']!r}, docno={hit['docno']!r} {what}")
    by = np.lexsort((run["rank"].to_numpy(), topic))
    return topic[by], chunk[by], score[by]
