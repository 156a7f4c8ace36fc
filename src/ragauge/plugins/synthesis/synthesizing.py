"""`ragauge synthesize`: a composed config in, files of questions and an MLflow run out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from hydra.core.config_store import ConfigStore

from ragauge import track
from ragauge.contract import __version__
from ragauge.contract.component import ChatModel, KeepsReplies
from ragauge.contract.errors import ConfigError, MissingError, RagaugeError, full_disk
from ragauge.contract.redact import remember
from ragauge.contract.retrieval import BringsTexts, SeesEvidence
from ragauge.contract.settings import Settings as JobSettings
from ragauge.experiment.need_sums import added_up, describe_needs
from ragauge.experiment.request import write_config
from ragauge.experiment.setup import config
from ragauge.findings.cost import costs_of_replies
from ragauge.plugins.synthesis.documents_alone import DocumentsAlone, documents_of, questions_of

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.contract.stages import Components
    from ragauge.experiment.stages.pipeline import Pipeline
    from ragauge.plugins.synthesis.documents import Documents
    from ragauge.plugins.synthesis.rounds import Result, Synthesis
    from ragauge.plugins.synthesis.settings import Settings

log = logging.getLogger(__name__)

Tell = Callable[[str], None]

_TAGGED = ("dataset", "retriever", "embedder", "llm", "evaluator")


@dataclass
class Shares:
    """Shares of the kinds of questions; None: none of that kind, or the usual ones where all are None."""

    one_hop: float | None = None
    two_hop: float | None = None
    comparison: float | None = None
    unanswerable: float | None = None


@dataclass
class Filters:
    """The filters of conf/synthesize.yaml."""

    follows: bool = True
    closed_book: str = "tokens"
    closed_book_f1: float = 0.6
    duplicate_cosine: float | None = 0.92
    round_trip: str = "record"
    round_trip_top_k: int = 10


@dataclass
class SynthesisConfig(JobSettings):
    """The keys of conf/synthesize.yaml beside those of a job."""

    n_questions: int = 100
    out: str | None = None
    overwrite: bool = False
    writer: str = "llm"
    max_tokens: int | None = 1024
    shares: Shares = field(default_factory=Shares)
    max_drafts: int | None = None
    stratify: str = "auto"
    max_chars: int = 6000
    against: list[str] = field(default_factory=list)
    filters: Filters = field(default_factory=Filters)
    sheet: str | None = None
    questions: str | None = None


def register() -> None:
    """Registers `SynthesisConfig` with Hydra, which conf/config.yaml starts from instead of `Settings`."""
    config.register()
    ConfigStore.instance().store(name="schema", node=SynthesisConfig)


def execute(cfg: DictConfig, choices: Mapping[str, str], tell: Tell) -> None:
    """Runs the synthesis of the config; `tell` gets every line for the terminal. Raises the errors of a job."""
    from omegaconf import OmegaConf

    from ragauge.plugins.synthesis.records import checked_files
    from ragauge.plugins.synthesis.sheet import apply_sheet

    remember(OmegaConf.to_container(cfg, resolve=True))
    if cfg.sheet is not None:
        applied = apply_sheet(cfg.sheet, cfg.questions, cfg.out, cfg.overwrite)
        tell(
            f"{cfg.out}: {applied.accepted} questions accepted, {applied.rejected} rejected, "
            f"{applied.undecided} without a decision"
        )
        return
    if cfg.questions is not None:
        raise ConfigError(f"questions={cfg.questions}: is read with a sheet; give sheet=<its sheet>")
    settings = _settings(cfg)
    files = None if cfg.dry_run else checked_files(cfg.out, cfg.overwrite)
    config.check_values(cfg)
    config.settle(cfg)
    pipeline = _pipeline(cfg)
    synthesis = _synthesis(cfg, choices, pipeline, settings, tell)
    if cfg.dry_run:
        _tell_needs(synthesis, tell)
        return
    assert files is not None
    try:
        _run(cfg, choices, pipeline, synthesis, files)
    except OSError as error:
        if (told := full_disk(error, cfg.store, files.questions)) is not None:
            raise RagaugeError(told) from error
        raise


def _settings(cfg: DictConfig) -> Settings:
    from omegaconf import OmegaConf

    from ragauge.plugins.synthesis.settings import Filters, Settings

    plain: Any = OmegaConf.to_container(cfg, resolve=True)
    own = ("n_questions", "writer", "shares", "max_drafts", "stratify", "max_chars", "seed", "language")
    return Settings(**{name: plain[name] for name in own}, filters=Filters(**plain["filters"]))


def _pipeline(cfg: DictConfig) -> Pipeline:
    """The job's pipeline over the dataset's documents, for its chunks, its index and its models."""
    from ragauge.experiment.stages.components import instantiate_components
    from ragauge.experiment.stages.pipeline import Pipeline
    from ragauge.store import Store

    components = instantiate_components(cfg)
    components = replace(components, dataset=documents_of(components.dataset), answers={})
    return Pipeline(components, Store(Path(cfg.store)), cfg.n_tokens, tuple(cfg.n_grid))


def _synthesis(
    cfg: DictConfig, choices: Mapping[str, str], pipeline: Pipeline, settings: Settings, tell: Tell
) -> Synthesis:
    """The parts of a synthesis; ConfigError, before any work, if a needed one is not chosen."""
    from ragauge.plugins.synthesis.asking import Asking
    from ragauge.plugins.synthesis.documents import drawn
    from ragauge.plugins.synthesis.rounds import Synthesis

    components = pipeline.components
    chosen = f"llm={choices.get('llm', '?')}"
    llm = components.llm if components.llm.kind == "chat" and isinstance(components.llm, ChatModel) else None
    evaluator = None if pipeline.evaluator_chat is None else pipeline.evaluator_chat.chat
    if llm is None and not settings.stand_in:
        raise ConfigError(
            f"{chosen} is no chat model, and writer=llm has one write {', '.join(settings.wanted())}: choose "
            "one (llm=ollama, openai, openai_compatible), or writer=cloze, a stand-in by rules"
        )
    if settings.stand_in and settings.filters.closed_book != "skip" and llm is None:
        tell(f"closed_book: no LLM is asked, since {chosen} is no chat model")
    searches = settings.filters.round_trip != "skip"
    if searches:
        _check_retriever(components, choices)
    against = [(f"{path}, question {i}", text) for path in cfg.against for i, text in _numbered(path)]
    docs = pipeline.frame("docs")
    for reason in pipeline.frame("skipped")["skipped"]:
        log.warning("skipped: %s", reason)
    if docs.empty:
        raise ConfigError(f"dataset={choices.get('dataset', '?')} has no documents to write questions from")
    documents = drawn(docs, settings.stratify, settings.seed)
    if documents.too_short:
        tell(f"{documents.too_short:,} of {len(docs):,} documents have no sentence of five words: not used")
    if not isinstance(components.dataset, DocumentsAlone):
        topics = pipeline.frame("topics")
        against += [(f"qid {qid}", text) for qid, text in zip(topics["qid"], topics["query"], strict=True)]
    writer = None if llm is None else llm.beside_answers(cfg.max_tokens, "max_tokens")
    asking = Asking(llm, writer, evaluator, pipeline.store, dry=bool(cfg.dry_run))
    if cfg.dry_run and not all(isinstance(chat, KeepsReplies) for chat in (llm, evaluator) if chat is not None):
        raise ConfigError(f"dry_run: {chosen} or the evaluator cannot count its requests beforehand")
    search = _search(pipeline) if searches and not cfg.dry_run else None
    return Synthesis(documents, settings, asking, pipeline.tools.embedder, search, against, tell)


def _numbered(path: str) -> list[tuple[int, str]]:
    return list(enumerate(questions_of("against", path), start=1))


def _check_retriever(components: Components, choices: Mapping[str, str]) -> None:
    """ConfigError for a retriever that cannot search the documents by question alone, or asks an LLM."""
    retriever = components.retriever
    chosen = f"retriever={choices.get('retriever', '?')}"
    instead = "choose another, such as bm25, sim or hybrid, or filters.round_trip=skip"
    if isinstance(retriever, (BringsTexts, SeesEvidence)) or retriever.top_k == 0:
        raise ConfigError(f"filters.round_trip searches the documents, which {chosen} does not: {instead}")
    if "chat" in retriever.uses:
        raise ConfigError(f"filters.round_trip: {chosen} asks an LLM for every search: {instead}")


def _search(pipeline: Pipeline) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """A function from questions to the retriever's chunks and their documents; builds the index if needed."""

    def search(topics: pd.DataFrame) -> pd.DataFrame:
        chunks = pipeline.frame("chunks")
        retriever = pipeline.components.retriever
        found = retriever.transformer(chunks, pipeline.folder_of("index"), pipeline.tools)(topics)
        of = chunks.set_index("docno")
        hits = found[["qid", "docno", "rank"]]
        texts = of["text"].reindex(hits["docno"]).array
        return hits.assign(docno=of["parent"].reindex(hits["docno"]).array, text=texts)

    return search


