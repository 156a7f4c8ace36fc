"""The input of findings: one job, the comparable finished jobs of a sweep, or runs side by side."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import in_order
from ragauge.contract.families import Families
from ragauge.contract.frames import Batches
from ragauge.contract.groups import GROUPS
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.naming import given_value, system_names
from ragauge.contract.record import JobRecord
from ragauge.contract.settings import Settings
from ragauge.contract.stages import Stages

_SETTINGS = ("seed", "bootstrap", "estimate", "report")  # of the pooled estimates


class Job(ABC):
    """One job as its findings read it; its stages run on first use.

    pipeline: its stages. record: the content of `job.json`, such as name and
    choices. A finding that reads frames, outcomes and the record alone knows neither stages nor settings.
    model: the configured predictor; None for none.
    judged_again: where all jobs of a sweep were judged together, how stable the judge was there (metrics),
    and the verdicts that were asked for again on this job's answers.
    """

    pipeline: Stages
    record: JobRecord
    model: Any
    judged_again: tuple[Mapping[str, float], pd.DataFrame] | None

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """The checked configuration."""

    @property
    @abstractmethod
    def outcomes(self) -> pd.DataFrame:
        """A row per topic: scores, answer, answer measures, label, slices and the cause of failure."""

    @property
    def n_tokens(self) -> int:
        """The job's budget."""
        return self.pipeline.n_tokens

    @property
    def n_boot(self) -> int:
        """Bootstrap replicates of intervals."""
        return self.settings.bootstrap

    @property
    def seed(self) -> int:
        """Seed of everything random."""
        return self.settings.seed

    @property
    def answer_measures(self) -> list[AnswerMeasureInfo]:
        """The infos of the answer measures."""
        return self.pipeline.answer_measures

    def frame(self, name: str) -> pd.DataFrame:
        """A frame of the job, such as topics, run, contexts, answers or verdicts (docs/library.md)."""
        return self.pipeline.frame(name)

    def rows(self, name: str) -> pd.DataFrame | Batches:
        """The rows of a frame, in batches if there are many."""
        return self.pipeline.rows(name)


@dataclass(frozen=True)
class Jobs:
    """The input of a sweep's findings, from memory, a sweep's folder or MLflow.

    records, failed: the `job.json` of the finished and of the failed jobs. outcomes: a row per job and topic, with a
    column `system`: what the sweep varied but for n_tokens, so one line in a chart. group: names these jobs where the
    sweep has others that are not comparable with them; "" where there are none.
    dataset: names the topics. means: by what they were measured; groups of equal `means` differ in their
    topics alone. siblings: the sweep's other groups. tracked: whether the sweep's run is being logged beside those of
    its jobs, so that a finding may write into MLflow.
    """

    sweep_id: str
    experiment: str
    records: list[JobRecord]
    failed: list[JobRecord]
    outcomes: pd.DataFrame
    group: str = ""
    dataset: str = ""
    means: Hashable = None
    siblings: Sequence[Jobs] = ()
    tracked: bool = False

    @cached_property
    def answer_measures(self) -> list[AnswerMeasureInfo]:
        """The answer measures of the jobs, each once."""
        return in_order(record.answer_measures for record in self.records)

    @cached_property
    def n_tokens(self) -> int:
        """The largest budget that every system was judged at (the largest of all if there is none)."""
        budgets = [set(rows["n_tokens"]) for _, rows in self.outcomes.groupby("system")]
        return int(max(set.intersection(*budgets) or set.union(*budgets)))

    @cached_property
    def at_n(self) -> pd.DataFrame:
        """The outcomes at `n_tokens`."""
        return self.outcomes[self.outcomes["n_tokens"] == self.n_tokens]

    @cached_property
    def systems(self) -> list[str]:
        """The system of every record."""
        return systems_of(self.records)

    @property
    def lost(self) -> dict[str, str]:
        """{system: error} of the systems without a finished job."""
        finished = set(self.systems)
        lost = [r for r in self.failed if (r.system or r.name) not in finished]
        return {r.system or r.name: r.told for r in lost}

    @property
    def n_boot(self) -> int:
        """Bootstrap replicates of intervals, from the first job."""
        return self.records[0].bootstrap

    @property
    def seed(self) -> int:
        """Seed of everything random, from the first job."""
        return self.records[0].seed

    @property
    def families(self) -> Families:
        """Families of tests and primary measures, from the first job."""
        return Families(**self.records[0].report)

    @property
    def units(self) -> str:
        """The unit of intervals and tests: topics, documents, or clusters of a named attribute."""
        if "topic_cluster" not in self.outcomes:
            return "topics"
        name = self.records[0].cluster
        return "documents" if name == "document" else f"clusters of topics{f' ({name})' if name else ''}"

    @property
    def notes(self) -> list[str]:
        """Sentences on differing settings of the estimates, and on unused names."""
        notes = []
        for key in _SETTINGS:
            values = list(dict.fromkeys(json.dumps(getattr(record, key)) for record in self.records))
            if len(values) > 1:
                shown = " and ".join(value.replace('"', "") for value in values)
                notes.append(f"The jobs have {key} {shown}: what is pooled takes the first.")
        here = {name for group in (self, *self.siblings) for name in (*group.systems, *group.lost)}
        if unknown := [name for name, other in self.records[0].names.items() if other not in here]:
            notes.append(f"names: no system is called {', '.join(unknown)}; there are {', '.join(sorted(here))}.")
        return notes

    def metrics_by_system(self) -> dict[str, dict[int, Mapping[str, Any]]]:
        """The metrics of the jobs: {system: {n_tokens: metrics}}."""
        found: dict[str, dict[int, Mapping[str, Any]]] = {}
        for system, record in zip(self.systems, self.records, strict=True):
            found.setdefault(system, {})[record.n_tokens] = record.metrics
        return found


