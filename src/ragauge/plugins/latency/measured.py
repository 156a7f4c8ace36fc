"""Measures the time of one question: sends topics one by one through a job's own stages, including answers.

It measures a user's wait, and not a batch's share. Models and index are loaded, by one topic that is not counted, and
nothing that was computed or asked before answers. A chat model's server has computed no beginning of a prompt. Chunks
and index are those of the job.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import logging
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge.contract.answering import ASKED, AsksForAnswers
from ragauge.contract.component import Embedder, Role, Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import as_frame
from ragauge.contract.identity import identity
from ragauge.contract.progress import progress
from ragauge.contract.provenance import hardware
from ragauge.contract.retrieval import BringsTexts, Retriever
from ragauge.contract.stages import Budget, Components, Frames, Incomplete, Reads, Stage
from ragauge.contract.workplace import FreshWorkplace
from ragauge.experiment.dry_run import stand_ins, unknown_contexts
from ragauge.experiment.need_sums import untold
from ragauge.experiment.stages.order import question_stages, stages
from ragauge.findings.cost import RECORDED, costs_of_replies
from ragauge.llms.chat_use import SharedChat
from ragauge.store import Key, canonical_json

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline

log = logging.getLogger(__name__)

STAGE, VERSION = "latency", 2
TOTAL = "total"
_QUANTILES = {"p50": 0.5, "p95": 0.95}
# Settings that change how fast a component is and nothing that it makes.
_OF_SPEED = ("threads", "batch_size", "device", "backend", "concurrency", "requests_per_minute")


def latency(pipeline: Pipeline, n_topics: int, seed: int) -> dict[str, float]:
    """Median and 95th percentile of seconds per stage and end to end, over topics sent one by one.

    Returns latency_<stage>_p50 and _p95, latency_total_p50 and _p95, latency_topics, and for a chat model
    latency_llm_calls and their cost. latency_failed counts topics whose answer or queries an LLM failed to give: they
    are not in the percentiles. At most n_topics, a sample of this seed, are measured, and one more before them. Kept in
    the store, so that nothing is measured twice on one machine, unless a topic failed. {} where there are no two
    topics.
    """
    parts = (pipeline.components.retriever, pipeline.components.llm)
    if any(RECORDED in (part.component, part.kind) for part in parts):
        raise ConfigError("what is recorded was not asked now; a file may tell `seconds` of its answers")
    chosen = _chosen(pipeline.frame("topics"), n_topics, seed)
    if len(chosen) < 2:
        log.warning("measure_latency: two topics or more are needed, one of them to load what is used")
        return {}
    runner = _Runner(pipeline)
    start = time.perf_counter()
    made = True
    try:
        entry = pipeline.store.get_frames(
            latency_key(pipeline, n_topics, seed), partial(runner.run, chosen), runner.told
        )
        rows, made, told = entry.frame(STAGE), entry.made, entry.told
    except Incomplete as incomplete:
        rows, told = incomplete.frames[STAGE], runner.told
    if made:
        pipeline.made.append(STAGE)
    pipeline.seconds[STAGE] = time.perf_counter() - start
    if cold := told.get("cold"):
        log.info("latency: chat models were asked cold, %s", cold)
    return {**_percentiles(rows, len(chosen) - 1), **runner.costs()}


def needs_of_latency(
    pipeline: Pipeline, n_topics: int, seed: int, known: pd.DataFrame | None = None
) -> list[pd.DataFrame]:
    """The requests of a measurement, which asks everything again; none if it is stored.

    `known` are the job's answers: once all are there, the measurement can be looked up.
    """
    if not pipeline.asks:
        return []
    llm, topics = pipeline.components.llm, pipeline.frame("topics")
    complete = known is not None and known["answer"].notna().all()
    if complete and pipeline.store.find(latency_key(pipeline, n_topics, seed)) is not None:
        return []
    n = min(n_topics + 1, topics["query"].nunique())
    if n < 2:
        return []
    asking = [s.group for s in question_stages(pipeline.stages) if s.group and "chat" in s.uses]
    found = [untold(f"latency, {group}", n) for group in dict.fromkeys(asking)]
    if llm.kind not in ASKED or pipeline.asked_before:
        return found
    if not isinstance(llm, AsksForAnswers):
        return [*found, untold("latency", n)]
    prompts = llm.prompts(topics, unknown_contexts(pipeline, topics))
    return [*found, stand_ins(llm.needs_of(prompts, pipeline.store).head(n)).assign(who="latency")]


def latency_key(pipeline: Pipeline, n_topics: int, seed: int) -> Key:
    """Everything that a measurement depends on: the job's stages with their inputs, the machine, the topics."""
    of_question = question_stages(pipeline.stages)
    return Key(
        STAGE,
        VERSION,
        {
            "stages": {s.name: pipeline.key(s.name).digest for s in of_question if s.stored},
            "settings": _settings_of_speed(pipeline.components),
            "topics": n_topics,
            "seed": seed,
            **hardware(),
        },
    )


