"""What a predictor foresees: the classes of a job's answers, and which topics to judge."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge import track
from ragauge.contract.finding import Found, Founds, JobFinding
from ragauge.contract.jobs import Job
from ragauge.estimate import choose_topics
from ragauge.estimate.prediction import check_settings, predict, predict_right
from ragauge.experiment.measured_by import score_settings

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.stages.pipeline import Pipeline

log = logging.getLogger(__name__)


class Predicted(JobFinding):
    """The shares of classes that the configured predictor foresees, and the topics by risk."""

    name = "predicted"
    after = "all"

    def compute(self, job: Job, found: Founds) -> Found | None:
        """The prediction; None without a predictor."""
        if job.model is None:
            return None
        # Not the outcomes: no judge is asked for a prediction.
        prediction = predict(job.model, job.pipeline.retrieved)
        return Found(prediction, metrics=prediction.metrics, logged={"topics_at_risk": prediction.topics})


def sample_topics(pipelines: Sequence[Pipeline], predictor: Any) -> None:
    """Chooses the topics that are judged by their predicted P(5), the same ones for all of the pipelines.

    Nothing is left to do where all topics are judged, or a uniform sample of them.
    """
    sample = pipelines[0].sample
    if sample is None or not pipelines[0].sampled_by_prediction:
        return
    p5 = pd.concat([predict_right(predictor, pipeline.retrieved) for pipeline in pipelines])
    chosen = choose_topics(p5, sample.n, seed=sample.seed, design="neyman")
    for pipeline in pipelines:
        pipeline.set_sampled(chosen)


def fitting_predictor(pipeline: Pipeline, cfg: DictConfig) -> Any:
    """The configured predictor, None if there is none; ConfigError where it does not fit this job."""
    if cfg.predictor is None:
        return None
    model, trained = track.load_predictor(track.tracking_uri(cfg.tracking.uri), cfg.predictor, bool(cfg.trust))
    for difference in check_settings(trained, score_settings(pipeline), cfg.predictor_mismatch == "allow"):
        log.warning("predictor used on other ground: %s", difference)
    return model