def _tell_needs(synthesis: Synthesis, tell: Tell) -> None:
    """Prints the requests, and upper bounds of calls, tokens and money."""
    settings = synthesis.settings
    synthesis.tell_needs()
    sums = added_up(synthesis.ask.needs()) if len(synthesis.ask.needs()) else {}
    if not sums:
        tell("nobody is asked")
        return
    for who, n in sums.items():
        tell(describe_needs({who: n}))
    factor = settings.most_drafts / settings.n_questions
    calls, cost = (factor * sum(n[key] for n in sums.values()) for key in ("calls", "cost_usd"))
    tell(
        f"if every draft passes; at most {settings.most_drafts} drafts are written (max_drafts), then about "
        f"{calls:,.0f} calls and {cost:,.2f} USD. A reply that cannot be read is asked for once more"
    )


def _run(cfg: DictConfig, choices: Mapping[str, str], pipeline: Pipeline, synthesis: Synthesis, files: Any) -> None:
    from omegaconf import OmegaConf

    from ragauge.plugins.synthesis import cloze, records, rounds

    start = time.perf_counter()
    settings, documents = synthesis.settings, synthesis.documents
    model = cloze.MODEL if settings.stand_in else str(getattr(pipeline.components.llm, "model_name", "?"))
    plain: Any = OmegaConf.to_container(cfg, resolve=True)
    tags: dict[str, Any] = {
        "role": "synthesis", "writer": settings.writer, "stand_in": settings.stand_in, "model": model,
        **{group: choices.get(group, "?") for group in _TAGGED},
        "dataset_digest": pipeline.entry("dataset").digest,
    }  # fmt: skip
    tracker = track.Tracker(track.tracking_uri(cfg.tracking.uri), cfg.tracking.experiment or str(cfg.dataset.name))
    name = f"synthesize · {settings.n_questions} questions · {model}"
    with tracker.run(name, track.flatten(plain), tags, note=cfg.tracking.note) as run:
        write_config(cfg, run.folder / "config")
        run.flush()  # an LLM may take hours
        result = synthesis.run()
        of = records.Provenance(model, settings.seed, settings.stand_in, __version__)
        told = {**rounds.outcome(result), "documents": len(documents.in_order)}
        told |= costs_of_replies(synthesis.ask.replies()) if synthesis.ask.asks else {}
        run.metrics({**told, "seconds_total": time.perf_counter() - start})
        _check_failures(result, cfg.max_missing_share)
        written = records.write(result, documents, files, of)
        for file in written:
            (run.folder / file.name).write_bytes(file.read_bytes())
        _tell_outcome(result, files, written, synthesis.tell, documents)
        if not result.accepted:
            raise MissingError(f"no question passed the filters; {files.rejected} says why")


