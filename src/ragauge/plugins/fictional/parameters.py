"""The parameters of a generated world, and their ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragauge.contract.checks import require, require_count, require_flag, require_number, require_text
from ragauge.contract.identity import later, runtime

MOST_DOCUMENTS = 1_000_000
LEAST = 100  # articles that a world needs for all kinds of question
MOST_ALIKE = 12
MOST_HOPS = 4
STYLES = ("plain", "hard")
TYPES = ("chain", "comparison", "aggregation", "negation", "false_premise", "unanswerable")


@dataclass(frozen=True)
class Parameters:
    """The size of a world, its style, and its questions; ConfigError for a value out of its range."""

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
