"""The settings and models that a job measures with, which limit its pooling, and its predictor."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge import track
from ragauge.contract import comparable
from ragauge.contract.groups import ANSWERS
from ragauge.estimate import choose_topics
from ragauge.estimate.prediction import check_settings, predict_right
from ragauge.findings.thresholds import score_settings

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.stages.pipeline import Pipeline

log = logging.getLogger(__name__)


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


def fitting_predictor(pipeline: Pipeline, cfg: DictConfig) -> Any:
    """The configured predictor, or None; ConfigError if it does not fit this job."""
    if cfg.predictor is None:
        return None
    model, trained = track.load_predictor(track.tracking_uri(cfg.tracking.uri), cfg.predictor, bool(cfg.trust))
    for difference in check_settings(trained, score_settings(pipeline), cfg.predictor_mismatch == "allow"):
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
