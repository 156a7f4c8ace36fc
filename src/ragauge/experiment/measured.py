"""A job during measuring: its stages, outcomes and findings so far."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge import track
from ragauge.contract.finding import After, JobFinding, Shown
from ragauge.contract.groups import GROUPS
from ragauge.contract.outcomes import TARGET
from ragauge.contract.record import JobRecord
from ragauge.estimate import cross_fit
from ragauge.estimate.prompts import other_labels
from ragauge.experiment.earlier import earlier_labels
from ragauge.experiment.folder import JobFolder
from ragauge.experiment.slicing import with_slices
from ragauge.experiment.stages.order import question_stages
from ragauge.findings.also_logged import lines_of
from ragauge.findings.failures import with_failures
from ragauge.findings.order import declared, job_findings
from ragauge.findings.per_question import with_labels_of_people
from ragauge.show.drawing import save

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.contract.frames import Batches
    from ragauge.contract.measures import AnswerMeasureInfo
    from ragauge.contract.metrics import Declared
    from ragauge.experiment.stages.pipeline import Pipeline
    from ragauge.experiment.stages.stage import Stage

log = logging.getLogger(__name__)


@dataclass
class MeasuredJob:
    """`ragauge.contract.jobs.Job`, with its folder.

    found, metrics: values by name and metrics of the findings so far.
    """

    pipeline: Pipeline
    cfg: DictConfig
    folder: JobFolder
    record: JobRecord
    model: Any = None
    judged_again: tuple[Mapping[str, float], pd.DataFrame] | None = None
    found: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)

    @property
    def n_tokens(self) -> int:
        return self.pipeline.n_tokens

    @property
    def n_boot(self) -> int:
        return int(self.cfg.bootstrap)

    @property
    def seed(self) -> int:
        return int(self.cfg.seed)

    @property
    def answer_measures(self) -> list[AnswerMeasureInfo]:
        return self.pipeline.answer_measures

    @property
    def question_stages(self) -> list[Stage]:
        return question_stages(self.pipeline.stages)

    def frame(self, name: str) -> pd.DataFrame:
        return self.pipeline.frame(name)

    def rows(self, name: str) -> pd.DataFrame | Batches:
        return self.pipeline.rows(name)

    @cached_property
    def outcomes(self) -> pd.DataFrame:
        """A row per topic, as in `outcomes.parquet`.

        To the stages' columns it adds labels by people, slices, and the cause of failure; and for a judged sample
        predictions for the topics that were not judged (and the verdicts of `judge.earlier`).
        """
        rows = self.pipeline.outcomes.assign(**{g: self.folder.choices.get(g, "?") for g in GROUPS})
        if other_labels(rows) and "prompts_are" not in rows:
            rows = rows.assign(prompts_are=str(self.cfg.judge.prompts_are))
        rows = with_labels_of_people(rows, self.pipeline, self.cfg, self.record.experiment)
        if self.pipeline.sampled is not None:
            rows = rows.assign(**{TARGET: self.cfg.sample_target})
        if self.pipeline.sampled is not None and rows["label"].notna().any():
            earlier = earlier_labels(self.cfg, self.frame("topics"))
            if earlier is not None:
                rows = rows.assign(earlier_label=rows["qid"].map(earlier))
            rows = cross_fit(rows, **self.record.estimate, seed=self.seed)
        else:
            strata = "stratum" in rows and rows["stratum"].any()  # of a file of topics (llm.sample)
            rows = rows.drop(columns=["judged"] if strata else ["judged", "stratum"], errors="ignore")
        return with_failures(with_slices(rows, self.pipeline.sliced), self.pipeline, self.cfg.failures)

    @cached_property
    def findings(self) -> list[JobFinding]:
        """The findings of the job, in order."""
        return findings_for(self.cfg)

    @cached_property
    def declared(self) -> Declared:
        """The declarations of all metrics of its findings."""
        return declared(self.findings)

    def find_out(self, after: After, run: track.Run) -> None:
        """Computes, logs and prints the findings of this phase."""
        for finding in self.findings:
            if finding.after != after:
                continue
            found = finding.compute(self, self.found)
            if found is None:
                continue
            self.log(run, found.metrics)
            track.log_found(run, replace(found, metrics={}), self.declared, registered_name=self.cfg.register_predictor)
            self.found[finding.name] = found.value
            self.record.take(found.record)
            shown = finding.show(self, found.value, self.found)
            shown = replace(shown, lines=[*shown.lines, *lines_of(finding.metrics, found.metrics)])
            for name, figure in shown.figures.items():
                save(figure, run.folder / "figures" / f"{name}.png")
            tell(shown)

    def log(self, run: track.Run, metrics: Mapping[str, float]) -> None:
        """Logs metrics with new names."""
        new = {name: value for name, value in metrics.items() if name not in self.metrics}
        run.metrics(new, declared=self.declared)
        self.metrics |= new

    def tag_entries(self, run: track.Run) -> list[str]:
        """Tags the run with the stored outputs that the job used, so that they are kept as long as the run."""
        used = sorted({*self.pipeline.store.used, *self.record.entries_used})
        run.tag(track.entries_tag(used))
        return used


def findings_for(cfg: DictConfig) -> list[JobFinding]:
    """The findings of a job of this config, in order."""
    from omegaconf import OmegaConf

    return job_findings(OmegaConf.to_container(cfg, resolve=False))  # type: ignore[arg-type]


def tell(shown: Shown) -> None:
    """Prints the lines of a finding, and its notes as warnings."""
    for line in shown.lines:
        log.info("%s", line)
    for note in shown.notes:
        log.warning("%s", note)
