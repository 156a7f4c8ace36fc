"""The run itself: command, data, options of every config group, versions; and unreadable verdicts."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from importlib import metadata

import pandas as pd

from ragauge.contract import __version__
from ragauge.contract.finding import Block, Facts, Finding, Found, Founds, Preformatted, Section, Shown, Text
from ragauge.contract.groups import GROUPS
from ragauge.contract.jobs import Jobs
from ragauge.contract.record import JobRecord
from ragauge.contract.redact import redact
from ragauge.estimate.intervals import LEVEL
from ragauge.findings.lacking import lacking_text
from ragauge.show.formats import whole

_LIBRARIES = ("numpy", "pandas", "scipy", "scikit-learn", "mlflow", "torch", "matplotlib")


class WhatRan(Finding):
    """Instructions for reproducing the numbers."""

    name = "what_ran"

    def compute(self, jobs: Jobs, found: Founds) -> Found:
        """The command of the jobs."""
        return Found(command([*jobs.records, *jobs.failed]))

    def show(self, jobs: Jobs, value: str, found: Founds) -> Shown:
        """Facts, failed jobs, the meaning of intervals; at the head of the report the omitted topics."""
        digests = ", ".join(d[:16] for d in dict.fromkeys(r.dataset_digest for r in jobs.records))
        grid = ", ".join(map(str, sorted({r.n_tokens for r in jobs.records})))
        failed = f", {len(jobs.failed)} failed" if jobs.failed else ""
        topics = whole(max(r.metrics.get("topics", 0) for r in jobs.records))
        facts: list[tuple[str, Block | Sequence[Block]]] = [
            ("Command", Preformatted(value)),
            ("Sweep", Text(f"`{jobs.sweep_id}`")),
            ("Data", Text(f"{topics} topics; digest `{digests}`")),
            ("Jobs", Text(f"{len(jobs.records)} finished{failed}; budgets N = {grid} tokens")),
            *((group, Text(", ".join(options))) for group, options in components(jobs.records).items()),
            ("Versions", Text(", ".join(f"{name} {v}" for name, v in versions().items()), "small")),
        ]
        blocks: list[Block] = [Facts(facts)]
        for record in jobs.failed:
            error = record.told
            blocks.append(Text(f"{record.name}: {error}", "note", "failed", "bad"))
        blocks.append(
            Text(
                f"Numbers under an estimate are its {100 * LEVEL:g} % interval over {jobs.units}. It is Wilson's for "
                f"shares and mean scores, at the effective number of {jobs.units}; else a bootstrap "
                f"({whole(jobs.n_boot)} resamples, seed {jobs.seed}). A missing verdict stays in the denominator of "
                "every share.",
                "small",
            )
        )
        lacking = [f"{line}." for line in lacking_text(jobs.records)]
        return Shown([Section("What was run", blocks)], jobs.notes, notes=[*jobs.notes, *lacking])


def versions() -> dict[str, str]:
    """Version by name: ragauge, Python, and the libraries that the numbers depend on."""
    found = {"ragauge": __version__, "Python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def components(records: Sequence[JobRecord]) -> dict[str, list[str]]:
    """The chosen options of every config group."""
    known = dict.fromkeys(group for record in records for group in record.choices)
    groups = [*(g for g in GROUPS if g in known), *(g for g in known if g not in GROUPS)]
    chosen = {group: list(dict.fromkeys(str(record.choices.get(group)) for record in records)) for group in groups}
    return {group: options for group, options in chosen.items() if options != ["None"]}


def command(records: Sequence[JobRecord]) -> str:
    """The command of the jobs: every override with all of its values in these jobs."""
    values: dict[str, list[str]] = {}
    for record in sorted(records, key=lambda record: record.number):
        for override in record.overrides:
            key, _, value = override.partition("=")
            seen = values.setdefault(key, [])
            if value not in seen:
                seen.append(value)
    overrides = [f"{key}={','.join(seen)}" if seen != [""] else key for key, seen in values.items()]
    many = ["-m"] if len(records) > 1 else []
    return redact(shlex.join(["python", "run.py", *many, *overrides]))


class Unreadable(Finding):
    """Replies of a judge in another form than requested."""

    name = "unreadable"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """The outcomes with such a verdict; None if all were readable."""
        if not {"judge_status", "reason"} <= set(jobs.outcomes):
            return None
        rows = jobs.outcomes[jobs.outcomes["judge_status"].eq("unreadable").fillna(False)]
        return Found(rows) if len(rows) else None

    def show(self, jobs: Jobs, value: pd.DataFrame, found: Founds) -> Shown:
        """A sentence, with the first reply, at the head of the report and on the terminal."""
        sentence = (
            f"{len(value)} of {len(jobs.outcomes)} verdicts could not be read, nor those that the judge gave when "
            f"asked again. The first: {value['reason'].iloc[0]}."
        )
        return Shown(lines=[sentence], notes=[sentence])
