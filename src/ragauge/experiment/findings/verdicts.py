"""What a job's verdicts say: the topics that are judged, and what is logged of them."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge import track
from ragauge.contract import comparable
from ragauge.contract.errors import DataError
from ragauge.contract.groups import ANSWERS, GROUPS
from ragauge.contract.identity import identity
from ragauge.contract.records import OUTCOMES_FILE
from ragauge.datasets.human_labels import with_human_labels
from ragauge.estimate.human import human_shares
from ragauge.estimate.prediction import check_settings, predict_right, settings_of
from ragauge.experiment.findings import stability, whereabouts
from ragauge.experiment.findings.evaluation import (
    FROM_MLFLOW,
    evaluated,
    evaluation_metrics,
    with_labels_of_people,
)
from ragauge.experiment.findings.failures import log_failures, with_failures
from ragauge.experiment.findings.monitoring import by_day
from ragauge.experiment.findings.people import powered_by_people
from ragauge.experiment.findings.tables import per_question, traces
from ragauge.experiment.folder import JobFolder
from ragauge.experiment.outcomes import metrics
from ragauge.experiment.outcomes.slicing import log_slices, with_slices
from ragauge.findings.details import write_details

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.stages.pipeline import Pipeline

log = logging.getLogger(__name__)


def sample_topics(pipelines: Sequence[Pipeline], predictor: Any) -> None:
    """Chooses the topics that are judged by their predicted P(5), the same ones for all of the pipelines.

    Nothing is left to do where all topics are judged, or a uniform sample of them.
    """
    from ragauge.estimate import choose_topics

    sample = pipelines[0].sample
    if sample is None or not pipelines[0].sampled_by_prediction:
        return
    p5 = pd.concat([predict_right(predictor, pipeline.retrieved) for pipeline in pipelines])
    chosen = choose_topics(p5, sample.n, seed=sample.seed, design="neyman")
    for pipeline in pipelines:
        pipeline.set_sampled(chosen)


def log_verdicts(
    pipeline: Pipeline, cfg: DictConfig, folder: JobFolder, run: track.Run, record: Mapping[str, Any]
) -> dict[str, float]:
    """Finds what the verdicts say, logs their table, figure and predictor, and returns their metrics."""
    from ragauge.estimate import cross_fit
    from ragauge.experiment.findings.estimates import findings

    again = stability.of_one_job(pipeline, int(cfg.bootstrap), int(cfg.seed))
    outcomes = pipeline.outcomes.assign(**{g: folder.choices.get(g, "?") for g in GROUPS})
    if cfg.human_labels is not None:
        if cfg.human_labels == FROM_MLFLOW:
            outcomes = with_labels_of_people(outcomes, pipeline, cfg, record["experiment"])
        else:
            outcomes = with_human_labels(outcomes, Path(cfg.human_labels))
        try:
            if "human_label" in outcomes:
                human_shares(outcomes)
        except DataError as error:  # told here, as findings may come from the store
            log.warning("no shares as people would judge: %s", error)
    of_people = powered_by_people(outcomes)
    if pipeline.sampled is not None and outcomes["label"].notna().any():
        outcomes = cross_fit(outcomes, **record["estimate"], seed=cfg.seed)
    else:
        outcomes = outcomes.drop(columns=["stratum", "judged"], errors="ignore")
    found = findings(
        pipeline.store,
        outcomes,
        record["name"],
        cfg.bootstrap,
        cfg.seed,
        {**record["estimate"], "zones": record.get("zones")},
        score_settings(pipeline),
        pipeline.answer_measures,
        metrics.floor(pipeline.components.measure, pipeline.frame("floor_means")).get(pipeline.n_tokens),
    )
    sliced = with_slices(outcomes, pipeline.sliced)
    outcomes = with_failures(sliced, pipeline, cfg.failures)
    run.table(per_question(pipeline, outcomes), "per_question.json")  # the first is what MLflow shows
    by_slice = log_slices(
        sliced, pipeline.answer_measures, pipeline.slice_weights, int(cfg.bootstrap), int(cfg.seed), run
    )
    by_cause = log_failures(outcomes, pipeline, cfg.failures, int(cfg.bootstrap), int(cfg.seed), run)
    outcomes.to_parquet(folder.path / OUTCOMES_FILE, index=False)
    write_details(pipeline.frame("answer_values"), folder.path)
    if cfg.tracking.evaluation:
        chat = pipeline.components.judge.kind == "chat"
        topics = evaluated(pipeline, cfg, outcomes, record["experiment"])
        values = evaluation_metrics(found.metrics, outcomes, pipeline)
        run.evaluation(topics, "LLM_JUDGE" if chat else "CODE", folder.choices.get("judge", "ragauge"), values)
    elif cfg.trace:
        run.traces(traces(pipeline, outcomes))
    if found.figure is not None:
        (run.folder / "figures").mkdir()
        shutil.copy(found.figure, run.folder / "figures")
    if found.sampled_shares is not None:
        run.table(found.sampled_shares, "sampled_shares.json")
    run.days(by_day(outcomes, [info.name for info in pipeline.answer_measures]))
    # Nothing is read from the store after this. A job that waited for its verdicts read more before.
    run.tag(track.entries_tag([*pipeline.store.used, *record.get("entries_used", ())]))
    run.tag(comparable.as_tag(measured_by(pipeline)) | whereabouts.as_tag(pipeline, folder.path))
    if found.predictor is not None:
        run.predictor(found.predictor, registered_name=cfg.register_predictor)
    costs = metrics.costs(pipeline.verdicts, "judge_")
    costs = {name: value + again.pop(name, 0) for name, value in costs.items()}
    return {**found.metrics, **costs, **again, **by_slice, **by_cause, **of_people}


def score_settings(pipeline: Pipeline) -> dict[str, Any]:
    """What the scores of this job mean to a predictor."""
    of = pipeline.components
    measure = {**identity(of.measure), **shared_models_of_measure(pipeline)}
    return settings_of(measure, identity(of.tokenizer), [pipeline.n_tokens])


def shared_models_of_measure(pipeline: Pipeline) -> dict[str, Any]:
    """The identities of the models that the measure of evidence takes, by kind; {} for none."""
    models = {"embedder": pipeline.components.embedder, "chat": pipeline.evaluator_chat}
    uses = getattr(pipeline.components.measure, "uses", ())
    return {name: pipeline.identity_of(model) for name, model in models.items() if name in uses}


def measured_by(pipeline: Pipeline) -> dict[str, str]:
    """The digest of what the job measures with, by name: jobs that share all of it may be pooled.

    Of a chat model what its server says that it serves is part: known once there are verdicts.
    """
    of = pipeline.components
    means: dict[str, Any] = {"measure": of.measure, "tokenizer": of.tokenizer, "judge": of.judge}
    means |= {f"{ANSWERS}.{name}": measure for name, measure in of.answers.items()}
    asking = (*of.answers.values(), of.measure)
    if any("embedder" in getattr(m, "uses", ()) for m in asking):
        means["embedder"] = of.embedder
    if pipeline.evaluator_chat is not None and any("chat" in getattr(m, "uses", ()) for m in asking):
        means["evaluator"] = pipeline.evaluator_chat
    return comparable.digests({name: pipeline.identity_of(component) for name, component in means.items()})


def fitting_predictor(pipeline: Pipeline, cfg: DictConfig) -> Any:
    """The configured predictor, None if there is none; ConfigError where it does not fit this job."""
    if cfg.predictor is None:
        return None
    model, trained = track.load_predictor(track.tracking_uri(cfg.tracking.uri), cfg.predictor, bool(cfg.trust))
    for difference in check_settings(trained, score_settings(pipeline), cfg.predictor_mismatch == "allow"):
        log.warning("predictor used on other ground: %s", difference)
    return model
