"""What a job measures with: what its scores mean to a predictor, and which jobs may be pooled with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragauge.contract import comparable
from ragauge.contract.groups import ANSWERS
from ragauge.contract.identity import identity
from ragauge.contract.offers import PartOffers, offered
from ragauge.estimate.prediction import settings_of

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline


def score_settings(pipeline: Pipeline) -> dict[str, Any]:
    """What the scores of this job mean to a predictor."""
    of = pipeline.components
    measure = {**identity(of.measure), **shared_models_of_measure(pipeline)}
    return settings_of(measure, identity(of.tokenizer), [pipeline.n_tokens])


def shared_models_of_measure(pipeline: Pipeline) -> dict[str, Any]:
    """The identities of the models that the measure of evidence takes, by kind; {} for none."""
    models = {"embedder": pipeline.components.embedder, "chat": pipeline.evaluator_chat}
    uses = offered(pipeline.components.measure, PartOffers).uses
    return {name: pipeline.identity_of(model) for name, model in models.items() if name in uses}


def measured_by(pipeline: Pipeline) -> dict[str, str]:
    """The digest of what the job measures with, by name: jobs that share all of it may be pooled.

    Of a chat model what its server says that it serves is part: known once there are verdicts.
    """
    of = pipeline.components
    means: dict[str, Any] = {"measure": of.measure, "tokenizer": of.tokenizer, "judge": of.judge}
    means |= {f"{ANSWERS}.{name}": measure for name, measure in of.answers.items()}
    used = {name for m in (*of.answers.values(), of.measure) for name in offered(m, PartOffers).uses}
    if "embedder" in used:
        means["embedder"] = of.embedder
    if pipeline.evaluator_chat is not None and "chat" in used:
        means["evaluator"] = pipeline.evaluator_chat
    return comparable.digests({name: pipeline.identity_of(component) for name, component in means.items()})
