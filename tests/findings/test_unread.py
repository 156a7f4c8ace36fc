"""What the models of a job leave unread is said with its share, and each line once in a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pandas as pd
import pytest

from ragauge.contract.component import Component
from ragauge.findings.lacking import _printed
from ragauge.findings.unread import UnreadTexts, unread
from ragauge.plugins.reranking.llm import ListwiseReranker
from ragauge.retrieval.chunkers import SemanticChunker
from ragauge.retrieval.reading import Reader, Reading
from ragauge.texts.model_files import model_path
from ragauge.texts.tokenizers import WordTokenizer
from sweep_records import record_of

MINILM = Path(str(model_path("all-MiniLM-L6-v2")))
CHUNKS = pd.DataFrame({"docno": list("abcd"), "text": [" ".join(["river"] * n) for n in (18, 48, 98, 248)]})


@dataclass
class Model(Component):
    """A model of so many tokens, in the place of any part."""

    limit: int | None
    index_uses: frozenset[str] = frozenset()
    model: str = "tiny"
    passage_tokens: int | None = None
    retrievers: ClassVar[Mapping[str, Any]] = {}

    def reader(self) -> Reader | None:
        return None if self.limit is None else Reader(MINILM, self.limit)


def pipeline(digest: str, **components: Any) -> Any:
    frames = {
        "chunks": CHUNKS,
        "docs": pd.DataFrame({"docno": ["d"], "text": [" ".join(["A long river runs slowly to the sea today."] * 30)]}),
        "topics": pd.DataFrame({"qid": ["1"], "query": ["which long river"]}),
        "evidence": pd.DataFrame({"text": ["A river."]}),
    }
    others = ("retriever", "embedder", "reranker", "chunker", "measure")
    parts = dict.fromkeys(others, Model(None)) | components
    return SimpleNamespace(
        components=SimpleNamespace(**parts), frame=frames.__getitem__, rows=frames.__getitem__,
        entry_of=lambda name: SimpleNamespace(digest=digest),
    )  # fmt: skip


def test_chunks_that_the_embedder_cuts_are_counted_with_the_share_of_their_tokens() -> None:
    dense, words = Model(None, frozenset({"embedder"})), Model(None)
    (found,) = unread(pipeline("a", retriever=dense, embedder=Model(64)))
    # 20, 50, 100 and 250 tokens with the two marks: 36 and 186 are behind the limit.
    assert (found.group, found.reading.longer, found.reading.texts) == ("embedder", 2, 4)
    assert found.reading.unread == pytest.approx(222 / 420)
    assert found.sentence == (
        "embedder.model=tiny reads 64 tokens of a text: 2 of 4 chunks are longer, and 52.9% of the tokens are not "
        "read; "
        "embedder.long=mean or max reads them in windows, smaller chunks (chunker=tokens) as they are"
    )
    assert unread(pipeline("b", retriever=dense, embedder=Model(250))) == []
    assert unread(pipeline("c", retriever=dense, embedder=Model(None))) == []
    assert unread(pipeline("d", retriever=words, embedder=Model(64))) == []


def test_a_reranker_reads_the_question_too_and_a_chunker_its_windows() -> None:
    (found,) = unread(pipeline("e", reranker=Model(100)))
    assert (found.group, found.reading.longer) == ("reranker", 2)  # 98 words, 3 of the question, and marks
    (of_retriever,) = unread(pipeline("f", retriever=Model(200)))
    assert (of_retriever.group, of_retriever.reading.longer) == ("retriever", 1)
    assert of_retriever.sentence.endswith(
        "; retriever.long=max reads them in windows, smaller chunks (chunker=tokens) as they are"
    )
    passages = partial(pipeline, "i", tokenizer=WordTokenizer())
    (shown,) = unread(passages(reranker=ListwiseReranker(passage_tokens=90)))
    assert shown.sentence.startswith(
        "reranker.passage_tokens=90 reads 90 tokens of a text: 2 of 4 chunks are longer, and 40.3% of the tokens"
    )  # 8 and 158 of 412 words
    assert unread(passages(reranker=ListwiseReranker(passage_tokens=90, long="max"))) == []
    (of_chunker,) = unread(pipeline("g", chunker=SemanticChunker(), embedder=Model(24)))
    # Windows of three sentences of ten tokens, of two at both ends.
    assert of_chunker.what == "texts that the chunker compares"
    assert (of_chunker.reading.longer, of_chunker.reading.texts) == (28, 30)


def test_each_line_is_said_once_in_a_sweep_and_its_numbers_are_metrics() -> None:
    job: Any = SimpleNamespace(
        pipeline=pipeline("h", retriever=Model(200)), record=record_of(sweep_id="test_each_line_is_said_once")
    )
    finding = UnreadTexts()
    found = finding.compute(job, {})
    assert found.metrics == {"unread_retriever_texts": 1, "unread_retriever_share": pytest.approx(50 / 420)}
    assert len(finding.show(job, found.value, {}).notes) == 1
    assert finding.show(job, found.value, {}).notes == []
    assert found.value[0].reading.unread > 0.1
    few = replace(found.value[0], reading=Reading(1, 10_000, 0.0009))
    job.record.sweep_id = None
    assert finding.show(job, [few], {}).notes == []
    _printed.cache_clear()
