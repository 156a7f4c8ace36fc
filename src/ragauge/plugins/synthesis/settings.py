"""The settings of a synthesis: numbers of questions by kind, and the filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragauge.contract.checks import (
    require_choice,
    require_count,
    require_flag,
    require_number,
    require_text,
)
from ragauge.contract.errors import ConfigError
from ragauge.texts.languages import AUTO, CODES, named_language

ONE_HOP, TWO_HOP, COMPARISON, UNANSWERABLE = KINDS = ("one_hop", "two_hop", "comparison", "unanswerable")
WRITERS = ("llm", "cloze")
STRATIFY = ("auto", "folder", "length", "none")
_USUAL_SHARES = {ONE_HOP: 0.5, TWO_HOP: 0.2, COMPARISON: 0.15, UNANSWERABLE: 0.15}
_MOST = 1_000_000


@dataclass(frozen=True)
class Filters:
    """The active filters; `filters` in conf/synthesize.yaml describes each."""

    follows: bool = True
    closed_book: str = "tokens"
    closed_book_f1: float = 0.6
    duplicate_cosine: float | None = 0.92
    round_trip: str = "record"
    round_trip_top_k: int = 10

    def __post_init__(self) -> None:
        require_flag("filters.follows", self.follows)
        require_choice("filters.closed_book", self.closed_book, ("tokens", "llm", "skip"))
        require_number("filters.closed_book_f1", self.closed_book_f1, 0, 1, above=True)
        require_number("filters.duplicate_cosine", self.duplicate_cosine, 0, 1, above=True, null="same words")
        require_choice("filters.round_trip", self.round_trip, ("record", "filter", "skip"))
        require_count("filters.round_trip_top_k", self.round_trip_top_k, most=1000)


@dataclass(frozen=True)
class Settings:
    """The kinds and numbers of questions, and the parts of the documents they are written from; ConfigError names the
    key.

    shares: those of the kinds; a kind that is missing or None is not written. All: the usual ones.
    max_drafts: drafts at most; None is twice `n_questions`.   stratify: `auto`, or the criterion that divides
        documents.   max_chars: characters of a document that the writer sees.
    language: that in which questions are to be; auto: that of their documents. English: they are taken in any.
    """

    n_questions: int = 100
    writer: str = "llm"
    shares: Mapping[str, float | None] = field(default_factory=dict)
    max_drafts: int | None = None
    stratify: str = "auto"
    max_chars: int = 6000
    seed: int = 0
    language: str = "english"
    filters: Filters = field(default_factory=Filters)

    def __post_init__(self) -> None:
        require_count("n_questions", self.n_questions, most=_MOST)
        require_choice("writer", self.writer, WRITERS)
        require_count("max_chars", self.max_chars, 200, most=_MOST)
        require_count("max_drafts", self.max_drafts, self.n_questions, null="twice n_questions")
        require_text("stratify", self.stratify, "auto, folder, length, none, a column")
        name = named_language("language", self.language, (*CODES.values(), AUTO))
        object.__setattr__(self, "language", name)
        object.__setattr__(self, "shares", self._checked_shares())

    @property
    def stand_in(self) -> bool:
        """Whether rules write, as a stand-in for a chat model."""
        return self.writer == "cloze"

    @property
    def most_drafts(self) -> int:
        """The largest number of drafts to write."""
        return 2 * self.n_questions if self.max_drafts is None else self.max_drafts

    def wanted(self) -> dict[str, int]:
        """Questions of each kind, in the order of KINDS: the shares of n_questions by largest remainders."""
        shares = {kind: share for kind, share in self.shares.items() if share}
        total = sum(shares.values())  # 1, to a millionth
        exact = {kind: share / total * self.n_questions for kind, share in shares.items()}
        found = {kind: int(n) for kind, n in exact.items()}
        by_rest = sorted(exact, key=lambda kind: found[kind] - exact[kind])
        for kind in by_rest[: self.n_questions - sum(found.values())]:
            found[kind] += 1
        return {kind: found[kind] for kind in KINDS if found.get(kind)}

    def _checked_shares(self) -> dict[str, float]:
        given: dict[str, Any] = {kind: share for kind, share in self.shares.items() if share is not None}
        for kind, share in given.items():
            require_choice("a kind of shares", kind, KINDS)
            require_number(f"shares.{kind}", share, 0, 1)
        if not given:
            return {ONE_HOP: 1.0} if self.stand_in else dict(_USUAL_SHARES)
        total = sum(given.values())
        if abs(total - 1) > 1e-6:
            told = ", ".join(f"{kind}: {share:g}" for kind, share in given.items())
            raise ConfigError(f"shares={{{told}}} sum to {total:g}: the shares of the kinds that are named sum to 1")
        others = [kind for kind, share in given.items() if share and kind != ONE_HOP]
        if self.stand_in and others:
            raise ConfigError(
                f"shares.{others[0]}={given[others[0]]:g}: writer=cloze, a stand-in by rules, writes one_hop alone"
            )
        return {kind: float(given[kind]) for kind in KINDS if kind in given}
