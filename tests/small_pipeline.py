"""A pipeline over three questions and four documents, its components real and cheap."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from quoting import Quoting
from ragauge.answering.judges import LexicalJudge
from ragauge.contract.answer_measures import infos_of
from ragauge.contract.component import Embedder, TheLLM
from ragauge.contract.groups import RANKINGS
from ragauge.contract.stages import Components
from ragauge.datasets import JsonlDataset
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.measures import Substring
from ragauge.retrieval.chunkers import TokenChunker
from ragauge.retrieval.compressors import NoCompressor
from ragauge.retrieval.expanders import NoExpander
from ragauge.retrieval.order import RankOrder
from ragauge.retrieval.queries import NoRewriter
from ragauge.retrieval.rerankers import NoReranker
from ragauge.retrieval.retrievers import Sim
from ragauge.store import Store
from ragauge.texts.tokenizers import WordTokenizer

Row = Mapping[str, Any]

DOCS: tuple[Row, ...] = (
    {"docno": "d1", "title": "Tower", "text": "Anna built the tower. It stands high above Graz."},
    {"docno": "d2", "title": "Bridge", "text": "The bridge stands in Linz. It is made of stone."},
    {"docno": "d3", "title": "Hills", "text": "Mountains are tall and cold. Snow covers them."},
    {"docno": "d4", "title": "Rivers", "text": "Rivers carry water. All of them reach the sea."},
)
TOPICS: tuple[Row, ...] = (
    {
        "qid": "q1",
        "query": "Who built the tower?",
        "answer": "Anna",
        "evidence": [{"docno": "d1", "text": "Anna built the tower."}],
    },
    {
        "qid": "q2",
        "query": "Where is the bridge?",
        "answer": "Linz",
        "evidence": [{"docno": "d2", "text": "The bridge stands in Linz."}],
    },
    {
        "qid": "q3",
        "query": "Are mountains tall and cold?",
        "answer": "Snow",
        "evidence": [{"docno": "d3", "text": "Snow covers them."}],
    },
)


def replaced(rows: Sequence[Row], row: int, **values: Any) -> tuple[Row, ...]:
    """The rows with other values in one of them."""
    return tuple({**r, **values} if i == row else r for i, r in enumerate(rows))


@dataclass
class SmallPipelines:
    """Makes pipelines with a store object of their own each, all over one folder, as processes do."""

    folder: Path
    embedder: Embedder

    def source(self, docs: Sequence[Row] = DOCS, topics: Sequence[Row] = TOPICS) -> JsonlDataset:
        """The rows as files, in a folder that no other source has."""
        folder = self.folder / f"data-{len(list(self.folder.glob('data-*')))}"
        folder.mkdir(parents=True)
        for name, rows in (("docs", docs), ("topics", topics)):
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        return JsonlDataset(docs=folder / "docs.jsonl", topics=folder / "topics.jsonl")

    def components(self, docs: Sequence[Row] = DOCS, topics: Sequence[Row] = TOPICS, **others: Any) -> Components:
        """Real components that need no model, but for the `others`."""
        usual = Components(
            dataset=self.source(docs, topics),
            chunker=TokenChunker(size=6, overlap=0),
            embedder=self.embedder,
            tokenizer=WordTokenizer(),
            rewriter=NoRewriter(),
            retriever=Sim(top_k=3),
            reranker=NoReranker(),
            expander=NoExpander(),
            compressor=NoCompressor(),
            order=RankOrder(),
            measure=Substring(),
            llm=Quoting(threshold=-1.0),
            evaluator=TheLLM(),
            answers={},
            judge=LexicalJudge(),
        )
        return dataclasses.replace(usual, **others)

    def __call__(
        self,
        n_tokens: int = 8,
        n_grid: tuple[int, ...] = (4, 8, 16),
        max_missing_share: float = 1.0,
        **others: Any,
    ) -> Pipeline:
        """A pipeline of these components; `docs` and `topics` replace the rows."""
        store = Store(self.folder / "store")
        measures = others.pop("measures", RANKINGS)
        return Pipeline(self.components(**others), store, n_tokens, n_grid, max_missing_share, measures=measures)


def own_values(job: Pipeline) -> pd.DataFrame:
    """Frame `answer_values` of the measures that the job chose, without those of its ranking."""
    own = {info.name for measure in job.components.answers.values() for info in infos_of(measure)}
    values = job.frame("answer_values")
    return values[values["measure"].isin(own)].reset_index(drop=True)
