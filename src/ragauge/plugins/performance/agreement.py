"""`answers=[agreement]`: whether other retrievers on the same chunks rank like the system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from ragauge.contract.adoption import adopted
from ragauge.contract.answer_measures import NO_CONTEXT
from ragauge.contract.checks import require, require_count, require_number
from ragauge.contract.errors import ConfigError
from ragauge.contract.loading import build
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresOtherwise
from ragauge.contract.retrieval import BringsTexts, Retriever, SeesEvidence
from ragauge.plugins.performance.overlap import rank_biased_overlap

KEY = "answers.agreement"
_NONE = "none"  # the status where each other retriever is the system's own


@dataclass(frozen=True)
class Agreement(MeasuresOtherwise):
    """The mean rank-biased overlap of the system's ranking with those of other retrievers, in [0, 1].

    beside: their names. A retriever that ranks as the system does for every topic is the system's own, and is left
        out; the value is missing where no other is named. options: the retrievers that can be named, by name.
    depth: the hits of each ranking that are compared, fewer where a retriever finds fewer. persistence: p of the
        overlap (`rank_biased_overlap`).
    Missing for a topic without a hit of the system.
    """

    component = "agreement"
    stages = "ragauge.plugins.performance.beside.stages"
    infos = (
        AnswerMeasureInfo(
            "agreement", "agreement of retrievers", "higher", "ratio", "Without evidence", "ranking", False, False
        ),
    )

    beside: Sequence[str] = ("bm25", "sim")
    depth: int = 10
    persistence: float = 0.9
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_count(f"{KEY}.depth", self.depth)
        require_number(f"{KEY}.persistence", self.persistence, 0.001, 0.999)
        listed = isinstance(self.beside, (list, tuple)) and set(self.beside) <= set(self.options) and self.beside
        allowed = f"lists of one or more of {', '.join(self.options)} ({KEY}.options)"
        require(f"{KEY}.beside", list(self.beside), bool(listed), allowed)
        chosen = {name: _built(f"{KEY}.options.{name}", self.options[name], self.depth) for name in self.beside}
        object.__setattr__(self, "beside", list(chosen))
        object.__setattr__(self, "options", chosen)  # those that are not named are no part of the identity

    @property
    def retrievers(self) -> Mapping[str, Retriever]:
        """The other retrievers, by name."""
        return self.options

    def measure_beside(
        self, topics: pd.DataFrame, run: pd.DataFrame, others: Mapping[str, pd.DataFrame], n_tokens: int
    ) -> pd.DataFrame:
        """Frame `answer_values`, a row per topic, from frame `run` of the system and of each other retriever."""
        own = _lists(run, self.depth)
        ranked = [lists for lists in (_lists(other, self.depth) for other in others.values()) if lists != own]
        values: dict[str, float] = {}
        for qid in own if ranked else ():
            overlaps = [rank_biased_overlap(own[qid], lists.get(qid, []), self.persistence) for lists in ranked]
            values[qid] = sum(overlaps) / len(overlaps)
        lacks = [NO_CONTEXT if qid not in own else _NONE for qid in topics["qid"]]
        found = topics[["qid"]].assign(
            n_tokens=n_tokens, measure=self.infos[0].name, value=topics["qid"].map(values).astype("float64")
        )
        status = ["ok" if qid in values else lack for qid, lack in zip(topics["qid"], lacks, strict=True)]
        return found.assign(status=status).astype({"n_tokens": "int64", "measure": "str", "status": "str"})


def _lists(run: pd.DataFrame, depth: int) -> dict[str, list[str]]:
    """The chunks of every topic to this depth, best first."""
    first = run[run["rank"] < depth].sort_values(["qid", "rank"], kind="stable")
    return {str(qid): own.tolist() for qid, own in first.groupby("qid", sort=True)["docno"]}


def _built(key: str, spec: Any, depth: int) -> Retriever:
    """The retriever of these options, at the depth compared."""
    own = isinstance(spec, Mapping)
    found = (
        build(key, {**spec, "top_k": depth}, {}, Retriever)
        if own
        else adopted(key, replace(spec, top_k=depth), Retriever)
    )
    if isinstance(found, SeesEvidence | BringsTexts):
        raise ConfigError(f"{key}: {type(found).__name__} does not search the chunks by the question alone")
    return found
