"""Families of tests for Holm's correction, and the primary measures of a study."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ragauge.contract.errors import ConfigError

FAMILIES = ("measure", "all")
PRIMARY = ("ir_score", "right")
NOT_SIMULTANEOUS = "Intervals hold 95 % each, not all together: of twenty expect one to miss"
_PAIRS = {"right": "correct"}  # the config's name of a measure, and that in tables of pairs


@dataclass(frozen=True)
class Families:
    """family: "measure" (Holm's correction counts the pairs of one measure) or "all" (of all measures together).

    primary: names, as the config has them, of the measures that the study is about; others are exploratory.
    """

    family: str = "measure"
    primary: Sequence[str] = PRIMARY

    @classmethod
    def of_params(cls, params: Mapping[str, str]) -> Families:
        """Families of an MLflow run's parameters (lists as JSON); the default without them."""
        primary = json.loads(params["report.primary"]) if "report.primary" in params else PRIMARY
        return cls(params.get("report.family", cls.family), primary)

    @property
    def is_usual(self) -> bool:
        """Whether these are the default settings."""
        return (self.family, *self.primary) == (Families.family, *PRIMARY)

    @property
    def in_short(self) -> str:
        """The settings in a few words."""
        how = "all measures corrected together" if self.family == "all" else "each measure corrected by itself"
        return f"{how}; primary: {', '.join(self.primary) or 'none'}"

    def is_primary(self, measure: str) -> bool:
        """Whether a measure of a table of pairs is primary."""
        return measure in {_PAIRS.get(name, name) for name in self.primary}

    def in_words(self, titles: Mapping[str, str]) -> str:
        """A sentence on primary and exploratory measures; `titles` names the measures of pairs."""
        primary = [title for measure, title in titles.items() if self.is_primary(measure)]
        others = [title for measure, title in titles.items() if not self.is_primary(measure)]
        lacking = [name for name in self.primary if _PAIRS.get(name, name) not in titles]
        told = f"primary measures: {', '.join(primary) or 'none'}"
        told += f" (without values: {', '.join(lacking)})" if lacking else ""
        return f"{told}; exploratory: {', '.join(others)}" if others else told


def check_primary(primary: Iterable[str], measures: Iterable[str]) -> None:
    """ConfigError for a primary measure that is neither built in nor among a job's `measures`."""
    there = [*PRIMARY, "hallucination", *measures]
    unknown = [name for name in primary if name not in there]
    if unknown:
        raise ConfigError(f"report.primary: this job has no measure {unknown[0]!r}; it has {', '.join(there)}")
