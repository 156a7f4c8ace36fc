"""A job during measuring: its stages, outcomes and findings so far, and what of it is logged and recorded."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge import track
from ragauge.contract import answer_measures as shown
from ragauge.contract import comparable, metrics, outcomes
from ragauge.contract.finding import After, JobFinding, Shown
from ragauge.contract.groups import ANSWERS, GROUPS
from ragauge.contract.identity import identity
from ragauge.contract.job_files import FRAMES_TAG, OUTCOMES_FILE, OUTSIDE_TAG
from ragauge.contract.jobs import Job
from ragauge.contract.outcomes import TARGET
from ragauge.contract.output_files import replacing
from ragauge.contract.record import JobRecord
from ragauge.contract.retrieval import BringsTexts
from ragauge.contract.settings import Settings
from ragauge.estimate import choose_topics, cross_fit
from ragauge.estimate.prediction import check_settings, predict_right
from ragauge.estimate.prompts import SAMPLE, other_labels
from ragauge.experiment.earlier import earlier_labels
from ragauge.experiment.request import JobFolder, Request
from ragauge.experiment.slicing import WEIGHTS_TAG, with_slices
from ragauge.findings.also_logged import lines_of
from ragauge.findings.failures import with_failures
from ragauge.findings.lacking import new_lines
from ragauge.findings.order import declared, job_findings, metrics_of_packages
from ragauge.findings.per_question import with_labels_of_people
from ragauge.findings.thresholds import score_settings
from ragauge.findings.topics import write_details
from ragauge.show.drawing import save

if TYPE_CHECKING:
    from ragauge.contract.metrics import Declared
    from ragauge.experiment.stages.pipeline import Pipeline

log = logging.getLogger(__name__)

_SIZES = {"questions": "topics", "documents": "docs", "pieces_of_evidence": "evidence"}
# Frames that are read back as they were stored; contexts are cut from layouts and prefixes.
_STORED = (
    "topics", "evidence", "chunks", "run", "layouts", "prefixes", "scores", "answers", "verdicts",
)  # fmt: skip


@dataclass
class MeasuredJob(Job):
    """A job during measuring. found, metrics: values by name and metrics of the findings so far."""

    pipeline: Pipeline  # type: ignore[assignment]
    request: Request
    record: JobRecord
    model: Any = None
    judged_again: tuple[Mapping[str, float], pd.DataFrame] | None = None
    found: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        return self.request.settings

    @property
    def folder(self) -> JobFolder:
        """The job's folder."""
        return self.request.folder

    @cached_property
    def outcomes(self) -> pd.DataFrame:
        """A row per topic, as in `outcomes.parquet`.

        To the stages' columns it adds labels by people, slices, and the cause of failure. A judged sample adds
        predictions for the topics that were not judged, and the verdicts of `judge.earlier`.
        """
        rows = self.pipeline.outcomes.assign(**{g: self.folder.choices.get(g, "?") for g in GROUPS})
        if other_labels(rows) and "prompts_are" not in rows:
            rows = rows.assign(prompts_are=str(self.settings.judge.get("prompts_are", SAMPLE)))
        rows = with_labels_of_people(rows, self)
        if self.pipeline.sampled is not None:
            rows = rows.assign(**{TARGET: self.settings.sample_target})
        if self.pipeline.sampled is not None and rows["label"].notna().any():
            earlier = earlier_labels(self.settings, self.frame("topics"))
            if earlier is not None:
                rows = rows.assign(earlier_label=rows["qid"].map(earlier))
            rows = cross_fit(rows, **self.record.estimate, seed=self.seed)
        else:
            strata = "stratum" in rows and rows["stratum"].any()  # of a file of topics (llm.sample)
            rows = rows.drop(columns=["judged"] if strata else ["judged", "stratum"], errors="ignore")
        return with_failures(with_slices(rows, self.pipeline.sliced), self.pipeline, self.settings.failures)

    @property
    def judged_later(self) -> bool:
        """Whether judging depends on other jobs of the sweep."""
        together = self.pipeline.components.judge.mode == "batch" or self.pipeline.sampled_by_prediction
        return self.folder.sweep is not None and together

    @cached_property
    def findings(self) -> list[JobFinding]:
        """The findings of the job, in order."""
        return findings_for(self.settings)

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
            name = self.settings.register_predictor
            track.log_found(run, replace(found, metrics={}), self.declared, registered_name=name)
            self.found[finding.name] = found.value
            self.record.take(found.record)
            shown = finding.show(self, found.value, self.found)
            shown = replace(shown, lines=[*shown.lines, *lines_of(finding.metrics, found.metrics)])
            for drawn, figure in shown.figures.items():
                save(figure, run.folder / "figures" / f"{drawn}.png")
            run.add_to_note(shown.lead)
            tell(replace(shown, lead=new_lines(shown.lead, self.record.sweep_id)))

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


def tell(shown: Shown) -> None:
    """Prints the lines of a finding, and its notes as warnings."""
    for line in (*shown.lead, *shown.lines):
        log.info("%s", line)
    for note in shown.notes:
        log.warning("%s", note)


def findings_for(settings: Settings) -> list[JobFinding]:
    """The findings of a job of these settings, in order."""
    return job_findings(asdict(settings))