def _settings_of_speed(components: Components) -> dict[str, Any]:
    """The settings outside identities, by component; of a chat model a digest of them."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(components):
        part = getattr(components, field.name)
        own = {name: getattr(part, name) for name in _OF_SPEED if hasattr(part, name)}
        if isinstance(chat := getattr(part, "chat", None), Mapping):
            own["chat"] = hashlib.sha256(canonical_json(dict(chat)).encode()).hexdigest()
        if own and field.name not in ("measure", "judge"):
            found[field.name] = {name: value if _plain(value) else str(value) for name, value in own.items()}
    return found


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _chosen(topics: pd.DataFrame, n_topics: int, seed: int) -> list[str]:
    """The topics to send and the warm-up topic: a sample without repeated questions."""
    distinct = topics.drop_duplicates("query")["qid"]
    n = min(n_topics + 1, len(distinct))
    return [str(qid) for qid in distinct.sample(n, random_state=seed)]


def _percentiles(rows: pd.DataFrame, n_sent: int) -> dict[str, float]:
    """The percentiles of every stage and of the sums over stages; none if no topic succeeded."""
    names = list(dict.fromkeys(rows["stage"]))
    wide = rows.pivot(index="qid", columns="stage", values="seconds")[names]
    wide[TOTAL] = wide.sum(axis=1)
    found: dict[str, float] = {"latency_topics": len(wide), "latency_failed": n_sent - len(wide)}
    if len(wide):
        for name in wide:
            found |= {f"latency_{name}_{end}": float(np.quantile(wide[name], q)) for end, q in _QUANTILES.items()}
    return found


@dataclass(frozen=True)
class _Uncached(Embedder):
    """An embedder that computes every vector; keeps files derived from its model at `root`."""

    model: Embedder
    root: Path

    def identity(self) -> dict[str, Any]:
        """The model's own."""
        return identity(self.model)

    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        """float32 [len(texts), dimensions], rows of length 1."""
        return self.model.embed(texts, role, self.root)


