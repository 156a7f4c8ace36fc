"""A config's components, and the stages that they make: checked before any work."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge import track
from ragauge.contract import answer_measures as shown
from ragauge.contract.checks import require_choice
from ragauge.contract.errors import ConfigError, RagaugeError
from ragauge.contract.groups import ANSWERS, ENGINE, GROUPS
from ragauge.contract.identity import identity
from ragauge.contract.loading import build
from ragauge.contract.offers import (
    AnswerMeasureOffers,
    GeneratorOffers,
    MeasureOffers,
    PartOffers,
    RetrieverOffers,
    offered,
)
from ragauge.contract.protocols import BringsTexts, ReadsFiles
from ragauge.contract.topics import references, scorable, wrong_answers
from ragauge.estimate.prompts import CHOICES, SAMPLE
from ragauge.experiment.folder import JobFolder
from ragauge.experiment.setup.config import check_slices, check_values
from ragauge.experiment.stages.answering import cites

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.outcomes import Sample
    from ragauge.experiment.stages.pipeline import Pipeline
    from ragauge.experiment.stages.stage import Components

log = logging.getLogger(__name__)

_NETWORKS = ("embedder", "reranker")  # whose model may be one of MLflow
_OF_ESTIMATES = ("sample", "sample_design", "earlier", "prompts_are")


def instantiate_components(cfg: DictConfig, budget: str | None = None) -> Components:
    """The component of every config group; ConfigError naming the group where one refuses its values.

    `budget` names what chat models spend together (a sweep's id), unless their config names it.
    """
    from omegaconf import OmegaConf

    from ragauge.experiment.stages.stage import Components

    found = {}
    uri = track.tracking_uri(cfg.tracking.uri)
    # A training names none.
    engine = [] if cfg.get(ENGINE) is None else [ENGINE]
    for group in (*GROUPS, *engine):
        spec: Any = OmegaConf.to_container(cfg[group], resolve=True, throw_on_missing=True)
        if group == "judge":
            # Which topics are judged is no part of the judge: what it said of a topic serves any sample.
            spec = {key: value for key, value in spec.items() if key not in _OF_ESTIMATES}
        if group in _NETWORKS and track.is_model_uri(spec.get("model")):
            spec = {**spec, "folder": str(track.model_folder(uri, spec["model"], f"{group}.model"))}
        found[group] = _built(group, spec, budget)
    listed: Any = OmegaConf.to_container(cfg.answers, resolve=True, throw_on_missing=True)
    for name, spec in listed.items():
        if track.is_model_uri(spec.get("model")) and "folder" in spec:
            spec["folder"] = str(track.model_folder(uri, spec["model"], f"answers.{name}.model"))
    answers = {name: _built(f"answers.{name}", spec, budget) for name, spec in listed.items()}
    if found["llm"].kind == "none":  # known without the dataset; what else is lacking is told later
        answers = {name: one for name, one in answers.items() if not offered(one, AnswerMeasureOffers).optional}
    return Components(**found, answers=answers)


def _built(key: str, spec: Mapping[str, Any], budget: str | None) -> Any:
    """What the spec's `_target_` makes; chat models without a `budget` of their own get the one given."""
    shared = {"budget": budget} if budget and spec.get("budget", "") is None else {}
    try:
        return build(key, {**spec, **shared}, {})
    except RagaugeError:
        raise
    except Exception as error:
        raise ConfigError(f"{key}: {type(error).__name__}: {error}") from error


def make_pipeline(cfg: DictConfig, folder: JobFolder) -> Pipeline:
    """The stages of a config, once everything that can be told before any work has been checked."""
    from ragauge.experiment.stages.pipeline import Pipeline
    from ragauge.measures.rankings import ranking_infos
    from ragauge.store import Store

    check_values(cfg)
    require_choice("judge.prompts_are", cfg.judge.get("prompts_are", SAMPLE), CHOICES)
    components = instantiate_components(cfg, folder.sweep_id)
    check_together(components, folder.choices)
    of_answers = {key: shown.infos_of(measure) for key, measure in components.answers.items()}
    shown.checked(of_answers, ranking_infos(list(cfg.measures)))
    for group in GROUPS:
        part = getattr(components, group)
        if isinstance(part, ReadsFiles):
            part.files()
    for measure in components.answers.values():
        if isinstance(measure, ReadsFiles):
            measure.files()
    store, grid = Store(Path(cfg.store)), tuple(cfg.n_grid)
    measures = tuple(cfg.measures)
    slices, weights = check_slices(cfg)
    return Pipeline(
        components, store, cfg.n_tokens, grid, cfg.max_missing_share, _sample(cfg), measures, slices, weights
    )


def check_together(components: Components, choices: Mapping[str, str]) -> None:
    """ConfigError for components that cannot stand in one job, each of which may be right by itself."""
    identity(components.reranker)  # a model that is not there is told before any work
    rewriter, retriever = components.rewriter, components.retriever
    chosen = {group: f"{group}={choices.get(group, '?')}" for group in GROUPS}
    of_retriever = offered(retriever, RetrieverOffers)
    if rewriter.kind != "none" and not of_retriever.takes_queries:
        raise ConfigError(
            f"{chosen['retriever']} takes no queries of a rewriter: with {chosen['rewriter']} choose another "
            "retriever, such as sim"
        )
    by_itself = components.llm.kind == "service" and not offered(components.llm, GeneratorOffers).takes_context
    if by_itself and of_retriever.top_k != 0 and not isinstance(retriever, BringsTexts):
        log.warning(
            "%s answers from what it retrieves by itself (its request has no {context}); the IR score "
            "is that of %s: choose retriever=service, or none", chosen["llm"], chosen["retriever"],
        )  # fmt: skip
    if retriever.reorder_after_cut and not components.order.by_rank:
        raise ConfigError(f"{chosen['retriever']} brings its own order: with {chosen['order']} choose retriever=sim")
    for group in ("rewriter", "reranker", "compressor"):
        part = getattr(components, group)
        if offered(part, PartOffers).needs_chat and components.llm.kind != "chat":
            raise ConfigError(
                f"{chosen[group]} asks a chat model, and {chosen['llm']} is none: choose an llm that is one "
                f"(ollama, openai){_instead(group)}"
            )


def _instead(group: str) -> str:
    others = {
        "rewriter": "prf, recorded, or multi_query and decompose, which do by rules",
        "reranker": "cross_encoder, pyterrier",
    }
    return f", or a {group} that asks none ({others.get(group, 'sentences')})"


def _sample(cfg: DictConfig) -> Sample | None:
    """The judge's `sample` and `sample_design`; None where all topics are judged."""
    from ragauge.experiment.outcomes import Sample

    n, design = cfg.judge.get("sample"), cfg.judge.get("sample_design")
    if n is None:
        return None
    sample = Sample(n, design or "uniform", int(cfg.seed))
    if sample.design == "neyman" and cfg.predictor is None:
        raise ConfigError(
            "judge.sample_design=neyman chooses topics by a predicted P(right): give predictor=<model URI>"
        )
    return sample


_ASKS = (
    "asks an LLM, and the llm of this job is no chat model: choose an evaluator ("
    "evaluator=ollama, openai, openai_compatible)"
)


def check_measures(pipeline: Pipeline, target: str | None = None, alone: bool = True) -> None:
    """ConfigError for a measure that `needs` an LLM, answers, contexts, references or evidence, and has none.

    And for a `foresight.target` that is no measure of the job. A measure that is `optional` is left out of
    the job instead; one with a method `check_topics` is given the topics, and raises what is wrong with its
    own files. Reads these and the dataset alone; nobody is asked. A job of a sweep (not `alone`) may have no
    contexts: it is what the others are compared with.
    """
    if target is not None:
        from ragauge.diagnose.foresight import check_target

        check_target(target, pipeline.answer_measures)
    of_evidence = pipeline.components.measure
    if "chat" in offered(of_evidence, MeasureOffers).uses and pipeline.evaluator_chat is None:
        raise ConfigError(f"measure={of_evidence.name} {_ASKS}")
    measures = pipeline.components.answers
    if not measures:
        return
    without: dict[str, str] = {}
    for lacking, told in _lacking(pipeline, alone):
        for name, measure in measures.items():
            says = offered(measure, AnswerMeasureOffers)
            if lacking in {*says.needs, *({"chat"} & measure.uses)}:
                if not says.optional:
                    raise ConfigError(f"{ANSWERS}.{name} {told}")
                without.setdefault(name, told)
    for name, measure in measures.items():
        if name not in without:
            offered(measure, AnswerMeasureOffers).check_topics(pipeline.frame("topics"))
    for name, told in without.items():
        log.info("left out: %s.%s %s", ANSWERS, name, told)
    pipeline.leave_out(without)


def _lacking(pipeline: Pipeline, alone: bool) -> Iterator[tuple[str, str]]:
    of = pipeline.components
    retriever = offered(of.retriever, RetrieverOffers)
    if pipeline.evaluator_chat is None:
        yield "chat", _ASKS
    if of.llm.kind in ("none", "recorded") or not offered(of.llm, GeneratorOffers).takes_context:
        why = {"none": "gives no answers", "recorded": "was asked before: there is nobody to ask"}
        yield (
            "generator",
            (
                "has the llm answer from other contexts, and this job's llm "
                f"{why.get(of.llm.kind, 'answers from what it retrieves by itself')}"
            ),
        )
    if of.judge.kind in ("none", "recorded"):
        yield "judge", "has the judge label answers, and this job's judge labels none that are new"
    if of.llm.kind == "none":
        yield "answers", "measures answers, and llm=none gives none"
    if of.llm.kind in ("chat", "embedded") and not cites(of):
        yield (
            "citations",
            "measures citations, and this llm gives none: set llm.cite=true of a chat model",
        )
    if alone and (pipeline.n_tokens == 0 or retriever.top_k == 0):
        yield "contexts", "measures contexts, and this job gives the LLM none"
    if retriever.condition not in (None, 0):
        yield "plain", "is measured on the plain evidence alone, retriever.condition=0"
    topics = pipeline.frame("topics")
    if not any(references(topics).values()):
        yield "references", "compares with reference answers, and no topic of this dataset has one"
    if not wrong_answers(topics):
        yield (
            "changed",
            (
                "compares with what documents with a changed fact lead to, and no topic of this dataset has "
                "wrong_answers: dataset=fictional dataset.twins=true and RGB's file en_fact.json have"
            ),
        )
    if scorable(pipeline.frame("evidence"), topics).empty:
        yield "evidence", "compares with evidence, and no topic of this dataset has the text of any"