def dataset_of(pipeline: Pipeline) -> dict[str, Any]:
    """Name, digest, source and size of a job's dataset, as arguments of `Run.dataset`."""
    source = pipeline.components.dataset
    said = {**identity(source), **{f"file {role}": str(path) for role, path in source.files().items()}}
    entry = pipeline.entry("dataset")
    return {
        "name": str(source.name),
        "digest": entry.digest,
        "source": {key: value for key, value in said.items() if isinstance(value, str | int | float)},
        "profile": {name: entry.n_rows(frame) for name, frame in _SIZES.items()},
    }


def describe(job: MeasuredJob, run: track.Run) -> None:
    """Logs and records a job's dataset and components, and reports changes since the run that it repeats."""
    pipeline, folder, record = job.pipeline, job.folder, job.record
    known = {"dataset_digest": pipeline.entry("dataset").digest, **descriptions(pipeline)}
    record.dataset = dataset_of(pipeline)
    run.dataset(**record.dataset)
    run.tag({**known, **shown.as_tag(job.answer_measures), **metrics.as_tag(metrics_of_packages(job.findings))})
    record.answer_measures = shown.as_record(job.answer_measures)
    if outside := _outside(pipeline):
        record.outside = outside
        run.tag({OUTSIDE_TAG: ",".join(outside)})
    if (condition := pipeline.components.retriever.condition) is not None:
        record.condition = condition
    if pipeline.slice_weights:
        record.slice_weights = dict(pipeline.slice_weights)
        run.tag({WEIGHTS_TAG: json.dumps(pipeline.slice_weights, ensure_ascii=False)})
    if folder.origin:
        same = ["the dataset is the same"] if folder.number == 0 else []
        for line in folder.origin.changed(known) or same:
            log.info("  %s", line)


def _outside(pipeline: Pipeline) -> list[str]:
    """The groups whose work another system did, or does."""
    retriever, llm = pipeline.components.retriever, pipeline.components.llm
    does = {"retriever": isinstance(retriever, BringsTexts), "llm": llm.kind in ("recorded", "service")}
    return [group for group, outside in does.items() if outside]


def descriptions(pipeline: Pipeline) -> dict[str, str]:
    """Tags that describe the components' work (for example queries made without an LLM)."""
    told: dict[str, str] = {}
    for group in GROUPS:
        component = getattr(pipeline.components, group)
        told |= {f"{group}.{k}": str(v) for k, v in component.describe(pipeline.tools).items()}
    for name, measure in pipeline.components.answers.items():
        told |= {f"{ANSWERS}.{name}.{k}": str(v) for k, v in measure.describe(pipeline.tools).items()}
    return told


def log_verdicts(job: MeasuredJob, run: track.Run) -> None:
    """Logs the verdicts' metrics, writes the outcomes into the job's folder, and tags the places of its frames."""
    job.find_out("verdicts", run)
    given = {*map(str, [*job.frame("topics"), *job.frame("answers")]), *(info.name for info in job.answer_measures)}
    outcomes.check(job.outcomes, given)
    with replacing(job.folder.path / OUTCOMES_FILE) as draft:
        job.outcomes.to_parquet(draft, index=False)
    write_details(job.frame("answer_values"), job.folder.path)
    run.tag(comparable.as_tag(measured_by(job.pipeline)) | frames_tag(job.pipeline, job.folder.path))


def frames_tag(pipeline: Pipeline, folder: Path) -> dict[str, str]:
    """The tag with the places of a job's frames."""
    found = {
        "folder": str(folder.absolute()),
        "store": str(pipeline.store.root.absolute()),
        "frames": pipeline.entries_of(_STORED),
    }
    return {FRAMES_TAG: json.dumps(found)}


def measured_by(pipeline: Pipeline) -> dict[str, str]:
    """Digests of the job's measurement settings by name; jobs with equal digests may be pooled.

    For a chat model they include the name that its server reports, known once there are verdicts.
    """
    of = pipeline.components
    means: dict[str, Any] = {"measure": of.measure, "tokenizer": of.tokenizer, "judge": of.judge}
    means |= {f"{ANSWERS}.{name}": measure for name, measure in of.answers.items()}
    used = {name for m in (*of.answers.values(), of.measure) for name in m.uses}
    if "embedder" in used:
        means["embedder"] = of.embedder
    if pipeline.evaluator_chat is not None and "chat" in used:
        means["evaluator"] = pipeline.evaluator_chat
    return comparable.digests({name: pipeline.identity_of(component) for name, component in means.items()})


def fitting_predictor(pipeline: Pipeline, settings: Settings) -> Any:
    """The configured predictor, or None; ConfigError if it does not fit this job."""
    if settings.predictor is None:
        return None
    model, trained = track.load_predictor(track.tracking_uri(settings.tracking.uri), settings.predictor, settings.trust)
    for difference in check_settings(trained, score_settings(pipeline), settings.predictor_mismatch == "allow"):
        log.warning("predictor used on other ground: %s", difference)
    return model


def sample_topics(pipelines: Sequence[Pipeline], predictor: Any) -> None:
    """Chooses the topics to judge by their predicted P(5), the same for all pipelines.

    Does nothing if all topics, or a uniform sample, are judged.
    """
    sample = pipelines[0].sample
    if sample is None or not pipelines[0].sampled_by_prediction:
        return
    p5 = pd.concat([predict_right(predictor, pipeline.foreseeing) for pipeline in pipelines])
    chosen = choose_topics(p5, sample.n, seed=sample.seed, design="neyman")
    for pipeline in pipelines:
        pipeline.set_sampled(chosen)