@dataclass(frozen=True)
class Compared:
    """Compared runs as findings read them.

    outcomes: a row per compared run and topic [run_id, qid, query, answer, label, ir_score, ...,
    ir_score_difference], the last to the baseline, NaN where that lacks the topic. names: {run_id: name}. baseline: a
    run_id. answer_measures: columns of the outcomes. n_tokens: the budget of the compared runs, None where it differs.
    slices: whether runs are asked for by slice.

    runs: a row per run: `run_id`, `run` (a name that no other has), `system` (the name but for the budget), `n_tokens`,
    `compared` (whether it makes a pair), and every metric as it was logged. Metrics are NaN where a run has none; those
    of the verdicts are NaN where it has no verdict. params: the parameters that differ [run_id x parameter], NaN where
    a run has none of that name; common: the components and settings that do not.
    baseline_chosen: whether the baseline was taken for the best IR score. limits: sentences on what limits the
    comparison. package_metrics: those of findings that packages brought to the jobs. metrics, topics: which
    metrics, and how many topics of a kind, are shown. families: those of the baseline, but that Holm's correction
    counts each section of the measures by itself where the family is "section". equivalent: the margin of equivalence,
    None where it is not asked for.
    """

    outcomes: pd.DataFrame
    names: Mapping[str, str]
    baseline: str
    answer_measures: Sequence[AnswerMeasureInfo]
    n_tokens: int | None
    n_boot: int
    seed: int
    slices: bool = False
    runs: pd.DataFrame = field(default_factory=pd.DataFrame)
    params: pd.DataFrame = field(default_factory=pd.DataFrame)
    common: Mapping[str, str] = field(default_factory=dict)
    baseline_chosen: bool = False
    limits: Sequence[str] = ()
    package_metrics: Sequence[str] = ()
    metrics: Sequence[str] = ()
    topics: int = 10
    families: Families = field(default_factory=lambda: Families("section"))
    equivalent: float | None = None

    @property
    def several_budgets(self) -> bool:
        """Whether runs have budgets beyond the compared one."""
        return self.n_tokens is not None and bool((self.runs["n_tokens"] != self.n_tokens).any())

    @property
    def pairs_heading(self) -> str:
        """Heading of paired differences from the baseline."""
        at = "" if self.n_tokens is None else f", N = {self.n_tokens} tokens"
        return f"Paired differences from {self.names[self.baseline]}{at}"


def systems_of(records: Sequence[JobRecord]) -> list[str]:
    """The system of every job of a sweep, in order, by the names on the records if present."""
    if all(record.system for record in records):
        return [record.system for record in records]
    return system_names([record.overrides for record in records])


def settings_of(records: Sequence[JobRecord]) -> dict[str, dict[str, str]]:
    """The differing parts of each system: {system: {factor: option}}.

    A factor is a config group, or another overridden key (`chunker.size`); never n_tokens.
    """
    pairs = [[override.partition("=") for override in record.overrides] for record in records]
    given = [{key.lstrip("+~"): given_value(key, value) for key, equals, value in job if equals} for job in pairs]
    keys = dict.fromkeys(k for job in given for k in job if k != "n_tokens" and not k.startswith("hydra."))
    options = {
        key: [
            str(record.choices.get(key, "?")) if key in GROUPS else job.get(key, "default")
            for record, job in zip(records, given, strict=True)
        ]
        for key in keys
    }
    varied = [key for key, found in options.items() if len(set(found)) > 1]
    return {system: {key: options[key][i] for key in varied} for i, system in enumerate(systems_of(records))}
