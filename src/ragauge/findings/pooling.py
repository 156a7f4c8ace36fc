"""Computes all findings of comparable jobs in order, and makes their page."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from ragauge.contract.finding import Found, Shown
from ragauge.contract.jobs import Jobs
from ragauge.findings.ir_score import DEFINED, ScoreByN
from ragauge.findings.leaderboard import Leaderboard
from ragauge.findings.of_sweeps import findings, in_reading_order
from ragauge.findings.terminal import WIDTH
from ragauge.show.formats import whole
from ragauge.show.html import Page


@dataclass(frozen=True)
class PooledFindings:
    """The jobs, the result of each finding in order of computation, and its display in order of reading."""

    jobs: Jobs
    found: dict[str, Found]
    shown: dict[str, Shown]

    def value(self, name: str) -> Any:
        """The value of a finding; None without a result."""
        return self.found[name].value if name in self.found else None

    @property
    def lead(self) -> list[str]:
        """The sentences that come before all else."""
        return [sentence for shown in self.shown.values() for sentence in shown.lead]

    @property
    def lines(self) -> list[str]:
        """The lines of the terminal. The leaderboard and the verdict stand last, where a reader looks."""
        board = Leaderboard.name
        named = sorted(self.shown.items(), key=lambda item: item[0] == board)
        lead = [line for sentence in self.lead for line in _wrapped(sentence)]
        return [*(line for _, shown in named for line in shown.lines), *(["", *lead] if lead else [])]

    @property
    def page(self) -> Page:
        """The report of these jobs."""
        jobs, shown = self.jobs, self.shown.values()
        systems = len(dict.fromkeys(jobs.systems))
        group = f", {jobs.group}" if jobs.group else ""
        topics = max(record.metrics.get("topics", 0) for record in jobs.records)
        notes = []
        if jobs.group:
            others = "; ".join(other.group for other in jobs.siblings)
            notes.append(
                f"The jobs of {jobs.group} alone. The sweep has others that are not comparable with them, since they "
                f"measured other topics, or by other means: {others}."
            )
        return Page(
            name=jobs.sweep_id,
            experiment=jobs.experiment,
            title=f"{jobs.experiment}{group}: {systems} {'system' if systems == 1 else 'systems'} compared",
            about=f"ragauge report of {jobs.sweep_id} · {whole(topics)} topics · {len(jobs.records)} "
            f"{'job' if len(jobs.records) == 1 else 'jobs'}",
            failed=len(jobs.failed),
            lead=self.lead,
            defined=DEFINED if ScoreByN.name in self.shown else "",
            notes=[*notes, *(note for one in shown for note in one.notes)],
            cards=[card for one in shown for card in one.cards],
            sections=[section for one in shown for section in one.sections],
            figures={name: figure for one in shown for name, figure in one.figures.items()},
            group=jobs.group,
        )


def _wrapped(sentence: str) -> list[str]:
    """The sentence in lines of the terminal; no line begins with a per cent sign."""
    lines = textwrap.wrap(sentence.replace(" %", "\u00a0%"), WIDTH, break_on_hyphens=False)
    return [line.replace("\u00a0%", " %") for line in lines]


def pooled(jobs: Jobs) -> PooledFindings:
    """Computes every finding, then shows those with a result."""
    computed: dict[str, tuple[Any, Found]] = {}
    for finding in findings():
        found = finding.compute(jobs, {name: one.value for name, (_, one) in computed.items()})
        if found is not None:
            computed[finding.name] = finding, found
    values = {name: found.value for name, (_, found) in computed.items()}
    return PooledFindings(
        jobs,
        {name: found for name, (_, found) in computed.items()},
        {name: computed[name][0].show(jobs, values[name], values) for name in in_reading_order(computed)},
    )
