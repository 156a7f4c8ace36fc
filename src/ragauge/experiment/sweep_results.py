"""What a sweep came to, read back from MLflow; and which of the two an MLflow run is of, a job or a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge import track
from ragauge.contract.errors import DataError
from ragauge.contract.records import read_records
from ragauge.experiment.results import JobResult, Logged
from ragauge.show import notebook
from ragauge.track import LoggedRun, Reader


class Pooled(Logged):
    """What comparable jobs of a sweep came to together: leaderboard, tests, figures, predictor.

    `group` names the jobs; "" where all of the sweep's are comparable.
    """

    def __init__(self, run: LoggedRun, reader: Reader) -> None:
        super().__init__(run, reader)
        self.group = run.tags.get("group", "")

    def __repr__(self) -> str:
        return f"<{self.name}: run {self.run_id}>"

    def _repr_html_(self) -> str:
        return notebook.sweep_html([(self.name, self.run_id, self.leaderboard, self.figures)])

    @property
    def leaderboard(self) -> pd.DataFrame:
        """A row per system, the best first: shares and scores with intervals, at the largest budget."""
        return self.tables["leaderboard"]

    @property
    def outcomes(self) -> pd.DataFrame:
        """A row per system, budget and topic: IR score, label and answer measures."""
        return self.tables["outcomes"]

    @property
    def report(self) -> str:
        """The HTML of the sweep's report, one page without network."""
        return self._reader.text(self.run_id, "report.html")


class SweepResult:
    """A sweep: its jobs, and what was pooled over each group of comparable ones.

    groups: by name; most sweeps have one, named "", and then `tables`, `figures`, `metrics`, `leaderboard`,
    `outcomes` and `run_id` are those of it. With several groups these raise a DataError that lists them.
    failed: what went wrong, by the name of the job that failed or did not meet its gate; {} where all did.
    """

    def __init__(self, groups: Mapping[str, Pooled], jobs: list[JobResult], folder: Path | None) -> None:
        self.groups, self.jobs, self.folder = dict(groups), jobs, folder

    def __repr__(self) -> str:
        return f"<sweep of {len(self.jobs)} jobs: {', '.join(map(repr, self.groups.values()))}>"

    def _repr_html_(self) -> str:
        found = self.groups.values()
        return notebook.sweep_html([(g.name, g.run_id, g.leaderboard, g.figures) for g in found])

    @property
    def failed(self) -> dict[str, str]:
        """The error of every job that has one, by the job's name."""
        told = {job.name: job._run.tags.get("error", "") for job in self.jobs if job.status == "FAILED"}
        for record in [] if self.folder is None else read_records(self.folder):
            if record.get("error"):
                told[record["name"]] = record["error"]
        return told

    @property
    def run_id(self) -> str:
        """The id of the sweep's MLflow run."""
        return self._only.run_id

    @property
    def metrics(self) -> dict[str, float]:
        """The pooled metrics by name."""
        return self._only.metrics

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The pooled tables by name, as tables/*.csv holds them."""
        return self._only.tables

    @property
    def figures(self) -> dict[str, notebook.Figure]:
        """The figures by name."""
        return self._only.figures

    @property
    def leaderboard(self) -> pd.DataFrame:
        """A row per system, the best first."""
        return self._only.leaderboard

    @property
    def outcomes(self) -> pd.DataFrame:
        """A row per system, budget and topic."""
        return self._only.outcomes

    @property
    def _only(self) -> Pooled:
        if len(self.groups) == 1:
            return next(iter(self.groups.values()))
        if not self.groups:
            told = "; ".join(f"{name}: {error}" for name, error in self.failed.items())
            raise DataError(f"nothing of this sweep is pooled: {told or 'no job finished'}")
        names = ", ".join(map(repr, self.groups))
        raise DataError(
            f"this sweep has {len(self.groups)} groups of jobs that are not comparable: take one of "
            f".groups[...], which are {names}"
        )


def load(run_id: str, tracking_uri: str | None = None) -> JobResult | SweepResult:
    """The job or sweep of an MLflow run, whose id may be cut to its first characters.

    tracking_uri: of MLflow; None is MLFLOW_TRACKING_URI, else mlruns/ in the working directory. Of the run of
    a sweep's group that group alone. ConfigError where MLflow or the run is not there, DataError where the
    run is neither a job's nor a sweep's.
    """
    reader = Reader(track.absolute_uri(track.tracking_uri(tracking_uri)))
    run = reader.run(run_id)
    role = run.tags.get("role")
    if role == "job":
        return JobResult(run, reader)
    if role != "sweep":
        what = "a training" if role == "training" else "none of ragauge's"
        raise DataError(f"run {run.run_id} ({run.name}) is {what}: give the run of a job or a sweep")
    named = Path(run.params.get("folder", ""))
    folder = named if named.is_absolute() and named.is_dir() else None
    group = Pooled(run, reader)
    return SweepResult({group.group: group}, [JobResult(job, reader) for job in reader.jobs(run)], folder)


def load_job(record: Mapping[str, Any]) -> JobResult:
    """The job that left a record, from the MLflow that it names."""
    reader = Reader(track.recorded_uri(record["tracking_uri"]))
    return JobResult(reader.run(record["run_id"]), reader)


def load_sweep(folder: Path, records: Sequence[Mapping[str, Any]]) -> SweepResult:
    """The sweep in a folder from the MLflow that its jobs' records name: all groups of all experiments."""
    groups: dict[str, Pooled] = {}
    jobs: list[JobResult] = []
    tracked = [record for record in records if "experiment_id" in record]
    experiments = {(r["tracking_uri"], r["experiment_id"], r["sweep_id"]): r["experiment"] for r in tracked}
    for (uri, experiment_id, sweep_id), experiment in experiments.items():
        reader = Reader(track.recorded_uri(uri))
        for run in reader.search({"sweep_id": sweep_id, "role": "sweep"}, experiment_id):
            pooled = Pooled(run, reader)
            parts = (experiment if len(experiments) > 1 else "", pooled.group)
            groups[" · ".join(filter(None, parts))] = pooled
        jobs += [JobResult(run, reader) for run in reader.search({"sweep_id": sweep_id, "role": "job"}, experiment_id)]
    return SweepResult(groups, sorted(jobs, key=lambda job: job.number), folder)
