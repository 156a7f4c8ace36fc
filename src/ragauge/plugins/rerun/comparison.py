"""Compares the metrics of a run with its repetition's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragauge import track
from ragauge.contract.groups import CALLS
from ragauge.contract.progress import progress
from ragauge.contract.record import JobRecord

if TYPE_CHECKING:
    from ragauge.contract.jobs import Jobs

_MAX_JOBS = 3  # jobs of a sweep whose metrics are shown where they are not equal
# Metrics of how the work was done, not of what came out.
_EFFORT = re.compile(
    rf"({'|'.join(CALLS)})(llm_calls(_cached)?|llm_usage_unknown|llm_cut|llm_echoes|llm_thoughts|(prompt|completion|cached|written)_tokens|cost_usd)"
    r"|seconds_.*|latency_.*|cost_usd_per_topic|stages_made|system/.*"
)


@dataclass(frozen=True)
class SweepOrigin:
    """The logged jobs that a sweep's jobs repeat; `run_id` is the sweep's run, if that was asked for.

    records: those of the new jobs. group: the name of their group; "" where the sweep has no other.
    """

    records: Sequence[JobRecord]
    run_id: str | None
    group: str

    @property
    def tags(self) -> dict[str, str]:
        """The tag of the sweep's run that names the old one."""
        return {"rerun_of": self.run_id} if self.run_id else {}

    def compared(self, tracker: track.Tracker, run: track.Run) -> list[str]:
        """Every job's and the sweep's `run` metrics against the old ones, as lines to print."""
        reader = track.Reader(tracker.uri)
        lines = ["\nagainst the runs that were repeated:", *_jobs_compared(reader, self.records)]
        if self.run_id and self.group:
            return [*lines, "pooled: not compared, since one group of the repeated run has become several"]
        if self.run_id:
            run.flush()
            lines.append(f"pooled: {compared(reader, self.run_id, run.run_id)[0]}")
        return lines


def of_sweep(jobs: Jobs) -> SweepOrigin:
    """The jobs that a sweep's jobs repeat; at least some are reruns."""
    again = [record for record in jobs.records if "rerun" in record.added]
    return SweepOrigin(again, again[0].added["rerun"]["sweep"], jobs.group)


def _jobs_compared(reader: track.Reader, records: Sequence[JobRecord]) -> list[str]:
    """The number of rerun jobs whose metrics are all equal, and the first others."""
    unequal = []
    with progress(len(records), "comparing old and new", "job") as bar:
        for record in records:
            text, equal = compared(reader, record.added["rerun"]["run_id"], record.run_id)
            unequal += [] if equal else [f"{record.name}: {text}"]
            bar.update()
    more = len(unequal) - _MAX_JOBS
    return [
        f"{len(records) - len(unequal)} of {len(records)} jobs equal to the last bit in every metric",
        *unequal[:_MAX_JOBS],
        *([f"and {more} more"] if more > 0 else []),
    ]


def compared(reader: track.Reader, old: str, new: str) -> tuple[str, bool]:
    """The metrics of results that differ between two runs, in words, and whether there are none."""
    before, after = reader.metrics(old), reader.metrics(new)
    scores = [name for name in dict.fromkeys([*before, *after]) if _EFFORT.fullmatch(name) is None]
    unequal = [name for name in scores if before.get(name) != after.get(name)]
    text = f"{len(scores) - len(unequal)} of {len(scores)} metrics equal to the last bit"
    if unequal:
        text += f"; ragauge compare {old} {new} shows more"
    return "\n  ".join(
        [text, *(f"{name} {before.get(name, 'none')} → {after.get(name, 'none')}" for name in unequal)]
    ), not unequal
