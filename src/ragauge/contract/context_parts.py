"""What the parts around a retriever must do: rewriters, and behind it expanders, compressors, orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from ragauge.contract.protocols import Retriever, Tools


class Rewriter(Protocol):
    """Config group `rewriter`: questions to queries.

    kind: "none" where the questions themselves are searched; the stage is then left out.
    feedback: whether it looks at what the retriever finds for the question itself.
    union, rrf_constant: how the ranked lists of a topic's searches become one. `rrf` orders by the sum over
        lists of 1 / (rrf_constant + rank + 1), `first_seen` takes all hits of the first list in order, then
        the new ones of the second, and so on.
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

        run, chunks: what the question itself found, and all chunks; None unless `feedback`. A topic whose
        rewrite failed has its question, with the origin "failed".
        """


@runtime_checkable
class ReadsFiles(Protocol):
    """A component whose output depends on files: their contents enter the key of what it makes."""

    def files(self) -> Mapping[str, Path]:
        """The files by role; ConfigError if one is not there."""


@runtime_checkable
class SeesEvidence(Protocol):
    """A retriever that is told the answers' evidence: an oracle, or noise mixed with what is needed."""

    def rank_with_evidence(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, chunks: pd.DataFrame, folder: Path, tools: Tools
    ) -> pd.DataFrame:
        """Frame `run` of the topics [qid, query]; evidence is the frame `evidence`."""


class TopicsFailed(Exception):
    """Raised by `BringsTexts.bring` with all that it brought, where a rerun should ask again for `qids`."""

    def __init__(self, run: pd.DataFrame, texts: pd.DataFrame, qids: Sequence[str]) -> None:
        super().__init__(f"{len(qids)} topics failed")
        self.run, self.texts, self.qids = run, texts, list(qids)


@runtime_checkable
class BringsTexts(Protocol):
    """A retriever whose texts need not be in the corpus: that of another system, recorded or asked.

    Nothing is indexed for it, and it takes no queries of a rewriter. It may bring others for other budgets
    (`ragauge.contract.offers.RetrieverOffers.per_budget`).
    """

    def bring(self, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Frame `run` of the topics [qid, query], and [docno, text] of what it brings that is no chunk.

        `ragauge.retrieval.passages` names texts that have no name. The run may have a column `failed` (bool):
        topics for which a rerun should ask again; TopicsFailed says the same of topics without a row.
        """


@runtime_checkable
class SearchesSeveral(Protocol):
    """A retriever that hands the queries of a rewriter on to retrievers of its own."""

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
class OverRetrievers(Protocol):
    """A retriever over others: in its index folder the index of each lies in a folder of the same name."""

    @property
    def retrievers(self) -> Mapping[str, Retriever]:
        """Those that it searches with, by name; their indexes are shared with jobs that have them alone."""


@runtime_checkable
class Approximates(Protocol):
    """A retriever that may miss hits that an exact search finds, and says how many."""

    @property
    def approximate(self) -> bool:
        """Whether it does, as it is configured."""

    def recall(self, topics: pd.DataFrame, chunks: pd.DataFrame, folder: Path, tools: Tools) -> float:
        """Share of the exact ten best hits that it finds; topics are [qid, query], not all need be asked."""


class Expander(Protocol):
    """Config group `expander`: hits to larger passages around them.

    kind: "none" where the chunks stay as they are; the stage is then left out.
    """

    kind: ClassVar[str]
    uses: ClassVar[frozenset[str]]

    def expand(self, run: pd.DataFrame, chunks: pd.DataFrame, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `passages` in the order of the run; text that passages of a topic share stands once."""


class Compressor(Protocol):
    """Config group `compressor`: passages to what of them matters for the question.

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
    """Config group `order`: in which order the passages of a context stand.

    cut: `last` orders all passages and cuts the context at its budget afterwards, `first` orders what fits
    the budget in rank order.
    """

    @property
    def cut(self) -> Literal["last", "first"]:
        """Whether the budget is cut after or before the passages are put in order."""

    @property
    def by_rank(self) -> bool:
        """Whether passages stay in rank order."""

    def arrange(self, n: int) -> np.ndarray:
        """int64 [n], a permutation: element i is the rank of the passage that stands i-th."""
