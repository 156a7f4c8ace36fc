"""The base class of all components, and the shared models that `Tools` passes to them.

A component is a class that inherits from the base class of its kind (`Retriever`, `Judge`, ...) and has the methods
that are abstract there. Everything else has a default. A class that inherits from nothing serves, too:
`ragauge.contract.loading.build` gives it the defaults of its kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from ragauge.contract.default import Default
from ragauge.contract.engine import Engine, LocalEngine
from ragauge.contract.identity import runtime
from ragauge.contract.replies import Reader, Reply
from ragauge.contract.usage import Usage, usage_of
from ragauge.contract.workplace import Workplace

SHARED = ("embedder", "tokenizer", "chat")  # what `uses` may name
Role = Literal["passage", "query"]


class Component(ABC):  # noqa: B024  (each kind has abstract methods)
    """The base class of all kinds of components.

    kind: "recorded" of one whose work was done before, "none" of one that does nothing, and others.
    component: the name under which its results are stored; without one its dotted path. version: another one makes
        other results.
    uses: the shared models that it takes (`SHARED`). Their identities enter the key of its output, and it gets no
        others.
    needs_chat: whether it cannot do without a chat model that the job shares.
    own_chat: a chat model of its own, which replaces the job's as `tools.chat`; None without one.
    max_tokens: completion tokens at most of a reply of the job's chat model to it; None is the model's own limit.
    depth: the number of best-ranked texts of a topic that it looks at; None is all.
    counts: the names of what it counts with `Tools.count`, 0 where its output was stored.
    """

    kind = Default("")
    component = Default("")
    version = Default(1)
    uses = Default(frozenset[str]())
    needs_chat = Default(False)
    own_chat = Default[Any](None)
    max_tokens = Default[int | None](None)
    depth = Default[int | None](None)
    counts = Default[tuple[str, ...]](())

    def files(self) -> Mapping[str, Path]:
        """The files that its output depends on, by role; their contents enter its key. ConfigError if one lacks."""
        return {}

    def served(self, store: Workplace) -> dict[str, Any]:
        """The identity of the weights behind a model's name, as its server reports it; {} if unknown."""
        return {}

    def describe(self, tools: Tools) -> Mapping[str, str]:
        """Tags of the MLflow run that describe its work, by name, without the group's."""
        return {}

    def reader(self) -> Any:
        """The `Reader` (ragauge.retrieval.reading) that counts tokens against its model's limit; None without one."""
        return None

    def cost(self, usage: Usage) -> float:
        """US dollars of these tokens of its model."""
        return 0.0

    def cost_of_kept(self, replies: pd.DataFrame) -> float:
        """US dollars that replies of its model cost originally; by default the price of their tokens."""
        return self.cost(usage_of(replies))


class Embedded(NamedTuple):
    """Some of the asked texts, by position, their vectors (float32 [len(rows), dimensions]) and what these took."""

    rows: Sequence[int]
    vectors: np.ndarray
    usage: Usage = Usage()


class Embedder(Component):
    """Config group `embedder`: texts to unit vectors.

    symmetric: whether it gives a text the same vector as passage and as query.
    by_server: whether a server computes its vectors. Then this process asks it, whatever the engine, and its vectors
        may change under the same identity.
    """

    symmetric = Default(True)
    by_server = Default(False)

    @abstractmethod
    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        """float32 [len(texts), dimensions], each row of length 1.

        `role` says whether the texts are to be found or are searched with; models such as E5 and BGE put
        another prefix before each. `scratch` is a folder for files derived from the model (an exported
        graph); None keeps none.
        """

    def pieces(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> Iterator[Embedded]:
        """The vectors of distinct texts, in pieces that can be kept as they come; here one piece."""
        yield Embedded(range(len(texts)), self.embed(texts, role, scratch))

    def windows(self, texts: Sequence[str]) -> list[list[str]] | None:
        """The windows of each passage, at least one, where each is to have a vector of its own; here None."""
        return None


class Tokenizer(Component):
    """Config group `tokenizer`: the tokens of budgets.

    stitching: how the tokens of joined texts follow from those of each: "free", "space" or "joined"
        (`ragauge.texts.tokenizers`).
    """

    name = Default[str]()
    stitching = Default("joined")

    @abstractmethod
    def offsets(self, texts: Sequence[str]) -> list[np.ndarray]:
        """For each text int64 [tokens, 2]: first and past-the-last character of every token, in order."""


class ChatModel(Component):
    """An LLM for other components, provided by `llm=ollama` and others."""

    @abstractmethod
    def ask(
        self, prompts: Sequence[str], store: Workplace, what: str, *, readers: Sequence[Reader] = ()
    ) -> list[Reply]:
        """One reply per prompt, in order; finished calls are kept and never paid twice.

        readers: one per prompt, or none. A reply that its reader cannot read is asked for once more, and
        again in a later run.
        """

    def beside_answers(self, max_tokens: int | None, key: str) -> ChatModel:
        """The model for others than answers: without their stop texts, with another limit of tokens, which `key` sets.

        Itself where it has no stop texts, and no limit or the same.
        """
        return self


class KeepsReplies(ChatModel):
    """A chat model that can look up its earlier replies, and estimate the requests that are left."""

    @abstractmethod
    def known(self, prompts: Sequence[str], store: Workplace, *, readers: Sequence[Reader] = ()) -> list[Reply | None]:
        """The stored reply of every prompt; None if `ask` would ask. It makes no call."""

    @abstractmethod
    def needs_of(self, prompts: Sequence[str], store: Workplace) -> pd.DataFrame:
        """A row per prompt: [key, known, exact, prompt_tokens, completion_tokens, cost_usd]."""

    def check_ready(self, store: Workplace) -> None:
        """RagaugeError if it is sure that the first call will fail, for lack of a key or a server."""
        return


@dataclass(frozen=True)
class TheLLM(Component):
    """Config group `evaluator`: measures ask the job's llm, if it is a chat model, with this limit of tokens."""

    component = "the_llm"

    max_tokens: int | None = runtime(None)


@dataclass(frozen=True)
class Tools:
    """The shared models of a job, passed to the components that use them.

    counted: the counts that components report of their work, such as pairs scored; these are metrics of the job.
    engine: where work on many rows is done.
    """

    store: Workplace
    embedder: Embedder
    tokenizer: Tokenizer
    chat: ChatModel | None = None
    counted: dict[str, float] = field(default_factory=dict, compare=False)
    engine: Engine = field(default_factory=LocalEngine, compare=False)

    def count(self, name: str, n: int) -> None:
        """Adds n to the count of this name."""
        self.counted[name] = self.counted.get(name, 0) + n

    def limited_to(self, uses: frozenset[str], who: str) -> Tools:
        """The same tools, limited to the shared models in `uses`.

        TypeError, which names `who`, for a name that is no shared model, and where another one is taken. The output
        would then depend on something that its key does not hold.
        """
        unknown = set(uses) - set(SHARED)
        if unknown:
            raise TypeError(f"{who} uses {sorted(unknown)}; shared models are {sorted(SHARED)}")
        shared = (self.store, self.embedder, self.tokenizer, self.chat, self.counted, self.engine)
        return _LimitedTools(*shared, frozenset(uses), who)


@dataclass(frozen=True)
class _LimitedTools(Tools):
    uses: frozenset[str] = frozenset()
    who: str = "a component"

    def __getattribute__(self, name: str) -> Any:
        if name in SHARED and name not in object.__getattribute__(self, "uses"):
            who = object.__getattribute__(self, "who")
            raise TypeError(f"{who} takes tools.{name}, which its `uses` does not name")
        return object.__getattribute__(self, name)
