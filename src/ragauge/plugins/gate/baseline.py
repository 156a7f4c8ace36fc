"""Finds the MLflow run that a gate compares a job with, and checks that the two are comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragauge import compare
from ragauge.contract.answer_measures import from_tags, in_order
from ragauge.contract.errors import DataError
from ragauge.contract.groups import ANSWERS
from ragauge.contract.metrics import OF_VERDICTS
from ragauge.contract.visible import visible
from ragauge.plugins.gate.rules import Gate
from ragauge.track import LoggedRun, Reader, tracking_uri

_NAMED = 5  # jobs in a message


@dataclass(frozen=True)
class Sought:
    """The job in need of a baseline: its run's name, MLflow experiment, id and sweep."""

    name: str
    experiment: str
    run_id: str = ""
    sweep_id: str | None = None


def find_baseline(gate: Gate, uri: str | None, sought: Sought) -> tuple[LoggedRun, Reader]:
    """The baseline of a job, and its MLflow store.

    In a sweep it is the finished job of the same name. With a tag it is the newest finished run of the job's experiment
    that has the tag, in another sweep than the job's. ConfigError and DataError where there is none, or where it is the
    job itself.
    """
    if gate.baseline is not None:
        several, jobs, reader = compare.members(gate.baseline, uri, {})
        what = f"baseline {gate.baseline}"
    else:
        assert gate.baseline_tag is not None
        reader = Reader(tracking_uri(uri))
        name, equals, value = gate.baseline_tag.partition("=")
        what = f"baseline_tag {gate.baseline_tag}"
        found = reader.tagged(name.strip(), value.strip() if equals else None, sought.experiment)
        of_sweep = {run.run_id for run in found if sought.sweep_id == run.tags.get("sweep_id", "")}
        tagged = [run for run in found if run.run_id not in {sought.run_id, *of_sweep}]
        if not tagged:
            where = visible(sought.experiment, one_line=True)
            raise DataError(f"{what}: no other finished run of the experiment {where} has this tag")
        newest = tagged[0]
        if newest.tags["role"] == "sweep":
            several, jobs = True, reader.jobs(newest)
        else:
            own = newest.tags.get("sweep_id")
            jobs = [run for run in tagged if run.tags["role"] == "job" and own and run.tags.get("sweep_id") == own]
            jobs = jobs or [newest]
            several = len(jobs) > 1
    return _one_of(jobs, several, sought, what), reader


def _one_of(jobs: Sequence[LoggedRun], several: bool, sought: Sought, what: str) -> LoggedRun:
    alike = [run for run in jobs if run.name == sought.name] if several else list(jobs)
    if len(alike) != 1:
        count = "none" if not alike else str(len(alike))
        names = ", ".join(visible(run.name, one_line=True) for run in jobs[:_NAMED])
        raise DataError(
            f"{what} is a sweep with {count} of the name {visible(sought.name, one_line=True)!r}; its jobs "
            f"are {names}: give the id of one"
        )
    if alike[0].status != "FINISHED":
        raise DataError(f"{what} is {alike[0].status}: run {alike[0].run_id}")
    if alike[0].run_id == sought.run_id:
        raise DataError(f"{what} is the run itself: a run cannot be worse than itself")
    return alike[0]


def check_topics(dataset_digest: str | None, baseline: LoggedRun) -> None:
    """DataError if the baseline measured other topics, documents or evidence."""
    of_baseline = baseline.tags.get("dataset_digest")
    if not dataset_digest or dataset_digest != of_baseline:
        raise DataError(
            f"the baseline {baseline.run_id[:8]} has another dataset (digest "
            f"{(of_baseline or 'not known')[:12]}, here {(dataset_digest or 'not known')[:12]}): no topic is "
            "paired"
        )


def check_measures(measures: Sequence[str], names: Sequence[str], baseline: LoggedRun) -> None:
    """DataError if the baseline lacks an answer measure (one of `names`) among `measures`."""
    there = {info.name for info in in_order([from_tags(baseline.tags)])}
    for measure in measures:
        if measure in names and measure not in there:
            raise DataError(f"the baseline {baseline.run_id[:8]} has no {measure}: measure it there, too")


def measured_otherwise(run: LoggedRun, baseline: LoggedRun, measure: str) -> str | None:
    """Differences in how two runs measured that make a measure's values incomparable; None without any."""
    own, other = compare.measured_by([run, baseline])
    differs = [name for name in own if name in other and own[name] != other[name]]
    of_verdicts = measure in (*OF_VERDICTS, "judge_share_missing")
    for name in differs:
        of_answers = name.startswith(f"{ANSWERS}.") or name == "evaluator"
        if (
            name in ("measure", "tokenizer")
            or (name == "judge" and of_verdicts)
            or (of_answers and not of_verdicts and measure != "ir_score")
        ):
            return f"the baseline {baseline.run_id[:8]} was measured by another {name}"
    return None