class _Runner:
    """Sends topics through the stages of a job, each with frames of one topic."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._components = dataclasses.replace(
            pipeline.components, retriever=_kept_loaded(pipeline.components.retriever)
        )
        # The other budgets of the grid are no part of what a question takes.
        budget = Budget(pipeline.n_tokens, (pipeline.n_tokens,))
        self._stages = question_stages(stages(self._components, budget))
        self._chats = {stage: self._chat_of(stage) for stage in self._stages}
        self._answers: list[pd.DataFrame] = []
        self.told: dict[str, str] = {}

    def run(self, chosen: Sequence[str]) -> Frames:
        """Frame `latency` [qid, stage, seconds] of all but the first topic; Incomplete if some failed."""
        store = self._pipeline.store
        rows: list[tuple[str, str, float]] = []
        failed = 0
        # Exists while it is used alone: neither scores nor vectors of the job are found there.
        with tempfile.TemporaryDirectory(prefix="ragauge-latency-") as scratch:
            place = FreshWorkplace(Path(scratch), store.root, f"latency {uuid.uuid4().hex}")
            embedder = _Uncached(self._components.embedder, store.root)
            tools = Tools(place, embedder, self._components.tokenizer)
            limited = {
                s: dataclasses.replace(tools, chat=chat).limited_to(s.uses, type(s.component).__name__)
                for s, chat in self._chats.items()
            }
            outside = self._outside()
            with progress(len(chosen), "measuring latency", "topic") as bar:
                for number, qid in enumerate(chosen):
                    seconds, whole = self._topic(qid, outside, limited)
                    failed += number > 0 and not whole
                    if number > 0 and whole:
                        rows += [(qid, name, took) for name, took in seconds.items()]
                    bar.update()
        if place.cold:
            self.told["cold"] = " and ".join(sorted(place.cold))
        frame = pd.DataFrame(rows, columns=["qid", "stage", "seconds"])
        frame = frame.astype({"qid": "str", "stage": "str", "seconds": "float64"})
        if failed:
            log.warning("latency: %s of %s topics failed; they are not counted", failed, len(chosen) - 1)
            raise Incomplete({STAGE: frame})
        return {STAGE: frame}

    def costs(self) -> dict[str, float]:
        """The calls of the measurement and their cost; {} without a chat model, 0 if stored."""
        if not self._pipeline.asks:
            return {}
        asked = {(stage.group, id(chat)): chat for stage, chat in self._chats.items() if chat is not None}
        found = [chat.replies(group) for (group, _), chat in asked.items()] + self._answers
        sums: dict[str, float] = {}
        for replies in found:
            for name, value in costs_of_replies(replies, "latency_").items():
                sums[name] = sums.get(name, 0) + value
        return sums

    def _chat_of(self, stage: Stage) -> SharedChat | None:
        """The chat model that a stage's component asks in the job, with replies of its own."""
        of_job = self._pipeline.chat_of(stage)
        return None if of_job is None else SharedChat(of_job.chat)

    def _outside(self) -> dict[str, pd.DataFrame]:
        """The frames that stages read before any of them makes them."""
        there: dict[str, pd.DataFrame] = {}
        made: set[str] = set()
        for stage in self._stages:
            read = {read.name for read in stage.reads if not read.folder}
            for name in sorted(read - made - there.keys()):
                there[name] = self._pipeline.frame_for(stage.name, name)
            made.update(stage.makes)
        return there

    def _topic(
        self, qid: str, outside: Mapping[str, pd.DataFrame], tools: Mapping[Stage, Tools]
    ) -> tuple[dict[str, float], bool]:
        """The seconds of every stage for one topic, and whether all succeeded."""
        frames = {
            name: frame[frame["qid"] == qid].reset_index(drop=True) if "qid" in frame else frame
            for name, frame in outside.items()
        }
        seconds: dict[str, float] = {}
        whole = True
        for stage in self._stages:
            if (chat := self._chats[stage]) is not None:
                chat.asking = stage.group
            reads = self._reads(stage, frames)
            start = time.perf_counter()
            try:
                made = {name: as_frame(rows) for name, rows in stage.make(reads, tools[stage]).items()}
            except Incomplete as incomplete:
                made, whole = dict(incomplete.frames), False
            seconds[stage.name] = time.perf_counter() - start
            frames |= made
            if stage.asks is not None:
                whole = whole and not self._lacks(made[stage.makes[0]], stage.asks)
        return seconds, whole

    def _reads(self, stage: Stage, frames: Mapping[str, pd.DataFrame]) -> Reads:
        """The stage's inputs for one topic, and the job's own folders."""
        return Reads(stage.reads, lambda read: frames[read.name], lambda read: self._pipeline.folder_of(read.name))

    def _lacks(self, answers: pd.DataFrame, column: str) -> bool:
        """Keeps the answers for their costs; returns whether a requested one is missing."""
        if self._components.llm.kind in ASKED:
            self._answers.append(answers)
        return bool((answers[column].isna() & answers["status"].ne("none")).any())


def _kept_loaded(retriever: Any) -> Any:
    """A copy of the retriever that loads an index once, as a service does; also its parts."""
    if not isinstance(retriever, Retriever) or isinstance(retriever, BringsTexts):
        return retriever
    # Its own class stays, by which stages ask what it can do.
    loaded = copy.copy(retriever)
    for name, value in vars(retriever).items():
        object.__setattr__(loaded, name, _parts_loaded(value))  # it may be frozen
    load: Callable[..., Any] = loaded.transformer
    kept: dict[tuple[Path, int], tuple[Any, Tools]] = {}

    def transformer(chunks: pd.DataFrame, folder: Path, tools: Tools) -> Any:
        at = (folder, id(tools))
        if at not in kept:
            kept[at] = (load(chunks, folder, tools), tools)
        return kept[at][0]

    object.__setattr__(loaded, "transformer", transformer)
    return loaded


def _parts_loaded(value: Any) -> Any:
    """The value with its retrievers kept loaded; unchanged without any."""
    if isinstance(value, Mapping):
        named = {name: _kept_loaded(part) for name, part in value.items()}
        return named if any(named[name] is not part for name, part in value.items()) else value
    if type(value) in (list, tuple):
        parts = [_kept_loaded(part) for part in value]
        return type(value)(parts) if any(a is not b for a, b in zip(parts, value, strict=True)) else value
    return _kept_loaded(value)
