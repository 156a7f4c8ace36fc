"""The interface of each kind of component, and the tools passed to it.

A component names its shared models in `uses`. Their identities enter the key of its output, and it gets no other
models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from ragauge.contract.engine import Engine, LocalEngine
from ragauge.contract.frames import Batches

SHARED = ("embedder", "tokenizer", "chat")  # what `uses` may name
Role = Literal["passage", "query"]
ASKED = ("chat", "service")  # kinds of `llm` that are asked for every answer, which may cost and fail


@dataclass(frozen=True)
class Dataset:
    """Documents, topics and evidence of one collection (frames `docs`, `topics`, `evidence`).

    The values that a topic may lack, and its optional columns, are in `ragauge.contract.topics`. `skipped` lists the
    rows that were dropped, with reasons, where the source drops bad rows. Documents that may be too many for memory
    come in batches.
    """

    docs: pd.DataFrame | Batches
    topics: pd.DataFrame
    evidence: pd.DataFrame
    skipped: tuple[str, ...] = ()


class Source(Protocol):
    """Config group `dataset`: reads files into a Dataset. Path fields are runtime; contents are hashed."""

    name: str

    def files(self) -> Mapping[str, Path]:
        """The files read, by role; ConfigError if one is missing."""

    def load(self) -> Dataset:
        """The collection; DataError names file, row, qid and what is wrong."""


class Workplace(Protocol):
    """The folder of a job's reusable data: stage outputs, vectors, the call ledger."""

    root: Path


@dataclass
class FreshWorkplace:
    """An empty workplace, for measuring durations.

    Calls of chat models without their own ledger go into the one at `ledger_root`, so that their cost counts. The salt
    keeps earlier replies to the same requests from answering at once.
    """

    root: Path
    ledger_root: Path
    salt: str


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


CUT = "cut at the token limit"  # the error of a reply whose text is not whole


@dataclass(frozen=True)
class Reply:
    """The reply to one request: text, or None and the error.

    calls: how often the server was asked and charged for it, or may have, the calls without an answer too.
    usage_unknown: the number of them whose tokens are not known; their cost is the most they can cost.
    thoughts: a reasoning model's text before its answer; no part of `text`.
    """

    text: str | None
    error: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    cached: bool = False
    calls: int = 0
    usage_unknown: int = 0
    thoughts: str | None = None


# What a reply says, and None where it cannot be read.
Reader = Callable[[Reply], object]


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


