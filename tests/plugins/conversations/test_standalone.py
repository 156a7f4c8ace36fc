"""Rerankers and compressors are given the question that the retriever was given, where it stands alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragauge.contract.identity import runtime
from ragauge.plugins.conversations.contextual import Contextual
from ragauge.retrieval.compressors import NoCompressor
from ragauge.retrieval.rerankers import NoReranker
from small_pipeline import TOPICS, SmallPipelines

LATER = {"query": "Where is it?", "history": ["What stands there?", "A bridge."],
         "standalone_question": "Where is the bridge?"}  # fmt: skip


@dataclass(frozen=True)
class KeepingReranker(NoReranker):
    """Leaves the run as it is, and keeps the questions."""

    kind = "keeping"
    asked: Any = runtime(None)

    def rerank(self, run: pd.DataFrame, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Any) -> pd.DataFrame:
        self.asked.append(topics["query"].tolist())
        return run


@dataclass(frozen=True)
class KeepingCompressor(NoCompressor):
    """Leaves the passages as they are, and keeps the questions."""

    kind = "keeping"
    asked: Any = runtime(None)

    def compress(self, passages: pd.DataFrame, topics: pd.DataFrame, tools: Any) -> pd.DataFrame:
        self.asked.append(topics["query"].tolist())
        return passages


def asked(small: SmallPipelines, **others: Any) -> list[list[str]]:
    found: list[list[str]] = []
    topics = (TOPICS[0], {**TOPICS[1], **LATER})
    parts = {"reranker": KeepingReranker(asked=found), "compressor": KeepingCompressor(asked=found)}
    _ = small(topics=topics, **parts, **others).contexts
    return found


def test_a_later_question_is_passed_on_as_it_was_searched(small: SmallPipelines) -> None:
    first, later, alone = TOPICS[0]["query"], LATER["query"], LATER["standalone_question"]
    assert asked(small) == [[first, later]] * 2
    assert asked(small, rewriter=Contextual(by="recorded")) == [[first, alone]] * 2
    both = asked(small, rewriter=Contextual(by="recorded", with_question=True))
    assert [one[1].rstrip("?") for one in both] == [str(alone).rstrip("?")] * 2
