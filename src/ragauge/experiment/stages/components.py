"""Builds a config's components and stages, checked before any work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from omegaconf import DictConfig, OmegaConf

from ragauge import track
from ragauge.contract import answer_measures as shown
from ragauge.contract.checks import require, require_choice
from ragauge.contract.errors import ConfigError, RagaugeError
from ragauge.contract.groups import ENGINE, GROUPS
from ragauge.contract.loading import build, loaded, points_of
from ragauge.contract.measures import AnswerMeasure
from ragauge.contract.outcomes import FEATURES
from ragauge.contract.settings import Settings
from ragauge.estimate.prompts import CHOICES, SAMPLE
from ragauge.experiment.request import Request
from ragauge.experiment.slicing import read_slices, read_weights
from ragauge.experiment.stages.checks import check_together
from ragauge.experiment.stages.repeating import checked_repeats

if TYPE_CHECKING:
    from ragauge.contract.stages import Components
    from ragauge.estimate.topic_samples import Sample
    from ragauge.experiment.stages.pipeline import Pipeline

_NETWORKS = ("embedder", "reranker")  # whose model may be one of MLflow
_OF_ESTIMATES = {
    "judge": ("sample", "sample_design", "looks", "earlier", "prompts_are", "per_answer", "probes"),
    "llm": ("sample", "repeat"),
}  # fmt: skip


def instantiate_components(cfg: DictConfig, budget: str | None = None) -> Components:
    """The component of every config group; ConfigError names the group of one that refuses its values.

    `budget` names what chat models spend together (a sweep's id), unless their config names it.
    """
    from ragauge.contract.stages import Components

    found = {}
    kinds = {name: get_args(kind) or (kind,) for name, kind in get_type_hints(Components).items()}
    uri = track.tracking_uri(cfg.tracking.uri)
    # A training names none.
    engine = [] if cfg.get(ENGINE) is None else [ENGINE]
    for group in (*GROUPS, *engine):
        spec: Any = OmegaConf.to_container(cfg[group], resolve=True, throw_on_missing=True)
        if group in _OF_ESTIMATES:
            # Which topics are judged, and how often, is no part of the judge: what it said serves any sample.
            spec = {key: value for key, value in spec.items() if key not in _OF_ESTIMATES[group]}
        if group in _NETWORKS and track.is_model_uri(spec.get("model")):
            spec = {**spec, "folder": str(track.model_folder(uri, spec["model"], f"{group}.model"))}
        found[group] = _built(group, with_prompts(spec, uri, group), budget, kinds[group])
    listed: Any = OmegaConf.to_container(cfg.answers, resolve=True, throw_on_missing=True)
    for name, spec in listed.items():
        if track.is_model_uri(spec.get("model")) and "folder" in spec:
            spec["folder"] = str(track.model_folder(uri, spec["model"], f"answers.{name}.model"))
    answers = {
        name: _built(f"answers.{name}", with_prompts(spec, uri, f"answers.{name}"), budget, (AnswerMeasure,))
        for name, spec in listed.items()
    }
    if found["llm"].kind == "none":  # known without the dataset; what else is lacking is told later
        answers = {name: one for name, one in answers.items() if not one.optional}
    return Components(**found, answers=answers)


def with_prompts(spec: dict[str, Any], uri: str, key: str) -> dict[str, Any]:
    """The spec with prompts named by URI replaced by their texts, read by a plug-in from MLflow at `uri`."""
    for point in points_of("ragauge.prompts") if "'prompts:/" in str(spec) else ():
        spec = loaded(point)(spec, uri, key)
    return spec


def _built(key: str, spec: Mapping[str, Any], budget: str | None, kinds: tuple[type, ...]) -> Any:
    """Instantiates the spec's `_target_`; chat models without a `budget` get the given one."""
    shared = {"budget": budget} if budget and spec.get("budget", "") is None else {}
    try:
        return build(key, {**spec, **shared}, {}, *kinds)
    except RagaugeError:
        raise
    except Exception as error:
        raise ConfigError(f"{key}: {type(error).__name__}: {error}") from error


def make_pipeline(request: Request) -> Pipeline:
    """The stages of a job, after every check that needs no work."""
    from ragauge.experiment.stages.pipeline import Pipeline
    from ragauge.measures.rankings import ranking_infos
    from ragauge.store import Store

    settings = request.settings
    require_choice("judge.prompts_are", settings.judge.get("prompts_are", SAMPLE), CHOICES)
    components = instantiate_components(request.cfg, request.folder.sweep_id)
    check_together(components, request.folder.choices)
    of_answers = {key: shown.infos_of(measure) for key, measure in components.answers.items()}
    of_rankings = ranking_infos(settings.measures)
    infos = (*of_rankings, *shown.checked(of_answers, of_rankings))
    known = (*FEATURES, *(info.name for info in infos if info.of in ("context", "ranking")))
    features = settings.estimate.features
    require("estimate.features", features, bool(features) and set(features) <= set(known), ", ".join(known))
    for group in GROUPS:
        getattr(components, group).files()
    for measure in components.answers.values():
        measure.files()
    slices = read_slices(settings.slices)
    return Pipeline(
        components,
        Store(Path(settings.store)),
        settings.n_tokens,
        tuple(settings.n_grid),
        settings.max_missing_share,
        sample=_sample(settings),
        measures=tuple(settings.measures),
        slices=slices,
        slice_weights=read_weights(settings.slice_weights, slices),
        cluster=settings.cluster,
        answered=_sample(settings, "llm"),
        repeats=checked_repeats(settings.llm.get("repeat"), settings.judge.get("per_answer"), components),
        budgets=request.budgets,
    )


def _sample(settings: Settings, group: str = "judge") -> Sample | None:
    """`sample` and `sample_design` of judge or llm; None if all topics are judged or answered.

    ConfigError where both have a sample and that of the judge is not within that of the llm.
    """
    from ragauge.estimate.topic_samples import Listed, Sample

    of, answered = getattr(settings, group), settings.llm.get("sample")
    n = of.get("sample")
    if n is None:
        return None
    if group == "llm":
        return Listed.of_file(n) if isinstance(n, str) else Sample(n, "uniform", settings.seed, group)
    sample = Sample(n, of.get("sample_design") or "uniform", settings.seed)
    if sample.design == "neyman" and answered is not None:
        raise ConfigError(
            "judge.sample_design=neyman draws among all topics, and llm.sample answers a few: use uniform"
        )
    if sample.design == "neyman" and settings.predictor is None:
        raise ConfigError(
            "judge.sample_design=neyman chooses topics by a predicted P(right): give predictor=<model URI>"
        )
    if isinstance(answered, str):
        raise ConfigError(f"judge.sample={n} draws among all topics, and llm.sample names a file: leave it out")
    if answered is not None and n > answered:
        raise ConfigError(f"judge.sample={n} is more than llm.sample={answered}: allowed is that many at most")
    return sample
