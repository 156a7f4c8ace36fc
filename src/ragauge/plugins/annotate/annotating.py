"""`ragauge annotate`: composed configs in, files of evidence and an MLflow run out."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from hydra.core.config_store import ConfigStore

from ragauge import track
from ragauge.contract import __version__
from ragauge.contract.checks import require_count
from ragauge.contract.component import ChatModel, KeepsReplies
from ragauge.contract.errors import ConfigError, MissingError, RagaugeError, full_disk
from ragauge.contract.redact import remember
from ragauge.contract.retrieval import BringsTexts, SeesEvidence
from ragauge.contract.settings import Settings
from ragauge.experiment.need_sums import added_up, describe_needs
from ragauge.experiment.request import write_config
from ragauge.experiment.setup import config
from ragauge.findings.cost import costs_of_replies
from ragauge.llms.chat_use import SharedChat, TellingChat
from ragauge.plugins.annotate import records
from ragauge.plugins.annotate.depth import Missed, missed
from ragauge.plugins.annotate.grading import WHO, Graded, Part, grade, parts_of, template
from ragauge.plugins.annotate.pool import PooledPassage, pooled
from ragauge.plugins.synthesis.records import json_lines, make_folder, write_text

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.stages.pipeline import Pipeline

Tell = Callable[[str], None]
_RANKS = ("rewriter", "retriever", "reranker")  # groups whose components make a ranking
_TAGGED = ("dataset", "chunker", "embedder", "llm", "evaluator")


@dataclass
class AnnotationConfig(Settings):
    """The keys of conf/annotate.yaml beside those of a job."""

    pool: list[str] = field(default_factory=lambda: ["bm25", "sim", "mmr"])
    depth: int = 10
    out: str | None = None
    overwrite: bool = False
    corpus: str | None = None
    min_grade: int = 2
    sheet_topics: int = 50


def register() -> None:
    """Registers `AnnotationConfig` with Hydra, which conf/config.yaml starts from instead of `Settings`."""
    config.register()
    ConfigStore.instance().store(name="schema", node=AnnotationConfig)


@dataclass(frozen=True)
class Annotation:
    """Graded passages and evidence parts by qid, and an estimate of evidence in deeper pools."""

    graded: Mapping[str, list[Graded]]
    parts: Mapping[str, list[Part]]
    missed: Missed | None

    @property
    def passages(self) -> list[Graded]:
        """The passages of all topics."""
        return [one for of_topic in self.graded.values() for one in of_topic]

    def metrics(self) -> dict[str, float]:
        """The metrics of the MLflow run."""
        every, parts = self.passages, [part for of_topic in self.parts.values() for part in of_topic]
        found: dict[str, float] = {
            "annotation_topics": len(self.graded),
            "annotation_topics_with_evidence": sum(bool(of_topic) for of_topic in self.parts.values()),
            "annotation_passages": len(every),
            "annotation_parts": len(parts),
            "annotation_unverified_quotes": sum(len(one.unverified) for one in every),
            "annotation_unreadable": sum(one.status == "unreadable" for one in every),
            "annotation_failed": sum(one.status == "failed" for one in every),
            **{f"annotation_grade_{n}": sum(one.grade == n for one in every) for n in range(4)},
        }
        if self.missed is not None:
            of = {"": self.missed.value, "_lo": self.missed.lo, "_hi": self.missed.hi}
            found |= {f"annotation_missed{name}": value for name, value in of.items()}
        return found


def execute(cfgs: Mapping[str, DictConfig], choices: Mapping[str, str], tell: Tell) -> None:
    """Annotates by the configs, one per retriever of the pool; `tell` gets every line. Raises the errors of a job."""
    from omegaconf import OmegaConf

    cfg = next(iter(cfgs.values()))
    remember(OmegaConf.to_container(cfg, resolve=True))
    require_count("depth", cfg.depth, most=1000)
    require_count("min_grade", cfg.min_grade, most=3)
    require_count("sheet_topics", cfg.sheet_topics, 2)
    files = None if cfg.dry_run else records.checked_files(cfg.out, cfg.corpus, cfg.overwrite)
    for one in cfgs.values():
        config.check_values(one)
        config.settle(one)
    pipelines = {name: _pipeline(name, one) for name, one in cfgs.items()}
    first = next(iter(pipelines.values()))
    evaluator = _evaluator(first, choices, tell)
    topics, evidence = first.frame("topics"), first.frame("evidence")
    unanswerable = topics["unanswerable"] if "unanswerable" in topics else pd.Series(False, index=topics.index)
    open_ones = topics[~topics["qid"].isin(evidence["qid"]) & ~unanswerable.astype(bool)]
    if open_ones.empty:
        raise ConfigError(
            f"dataset={choices.get('dataset', '?')}: all {len(topics):,} topics have evidence (or are unanswerable), "
            "so there is nothing to annotate"
        )
    if len(open_ones) < len(topics):
        tell(
            f"{len(open_ones):,} of {len(topics):,} topics are annotated; the others have evidence or are "
            "unanswerable, and stay as they are"
        )
    if not first.entry("dataset").n_rows("docs"):
        raise ConfigError(
            f"dataset={choices.get('dataset', '?')}: it has no documents to find evidence in; give them, such as "
            "dataset.docs=documents.jsonl with {docno, text} a line"
        )
    pools = _pools(pipelines, open_ones, int(cfg.depth))
    questions = dict(zip(open_ones["qid"].astype(str), open_ones["query"], strict=True))
    sizes = [len(pool) for pool in pools.values()]
    tell(
        f"pool: the first {cfg.depth} passages of {', '.join(pools_of(cfg))} for {len(pools):,} topics, "
        f"{sum(sizes):,} distinct passages ({sum(sizes) / len(sizes):.1f} a topic)"
    )
    if cfg.dry_run:
        chat: Any = TellingChat(evaluator)
        grade(pools, questions, chat, first.store, int(cfg.min_grade))
        needs = chat.needs.assign(who=WHO) if len(chat.needs) else chat.needs
        tell(describe_needs(added_up(needs) if len(needs) else {}))
        tell("a reply that cannot be read is asked for once more")
        return
    assert files is not None
    try:
        _run(cfg, choices, first, evaluator, pools, questions, files, tell)
    except OSError as error:
        if (told := full_disk(error, cfg.store, files.topics)) is not None:
            raise RagaugeError(told) from error
        raise


def pools_of(cfg: DictConfig) -> list[str]:
    """The names of `pool`; ConfigError for fewer than two, or a repeated one."""
    names = [str(name) for name in cfg.pool]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ConfigError(f"pool=[{', '.join(names)}]: allowed are two or more different options of retriever")
    return names


def _pipeline(name: str, cfg: DictConfig) -> Pipeline:
    """The pipeline of one retriever; ConfigError if it cannot be pooled to the depth."""
    from ragauge.experiment.stages.components import instantiate_components
    from ragauge.experiment.stages.pipeline import Pipeline
    from ragauge.store import Store

    components = replace(instantiate_components(cfg), answers={})
    pipeline = Pipeline(components, Store(Path(cfg.store)), cfg.n_tokens, tuple(cfg.n_grid))
    retriever = components.retriever
    top_k = retriever.top_k
    if isinstance(retriever, (BringsTexts, SeesEvidence)) or top_k == 0:
        raise ConfigError(f"pool: retriever={name} does not search the documents: choose others, such as bm25, sim")
    if top_k is not None and top_k < cfg.depth:
        raise ConfigError(f"depth={cfg.depth}: retriever={name} gives top_k={top_k} passages; allowed are 1 to {top_k}")
    if any(
        stage.group in _RANKS and "chat" in stage.uses and pipeline.chat_of(stage) is not None
        for stage in pipeline.stages
    ):
        raise ConfigError(f"pool: retriever={name} (or its rewriter or reranker) asks an LLM: choose others")
    return pipeline


def _evaluator(pipeline: Pipeline, choices: Mapping[str, str], tell: Tell) -> ChatModel:
    """The chat model that grades; warns if it also answers. ConfigError if there is none."""
    components = pipeline.components
    llm = components.llm if components.llm.kind == "chat" and isinstance(components.llm, ChatModel) else None
    found = None if pipeline.evaluator_chat is None else pipeline.evaluator_chat.chat
    if found is None:
        raise ConfigError(
            f"evaluator={choices.get('evaluator', '?')}: no chat model grades passages; choose one "
            "(evaluator=openai_compatible, openai, ollama)"
        )
    if not isinstance(found, KeepsReplies):
        raise ConfigError(f"evaluator={choices.get('evaluator', '?')}: it cannot count its requests beforehand")
    name = getattr(found, "model_name", None)
    if llm is not None and name == getattr(llm, "model_name", None):
        tell(
            f"warning: the evaluator is the model that answers ({name}); it may find its own answers' evidence too "
            "easily. Choose another evaluator"
        )
    return found


def _pools(pipelines: Mapping[str, Pipeline], topics: pd.DataFrame, depth: int) -> dict[str, list[PooledPassage]]:
    qids = topics["qid"].astype(str).tolist()
    runs = {name: pipeline.frame("run") for name, pipeline in pipelines.items()}
    chunks = next(iter(pipelines.values())).frame("chunks")
    return pooled(runs, chunks, qids, depth)


def _run(
    cfg: DictConfig,
    choices: Mapping[str, str],
    pipeline: Pipeline,
    evaluator: ChatModel,
    pools: Mapping[str, list[PooledPassage]],
    questions: Mapping[str, str],
    files: records.Files,
    tell: Tell,
) -> None:
    from omegaconf import OmegaConf

    start = time.perf_counter()
    model = str(getattr(evaluator, "model_name", "?"))
    plain: Any = OmegaConf.to_container(cfg, resolve=True)
    tags: dict[str, Any] = {
        "role": "annotation", "model": model, "pool": ",".join(pools_of(cfg)),
        **{group: choices.get(group, "?") for group in _TAGGED},
        "dataset_digest": pipeline.entry("dataset").digest,
    }  # fmt: skip
    for file in (files.topics, files.corpus):
        if file is not None:
            make_folder(file)
    tracker = track.Tracker(track.tracking_uri(cfg.tracking.uri), cfg.tracking.experiment or str(cfg.dataset.name))
    name = f"annotate · {len(pools)} topics · {model}"
    with tracker.run(name, track.flatten(plain), tags, note=cfg.tracking.note) as run:
        write_config(cfg, run.folder / "config")
        run.flush()  # an LLM may take hours
        chat = SharedChat(evaluator)
        chat.asking = WHO
        graded = grade(pools, questions, chat, pipeline.store, int(cfg.min_grade))
        parts = {qid: parts_of(of_topic) for qid, of_topic in graded.items()}
        beyond = missed([[part.rank for part in of] for of in parts.values()], int(cfg.depth), int(cfg.seed))
        made = Annotation(graded, parts, beyond)
        costs = costs_of_replies(chat.replies(WHO))
        run.metrics({**made.metrics(), **costs, "seconds_total": time.perf_counter() - start})
        _check_failures(made, float(cfg.max_missing_share))
        texts = _texts(cfg, pipeline, made, model, files)
        for file, text in texts.items():
            write_text(file, text)
            if file != files.corpus:
                (run.folder / file.name).write_bytes(file.read_bytes())
        _tell_outcome(made, int(cfg.depth), tell)
        for file in texts:
            tell(f"wrote {file}")
        if (command := _next(cfg, choices, files)) is not None:
            tell(f"next: {command}")


def _next(cfg: DictConfig, choices: Mapping[str, str], files: records.Files) -> str | None:
    """The command that measures with the evidence; None where no dataset is known to read it."""
    dataset = choices.get("dataset")
    docs = files.corpus or (cfg.dataset.docs if dataset in ("jsonl", "samples") else None)
    if docs is not None:
        source = ["dataset=jsonl", f"dataset.docs={docs}"]
    elif dataset == "folder":
        source = ["dataset=folder", f"dataset.path={cfg.dataset.path}"]
    else:
        return None
    recorded = ["experiment=recorded", f"recorded.path={cfg.dataset.get('path')}", "judge=lexical"]
    system = recorded if dataset == "samples" else [f"retriever={','.join(pools_of(cfg))}"]
    return shlex.join(["ragauge", "-m", *system, *source, f"dataset.topics={files.topics}"])


def _texts(cfg: DictConfig, pipeline: Pipeline, made: Annotation, model: str, files: records.Files) -> dict[Path, str]:
    """The content of every file."""
    topics, evidence = pipeline.frame("topics"), pipeline.frame("evidence")
    of = records.Provenance(model, template(), pools_of(cfg), int(cfg.depth), int(cfg.min_grade), __version__)
    texts = {
        files.topics: json_lines(records.topic_records(topics, evidence, made.graded, made.parts, of)),
        files.qrels: records.qrels_text(made.graded),
        files.pool: json_lines(records.pool_records(made.graded)),
        files.sheet: records.sheet_text(topics, made.graded, int(cfg.sheet_topics), int(cfg.seed), of.min_grade),
    }
    return texts | ({} if files.corpus is None else {files.corpus: records.corpus_text(pipeline.frame("docs"))})


def _check_failures(made: Annotation, most: float) -> None:
    """MissingError if too many requests failed, or no reply was readable; a rerun asks only for these."""
    failed, every = sum(one.status == "failed" for one in made.passages), len(made.passages)
    unreadable = sum(one.status == "unreadable" for one in made.passages)
    if unreadable and failed + unreadable == every:
        raise MissingError(
            f"no grade could be read in the replies on {unreadable:,} passages"
            f"{f', and {failed:,} requests failed' if failed else ''}: nothing is written. Look at a reply (ragauge "
            "ledger), or choose another evaluator; one that breaks off was cut: raise evaluator.max_tokens, or "
            "evaluator.chat.max_tokens of an evaluator of its own"
        )
    if failed > most * every:
        raise MissingError(
            f"{failed:,} of {every:,} passages have no grade since their requests failed, more than "
            f"max_missing_share={most:g}; what was answered is kept, and the same command asks for the rest"
        )


def _tell_outcome(made: Annotation, depth: int, tell: Tell) -> None:
    of = made.metrics()
    every = len(made.passages)
    grades = ", ".join(f"{of[f'annotation_grade_{n}']:,.0f} of grade {n}" for n in range(3, -1, -1))
    lost = int(of["annotation_unreadable"] + of["annotation_failed"])
    tell(f"{every:,} passages: {grades}{f'; {lost:,} without a grade' if lost else ''}")
    tell(
        f"{of['annotation_parts']:,.0f} evidence parts for {of['annotation_topics_with_evidence']:,.0f} of "
        f"{of['annotation_topics']:,.0f} topics; {of['annotation_unverified_quotes']:,.0f} quotes dropped that do not "
        "stand in their passage"
    )
    if made.missed is not None:
        half = depth // 2
        deep = sum(made.missed.by_rank[half:])
        share = "" if made.missed.share != made.missed.share else f", {made.missed.share:.1%} of all up to there"
        tell(
            f"depth: {deep:,} parts were first found at ranks {half + 1} to {depth}; ranks {depth + 1} to {2 * depth} "
            f"would bring about {made.missed.value:.1f} more (95 % {made.missed.lo:.1f} to {made.missed.hi:.1f}{share})"
        )
        tell("evidence that none of these retrievers ranks so far up is in no such number")
