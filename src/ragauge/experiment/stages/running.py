"""Gets what the stages of a job make, from the store or made once.

The key of a stage's output is its name and version, its parameters with the identity of its component, the
identities of the shared models that it uses, and the digests of what it reads.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from string import Formatter
from types import MappingProxyType
from typing import Any

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.answer_measures import SETTLED
from ragauge.contract.batches import Batches, as_frame
from ragauge.contract.errors import DataError, MissingError, UnreadableJudgeError
from ragauge.contract.identity import identity
from ragauge.contract.progress import working
from ragauge.contract.protocols import SHARED, BringsChat, ChatModel, Serves, Tools
from ragauge.experiment.outcomes.metrics import RECORDED, full_cost, taken
from ragauge.experiment.stages.stage import Components, Incomplete, Made, Reads, Stage
from ragauge.llms.chat_use import MOST_UNREAD, SharedChat
from ragauge.retrieval.embedders import CachedEmbedder
from ragauge.store import Entry, Key, Store

_AGAIN = (
    "what was paid for is kept, and a rerun asks only for the rest (an unreadable reply "
    f"{MOST_UNREAD} times at most, then see ragauge ledger forget)"
)
# Of this many topics or more, a few may be missing whatever their share is: 2 of 25 are 8 %.
_FEW, _FEW_FROM = 2, 10
_REPLIES = 10  # unreadable ones, if none is readable, that say that the judge's model or prompt is wrong


@dataclass(frozen=True)
class Making:
    """What making a stage's output took whoever made it: seconds, and US dollars of chat models.

    Replies of the ledger count as what they cost when they were paid for. NaN: nobody told.
    """

    seconds: float
    cost_usd: float


@dataclass
class StageRunner:
    """The stages of one job, each computed on first use.

    n_tokens, n_grid: the job's budget, and those at which the score is laid out, in tokens.
    max_missing_share: a larger share of missing answers or verdicts is a MissingError; of ten or more, two
        may be missing whatever the share, unless it is 0.
    `seconds` holds the time of each stage in this process, `made` the names of the stages that were not in
    the store, `making` what each took when its output was made.
    """

    components: Components
    store: Store
    n_tokens: int
    n_grid: tuple[int, ...]
    max_missing_share: float = 1.0
    seconds: dict[str, float] = field(default_factory=dict, init=False)
    made: list[str] = field(default_factory=list, init=False)
    making: dict[str, Making] = field(default_factory=dict, init=False)
    _entries: dict[Stage, Entry] = field(default_factory=dict, init=False, repr=False)
    _frames: dict[str, pd.DataFrame] = field(default_factory=dict, init=False, repr=False)
    _digests: dict[str, tuple[pd.DataFrame, str]] = field(default_factory=dict, init=False, repr=False)
    _own_chats: dict[Stage, SharedChat] = field(default_factory=dict, init=False, repr=False)

    @property
    def stages(self) -> list[Stage]:
        """The job's stages in order."""
        raise NotImplementedError

    def frame_of_job(self, name: str) -> pd.DataFrame | None:
        """A frame that no stage makes; None for those that stages make."""
        return None

    @property
    def asked_before(self) -> bool:
        """Whether the requests of the llm were sent already, and its answers cost nothing more."""
        return False

    @cached_property
    def tools(self) -> Tools:
        """The shared models; vectors are kept in the store."""
        engine = self.components.engine
        embedder = CachedEmbedder(self.components.embedder, self.store.root, engine)
        tokenizer = self.components.tokenizer
        return Tools(self.store, embedder, tokenizer, self.shared_chat, engine=engine)

    @cached_property
    def shared_chat(self) -> SharedChat | None:
        """The job's chat model for components that ask it beside the llm's own answers; None without one."""
        llm = self.components.llm
        return SharedChat(llm) if llm.kind == "chat" and isinstance(llm, ChatModel) else None

    @cached_property
    def evaluator_chat(self) -> SharedChat | None:
        """The chat model that answer measures ask: the evaluator, else the job's; None without either."""
        evaluator = self.components.evaluator
        return SharedChat(evaluator) if isinstance(evaluator, ChatModel) else self.shared_chat

    def chat_of(self, stage: Stage) -> SharedChat | None:
        """Whom the component of a stage asks: its own, where it brings one, the evaluator, or the llm."""
        if isinstance(stage.component, BringsChat) and "chat" in stage.uses:
            return self._own_chats.setdefault(stage, SharedChat(stage.component.own_chat))
        return self.evaluator_chat if stage.evaluates else self.shared_chat

    def frame(self, name: str) -> pd.DataFrame:
        """A frame of the job, made now where it is not there yet."""
        return self._frame(name, len(self.stages))

    def rows(self, name: str) -> pd.DataFrame | Batches:
        """The rows of a frame of the job, in batches where they are many."""
        return self._rows(name, len(self.stages))

    def frame_for(self, stage: str, name: str) -> pd.DataFrame:
        """A frame as a stage reads it, which may make it anew."""
        return self._frame(f"{name}@{stage}", len(self.stages))

    def entry(self, stage: str) -> Entry:
        """The stored output of a stage, made now where it is not there yet."""
        return self._entry(next(s for s in self.stages if s.label == stage))

    def entry_of(self, frame: str) -> Entry:
        """The stored output that holds a frame, of the last stage that makes it."""
        return self._entry(self._maker(frame, len(self.stages))[-1])

    def entries_of(self, names: Iterable[str]) -> dict[str, str]:
        """<stage>/<digest> of the store entry by frame, of those frames that the job read or made there."""
        makers = {name: self._maker(name, len(self.stages)) for name in names}
        entries = {name: self._entries.get(found[-1]) for name, found in makers.items() if found}
        return {name: f"{e.key.stage}/{e.digest}" for name, e in entries.items() if e is not None}

    def key(self, stage: str, **given: pd.DataFrame) -> Key:
        """What the output of a stage is known by; `given` frames stand for those that the job would make."""
        return self.key_of(next(s for s in self.stages if stage in (s.name, s.label)), **given)

    def key_of(self, stage: Stage, **given: pd.DataFrame) -> Key:
        """`key` of one of several stages of a name."""
        return self._key(stage, given)

    def folder_of(self, name: str) -> Path:
        """The folder that a stage filled."""
        return self.entry(name).path

    def identity_of(self, component: Any) -> dict[str, Any]:
        """What can change the component's output; of a chat model also what its server says it serves."""
        return {**identity(component), **self._served(component)}

    def _as_read(self, name: str, before: int) -> tuple[str, int]:
        """`frame@stage` as the frame's name and the place in the list of the stage that reads it."""
        name, _, stage = name.partition("@")
        return name, next(i for i, s in enumerate(self.stages) if s.name == stage) if stage else before

    def _maker(self, name: str, before: int) -> list[Stage]:
        """The stages before a place in the list that make a frame: the last one, or all answer measures."""
        makers = [stage for stage in self.stages[:before] if name in stage.makes]
        return makers if name == "answer_values" else makers[-1:]

    def _frame(self, name: str, before: int) -> pd.DataFrame:
        name, before = self._as_read(name, before)
        if (own := self.frame_of_job(name)) is not None:
            return own
        if name in self._frames:
            return self._frames[name]
        makers = self._maker(name, before)
        if not makers:
            if name == "answer_values":
                return frames.empty(name)
            raise KeyError(f"no stage makes the frame {name!r}")
        if all(stage.stored and stage.asks is None for stage in makers):
            return self._entry(makers[-1]).frame(name)
        found = [self._made_now(stage) if not stage.stored else self._replies(stage) for stage in makers]
        self._frames[name] = found[0] if len(found) == 1 else pd.concat(found, ignore_index=True)
        return self._frames[name]

    def _rows(self, name: str, before: int) -> pd.DataFrame | Batches:
        plain, at = self._as_read(name, before)
        makers = self._maker(plain, at)
        stored = len(makers) == 1 and makers[0].stored and makers[0].asks is None
        if plain in self._frames or self.frame_of_job(plain) is not None or not stored:
            return self._frame(name, before)
        return self._entry(makers[0]).rows(plain)

    def _digest(self, read: str, before: int, given: Mapping[str, pd.DataFrame]) -> str:
        """The digest of one of a stage's `reads`."""
        name, _, columns = read.removesuffix("]").partition("[")
        if name.endswith("/"):
            return self.entry(name[:-1]).digest
        name, before = self._as_read(name, before)
        makers = self._maker(name, before)
        if name not in given and not columns and makers and makers[-1].stored and makers[-1].asks is None:
            return self._entry(makers[-1]).frame_digest(name)
        frame = given[name] if name in given else self._frame(name, before)
        of, digest = self._digests.get(read, (None, ""))
        if of is not frame:  # frames stay as they were made
            digest = frames.content_digest(frame[columns.split(",")] if columns else frame)
            self._digests[read] = frame, digest
        return digest

    def _key(self, stage: Stage, given: Mapping[str, pd.DataFrame] = MappingProxyType({})) -> Key:
        before = self.stages.index(stage)
        shared = {"embedder": self.components.embedder, "tokenizer": self.components.tokenizer}
        models = {**shared, "chat": self.chat_of(stage)}
        return Key(
            stage.name,
            stage.version,
            {
                **stage.params(),
                **self._served(stage.component),
                **{
                    name: None if models[name] is None else self.identity_of(models[name])
                    for name in SHARED
                    if name in stage.uses
                },
            },
            {**stage.inputs(), **{read: self._digest(read, before, given) for read in stage.reads}},
        )

    def _served(self, component: Any) -> dict[str, Any]:
        served = component.served(self.store) if isinstance(component, Serves) else {}
        return {"served": served} if served else {}

    def _reads(self, stage: Stage) -> Reads:
        """What the stage names in `reads`, and nothing else."""
        before = self.stages.index(stage)
        allowed = {read.partition("[")[0] for read in stage.reads}

        def named(name: str) -> str:
            if name not in allowed:
                raise KeyError(f"stage {stage.name} reads {name!r}, which its `reads` do not name")
            return name

        return Reads(
            lambda name: self._frame(named(name), before),
            lambda name: self.entry(named(f"{name}/")[:-1]).path,
            lambda name: self._rows(named(name), before),
        )

    def _tools(self, stage: Stage) -> Tools:
        who = stage.name if stage.component is None else type(stage.component).__name__
        return replace(self.tools, chat=self.chat_of(stage)).limited_to(stage.uses, who)

    def _entry(self, stage: Stage) -> Entry:
        if stage in self._entries:
            return self._entries[stage]
        key = self._key(stage)  # what it reads is made first, and is not of its time
        tools, reads = self._tools(stage), self._reads(stage)
        told: dict[str, float] = {}
        asks = "chat" in stage.uses and self.chat_of(stage) is not None

        def make() -> Made:
            with self._told(stage, told), self._working(stage):
                return stage.make(reads, tools)

        def fill(folder: Path) -> None:
            with self._working(stage):
                stage.fill(folder, reads, tools)

        with self._timed(stage.name):
            try:
                entry = self.store.get_frames(key, make, told) if stage.makes else self.store.get(key, fill, told)
            except Incomplete as incomplete:
                # Under a key of its own, so that a rerun asks again.
                alone = replace(key, params={**key.params, "incomplete": uuid.uuid4().hex})
                made = incomplete.frames
                entry = self.store.get_frames(alone, lambda: made, told)
                self._check_share(incomplete.what, incomplete.failed, incomplete.of)
        if entry.made:
            self.made.append(stage.name)
        cost = float(entry.told.get("cost_usd", "nan")) if asks else 0.0
        # A retriever over others has several indexes, all of one name.
        before = self.making.get(stage.name, Making(0.0, 0.0))
        self.making[stage.name] = Making(before.seconds + entry.seconds_made, before.cost_usd + cost)
        self._entries[stage] = entry
        return entry

    def _made_now(self, stage: Stage) -> pd.DataFrame:
        """The one frame of a stage whose output is not stored."""
        return as_frame(stage.make(self._reads(stage), self._tools(stage))[stage.makes[0]])

    def _replies(self, stage: Stage) -> pd.DataFrame:
        """Answers, their values, or verdicts: from the store (then they cost nothing) or made now."""
        name, value = stage.makes[0], str(stage.asks)
        key = self._key(stage)
        tools, reads = self._tools(stage), self._reads(stage)
        told: dict[str, float] = {}
        start = time.perf_counter()
        with self._timed(stage.name):
            asked = reads[stage.reads[-1].partition("[")[0]]["qid"]

            def checked() -> Mapping[str, pd.DataFrame]:
                with self._told(stage, told), self._working(stage):
                    frame = frames.check(name, as_frame(stage.make(reads, tools)[name]))
                lost = set(asked) ^ set(frame["qid"])
                if lost:
                    raise DataError(f"{name} frame: {len(lost)} topic(s) missing or unknown, such as {min(lost)!r}")
                # Nobody was asked for the others; what failed is asked for again in the next run.
                if (~frame["status"].isin(SETTLED) & frame[value].isna()).any():
                    raise Incomplete({name: frame})
                return {name: frame}

            try:
                self._entries[stage] = entry = self.store.get_frames(key, checked, told)
                frame, made, seconds = entry.frame(name), entry.made, entry.seconds_made
            except Incomplete as incomplete:
                frame, made, seconds = incomplete.frames[name], True, time.perf_counter() - start
        recorded = stage.component.kind == RECORDED if name != "answer_values" else False
        if name == "answers":
            free = "cached" not in frame or self.asked_before
            cost = 0.0 if free else full_cost(frame, self.components.llm)
            self.making[stage.name] = Making(*taken(frame)) if recorded else Making(seconds, cost)
        if made:
            self.made.append(stage.name)
        elif "cached" in frame and not recorded:
            frame = frame.assign(cached=True, cost_usd=0.0, seconds=0.0)
        if name != "answer_values":
            self._check_missing(name, frame, value)
        elif "chat" in stage.uses:
            lost = frame.loc[~frame["status"].isin(SETTLED) & frame[value].isna(), "qid"]
            self._check_share(f"values of {stage.asks_as}", lost.nunique(), frame["qid"].nunique())
        return frame

    @contextmanager
    def _told(self, stage: Stage, told: dict[str, float]) -> Iterator[None]:
        """Calls of the shared chat model in the block count for the stage's group; `told` gets their cost."""
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

    def _working(self, stage: Stage) -> AbstractContextManager[object]:
        """Tells what the stage does, with how much there is to do, while the block lasts."""
        if not stage.doing:
            return nullcontext()
        before = self.stages.index(stage)
        named = [name for _, name, _, _ in Formatter().parse(stage.doing) if name]
        return working(stage.doing.format(**{name: self._n_rows(name, before) for name in named}))

    def _n_rows(self, name: str, before: int) -> int:
        """How many rows a frame has that a stage reads; one that is stored is not read for that."""
        makers = self._maker(name, before) if self.frame_of_job(name) is None else []
        if makers and all(stage.stored and stage.asks is None for stage in makers):
            return self._entry(makers[-1]).n_rows(name)
        return len(self._frame(name, before))

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        """Adds the time of the block to the stage, less what other stages took inside it."""
        before, start = sum(self.seconds.values()), time.perf_counter()
        try:
            yield
        finally:
            inner = sum(self.seconds.values()) - before
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start - inner

    def _check_missing(self, what: str, frame: pd.DataFrame, value: str) -> None:
        """MissingError where too many of the answers or verdicts that were asked for are missing.

        UnreadableJudgeError where the judge replied to ten requests or more, and never readably.
        """
        if self.components.llm.kind == "none" or (what == "verdicts" and self.components.judge.kind == "none"):
            return
        missing = frame[value].isna()
        errors = frame["error"][missing].dropna() if "error" in frame else pd.Series(dtype="str")
        first = f"the first: {errors.iloc[0]}; " if len(errors) else ""
        part = self.components.llm if what == "answers" else self.components.judge
        told = "nobody was asked" if part.kind == RECORDED else _AGAIN
        if "request" in frame:
            replies = frame[frame["request"].notna() & frame["raw"].notna()]
            n = replies["request"].nunique()
            if n >= _REPLIES and replies[value].isna().all():
                raise UnreadableJudgeError(f"none of the judge's {n} replies could be read; {first}{told}")
        self._check_share(what, int(missing.sum()), len(frame), f"{first}{told}")

    def _check_share(self, what: str, missing: int, of: int, told: str = _AGAIN) -> None:
        few = _FEW if of >= _FEW_FROM and self.max_missing_share else 0
        if missing > max(few, self.max_missing_share * of):
            raise MissingError(
                f"{missing} of {of} {what} are missing, more than max_missing_share="
                f"{self.max_missing_share:g} allows; {told}; max_missing_share="
                f"{math.ceil(100 * missing / of) / 100:g} goes on without them"
            )
