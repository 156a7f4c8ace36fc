"""Results of a job or sweep, read from MLflow and, if local, from the store."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pandas as pd

from ragauge import track
from ragauge.contract.answer_measures import NOT_SAMPLED, besides_rankings, from_tags, in_order
from ragauge.contract.errors import DataError
from ragauge.contract.job_files import FRAMES_TAG, OUTCOMES_FILE, read_records, read_table
from ragauge.contract.metrics import CORRECT, IR_SCORE
from ragauge.contract.record import RECORD_FILE, JobRecord, Record
from ragauge.retrieval.contexts import contexts_at
from ragauge.show import notebook
from ragauge.store import Store
from ragauge.track import LoggedRun, Reader

if TYPE_CHECKING:
    from ragauge.compare import Comparison

# Of a summary, after the answer measures.
_FIRST = ("correct_share", "hallucination_share", "judge_share_1", "ir_score")
_ENTRY = re.compile(r"\w+/[0-9a-f]{64}")


@dataclass(frozen=True)
class Whereabouts:
    """A job's folder and store (None if not on this machine), and <stage>/<digest> by frame."""

    folder: Path | None = None
    store: Path | None = None
    entries: Mapping[str, str] = field(default_factory=dict)


def whereabouts(tags: Mapping[str, str]) -> Whereabouts:
    """The tag's places that exist on this machine; nothing if the tag is missing or damaged.

    An MLflow server may be shared, so a store must be a local folder and an entry a digest, or they are ignored.
    """
    try:
        told = json.loads(tags.get(FRAMES_TAG, "{}"))
        folder, store = Path(told["folder"]), Path(told["store"])
        entries = {str(k): v for k, v in told["frames"].items() if _ENTRY.fullmatch(v)}
    except (ValueError, TypeError, KeyError, AttributeError):
        return Whereabouts()
    return Whereabouts(
        folder if folder.is_dir() else None,
        store if store.is_absolute() and store.is_dir() else None,
        entries,
    )


_TABLE, _RUN = "per_question.json", "run.trec"


