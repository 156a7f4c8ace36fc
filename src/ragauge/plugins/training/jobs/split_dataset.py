"""One side of a dataset whose topics are split."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract.checks import require_choice, require_number
from ragauge.contract.datasets import Dataset, Source
from ragauge.contract.identity import identity, named

SIDES = ("training", "validation")


@dataclass(frozen=True)
class SplitDataset(Source):
    """The training or the validation topics of `source`, with all of its documents.

    A topic's side is drawn by the seed and its question alone, letter case and white space aside. So questions of the
    same words are on the same side, and a topic stays on its side when others come or go. `share` of the topics, about,
    are for validation.
    """

    component = "split"

    source: Source
    side: str
    share: float
    seed: int
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.source.name)
        require_choice("side", self.side, SIDES)
        require_number("validation_share", self.share, 0.01, 0.9)

    def identity(self) -> dict[str, Any]:
        """The source, and the split."""
        return {
            **named(self),
            "source": identity(self.source),
            "side": self.side,
            "share": self.share,
            "seed": self.seed,
        }

    def files(self) -> Mapping[str, Path]:
        """The files of the source."""
        return self.source.files()

    def load(self) -> Dataset:
        """The source with the topics of this side and their evidence."""
        whole = self.source.load()
        return with_topics(whole, whole.topics["query"].map(self._is_here))

    def _is_here(self, question: str) -> bool:
        words = " ".join(question.casefold().split())
        digest = hashlib.sha256(f"{self.seed}\0{words}".encode("utf-8", "surrogatepass")).digest()
        drawn = int.from_bytes(digest[:8], "big") / 2**64 < self.share
        return drawn == (self.side == "validation")


@dataclass(frozen=True)
class TopicsLeftOut(Source):
    """`source` without the topics of these ids."""

    component = "topics_left_out"

    source: Source
    qids: tuple[str, ...]
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.source.name)

    def identity(self) -> dict[str, Any]:
        """The source, and the topics left out."""
        return {**named(self), "source": identity(self.source), "qids": sorted(self.qids)}

    def files(self) -> Mapping[str, Path]:
        """The files of the source."""
        return self.source.files()

    def load(self) -> Dataset:
        """The source without these topics and without their evidence."""
        whole = self.source.load()
        return with_topics(whole, ~whole.topics["qid"].isin(self.qids))


def with_topics(whole: Dataset, kept: pd.Series) -> Dataset:
    """The dataset with the topics of `kept` and their evidence."""
    topics = whole.topics[kept.to_numpy(dtype=bool)].reset_index(drop=True)
    evidence = whole.evidence[whole.evidence["qid"].isin(topics["qid"])].reset_index(drop=True)
    return replace(whole, topics=topics, evidence=evidence)
