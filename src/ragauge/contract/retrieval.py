"""The kinds of components that find passages and lay out contexts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from ragauge.contract.component import Tools


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
