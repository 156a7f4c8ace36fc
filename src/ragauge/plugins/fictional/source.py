"""`dataset=fictional`: the parameters of the world, and what it is as a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ragauge.contract.checks import require, require_count, require_flag, require_number, require_text
from ragauge.contract.identity import later, runtime
from ragauge.contract.protocols import Dataset

if TYPE_CHECKING:
    import pandas as pd

MOST_DOCUMENTS = 1_000_000
LEAST = 100  # articles that a world needs for all kinds of question
MOST_ALIKE = 12
MOST_HOPS = 4
STYLES = ("plain", "hard")
TYPES = ("chain", "comparison", "aggregation", "negation", "false_premise", "unanswerable")


@dataclass(frozen=True)
class FictionalWorld:
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

    component: ClassVar[str] = "fictional"
    version: ClassVar[int] = 2

    name: str = runtime("fictional")
    style: str = "plain"
    documents: int = 150
    seed: int = 1
    look_alikes: int = 3
    pronouns: float = 0.2
    max_hops: int = 2
    questions: int = 25
    types: Sequence[str] = ("chain", "comparison", "unanswerable")
    limit: int | None = None
    twins: bool = later(False)

    def __post_init__(self) -> None:
        require_text("dataset.name", self.name, "names")
        require("dataset.style", self.style, self.style in STYLES, ", ".join(STYLES))
        require_count("dataset.documents", self.documents, LEAST, most=MOST_DOCUMENTS)
        require_count("dataset.seed", self.seed, 0)
        require_count("dataset.look_alikes", self.look_alikes, 0, most=MOST_ALIKE)
        require_number("dataset.pronouns", self.pronouns, 0, 1)
        require_count("dataset.max_hops", self.max_hops, 1, most=MOST_HOPS)
        require_count("dataset.questions", self.questions, 1, note="of each kind")
        allowed = f"lists of {', '.join(TYPES)}; [] is all of them"
        ok = isinstance(self.types, (list, tuple)) and all(type_ in TYPES for type_ in self.types)
        require("dataset.types", self.types, ok, allowed)
        require_count("dataset.limit", self.limit, null="all topics")
        require_flag("dataset.twins", self.twins)

    def files(self) -> Mapping[str, Path]:
        """None: nothing is read."""
        return {}

    def load(self) -> Dataset:
        """The collection; ConfigError where so many questions of a kind cannot be formed.

        The documents of a large world come in batches, and are written again for each reading of them.
        """
        from ragauge.plugins.fictional.collection import collection  # a stored dataset is read without it

        return collection(self)

    def counterfactuals(self) -> pd.DataFrame:
        """`collection.counterfactuals` of this world."""
        from ragauge.plugins.fictional.collection import counterfactuals

        return counterfactuals(self)
