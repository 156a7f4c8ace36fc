"""Optional members of components, with their defaults.

`offered(retriever, RetrieverOffers).takes_queries` is the retriever's own value, or else the default here.
Components need not inherit from these classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any, Literal, Protocol, TypeVar, cast

import pandas as pd

from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.retrieval import Retriever

Offers = TypeVar("Offers")


def offered(component: object, of: type[Offers]) -> Offers:
    """A view of the component; missing members fall back to the class's defaults.

    AttributeError for a name that is no member of the class.
    """
    return cast(Offers, _Offered(component, of))


class _Offered:
    def __init__(self, component: object, of: type) -> None:
        self._component, self._of = component, of

    def __getattr__(self, name: str) -> Any:
        default = getattr(self._of, name)
        if isinstance(default, FunctionType):
            default = default.__get__(self._component)
        return getattr(self._component, name, default)


class PartOffers(Protocol):
    """Optional members of any component.

    kind: "recorded" of one whose work was done before, "none" of one that does nothing, and others.
    component: the name under which its results are stored. uses: the shared models that it takes.
    needs_chat: whether it cannot do without a chat model that the job shares.
    top_k: the most hits of a topic, for a component that ranks; 0 searches nothing, None is not known.
    depth: the number of best-ranked texts of a topic that it looks at; None is all.
    counts: the names of what it counts with `Tools.count`, 0 where its output was stored. topic_counts: columns of
        its run that are counted by topic.
    stands_alone: of a rewriter, whether a topic's last query is its question, for rerankers and compressors, too.
    """

    kind: str = ""
    component: str = ""
    uses: frozenset[str] = frozenset()
    needs_chat: bool = False
    top_k: int | None = None
    depth: int | None = None
    counts: tuple[str, ...] = ()
    topic_counts: tuple[str, ...] = ()
    stands_alone: bool = False


class DatasetOffers(Protocol):
    """Optional members of a dataset's class.

    run_job: the dotted path of the function that runs a job of it in the place of the stages. It is called with the
        job's config, folder and record, which it fills, and holds the job to its gates (`ragauge.experiment.gates`).
        "": the stages run.
    own_document: "drop" leaves a document out of the ranking of the topic that it is: same id, same text.
    """

    run_job: str = ""
    own_document: str = "keep"


class RetrieverOffers(PartOffers, Protocol):
    """Optional members of a retriever, one that brings its own texts included.

    takes_queries: whether it searches for the queries that a rewriter wrote. space: how it searches for several queries
        at once: "text", "dense" or "lexical".
    index_uses: the shared models that its index needs, which enter the key of the index; None is all of `uses`.
    indexes_batches: whether `build_index` takes the chunks in batches (`ragauge.contract.frames.Batches`), too.
    search_columns: the columns of the chunks that its transformer reads, which is given these and docno; None is
        all.
    per_budget: whether it brings other texts for other budgets: its topics then have the column n_tokens.
    condition: the name of the condition to which it changes the evidence; None where it changes none.
    """

    takes_queries: bool = True
    space: str = "text"
    index_uses: frozenset[str] | None = None
    indexes_batches: bool = False
    search_columns: tuple[str, ...] | None = None
    per_budget: bool = False
    condition: float | str | None = None


def used_by_index(retriever: Retriever) -> frozenset[str]:
    """The shared models of a retriever's index."""
    own = offered(retriever, RetrieverOffers).index_uses
    return retriever.uses if own is None else own


class GeneratorOffers(PartOffers, Protocol):
    """Optional members of an llm.

    takes_context: whether it is given the job's contexts; a service may retrieve by itself. cite: whether it is to
    cite the passages of its context by number. expected_tokens: tokens of an answer, for estimates.
    """

    takes_context: bool = True
    cite: bool = False
    expected_tokens: int = 60


class ChatOffers(Protocol):
    """The price of a chat model or a service."""

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars for these tokens; by default 0."""
        return 0.0

    def cost_of_kept(self, replies: pd.DataFrame) -> float:
        """US dollars that replies cost originally; by default the price of their tokens."""
        tokens = replies[["prompt_tokens", "completion_tokens"]].sum()
        return offered(self, ChatOffers).cost(int(tokens["prompt_tokens"]), int(tokens["completion_tokens"]))


class JudgeOffers(PartOffers, Protocol):
    """Optional member of a judge: whether it needs reference answers; a topic without one is then not judged."""

    needs_reference: bool = True


class MeasureOffers(PartOffers, Protocol):
    """Optional members of a measure of evidence.

    fold: the differences of spelling that do not count. correct: "floor" takes off what unrelated text is given.
    threads: 0 takes a thread for every core.
    """

    fold: tuple[str, ...] = ()
    correct: str = "none"
    threads: int | None = None


class AnswerMeasureOffers(PartOffers, Protocol):
    """Optional members of an answer measure.

    infos: how its values are shown, in the place of `info`, of one with several.
    needs: the parts that a job must have (`ragauge.contract.measures.Needed`). Where one lacks, the job ends before
        any work; a measure that is `optional` is left out instead.
    sees_longest: whether `measure_passages` is given what stands in the longest context that the job lays out.
    job_metrics: the names of what `MeasuresJob.of_job` gives.
    repeat: how many topics are measured once more. may_lack_claims: whether an answer may hold no claim to measure.
    stages: the dotted path of a function of components, budget, key and measure that gives its stages; "": the usual.
    """

    infos: tuple[AnswerMeasureInfo, ...] = ()
    needs: frozenset[str] = frozenset()
    optional: bool = False
    sees_longest: bool = False
    job_metrics: tuple[str, ...] = ()
    repeat: int = 0
    may_lack_claims: bool = False
    stages: str = ""

    def check_topics(self, topics: pd.DataFrame) -> None:
        """Raises errors in its own files for these topics; by default nothing."""


class EmbedderOffers(Protocol):
    """Optional members of an embedder.

    symmetric: whether it gives a text the same vector as passage and as query.
    """

    symmetric: bool = True

    def windows(self, texts: Sequence[str]) -> list[list[str]] | None:
        """The windows of each passage, at least one, where each is to have a vector of its own; here None."""
        return None


class TokenizerOffers(Protocol):
    """Optional member of a tokenizer: how the tokens of joined texts follow from those of each
    (`ragauge.texts.tokenizers`)."""

    stitching: Literal["free", "space", "joined"] = "joined"
