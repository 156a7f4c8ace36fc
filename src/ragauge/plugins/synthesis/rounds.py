"""The flow: writes and filters drafts in rounds, until enough have passed.

The result follows from the documents, the settings and the replies alone. A run that is started again finds its replies
in the ledger and asks nothing twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ragauge.contract.component import Embedder
from ragauge.contract.progress import working
from ragauge.plugins.synthesis import checks, cloze, writing
from ragauge.plugins.synthesis.asking import CLOSED_BOOK, Asking
from ragauge.plugins.synthesis.documents import Documents
from ragauge.plugins.synthesis.drafts import FAILED, NOT_ASKED, PASSED, REASONS, Draft, locate_evidence
from ragauge.plugins.synthesis.duplicates import Known
from ragauge.plugins.synthesis.settings import Settings
from ragauge.plugins.synthesis.units import Drawer, Unit


@dataclass
class Result:
    """All drafts in order of writing; those without a rejection are accepted."""

    settings: Settings
    drafts: list[Draft] = field(default_factory=list)

    @property
    def accepted(self) -> list[Draft]:
        return [draft for draft in self.drafts if draft.rejected_by is None]

    @property
    def rejected(self) -> list[Draft]:
        return [draft for draft in self.drafts if draft.rejected_by is not None]

    def lacking(self) -> dict[str, int]:
        """The number of questions that each kind still lacks; omits kinds with enough."""
        there = Counter(draft.unit.kind for draft in self.accepted)
        return {kind: n - there[kind] for kind, n in self.settings.wanted().items() if n > there[kind]}

    def counts(self) -> dict[str, int]:
        """The number of drafts that each filter rejected, in the order of REASONS."""
        struck = Counter(str(draft.rejected_by) for draft in self.rejected)
        return {reason: struck[reason] for reason in REASONS}


@dataclass
class Synthesis:
    """The parts of a synthesis, for one run; ConfigError for a kind that the documents cannot give.

    search: the retriever of the round trip; None: nothing is searched.   known: questions that are not to be written
        again, with their names in reports.   tell: gets a line on every round.
    """

    documents: Documents
    settings: Settings
    ask: Asking
    embedder: Embedder
    search: checks.Search | None = None
    known: Sequence[tuple[str, str]] = ()
    tell: Callable[[str], None] = lambda line: None

    def __post_init__(self) -> None:
        self._drawer = Drawer(self.documents, list(self.settings.wanted()), self.embedder)

    def run(self) -> Result:
        """Writes and filters until enough drafts pass, `max_drafts` are written, or no pair is left."""
        result = Result(self.settings)
        known = Known(self.embedder, self.settings.filters.duplicate_cosine)
        known.add(self.known)
        before: dict[str, list[str]] = {}
        number = 0
        while lacking := result.lacking():
            drafts = self._drawn(lacking, len(result.drafts))
            if not drafts:
                break
            number += 1
            with working(f"round {number}: writing {len(drafts):,} questions"):
                self._write(drafts, before)
            for draft in drafts:
                if draft.written is not None:
                    for docno in draft.unit.docnos:
                        before.setdefault(f"{draft.unit.kind}/{docno}", []).append(draft.question)
            with working(f"round {number}: filtering {len(drafts):,} questions"):
                self._filter(drafts, known)
            result.drafts += drafts
            done, rest = len(result.accepted), sum(result.lacking().values())
            self.tell(f"round {number}: {len(drafts)} draft(s), {done} question(s) accepted, {rest} to go")
        return result

    def tell_needs(self) -> None:
        """Asks, of a dry Asking, everything that the first round would ask if every draft passed."""
        drafts: list[Draft] = []
        for kind, n in self.settings.wanted().items():
            while n and (units := self._drawer.draw(kind, n)):
                n -= len(units)
                drafts += [self._draft(unit, len(drafts) + i) for i, unit in enumerate(units)]
        self._write(drafts, {})
        found = [draft for draft in drafts if draft.rejected_by is None]
        self._locate(found)
        found = [draft for draft in found if draft.rejected_by is None]
        self._ask_about(found, {})

    def _drawn(self, lacking: Mapping[str, int], written: int) -> list[Draft]:
        left = self.settings.most_drafts - written
        units: list[Unit] = []
        for kind, n in lacking.items():
            units += self._drawer.draw(kind, min(n, left - len(units)))
        return [self._draft(unit, written + i) for i, unit in enumerate(units)]

    def _draft(self, unit: Unit, number: int) -> Draft:
        return Draft(number, unit, writing.shown_of(unit, self.documents, self.settings))

    def _write(self, drafts: Sequence[Draft], before: Mapping[str, list[str]]) -> None:
        if self.settings.stand_in:
            cloze.write(drafts, before, self.settings.seed)
        else:
            writing.write(drafts, self.documents, before, self.ask)

    def _filter(self, drafts: Sequence[Draft], known: Known) -> None:
        """Applies free filters first; a rejected draft skips the later filters."""

        def alive() -> list[Draft]:
            return [draft for draft in drafts if draft.rejected_by is None]

        checks.language(alive(), self.settings.language)
        self._locate(alive())
        known.check(alive())
        passages = checks.round_trip(alive(), self.search, self.settings.filters)
        self._ask_about(alive(), passages)
        for draft in alive():  # within the round, among those that have passed all else
            known.check([draft])
            if draft.rejected_by is None:
                known.add([(draft.qid, draft.question)])

    def _locate(self, drafts: Sequence[Draft]) -> None:
        for draft in drafts:
            locate_evidence(draft, lambda docno: self.documents.in_order[docno].text)

    def _ask_about(self, drafts: Sequence[Draft], passages: dict[str, list[str]]) -> None:
        filters = self.settings.filters
        answerable = [draft for draft in drafts if not draft.unanswerable]
        if self.settings.stand_in:
            for draft in answerable:
                draft.results["follows"] = "passed by its making"
        elif filters.follows:
            checks.follows(answerable, self.ask)
            checks.not_answered([draft for draft in drafts if draft.unanswerable], passages, self.ask)
        left = [draft for draft in drafts if draft.rejected_by is None]
        if filters.closed_book == "skip" or not self.ask.can(CLOSED_BOOK):
            for draft in left:
                draft.results["closed_book"] = NOT_ASKED
        else:
            checks.closed_book(left, self.ask, filters)


def outcome(result: Result) -> dict[str, float]:
    """Metrics of a synthesis: drafts, accepted ones in total and by kind, and rejections by filter."""
    accepted = result.accepted
    by_kind = Counter(draft.unit.kind for draft in accepted)
    searched = [draft for draft in accepted if "round_trip_rank" in draft.results and not draft.unanswerable]
    found = [draft for draft in searched if draft.results["round_trip"] == PASSED]
    return {
        "synthesis_drafts": len(result.drafts),
        "synthesis_accepted": len(accepted),
        **{f"synthesis_accepted_{kind}": by_kind[kind] for kind in result.settings.wanted()},
        **{f"synthesis_rejected_{reason}": n for reason, n in result.counts().items()},
        **({"synthesis_round_trip_found": len(found) / len(searched)} if searched else {}),
    }


def unanswered(result: Result) -> int:
    """Drafts lost because a request had no reply: a rerun asks for these again."""
    return sum(draft.rejected_by == FAILED for draft in result.drafts)
