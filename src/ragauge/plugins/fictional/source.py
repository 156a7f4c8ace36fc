"""`dataset=fictional`: a generated world as a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragauge.contract.datasets import Dataset, Source
from ragauge.plugins.fictional.parameters import Parameters

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FictionalWorld(Parameters, Source):
    """Articles on people, towns, firms, works and events that do not exist, and questions on them.

    No model can have read them. The same parameters give the same bytes on every machine.

    style: plain (short sentences, as in an encyclopedia) or hard (whimsical ones, in which much distracts).
    documents: 100 to 1,000,000 articles. look_alikes: how many others share a surname, the stem of a town's
    or a firm's name, or nearly a title. pronouns: the share of sentences with a fact that need not name
    their subject in full, in [0, 1]. questions: number of each kind (a type, or a number of hops of `chain`).
    types: which types of question; () is all. limit: the first so many topics, in which the kinds take turns.
    twins: whether copies of articles with one fact changed (`ragauge.contract.changed`) are documents, too,
        for the topics that have such a twin.
    """

    component = "fictional"
    version = 2

    def files(self) -> Mapping[str, Path]:
        """None: it reads no files."""
        return {}

    def load(self) -> Dataset:
        """The collection; ConfigError if it cannot form so many questions of a kind.

        The documents of a large world come in batches, and are written again for each reading of them.
        """
        from ragauge.plugins.fictional.collection import collection  # a stored dataset is read without it

        return collection(self)

    def counterfactuals(self) -> pd.DataFrame:
        """`collection.counterfactuals` of this world."""
        from ragauge.plugins.fictional.collection import counterfactuals

        return counterfactuals(self)
