"""A fictional world whose systems have one fault each, planted: what is lost there is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from dropping import Dropping
from ragauge.answering import answer_frame
from ragauge.answering.judges import Verdict, verdict_frame
from ragauge.contract.answering import Generator, Judge
from ragauge.contract.component import Tools
from ragauge.contract.datasets import Dataset, Source
from ragauge.contract.replies import Reply
from ragauge.contract.retrieval import Compressor
from ragauge.plugins.fictional.source import FictionalWorld
from ragauge.retrieval.chunkers import NoChunker, TokenChunker
from ragauge.retrieval.passages import with_texts
from ragauge.retrieval.ranking import ranked
from ragauge.retrieval.retrievers import Oracle

Noise = pytest.importorskip("ragauge.plugins.robustness.noise").Noise

ENOUGH = 10_000  # tokens: more than any context here has
N_PASSAGES = 20  # documents of about 115 words


@dataclass(frozen=True)
class World(Source):
    """Topics with evidence; `without_evidence` leaves out the documents that it stands in."""

    component: ClassVar[str] = "world"
    version: ClassVar[int] = 1

    limit: int
    without_evidence: bool = False
    name: str = "world"

    def files(self) -> Mapping[str, Path]:
        return {}

    def load(self) -> Dataset:
        data = FictionalWorld(
            documents=150,
            questions=60,
            style="hard",
            types=("chain",),
            look_alikes=0,
            pronouns=1.0,
            max_hops=2,
            limit=self.limit,
        ).load()
        if not self.without_evidence:
            return data
        docs = data.docs if isinstance(data.docs, pd.DataFrame) else data.docs.frame()
        kept = docs[~docs["docno"].isin(data.evidence["docno"])].reset_index(drop=True)
        return replace(data, docs=kept)


@dataclass(frozen=True)
class BackToFront(Oracle):
    """The pieces of the evidence, the last one first, so that no two neighbours complete a sentence."""

    component: ClassVar[str] = "back_to_front"

    def rank_with_evidence(
        self, topics: pd.DataFrame, evidence: pd.DataFrame, chunks: pd.DataFrame, folder: Path, tools: Tools
    ) -> pd.DataFrame:
        run = super().rank_with_evidence(topics, evidence, chunks, folder, tools)
        return ranked(run.assign(score=run["rank"].astype(float)))


@dataclass(frozen=True)
class FirstWords(Compressor):
    """Leaves the first words of every passage."""

    component: ClassVar[str] = "first_words"
    kind: ClassVar[str] = "first_words"
    uses: ClassVar[frozenset[str]] = frozenset()

    def compress(self, passages: pd.DataFrame, topics: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        return with_texts(passages, [" ".join(text.split()[:3]) for text in passages["text"]])


@dataclass(frozen=True)
class Scripted(Generator):
    """Says what `says` makes of a topic's row and its context; None is a failed call."""

    component: ClassVar[str] = "scripted"
    kind: ClassVar[str] = "embedded"
    uses: ClassVar[frozenset[str]] = frozenset()

    name: str
    says: Callable[[Mapping[Any, Any], str], str | None] = field(metadata={"runtime": True})

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        of = {row["qid"]: row for row in topics.to_dict("records")}
        said = [self.says(of[qid], text) for qid, text in zip(contexts["qid"], contexts["text"], strict=True)]
        return answer_frame(contexts, [Reply(text, None if text else "HTTP 500") for text in said])


@dataclass(frozen=True)
class Unreadable(Judge):
    """A judge whose replies are no verdicts."""

    component: ClassVar[str] = "unreadable"
    kind: ClassVar[str] = "chat"
    uses: ClassVar[frozenset[str]] = frozenset()

    def judge(self, topics: pd.DataFrame, evidence: pd.DataFrame, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        return verdict_frame(answers[["qid", "n_tokens"]], [Verdict(None, "unreadable", "…")] * len(answers))


# What LLMs say: nothing known, what nobody wrote, a sentence of another document.
REFUSING = Scripted("refusing", lambda topic, context: "I do not know.")
INVENTING = Scripted("inventing", lambda topic, context: "Quvvinium Zorkblatt")
MISREADING = Scripted("misreading", lambda topic, context: context.rsplit(". ", 2)[-2].split(",")[0])
FAILING = Scripted("failing", lambda topic, context: None)
FIRST = Noise(noise_rate=0.5, n_passages=N_PASSAGES, order="first")
MIDDLE = Noise(noise_rate=0.5, n_passages=N_PASSAGES, order="middle")
NOTHING = Noise(noise_rate=1.0, n_passages=N_PASSAGES)


def faults(limit: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """{fault: the cause that should be found, and what the pipeline is made of}."""
    usual: dict[str, Any] = {
        "dataset": World(limit), "chunker": NoChunker(), "retriever": FIRST, "llm": REFUSING,
        "n_tokens": ENOUGH, "n_grid": (ENOUGH,),
    }  # fmt: skip
    planted: dict[str, tuple[str, dict[str, Any]]] = {
        "documents are missing": ("not in the corpus", {"dataset": World(limit, True), "retriever": NOTHING}),
        "chunks of five words": (
            "cut by the chunker", {"chunker": TokenChunker(5, 0), "retriever": BackToFront()},
        ),
        "the retriever finds others": ("not retrieved", {"retriever": NOTHING}),
        "the reranker drops the best": ("lost by the reranker", {"reranker": Dropping(6)}),
        "the reranker turns the order round": (
            "lost by the reranker", {"reranker": Dropping(), "n_tokens": 900, "n_grid": (900,)},
        ),
        "the compressor keeps three words": ("compressed away", {"compressor": FirstWords()}),
        "three tokens": ("beyond the budget", {"n_tokens": 3, "n_grid": (3,)}),
        "evidence in the middle": ("lost in the middle", {"retriever": MIDDLE}),
        "the LLM refuses": ("generation error", {}),
        "the LLM reads another sentence": ("generation error", {"llm": MISREADING}),
        "the LLM fails": ("generation error", {"llm": FAILING}),
        "the LLM invents": ("unsupported answer", {"llm": INVENTING}),
        "the judge cannot be read": ("judge missing", {"judge": Unreadable()}),
    }  # fmt: skip
    return {fault: (cause, usual | parts) for fault, (cause, parts) in planted.items()}
