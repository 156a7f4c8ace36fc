"""The kinds of components that find passages and lay out contexts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.component import Component, Tools
from ragauge.contract.default import Default
from ragauge.contract.errors import ConfigError


class Chunker(Component):
    """Config group `chunker`."""

    @abstractmethod
    def chunk(self, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `chunks`, in document order; text is the parent's text[start:end].

        For a large corpus it gets some documents at a time: a document's chunks must depend on this document alone.
        """

    def embedded(self, docs: Sequence[str], evidence: Sequence[str]) -> list[str]:
        """The texts other than chunks that it embeds, from some documents and evidence parts."""
        return []


class Retriever(Component):
    """Config group `retriever`.

    top_k: the most hits of a topic; 0 searches nothing, None is not known.
    reorder_after_cut: whether what fits the budget is put into long-context order.
    takes_queries: whether it searches for the queries that a rewriter wrote. space: how it searches for several queries
        at once: "text", "dense", "lexical", or "several", by its own `search`.
    indexes_batches: whether `build_index` takes the chunks in batches (`ragauge.contract.frames.Batches`), too; by
        default it gets all chunks as one frame.
    search_columns: the columns of the chunks that its transformer reads, which is given these and docno; None is
        all.
    condition: the name of the condition to which it changes the evidence; None where it changes none.
    approximate: whether its search, as configured, is approximate, so that its recall is measured.
    retrievers: the retrievers that it combines, by name. Each one's index is in a subfolder of its name, and jobs with
        one of them alone share it.
    """

    top_k = Default[int | None](None)
    reorder_after_cut = Default(False)
    takes_queries = Default(True)
    space = Default("text")
    indexes_batches = Default(False)
    search_columns = Default[tuple[str, ...] | None](None)
    condition = Default[float | str | None](None)
    approximate = Default(False)
    retrievers = Default[Mapping[str, "Retriever"]](MappingProxyType({}))

    def requests(self, topics: pd.DataFrame) -> list[str]:
        """The prompts of its requests to the job's chat model that rest on the topics alone, for a dry run."""
        return []

    @property
    def index_uses(self) -> frozenset[str]:
        """The shared models that its index needs, which enter the key of the index."""
        return self.uses

    @abstractmethod
    def index_identity(self) -> Mapping[str, Any]:
        """Everything that can change the index; equal for retrievers with a common index."""

    @abstractmethod
    def build_index(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> None:
        """Writes the index of the chunks into an empty folder."""

    @abstractmethod
    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """A PyTerrier transformer over a built index: frame [qid, query] in, frame `run` out."""

    def search(
        self,
        topics: pd.DataFrame,
        queries: pd.DataFrame,
        rewriter: Rewriter,
        chunks: pd.DataFrame,
        folder: Path,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `run` of the topics [qid, query], by one whose `space` is "several"; queries is the frame `queries`."""
        raise NotImplementedError

    def recall(self, topics: pd.DataFrame, chunks: pd.DataFrame, folder: Path, tools: Tools) -> float:
        """Share of the exact ten best hits that an approximate one finds; topics [qid, query] may be sampled."""
        return 1.0


class WithoutIndex(Retriever):
    """A retriever that does not search the chunks for questions alone: nothing is indexed for it."""

    def index_identity(self) -> Mapping[str, Any]:
        """A constant, since there is no index."""
        return {"index": "none", "version": 1}

    def build_index(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> None:
        """Writes nothing."""

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """ConfigError, unless a class has one."""
        raise ConfigError(f"retriever={self.component or type(self).__name__} does not search by the question alone")


class SeesEvidence(WithoutIndex):
    """A retriever that gets the answers' evidence: an oracle, or noise mixed with the evidence."""

    @abstractmethod
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


class BringsTexts(WithoutIndex):
    """A retriever with texts of its own, from another system that was recorded or is asked.

    per_budget: whether it brings other texts for other budgets: its topics then have the column n_tokens.
    ranks_corpus: whether its `transformer` ranks the corpus, for fusion with other retrievers.
    """

    takes_queries = Default(False)
    per_budget = Default(False)
    ranks_corpus = Default(False)

    @abstractmethod
    def bring(self, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Frame `run` of the topics [qid, query], and [docno, text] of what it brings that is no chunk.

        `ragauge.retrieval.passages` names texts that have no name. The run may have a column `failed` (bool):
        topics for which a rerun should ask again; TopicsFailed says the same of topics without a row. These topics
        have no IR score and no measure of the ranking.
        """


class Reranker(Component):
    """Config group `reranker`: a run in, a run out.

    kind: "none" where it leaves the run as it is; the stage is then left out.
    top_k: the most hits of a topic; None is not known.
    topic_counts: columns of its run that are counted by topic.
    passage_tokens: the most tokens, by the config's tokenizer, of a passage that a chat model is shown.
    long: "cut" ends a longer text there; any other value shows it as several passages.
    """

    top_k = Default[int | None](None)
    topic_counts = Default[tuple[str, ...]](())
    passage_tokens = Default[int | None](None)
    long = Default("cut")

    @abstractmethod
    def rerank(self, run: pd.DataFrame, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `run` with other scores and ranks; see `ragauge.retrieval.ranking.ranked`.

        topics: [qid, query]; chunks: [docno, text, …] of every docno of the run.
        """


class Rewriter(Component):
    """Config group `rewriter`: questions to queries.

    kind: "none" where the questions themselves are searched; the stage is then left out.
    feedback: whether it looks at what the retriever finds for the question itself.
    stands_alone: whether a topic's last query is its question, for rerankers and compressors, too.
    union, rrf_constant: how the ranked lists of a topic's searches become one. `rrf` orders by the sum over lists of 1
        / (rrf_constant + rank + 1). `first_seen` takes all hits of the first list in order, then the new ones of the
        second, and so on.
    """

    feedback = Default(False)
    stands_alone = Default(False)
    union = Default("rrf")
    rrf_constant = Default[float](60)

    @abstractmethod
    def rewrite(
        self, topics: pd.DataFrame, run: pd.DataFrame | None, chunks: pd.DataFrame | None, tools: Tools
    ) -> pd.DataFrame:
        """Frame `queries`, at least one row for every topic [qid, query].

        run, chunks: the hits of the question itself, and all chunks; None unless `feedback`. A topic whose rewrite
        failed has its question, with the origin "failed".
        """


class Expander(Component):
    """Config group `expander`: hits to larger passages around them.

    kind: "none" where the chunks stay as they are; the stage is then left out.
    """

    @abstractmethod
    def expand(self, run: pd.DataFrame, chunks: pd.DataFrame, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `passages` in the order of the run; shared text of a topic's passages occurs once."""


class Compressor(Component):
    """Config group `compressor`: passages to their parts relevant to the question.

    kind: "none" where the passages stay as they are; the stage is then left out.
    A compressor with a `depth` is given the best passages of a topic, and all others are left out. One that asks an LLM
    marks in a column `failed` the passages that it let stand because a reply failed: a rerun then asks again.
    """

    @abstractmethod
    def compress(self, passages: pd.DataFrame, topics: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `passages`, shorter; ranks are 0, 1, 2, … again.

        passages: topic by topic and by rank; topics: [qid, query].
        """


class ContextOrder(Component):
    """Config group `order`: the order of passages in a context.

    cut: `last` orders all passages and cuts the context at its budget afterwards, `first` orders what fits
    the budget in rank order. by_rank: whether passages stay in rank order.
    """

    cut = Default("last")
    by_rank = Default(False)

    @abstractmethod
    def arrange(self, n: int) -> np.ndarray:
        """int64 [n], a permutation: element i is the rank of the passage that stands i-th."""
