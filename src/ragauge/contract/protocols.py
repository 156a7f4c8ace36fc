"""The parts that a config group names: what each kind must do, and what identifies one.

A part is a frozen dataclass whose fields are its config keys. Fields made with `runtime()` change how the
work is done, not what comes out (paths, threads, batch sizes, retries); they stay out of the part's identity
and so out of every digest. A part that uses a shared model says so in `uses`; the model's identity then
enters the digest of what the part makes. So does the code of a part that is not ragauge's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from ragauge.store import Store


@dataclass(frozen=True)
class Dataset:
    """Documents, topics and evidence of one collection (frames `docs`, `topics`, `evidence`).

    `skipped` says which rows were dropped and why, where the source was told to drop bad rows.
    """

    docs: pd.DataFrame
    topics: pd.DataFrame
    evidence: pd.DataFrame
    skipped: tuple[str, ...] = ()


class Source(Protocol):
    """Config group `dataset`: reads files into a Dataset. Path fields are runtime; contents are hashed."""

    name: str

    def files(self) -> Mapping[str, Path]:
        """The files that are read, by role; ConfigError if one is not there."""

    def load(self) -> Dataset:
        """The collection; DataError names file, row, qid and what is wrong."""


class Embedder(Protocol):
    """Config group `embedder`: texts to unit vectors."""

    def embed(self, texts: Sequence[str], store: Store | None = None) -> np.ndarray:
        """float32 [len(texts), dimensions], each row of length 1. Vectors the store has are not computed."""


class Tokenizer(Protocol):
    """Config group `tokenizer`: what a token is where budgets are counted."""

    @property
    def name(self) -> str:
        """What the tokenizer is called."""

    def offsets(self, texts: Sequence[str]) -> list[np.ndarray]:
        """For each text int64 [tokens, 2]: first and past-the-last character of every token, in order."""


@runtime_checkable
class ChatModel(Protocol):
    """An LLM that can be asked: what `llm=ollama` and the like provide to other parts."""

    def ask(self, prompts: Sequence[str], store: Store, what: str) -> list[Reply]:
        """One reply per prompt, in order; finished calls are kept and never paid twice."""


@dataclass(frozen=True)
class Reply:
    """What came back for one request: text, or None and the error."""

    text: str | None
    error: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    cached: bool = False


@dataclass(frozen=True)
class Tools:
    """The shared models of a job, handed to the parts that say they use them."""

    store: Store
    embedder: Embedder
    tokenizer: Tokenizer
    chat: ChatModel | None = None


class Chunker(Protocol):
    """Config group `chunker`."""

    uses: ClassVar[frozenset[str]]  # of {"embedder", "tokenizer"}

    def chunk(self, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `chunks`, in document order; text is the parent's text[start:end]."""


class Retriever(Protocol):
    """Config group `retriever`."""

    uses: ClassVar[frozenset[str]]  # of {"embedder", "chat"}
    top_k: int
    reorder_after_cut: bool  # long-context reorder of what fits the budget

    def index_identity(self) -> Mapping[str, Any]:
        """What can change the index; equal for retrievers that share one."""

    def build_index(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> None:
        """Writes the index of the chunks into an empty folder."""

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """A PyTerrier transformer over a built index: frame [qid, query] in, frame `run` out."""


class Measure(Protocol):
    """Config group `measure`: how much of the evidence stands in a context."""

    @property
    def name(self) -> str:
        """The measure's name in frames and tags."""

    def score(self, evidence: Sequence[str], context: str, ends: np.ndarray) -> np.ndarray:
        """float64 [len(evidence), len(ends)] in [0, 1]: evidence i in context[:ends[j]]."""


class Generator(Protocol):
    """Config group `llm`: answers from contexts."""

    kind: ClassVar[str]  # "chat", "embedded" or "none"
    uses: ClassVar[frozenset[str]]

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers`, a row for every row of `contexts`; a failed one is a missing answer."""


class Judge(Protocol):
    """Config group `judge`: answers to judge classes."""

    kind: ClassVar[str]  # "chat", "embedded" or "none"
    uses: ClassVar[frozenset[str]]

    def judge(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, answers: pd.DataFrame, tools: Tools
    ) -> pd.DataFrame:
        """Frame `verdicts`, a row for every row of `answers`; what cannot be read is a missing verdict."""