def _check_failures(result: Result, max_missing_share: float) -> None:
    """MissingError if so many requests failed that there are too few questions."""
    from ragauge.plugins.synthesis.rounds import unanswered

    failed, drafts = unanswered(result), len(result.drafts)
    if result.lacking() and drafts and failed > max_missing_share * drafts:
        raise MissingError(
            f"{failed} of {drafts} drafts are lost to requests that failed, more than "
            f"max_missing_share={max_missing_share:g}; what was answered is kept, and the same command asks "
            "for the rest"
        )


def _tell_outcome(result: Result, files: Any, written: list[Path], tell: Tell, documents: Documents) -> None:
    settings, counts = result.settings, result.counts()
    struck = ", ".join(f"{n} {reason}" for reason, n in counts.items() if n)
    of = "cloze questions (stand-in by rules)" if settings.stand_in else "questions"
    tell(
        f"{len(result.accepted)} of {settings.n_questions} {of} accepted; {len(result.rejected)} drafts "
        f"rejected{f': {struck}' if struck else ''}"
    )
    if lacking := result.lacking():
        told = ", ".join(f"{n} {kind}" for kind, n in lacking.items())
        why = "max_drafts are written" if len(result.drafts) >= settings.most_drafts else "no pair is left"
        tell(f"lacking: {told} ({why})")
    if counts["unreadable"]:
        tell(f"unreadable replies stand in {files.rejected}; one that breaks off was cut: raise max_tokens")
    numbers = [draft.results["round_trip"] for draft in result.accepted if "round_trip_rank" in draft.results]
    searched = [number for number in numbers if number != "not applicable"]
    if searched:
        found = sum(number == "passed" for number in searched)
        mode = (
            "filtered by it: the questions are those that this retriever finds easy"
            if settings.filters.round_trip == "filter"
            else "recorded; as a filter it would favour questions that this retriever finds easy"
        )
        tell(
            f"round trip: of {found} of {len(searched)} the retriever has all documents among the first "
            f"{settings.filters.round_trip_top_k} ({mode})"
        )
    tell(f"documents in equal shares by {documents.by}")
    for file in written:
        tell(f"wrote {file}")
