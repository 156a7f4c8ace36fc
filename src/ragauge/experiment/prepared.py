"""Checks a job's config before its work, and counts its requests for `dry_run`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from ragauge.contract.errors import ConfigError
from ragauge.contract.families import check_primary
from ragauge.contract.finding import JobFinding
from ragauge.contract.loading import points_of
from ragauge.contract.output_files import replacing
from ragauge.contract.record import JobRecord
from ragauge.diagnose.failures import check_rules
from ragauge.experiment.earlier import earlier_labels
from ragauge.experiment.folder import JobFolder
from ragauge.experiment.gates import gates
from ragauge.experiment.measured import MeasuredJob, findings_for, tell
from ragauge.experiment.measured_by import fitting_predictor, sample_topics
from ragauge.experiment.request import run_name
from ragauge.experiment.setup.config import READ_BY_PACKAGES
from ragauge.experiment.stages.checks import check_measures
from ragauge.experiment.stages.components import make_pipeline
from ragauge.findings.lacking import Lacking
from ragauge.findings.unread import UnreadTexts
from ragauge.llms.chat_use import Unasked

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline


def prepared(cfg: DictConfig, folder: JobFolder) -> tuple[Pipeline, Any]:
    """The stages and the predictor (or None) of a job that passed all checks."""
    pipeline = make_pipeline(cfg, folder)
    experiment = cfg.tracking.experiment or str(cfg.dataset.name)
    _ = pipeline.sliced, pipeline.clusters  # checks slices and clusters before any work
    for gate in gates(cfg):
        gate.check(cfg, pipeline, run_name(cfg, folder.choices), experiment, folder.sweep_id)
    check_primary(cfg.report.primary, [info.name for info in pipeline.answer_measures])
    check_settings(cfg)
    check_measures(pipeline, alone=folder.sweep is None)
    for finding in findings_for(cfg):
        finding.check(cfg, pipeline.answer_measures)
    earlier_labels(cfg, pipeline.frame("topics"))  # checks the earlier run before any work
    if cfg.failures == "rules":
        check_rules([info.name for info in pipeline.answer_measures])
    return pipeline, fitting_predictor(pipeline, cfg)


def check_settings(cfg: DictConfig) -> None:
    """ConfigError for a setting without an installed package that reads it, and for looks without a gate."""
    if (looks := OmegaConf.select(cfg, "judge.looks")) is not None and not cfg.gate:
        raise ConfigError(
            f"judge.looks={looks} stops once the gate is decided: give a rule about verdicts, such as "
            "+gate.correct_share=0.6"
        )
    group = JobFinding.group_on_use
    for key in READ_BY_PACKAGES:
        value = OmegaConf.select(cfg, key)
        if value and value != "auto" and key not in {point.name for point in points_of(group)}:
            raise ConfigError(f"{key}={value}: no plug-in is installed that reads it (entry point {key} of {group})")


def judged_later(pipeline: Pipeline, folder: JobFolder) -> bool:
    """Whether judging depends on other jobs of the sweep."""
    together = pipeline.components.judge.mode == "batch" or pipeline.sampled_by_prediction
    return folder.sweep is not None and together


def dry_run(cfg: DictConfig, folder: JobFolder, record: JobRecord) -> None:
    """Prints and records the job's needs; the end of a sweep adds those of judging together."""
    from ragauge.experiment.needs import NEEDS_FILE, NEEDS_OF_ALL_FILE, added_up, describe_needs, needs

    pipeline, predictor = prepared(cfg, folder)
    plan = pipeline.plan_in_words()
    job = MeasuredJob(pipeline, cfg, folder, record)
    with pipeline.without_calls():
        for finding in (Lacking(), UnreadTexts()):
            tell(finding.show(job, finding.compute(job, {}).value, {}))
    later = judged_later(pipeline, folder)
    if not later:
        with suppress(Unasked):  # without its contexts a job's topics are a uniform sample
            sample_topics([pipeline], predictor)
    further = [partial(finding.needs, job) for finding in job.findings]
    asked = needs(pipeline, judging=not later, seed=int(cfg.seed), further=further)
    folder.path.mkdir(parents=True, exist_ok=True)
    with replacing(folder.path / NEEDS_FILE) as draft:
        asked.to_parquet(draft, index=False)
    record.status, record.needs, record.judged_later = "DRY RUN", added_up(asked), later
    print(f"{record.name:<32} {describe_needs(record.needs)}{', then the judge' if later else ''}")
    print(f"  {plan}")
    if pipeline.answered is not None:
        whole = needs(replace(pipeline, answered=None, sample=None), judging=not later, seed=int(cfg.seed))
        with replacing(folder.path / NEEDS_OF_ALL_FILE) as draft:
            whole.to_parquet(draft, index=False)
        print(f"  all {len(pipeline.frame('topics')):,} topics: {describe_needs(added_up(whole))}")
