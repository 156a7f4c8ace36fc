"""What all components have in common, and the tools passed to them.

A component names its shared models in `uses`. Their identities enter the key of its output, and it gets no other
models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from ragauge.contract.engine import Engine, LocalEngine
from ragauge.contract.replies import Reader, Reply
from ragauge.contract.workplace import Workplace

SHARED = ("embedder", "tokenizer", "chat")  # what `uses` may name


Role = Literal["passage", "query"]


class Embedder(Protocol):
    """Config group `embedder`: texts to unit vectors."""

    def embed(self, texts: Sequence[str], role: Role = "passage", scratch: Path | None = None) -> np.ndarray:
        """float32 [len(texts), dimensions], each row of length 1.

        `role` says whether the texts are to be found or are searched with; models such as E5 and BGE put
        another prefix before each. `scratch` is a folder for files derived from the model (an exported
        graph); None keeps none.
        """


class Tokenizer(Protocol):
    """Config group `tokenizer`: the tokens of budgets."""

    @property
    def name(self) -> str:
        """The tokenizer's name."""

    def offsets(self, texts: Sequence[str]) -> list[np.ndarray]:
        """For each text int64 [tokens, 2]: first and past-the-last character of every token, in order."""


@runtime_checkable
class ChatModel(Protocol):
    """An LLM for other components, provided by `llm=ollama` and others."""

    def ask(
        self, prompts: Sequence[str], store: Workplace, what: str, *, readers: Sequence[Reader] = ()
    ) -> list[Reply]:
        """One reply per prompt, in order; finished calls are kept and never paid twice.

        readers: one per prompt, or none. A reply that its reader cannot read is asked for once more, and
        again in a later run.
        """


@runtime_checkable
class BringsChat(Protocol):
    """A component with its own chat model, which replaces the job's as `tools.chat`."""

    own_chat: Any


@dataclass(frozen=True)
class Tools:
    """The shared models of a job, passed to the components that use them.

    counted: the counts that components report of their work, such as pairs scored; these are metrics of the job. One
    that counts says the names in a class variable `counts`: they are 0 where its output was in the store.
    engine: where work on many rows is done.
    """

    store: Workplace
    embedder: Embedder
    tokenizer: Tokenizer
    chat: ChatModel | None = None
    counted: dict[str, int] = field(default_factory=dict, compare=False)
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


@runtime_checkable
class ReadsFiles(Protocol):
    """A component whose output depends on files; their contents enter its key."""

    def files(self) -> Mapping[str, Path]:
        """The files by role; ConfigError if one is not there."""


@runtime_checkable
class TellsNeeds(Protocol):
    """A chat model that can estimate its requests before it is asked."""

    def needs_of(self, prompts: Sequence[str], store: Workplace) -> pd.DataFrame:
        """A row per prompt: [key, known, exact, prompt_tokens, completion_tokens, cost_usd]."""


@runtime_checkable
class KnowsReplies(Protocol):
    """A chat model that can look up its earlier replies, without a call."""

    def known(self, prompts: Sequence[str], store: Workplace, *, readers: Sequence[Reader] = ()) -> list[Reply | None]:
        """The stored reply of every prompt; None if `ask` would ask."""


@runtime_checkable
class Serves(Protocol):
    """A component whose server reports its model version, which enters the cache key."""

    def served(self, store: Workplace) -> dict[str, Any]:
        """The identity of the weights behind a model's name, as JSON values; {} if unknown."""


@runtime_checkable
class Describes(Protocol):
    """A component that describes its work for the tags of an MLflow run."""

    def describe(self, tools: Tools) -> Mapping[str, str]:
        """Tags by name, without the group's."""