class Chunker(Protocol):
    """Config group `chunker`."""

    uses: ClassVar[frozenset[str]]

    def chunk(self, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `chunks`, in document order; text is the parent's text[start:end].

        For a large corpus it gets some documents at a time: a document's chunks must depend on this document alone.
        """


class Retriever(Protocol):
    """Config group `retriever`; optional members are in `ragauge.contract.offers.RetrieverOffers`.

    It gets all chunks as one frame by default.
    """

    uses: ClassVar[frozenset[str]]
    top_k: int
    reorder_after_cut: bool  # long-context reorder of what fits the budget

    def index_identity(self) -> Mapping[str, Any]:
        """Everything that can change the index; equal for retrievers with a common index."""

    def build_index(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> None:
        """Writes the index of the chunks into an empty folder."""

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """A PyTerrier transformer over a built index: frame [qid, query] in, frame `run` out."""


class Reranker(Protocol):
    """Config group `reranker`: a run in, a run out.

    kind: "none" where it leaves the run as it is; the stage is then left out.
    """

    kind: ClassVar[str]
    uses: ClassVar[frozenset[str]]

    def rerank(self, run: pd.DataFrame, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `run` with other scores and ranks; see `ragauge.retrieval.ranking.ranked`.

        topics: [qid, query]; chunks: [docno, text, …] of every docno of the run.
        """


class Rewriter(Protocol):
    """Config group `rewriter`: questions to queries.

    kind: "none" where the questions themselves are searched; the stage is then left out.
    feedback: whether it looks at what the retriever finds for the question itself.
    union, rrf_constant: how the ranked lists of a topic's searches become one. `rrf` orders by the sum over lists of 1
        / (rrf_constant + rank + 1). `first_seen` takes all hits of the first list in order, then the new ones of the
        second, and so on.
    """

    kind: ClassVar[str]
    uses: ClassVar[frozenset[str]]
    feedback: ClassVar[bool]
    union: Literal["rrf", "first_seen"]
    rrf_constant: float

    def rewrite(
        self, topics: pd.DataFrame, run: pd.DataFrame | None, chunks: pd.DataFrame | None, tools: Tools
    ) -> pd.DataFrame:
        """Frame `queries`, at least one row for every topic [qid, query].

        run, chunks: the hits of the question itself, and all chunks; None unless `feedback`. A topic whose rewrite
        failed has its question, with the origin "failed".
        """


@runtime_checkable
class ReadsFiles(Protocol):
    """A component whose output depends on files; their contents enter its key."""

    def files(self) -> Mapping[str, Path]:
        """The files by role; ConfigError if one is not there."""


@runtime_checkable
class SeesEvidence(Protocol):
    """A retriever that gets the answers' evidence: an oracle, or noise mixed with the evidence."""

    def rank_with_evidence(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, chunks: pd.DataFrame, folder: Path, tools: Tools
    ) -> pd.DataFrame:
        """Frame `run` of the topics [qid, query]; evidence is the frame `evidence`."""


class TopicsFailed(Exception):
    """Raised by `BringsTexts.bring`, with its partial output, if the retrieval of `qids` is unknown.

    again: whether a rerun should ask for them again; False if the file lacks them.
    """

    def __init__(self, run: pd.DataFrame, texts: pd.DataFrame, qids: Sequence[str], again: bool = True) -> None:
        super().__init__(f"{len(qids)} topics failed")
        self.run, self.texts, self.qids, self.again = run, texts, list(qids), again


@runtime_checkable
class BringsTexts(Protocol):
    """A retriever with texts of its own, from another system that was recorded or is asked.

    Nothing is indexed for it, and it takes no queries of a rewriter. It may bring others for other budgets
    (`ragauge.contract.offers.RetrieverOffers.per_budget`).
    """

    def bring(self, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Frame `run` of the topics [qid, query], and [docno, text] of what it brings that is no chunk.

        `ragauge.retrieval.passages` names texts that have no name. The run may have a column `failed` (bool):
        topics for which a rerun should ask again; TopicsFailed says the same of topics without a row. These topics
        have no IR score and no measure of the ranking.
        """


@runtime_checkable
class SearchesSeveral(Protocol):
    """A retriever that passes a rewriter's queries on to its own retrievers."""

    def search(
        self,
        topics: pd.DataFrame,
        queries: pd.DataFrame,
        rewriter: Rewriter,
        chunks: pd.DataFrame,
        folder: Path,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `run` of the topics [qid, query]; queries is the frame `queries`."""


@runtime_checkable
class ReadsTokens(Protocol):
    """A component whose model truncates texts at a number of tokens."""

    model: str

    def reader(self) -> Any:
        """The `Reader` (ragauge.retrieval.reading) that counts tokens against the limit; None without a limit."""


@runtime_checkable
class ShowsPassages(Protocol):
    """A component that shows a chat model passages of at most `passage_tokens` tokens of the config's tokenizer.

    long: whether a longer text is `cut` there, or shown as several passages.
    """

    passage_tokens: int
    long: str


@runtime_checkable
class EmbedsTexts(Protocol):
    """A chunker or measure that embeds texts other than chunks and questions."""

    def embedded(self, docs: Sequence[str], evidence: Sequence[str]) -> list[str]:
        """The texts to be embedded, from some documents and evidence parts."""


@runtime_checkable
class OverRetrievers(Protocol):
    """A retriever over others, with each one's index in a subfolder of its name."""

    @property
    def retrievers(self) -> Mapping[str, Retriever]:
        """Its retrievers by name; jobs with one of them alone share its index."""


@runtime_checkable
class Approximates(Protocol):
    """An approximate retriever that reports its recall."""

    @property
    def approximate(self) -> bool:
        """Whether the configured search is approximate."""

    def recall(self, topics: pd.DataFrame, chunks: pd.DataFrame, folder: Path, tools: Tools) -> float:
        """Share of the exact ten best hits that it finds; topics [qid, query] may be sampled."""


class Expander(Protocol):
    """Config group `expander`: hits to larger passages around them.

    kind: "none" where the chunks stay as they are; the stage is then left out.
    """

    kind: ClassVar[str]
    uses: ClassVar[frozenset[str]]

    def expand(self, run: pd.DataFrame, chunks: pd.DataFrame, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `passages` in the order of the run; shared text of a topic's passages occurs once."""


class Compressor(Protocol):
    """Config group `compressor`: passages to their parts relevant to the question.

    kind: "none" where the passages stay as they are; the stage is then left out.
    A compressor with a `depth` (`ragauge.contract.offers.PartOffers`) is given the best passages of a topic, and
    all others are left out. One that asks an LLM marks in a column `failed` the passages that it let stand
    because a reply failed: a rerun then asks again.
    """

    kind: ClassVar[str]
    uses: ClassVar[frozenset[str]]

    def compress(self, passages: pd.DataFrame, topics: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `passages`, shorter; ranks are 0, 1, 2, … again.

        passages: topic by topic and by rank; topics: [qid, query].
        """


class ContextOrder(Protocol):
    """Config group `order`: the order of passages in a context.

    cut: `last` orders all passages and cuts the context at its budget afterwards, `first` orders what fits
    the budget in rank order.
    """

    @property
    def cut(self) -> Literal["last", "first"]:
        """Whether the budget is cut after or before ordering."""

    @property
    def by_rank(self) -> bool:
        """Whether passages stay in rank order."""

    def arrange(self, n: int) -> np.ndarray:
        """int64 [n], a permutation: element i is the rank of the passage that stands i-th."""


class Generator(Protocol):
    """Config group `llm`: answers from contexts."""

    kind: ClassVar[str]  # "chat", "service", "embedded", "recorded" (nobody is asked) or "none"
    uses: ClassVar[frozenset[str]]

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers`, a row for every row of `contexts`; a failed one is a missing answer.

        Columns that the data model does not name are attributes of the answers, and come with the outcomes.
        """


@runtime_checkable
class Monitored(Protocol):
    """A dataset that reads a window of the traces of a system in use."""

    @classmethod
    def pinned(cls, spec: Mapping[str, Any], now: float) -> dict[str, Any]:
        """The config fields that fix the end of the window at `now` (seconds since 1970)."""

    def window_metrics(self, topics: pd.DataFrame) -> dict[str, float]:
        """The metrics of the window."""

    def window_warnings(self, metrics: Mapping[str, float]) -> list[str]:
        """Warnings for a reader of these metrics, a sentence each."""

    def has_answers_of(self, llm: Any) -> bool:
        """Whether this llm's answers are those of the traces."""

    def place(self) -> tuple[str | None, str]:
        """The MLflow URI (None: the default) and the experiment of the traces."""

    def trace_ids(self, topics: pd.DataFrame) -> dict[str, str]:
        """The id of the trace of every topic [qid, query], by qid."""


@runtime_checkable
class Repeatable(Protocol):
    """An llm or judge that can reply differently to the same request (`llm.repeat`, `judge.per_answer`)."""

    def repeated(self, number: int) -> Any:
        """The component for repeat `number`, from 1, whose requests are its own; ConfigError if none can differ."""


class Judge(Protocol):
    """Config group `judge`: answers to judge classes."""

    kind: ClassVar[str]  # "chat", "embedded", "recorded" (nobody is asked) or "none"
    uses: ClassVar[frozenset[str]]

    def judge(self, topics: pd.DataFrame, evidence: pd.DataFrame, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `verdicts`, a row for every row of `answers`; what cannot be read is a missing verdict."""


Order = Literal["same", "other"]  # of the candidates, in a request that repeats another


@runtime_checkable
class BatchJudge(Judge, Protocol):
    """A judge that can judge the answers of several jobs at once, with mode "batch".

    It can be asked again, in both modes.
    """

    mode: Literal["single", "batch"]

    def judge_candidates(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, candidates: pd.DataFrame, tools: Tools
    ) -> pd.DataFrame:
        """Verdicts on [qid, candidate, answer], keyed by qid and candidate."""

    def judge_again(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        candidates: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Further verdicts on some of the candidates, keyed by qid, candidate and `order`.

        `same` is the first request once more, `other` the candidates in another order (mode batch). No rows
        where nothing is to be repeated.
        """


@runtime_checkable
class TellsJudging(Protocol):
    """A judge that can estimate its requests before it is asked: `dry_run`."""

    def needs(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        candidates: pd.DataFrame,
        tools: Tools,
        *,
        repeat: bool = False,
    ) -> pd.DataFrame:
        """A row per request: [key, known, exact, prompt_tokens, completion_tokens, cost_usd].

        With `repeat` those that judge again, too, with a column `again` that is true for them.
        """


def judges_together(judge: Judge) -> bool:
    """Whether the judge wants the answers of all jobs of a sweep at once."""
    return isinstance(judge, BatchJudge) and judge.mode == "batch"


@runtime_checkable
class AsksForAnswers(Protocol):
    """A generator whose requests are known before they are sent, for the costs of `dry_run`."""

    def prompts(self, topics: pd.DataFrame, contexts: pd.DataFrame) -> list[str]:
        """The prompt of every row of `contexts`."""

    def needs_of(self, prompts: Sequence[str], store: Workplace) -> pd.DataFrame:
        """A row per prompt: [key, known, exact, prompt_tokens, completion_tokens, cost_usd]."""

    def known_answers(self, topics: pd.DataFrame, contexts: pd.DataFrame, store: Workplace) -> pd.DataFrame:
        """Frame `answers` of the answers known already, missing elsewhere; asks no LLM."""


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
