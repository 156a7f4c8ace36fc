"""Runs the plan of a job in a loop, reading each stage's output from the store or making it once.

Steps are made in the order of the plan, each after everything that it reads. The plan works out the key of each
(`ragauge.experiment.stages.plan`). So no stage runs inside of another.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from string import Formatter
from typing import Any

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.answer_measures import SETTLED
from ragauge.contract.answering import NOT_RECORDED
from ragauge.contract.component import SHARED, ChatModel, Tools
from ragauge.contract.errors import DataError, MissingError, UnreadableJudgeError
from ragauge.contract.frames import Batches, as_frame
from ragauge.contract.identity import identity
from ragauge.contract.progress import working
from ragauge.contract.stages import Components, Incomplete, Making, Read, Reads, Stage, Stages
from ragauge.experiment.stages.ahead import Ahead
from ragauge.experiment.stages.plan import JOINED, Output, Plan, Step
from ragauge.findings.cost import RECORDED, full_cost, taken
from ragauge.llms.chat_use import MOST_UNREAD, SharedChat
from ragauge.llms.pace import FIRST
from ragauge.llms.settings import ChatSettings
from ragauge.retrieval.embedders import CachedEmbedder
from ragauge.store import Entry, Key, Store
from ragauge.store.vectors import NotComputed

_AGAIN = (
    f"paid replies are kept, and a rerun asks only for the rest (an unreadable reply {MOST_UNREAD} times at most, then "
    "see ragauge ledger forget)"
)
# Of this many topics or more, a few may be missing whatever their share is: 2 of 25 are 8 %.
_FEW, _FEW_FROM = 2, 10
_REPLIES = 10  # unreadable ones, if none is readable, that say that the judge's model or prompt is wrong


@dataclass
class StageRunner(Stages):
    """The stages of one job, each made on first use.

    n_tokens, n_grid: the job's budget, and those at which the score is laid out, in tokens.
    max_missing_share: a larger share of missing answers or verdicts is a MissingError; of ten or more, two
        may be missing whatever the share, unless it is 0.
    `plan` is the list of stages. `seconds` holds the time of each in this process. `made` has the names of those that
    were not in the store, `making` what each took when its output was made. `unmeasured` has an error for each measure
    that asks an LLM and misses too many values. The job has no values of it, and ends with the errors.
    """

    components: Components
    store: Store  # type: ignore[assignment]
    n_tokens: int
    n_grid: tuple[int, ...]
    max_missing_share: float = 1.0
    plan: Plan = field(init=False, repr=False)
    seconds: dict[str, float] = field(default_factory=dict, init=False)
    made: list[str] = field(default_factory=list, init=False)
    making: dict[str, Making] = field(default_factory=dict, init=False)
    unmeasured: list[str] = field(default_factory=list, init=False)
    ahead: Ahead | None = field(default=None, init=False, repr=False)
    _joined: pd.DataFrame | None = field(default=None, init=False, repr=False)
    _chats_of_groups: dict[str, SharedChat] = field(default_factory=dict, init=False, repr=False)
    not_computed: dict[Stage, NotComputed] = field(default_factory=dict, init=False, repr=False)
    _own_chats: dict[Stage, SharedChat] = field(default_factory=dict, init=False, repr=False)

    @property
    def stages(self) -> list[Stage]:
        return [step.stage for step in self.plan.steps]

    @property
    def asked_before(self) -> bool:
        """Whether the llm's requests were sent already, so that its answers are free."""
        return False

    @cached_property
    def tools(self) -> Tools:
        engine = self.components.engine
        counted = dict[str, float]()
        embedder = CachedEmbedder(self.components.embedder, self.store.root, engine, counted)
        tokenizer = self.components.tokenizer
        return Tools(self.store, embedder, tokenizer, self.shared_chat, counted, engine)

    @cached_property
    def shared_chat(self) -> SharedChat | None:
        """The job's chat model for components other than the llm; None without one."""
        llm = self.components.llm
        return SharedChat(llm) if llm.kind == "chat" and isinstance(llm, ChatModel) else None

    @cached_property
    def evaluator_chat(self) -> SharedChat | None:
        evaluator = self.components.evaluator
        if isinstance(evaluator, ChatModel):
            return SharedChat(evaluator)
        return self._beside_answers("evaluator", evaluator.max_tokens)

    def chat_of(self, stage: Stage) -> SharedChat | None:
        component = stage.component
        if component is not None and component.own_chat is not None and "chat" in stage.uses:
            return self._own_chats.setdefault(stage, SharedChat(component.own_chat))
        if stage.evaluates:
            return self.evaluator_chat
        return self._beside_answers(stage.group, None if component is None else component.max_tokens)

    def _beside_answers(self, group: str, max_tokens: int | None) -> SharedChat | None:
        """The shared chat model as a config group asks it, with that limit of completion tokens; None keeps its own."""
        if self.shared_chat is None:
            return None
        if group not in self._chats_of_groups:
            model = self.shared_chat.chat.beside_answers(max_tokens, f"{group}.max_tokens")
            same = model is self.shared_chat.chat
            self._chats_of_groups[group] = self.shared_chat if same else SharedChat(model)
        return self._chats_of_groups[group]

    # --- what stages made -----------------------------------------------------------------------------

    def frame(self, name: str) -> pd.DataFrame:
        return self._frame_of(Read(name))

    def frame_for(self, stage: str, name: str) -> pd.DataFrame:
        return self._frame_of(Read(name, before=stage))

    def rows(self, name: str) -> pd.DataFrame | Batches:
        makers = self._have(self.plan.makers(Read(name)))
        return makers[0].done.rows(name) if len(makers) == 1 else self.frame(name)

    def entry(self, stage: str) -> Entry:
        return self._have([self.plan.step(stage)])[0].done.stored

    def entry_of(self, frame: str) -> Entry:
        return self._have(self.plan.makers(Read(frame)))[-1].done.stored

    def entries_of(self, names: Iterable[str]) -> dict[str, str]:
        last = {name: makers[-1].output for name in names if (makers := self.plan.makers(Read(name)))}
        entries = {name: output.entry for name, output in last.items() if output is not None}
        return {name: f"{e.key.stage}/{e.digest}" for name, e in entries.items() if e is not None}

    def folder_of(self, name: str) -> Path:
        """The folder filled by a stage."""
        return self.entry(name).path

    def key(self, stage: str, **given: pd.DataFrame) -> Key:
        """The key of a stage's output; `given` frames replace the job's own.

        Other reads of the stage are made now if absent.
        """
        return self._key_of(self.plan.step(stage), given)

    def key_of(self, stage: Stage, **given: pd.DataFrame) -> Key:
        """`key` for one of several stages with the same name."""
        return self._key_of(self.plan.of_stage(stage), given)

    def identity_of(self, component: Any) -> dict[str, Any]:
        return {**identity(component), **self._served(component)}

    def _frame_of(self, read: Read) -> pd.DataFrame:
        makers = self._have(self.plan.makers(read))
        if read.name != JOINED:
            if not makers:
                raise KeyError(f"no stage makes the frame {read.name!r}")
            return makers[-1].done.frame(read.name)
        if self._joined is None:
            found = [step.done.frame(JOINED) for step in makers] or [frames.empty(JOINED)]
            self._joined = found[0] if len(found) == 1 else pd.concat(found, ignore_index=True)
        return self._joined

    def _key_of(self, step: Step, given: Mapping[str, pd.DataFrame]) -> Key:
        self._have([source for read, found in step.sources.items() if read.name not in given for source in found])
        return self._key(step, given)

    # --- running --------------------------------------------------------------------------------------

    def _have(self, wanted: Sequence[Step]) -> Sequence[Step]:
        """The wanted steps, made now if absent, in the order of the plan, after their reads."""
        for step in self.plan.towards(wanted):
            step.output = self._run(step)
        return wanted

    def _run(self, step: Step) -> Output:
        """Makes the output of a step; all of its sources are done."""
        stage = step.stage
        if stage in self.not_computed:
            raise self.not_computed[stage]
        try:
            if not stage.stored:
                made = stage.make(self._reads(step), self._tools(stage))
                return Output(held={name: as_frame(rows) for name, rows in made.items()})
            return self._got(step) if stage.asks is None else self._replies(step)
        except NotComputed as error:
            error.stage = error.stage or stage.label
            self.not_computed[stage] = error
            raise

    def _key(self, step: Step, given: Mapping[str, pd.DataFrame] | None = None) -> Key:
        stage = step.stage
        shared = {"embedder": self.components.embedder, "tokenizer": self.components.tokenizer}
        models = {**shared, "chat": self.chat_of(stage)}
        identities = {
            name: None if models[name] is None else self.identity_of(models[name])
            for name in SHARED
            if name in stage.uses
        }
        return step.key({**self._served(stage.component), **identities}, given or {})

    def _served(self, component: Any) -> dict[str, Any]:
        served = {} if component is None else component.served(self.store)
        return {"served": served} if served else {}

    def _reads(self, step: Step) -> Reads:
        """The frames and folders in the stage's `reads`."""

        def source(read: Read) -> Output:
            return step.sources[read][-1].done

        return Reads(
            step.stage.reads,
            lambda read: source(read).frame(read.name),
            lambda read: source(read).stored.path,
            lambda read: source(read).rows(read.name),
        )

    def _tools(self, stage: Stage) -> Tools:
        who = stage.name if stage.component is None else type(stage.component).__name__
        return replace(self.tools, chat=self.chat_of(stage)).limited_to(stage.uses, who)

    def _got(self, step: Step) -> Output:
        """The stored output, even with missing rows."""
        stage, key, told = step.stage, self._key(step), dict[str, float]()
        reads, tools = self._reads(step), self._tools(stage)

        def make() -> Mapping[str, pd.DataFrame | Batches]:
            with self._told(stage, told), self._working(step):
                return stage.make(reads, tools)

        def fill(folder: Path) -> None:
            with self._working(step):
                stage.fill(folder, reads, tools)

        with self._timed(stage.name):
            try:
                entry = self.store.get_frames(key, make, told) if stage.makes else self.store.get(key, fill, told)
            except Incomplete as incomplete:
                # Under a key of its own, so that a rerun asks again.
                alone = replace(key, params={**key.params, "incomplete": uuid.uuid4().hex})
                made = incomplete.frames
                if not self._enough(stage, incomplete.what, incomplete.failed, incomplete.of):
                    made = {name: as_frame(rows).iloc[:0] for name, rows in made.items()}
                entry = self.store.get_frames(alone, lambda: made, told)
        if entry.made:
            self.made.append(stage.name)
        asks = "chat" in stage.uses and self.chat_of(stage) is not None
        cost = float(entry.told.get("cost_usd", "nan")) if asks else 0.0
        # A retriever over others has several indexes, all of one name.
        before = self.making.get(stage.name, Making(0.0, 0.0))
        self.making[stage.name] = Making(before.seconds + entry.seconds_made, before.cost_usd + cost)
        return Output(entry)

    def _replies(self, step: Step) -> Output:
        """Answers, their values, or verdicts, from the store (at no cost) or made now."""
        stage, key, told = step.stage, self._key(step), dict[str, float]()
        reads, tools = self._reads(step), self._tools(stage)
        name = stage.makes[0]
        entry: Entry | None = None
        start = time.perf_counter()

        def checked() -> Mapping[str, pd.DataFrame]:
            with self._told(stage, told), self._working(step):
                frame = as_frame(stage.make(reads, tools)[name])
                if name == "answers":
                    told["seconds"] = self._seconds_of(frame, time.perf_counter() - start)
                return {name: _whole(stage, frame, reads)}

        with self._timed(stage.name):
            try:
                entry = self.store.get_frames(key, checked, told)
                frame, made = entry.frame(name), entry.made
            except Incomplete as incomplete:
                frame, made = incomplete.frames[name], True
        recorded = name != JOINED and stage.component.kind == RECORDED
        if name == "answers":
            free = "cached" not in frame or self.asked_before
            cost = 0.0 if free else full_cost(frame, self.components.llm)
            seconds = told["seconds"] if entry is None else float(entry.told.get("seconds", entry.seconds_made))
            self.making[stage.name] = Making(*taken(frame)) if recorded else Making(seconds, cost)
        if made:
            self.made.append(stage.name)
        elif "cached" in frame and not recorded:
            frame = frame.assign(cached=True, cost_usd=0.0, seconds=0.0)
        if name != JOINED:
            self._check_missing(name, frame, str(stage.asks))
        elif "chat" in stage.uses:
            lost = frame.loc[~frame["status"].isin(SETTLED) & frame[str(stage.asks)].isna(), "qid"]
            if not self._enough(stage, f"values of {stage.asks_as}", lost.nunique(), frame["qid"].nunique()):
                frame = frame.assign(value=float("nan"))
        return Output(entry, {name: frame})

    def _seconds_of(self, answers: pd.DataFrame, seconds: float) -> float:
        """The part of the seconds of asking that the answers took, and what those of the ledger took once."""
        llm = self.components.llm
        if not isinstance(llm, ChatSettings):
            return seconds
        own = answers.loc[~answers["cached"], "seconds"].sum()
        others = (
            0.0 if self.ahead is None else sum(rows["seconds"].sum() for rows in self.ahead.paid.get("answers", []))
        )
        share = own / (own + others) if own else 0.0
        at_once = FIRST if isinstance(llm.concurrency, str) else llm.concurrency
        return float(seconds * share + answers.loc[answers["cached"], "seconds"].sum() / at_once)

    @contextmanager
    def _told(self, stage: Stage, told: dict[str, float]) -> Iterator[None]:
        """Counts calls of the shared chat model in the block for the stage's group; `told` gets their cost."""
        chat = self.chat_of(stage)
        if chat is None:
            yield
            return
        chat.asking = stage.asks_as
        before = len(chat.replies(stage.asks_as))
        try:
            yield
        finally:
            if "chat" in stage.uses:
                told["cost_usd"] = full_cost(chat.replies(stage.asks_as).iloc[before:], chat.chat)

    def _working(self, step: Step) -> AbstractContextManager[object]:
        """Shows the progress of the stage, with its number of rows, during the block."""
        doing = step.stage.doing
        if not doing:
            return nullcontext()
        named = {name for _, name, _, _ in Formatter().parse(doing) if name}
        sources = {read.name: found[-1].done for read, found in step.sources.items()}
        return working(doing.format(**{name: sources[name].n_rows(name) for name in named}))

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        """Adds the time of the block to the stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def _check_missing(self, what: str, frame: pd.DataFrame, value: str) -> None:
        """MissingError if too many of the requested answers or verdicts are missing.

        UnreadableJudgeError where the judge replied to ten requests or more, and never readably.
        """
        if self.components.llm.kind == "none" or (what == "verdicts" and self.components.judge.kind == "none"):
            return
        if self.components.llm.kind == RECORDED:  # `on_missing=missing` accepts answers that the file lacks
            answers = frame if what == "answers" else self.frame("answers")
            absent = answers.loc[answers["error"].fillna("").str.startswith(NOT_RECORDED), "qid"]
            frame = frame[~frame["qid"].isin(absent)]
        missing = frame[value].isna()
        errors = frame["error"][missing].dropna() if "error" in frame else pd.Series(dtype="str")
        first = f"the first: {errors.iloc[0]}; " if len(errors) else ""
        part = self.components.llm if what == "answers" else self.components.judge
        told = "they are recorded so, and a rerun asks for none" if part.kind == RECORDED else _AGAIN
        if "request" in frame:
            replies = frame[frame["request"].notna() & frame["raw"].notna()]
            n = replies["request"].nunique()
            if n >= _REPLIES and replies[value].isna().all():
                raise UnreadableJudgeError(f"none of the judge's {n} replies could be read; {first}{told}")
        self._check_share(what, int(missing.sum()), len(frame), f"{first}{told}")

    def _enough(self, stage: Stage, what: str, missing: int, of: int) -> bool:
        """False where a measure misses too many values, which `unmeasured` notes; MissingError for any other stage."""
        try:
            self._check_share(what, missing, of)
        except MissingError as error:
            if not stage.evaluates and JOINED not in stage.makes:
                raise
            self.unmeasured.append(str(error))
            return False
        return True

    def check_measured(self) -> None:
        """MissingError where a measure that asks an LLM has no values, since too many are missing."""
        if self.unmeasured:
            raise MissingError("; ".join(self.unmeasured))

    def _check_share(self, what: str, missing: int, of: int, told: str = _AGAIN) -> None:
        few = _FEW if of >= _FEW_FROM and self.max_missing_share else 0
        if missing > max(few, self.max_missing_share * of):
            raise MissingError(
                f"{missing} of {of} {what} are missing, more than max_missing_share="
                f"{self.max_missing_share:g} allows; {told}; max_missing_share="
                f"{math.ceil(100 * missing / of) / 100:g} goes on without them"
            )


def _whole(stage: Stage, frame: pd.DataFrame, reads: Reads) -> pd.DataFrame:
    """The frame of an asking stage, a row per topic; Incomplete if a rerun should ask again."""
    name, value = stage.makes[0], str(stage.asks)
    frame = frames.check(name, frame)
    lost = set(reads[stage.reads[-1]]["qid"]) ^ set(frame["qid"])
    if lost:
        raise DataError(f"{name} frame: {len(lost)} topic(s) missing or unknown, such as {min(lost)!r}")
    # Nobody was asked for the others; what failed is asked for again in the next run.
    if (~frame["status"].isin(SETTLED) & frame[value].isna()).any():
        raise Incomplete({name: frame})
    return frame