class Logged:
    """An MLflow run of ragauge: the shared part of jobs and sweeps.

    Artifacts are read on first use. run_id, name and status (FINISHED, FAILED, RUNNING, KILLED) are MLflow's.
    """

    def __init__(self, run: LoggedRun, reader: Reader) -> None:
        self._run, self._reader = run, reader
        self.run_id, self.name, self.status = run.run_id, run.name, run.status

    @property
    def experiment(self) -> str:
        """The name of the MLflow experiment."""
        return self._run.experiment

    @property
    def metrics(self) -> dict[str, float]:
        """The last value of every metric by name (docs/method.md)."""
        return dict(self._run.metrics)

    @property
    def params(self) -> dict[str, str]:
        """The flat configuration from MLflow, all values texts."""
        return dict(self._run.params)

    @property
    def summary(self) -> pd.DataFrame:
        """[measure, value, lo, hi]: every metric with a 95 % interval over topics, answers first."""
        found = self.metrics
        first = [*(measure.name for measure in in_order([from_tags(self._run.tags)])), *_FIRST]
        names = [*first, *sorted({*found} - {*first})]
        rows = [(n, found[n], found[f"{n}_lo"], found[f"{n}_hi"]) for n in names if {n, f"{n}_lo"} <= {*found}]
        return pd.DataFrame(rows, columns=["measure", "value", "lo", "hi"])

    @property
    def _asked(self) -> dict[str, str]:
        """{name: label} of the answer measures that terminals show, without those of rankings."""
        infos = besides_rankings(in_order([from_tags(self._run.tags)]))
        return {info.name: info.label for info in infos if info.on_terminal}

    def report(self) -> Path:
        """Writes the report as `ragauge report` does, one HTML page; its path."""
        from ragauge.experiment.sweep import reports

        with track.aside():
            return reports.write(self.run_id, self._reader.uri)[0]

    def compare(self, *others: Logged) -> Comparison:
        """This run and others, with differences by topic; print() shows it as `ragauge compare` does."""
        from ragauge.compare import compare

        with track.aside():
            return compare([self.run_id, *(other.run_id for other in others)], self._reader.uri)

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables of the run by name, as tables/*.csv holds them; {} where it has none."""
        return {
            name.removesuffix(".csv"): pd.read_csv(
                io.BytesIO(content), dtype={"qid": "str"}, keep_default_na=False, na_values=[""]
            )
            for name, content in sorted(self._reader.contents(self.run_id, "tables").items())
            if name.endswith(".csv")
        }

    @cached_property
    def figures(self) -> dict[str, notebook.Figure]:
        """The figures of the run by name; each shows itself in a notebook, and `png` holds its bytes."""
        return {
            name.removesuffix(".png"): notebook.Figure(content)
            for name, content in sorted(self._reader.contents(self.run_id, "figures").items())
            if name.endswith(".png")
        }


class JobResult(Logged):
    """One job: its frames, metrics and tables.

    The frames come from the store where it is on this machine: they are what the job worked with. Elsewhere
    they come from MLflow's artifacts, which hold less: `run` is of documents, `contexts` has their texts for
    up to 1,000 topics, and no answer says what it cost. A frame that neither holds is a DataError.
    """

    def __repr__(self) -> str:
        words = {**self._asked, IR_SCORE.name: IR_SCORE.label, CORRECT.name: CORRECT.label}
        known = [f"{label} {self.metrics[name]:.3f}, " for name, label in words.items() if name in self.metrics]
        return f"<job {self.name}: {''.join(known)}run {self.run_id}>"

    def _repr_html_(self) -> str:
        rows = None if self._table is None and self._parquet is None else self.outcomes
        return notebook.job_html(self.name, self.run_id, self.folder, self.metrics, rows, self._asked)

    @cached_property
    def folder(self) -> Path | None:
        """The job's folder; None if it is not on this machine."""
        folder = self._places.folder
        try:
            record = folder and Record.read(folder / RECORD_FILE)
        except DataError:
            record = None
        return folder if record and record.run_id == self.run_id else None

    @property
    def number(self) -> int:
        """The job's number in its sweep, from 0; 0 for a single job."""
        return int(self._run.tags.get("job", 0))

    @property
    def n_tokens(self) -> int:
        """The budget of the job, in tokens."""
        return int(self._run.tags["n_tokens"])

    @cached_property
    def topics(self) -> pd.DataFrame:
        """[qid, query, answer ...]: the questions with their reference answers and attributes."""
        if (stored := self._stored("topics")) is not None:
            return stored
        rows = self._rows("topics")
        return rows.rename(columns={"answer_reference": "topic"})[["qid", "query", "topic"]].rename(
            columns={"topic": "answer"}
        )

    @cached_property
    def run(self) -> pd.DataFrame:
        """[qid, docno, score, rank]: the ranking of chunks, rank from 0."""
        if (stored := self._stored("run")) is not None:
            return stored
        lines = [line.split() for line in self._reader.text(self.run_id, _RUN).splitlines()]
        return pd.DataFrame(
            [(unquote(q), unquote(d), float(score), int(rank)) for q, _, d, rank, score, _ in lines],
            columns=["qid", "docno", "score", "rank"],
        )

    @cached_property
    def contexts(self) -> pd.DataFrame:
        """[qid, n_tokens, text, n_used, docnos]: the contexts that the LLM got, cut at `n_tokens`.

        From MLflow alone docnos are the first ten.
        """
        layouts, prefixes = self._stored("layouts"), self._stored("prefixes")
        if layouts is not None and prefixes is not None:
            return contexts_at(layouts, prefixes, self.n_tokens)
        rows = self._rows("contexts")
        if "context" not in rows:
            raise self._gone("contexts")
        return pd.DataFrame(
            {
                "qid": rows["qid"],
                "n_tokens": self.n_tokens,
                "text": rows["context"],
                "n_used": rows["n_used"].astype(int),
                "docnos": rows["chunks"].str.split(),
            }
        )

    @cached_property
    def scores(self) -> pd.DataFrame:
        """[qid, n_tokens, measure, value]: the IR score of every topic; of all budgets from the store."""
        if (stored := self._stored("scores")) is not None:
            return stored
        rows = self._rows("scores").dropna(subset="ir_score")
        found = rows[["qid", "ir_score"]].rename(columns={"ir_score": "value"})
        found.insert(1, "n_tokens", self.n_tokens)
        found.insert(2, "measure", self._run.tags.get("measure", "?"))
        return found.reset_index(drop=True)

    @cached_property
    def answers(self) -> pd.DataFrame:
        """[qid, n_tokens, answer, status, error ...]: an answer per topic; a missing one with its error.

        From the store the tokens, seconds and cost of each, too, as they were when it was asked for.
        """
        if (stored := self._stored("answers")) is not None:
            return stored
        names = {"answer": "answer", "answer_status": "status", "answer_error": "error"}
        return self._of_outcomes("answers", names)

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """[qid, n_tokens, label, status, raw ...]: the judge's class 1..5 of every answer that was judged."""
        if (stored := self._stored("verdicts")) is not None:
            return stored
        found = self._of_outcomes("verdicts", {"label": "label", "judge_status": "status", "judge_raw": "raw"})
        return found[~found["status"].isin([NOT_SAMPLED])].reset_index(drop=True)

    @cached_property
    def outcomes(self) -> pd.DataFrame:
        """One row per topic: question, reference, IR score, answer, label, answer measures, slices, cause."""
        return self._rows("outcomes") if self._parquet is None else self._parquet

    def failures(self) -> pd.DataFrame:
        """The rows of `outcomes` with failed answers and their causes; DataError without a judge."""
        if "failure_cause" not in self.outcomes:
            raise DataError(f"run {self.run_id} has no judged answers: choose a judge, such as judge=lexical")
        return self.outcomes[self.outcomes["failure_cause"].notna()].reset_index(drop=True)

    @cached_property
    def _places(self) -> Whereabouts:
        return whereabouts(self._run.tags)

    @cached_property
    def _store(self) -> Store | None:
        return None if self._places.store is None else Store(self._places.store)

    def _stored(self, frame: str) -> pd.DataFrame | None:
        entry = self._places.entries.get(frame)
        return None if entry is None or self._store is None else self._store.frame_at(entry, frame)

    @cached_property
    def _parquet(self) -> pd.DataFrame | None:
        file = None if self.folder is None else self.folder / OUTCOMES_FILE
        return read_table(file.parent, file.name) if file is not None and file.is_file() else None

    @cached_property
    def _table(self) -> pd.DataFrame | None:
        try:
            rows = self._reader.table(self.run_id, _TABLE)
        except DataError:
            return None
        kinds = {"qid": "str", "ir_score": "float64", "label": "Int8"}
        return rows.astype({name: kind for name, kind in kinds.items() if name in rows})

    def _rows(self, frame: str) -> pd.DataFrame:
        if self._table is None:
            raise self._gone(frame)
        return self._table

    def _of_outcomes(self, frame: str, names: Mapping[str, str]) -> pd.DataFrame:
        rows = self._rows(frame) if self._parquet is None else self._parquet
        if not {*names} <= {*rows.columns}:
            raise self._gone(frame)
        found = rows[["qid", *names]].rename(columns=dict(names))
        found.insert(1, "n_tokens", self.n_tokens)
        return found

    def _gone(self, frame: str) -> DataError:
        if self.status != "FINISHED":
            why = self._run.tags.get("error", "no error was recorded")
            return DataError(f"run {self.run_id} is {self.status} and has no {frame}: {why}")
        if self._run.params.get("dataset._target_", "").endswith("Outcomes"):
            return DataError(f"run {self.run_id} is of recorded outcomes and has no {frame}: see its tables")
        return DataError(
            f"run {self.run_id}: its {frame} are in no store of this machine, and MLflow holds none; run the "
            f"job again: rerun={self.run_id}"
        )


class Pooled(Logged):
    """Pooled results of comparable jobs of a sweep: leaderboard, tests, figures, predictor.

    `group` names the jobs; "" where all of the sweep's are comparable.
    """

    def __init__(self, run: LoggedRun, reader: Reader) -> None:
        super().__init__(run, reader)
        self.group = run.tags.get("group", "")

    def __repr__(self) -> str:
        return f"<{self.name}: run {self.run_id}>"

    def _repr_html_(self) -> str:
        return notebook.sweep_html([(self.name, self.run_id, self.summary, self.figures)])

    @property
    def summary(self) -> pd.DataFrame:
        """The leaderboard in short: system, then each known measure with its interval, those asked for first."""
        return notebook.short_board(self.leaderboard, list(self._asked))

    @property
    def leaderboard(self) -> pd.DataFrame:
        """A row per system, the best first: all shares, scores, tests and counts, at the largest budget."""
        return self.tables["leaderboard"]

    @property
    def outcomes(self) -> pd.DataFrame:
        """A row per system, budget and topic: IR score, label and answer measures."""
        return self.tables["outcomes"]


class SweepResult:
    """A sweep: its jobs, and what was pooled over each group of comparable ones.

    groups: by name; most sweeps have one, named "", and then `tables`, `figures`, `metrics`, `leaderboard`,
    `outcomes` and `run_id` are those of it. With several groups these raise a DataError that lists them.
    failed: the error of each job that failed or did not meet its gate, by its name; {} if there is none.
    """

    def __init__(self, groups: Mapping[str, Pooled], jobs: list[JobResult], folder: Path | None) -> None:
        self.groups, self.jobs, self.folder = dict(groups), jobs, folder

    def __repr__(self) -> str:
        return f"<sweep of {len(self.jobs)} jobs: {', '.join(map(repr, self.groups.values()))}>"

    def _repr_html_(self) -> str:
        found = self.groups.values()
        return notebook.sweep_html([(g.name, g.run_id, g.summary, g.figures) for g in found])

    @property
    def failed(self) -> dict[str, str]:
        """The error of every job that has one, by the job's name."""
        told = {job.name: job._run.tags.get("error", "") for job in self.jobs if job.status == "FAILED"}
        for record in [] if self.folder is None else read_records(self.folder):
            if record.error:
                told[record.name] = record.error
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
    def summary(self) -> pd.DataFrame:
        """The leaderboard in short: system, and each known measure with its interval."""
        return self._only.summary

    @property
    def leaderboard(self) -> pd.DataFrame:
        """A row per system, the best first, with all columns."""
        return self._only.leaderboard

    @property
    def outcomes(self) -> pd.DataFrame:
        """A row per system, budget and topic."""
        return self._only.outcomes

    def report(self) -> Path:
        """Writes the report as `ragauge report` does, one HTML page; its path."""
        return self._only.report()

    def compare(self, *others: Logged) -> Comparison:
        """The systems of the sweep, and of others, with differences by topic."""
        return self._only.compare(*others)

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

    tracking_uri: MLflow's address; None is MLFLOW_TRACKING_URI, else mlruns/ in the working directory. The run of a
    sweep's group gives that group alone. ConfigError where MLflow or the run is not there, DataError where the run is
    neither a job's nor a sweep's.
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


def load_job(record: JobRecord) -> JobResult:
    """The job of a record, from the MLflow that the record names."""
    reader = Reader(track.recorded_uri(record.tracking_uri))
    return JobResult(reader.run(record.run_id), reader)


def load_sweep(folder: Path, records: Sequence[JobRecord]) -> SweepResult:
    """The sweep in a folder, from the MLflow in its jobs' records: all groups of all experiments."""
    groups: dict[str, Pooled] = {}
    jobs: list[JobResult] = []
    tracked = [record for record in records if record.experiment_id]
    experiments = {(r.tracking_uri, r.experiment_id, r.sweep_id or ""): r.experiment for r in tracked}
    for (uri, experiment_id, sweep_id), experiment in experiments.items():
        reader = Reader(track.recorded_uri(uri))
        for run in reader.search({"sweep_id": sweep_id, "role": "sweep"}, experiment_id):
            pooled = Pooled(run, reader)
            parts = (experiment if len(experiments) > 1 else "", pooled.group)
            groups[" · ".join(filter(None, parts))] = pooled
        jobs += [JobResult(run, reader) for run in reader.search({"sweep_id": sweep_id, "role": "job"}, experiment_id)]
    return SweepResult(groups, sorted(jobs, key=lambda job: job.number), folder)
