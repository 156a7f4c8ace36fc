"""What the funnel and the causes take on top of the scores: 7,404 topics, five retrievers, ten budgets.

The passages of a real collection, two sentences of two of them the evidence of each topic, and some of their
words the question. Processor seconds of all threads, as other work on the machine does not count in them;
corpus and best chunk are found once for all retrievers. Prints a Markdown row each.
"""

from __future__ import annotations

import gc
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from timing import against, print_header, print_row

from ragauge.answering import Extractive
from ragauge.answering.judges import LexicalJudge
from ragauge.contract.datasets import Dataset, Source
from ragauge.contract.identity import runtime
from ragauge.contract.stages import Components
from ragauge.diagnose.failures import cause_shares
from ragauge.diagnose.funnel import funnel
from ragauge.estimate import bounded_mean
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.findings.failures import with_failures
from ragauge.findings.funnel import evidence_parts
from ragauge.measures import Substring
from ragauge.retrieval.chunkers import TokenChunker
from ragauge.retrieval.compressors import NoCompressor
from ragauge.retrieval.embedders.sentence_transformers import SentenceTransformerEmbedder
from ragauge.retrieval.expanders import NoExpander
from ragauge.retrieval.order import RankOrder
from ragauge.retrieval.queries import NoRewriter
from ragauge.retrieval.rerankers import NoReranker
from ragauge.retrieval.retrievers import BM25
from ragauge.store import Store
from ragauge.texts.sentences import sentence_spans
from ragauge.texts.tokenizers import WordTokenizer

DATA = Path(__file__).resolve().parents[1] / "../shared/data/wiki_passages_6119.json"
TOPICS, BUDGETS, WORDS = 7_404, tuple(range(100, 1001, 100)), 4
RETRIEVERS = [BM25(top_k=30, b=b) for b in (0.4, 0.1, 0.6, 0.75, 0.9)]
GOAL = 0.2  # of the scores


@dataclass(frozen=True)
class Passages(Source):
    """The passages as documents, and topics whose evidence are sentences of two of them."""

    version: ClassVar[int] = 1

    n_topics: int
    name: str = runtime("passages")
    rows: Any = field(default=None, compare=False, metadata={"runtime": True})

    def files(self) -> Mapping[str, Path]:
        return {"docs": DATA}

    def load(self) -> Dataset:
        texts = [passage["text"] for passage in json.loads(DATA.read_text(encoding="utf-8"))]
        docs = pd.DataFrame({"docno": [f"d{i}" for i in range(len(texts))], "title": "", "text": texts})
        rng = np.random.default_rng(0)
        topics, evidence = [], []
        for number in range(self.n_topics):
            words: list[str] = []
            for part, doc in enumerate(rng.choice(len(texts), 2, replace=False).tolist()):
                spans = [(a, b) for a, b in sentence_spans(texts[doc]) if b - a > 40] or [(0, len(texts[doc]))]
                start, end = spans[rng.integers(len(spans))]
                sentence = texts[doc][start:end]
                evidence.append((f"q{number}", part, f"d{doc}", sentence))
                words += rng.permutation(re.findall(r"\w{4,}", sentence) or ["none"])[:WORDS].tolist()
            topics.append((f"q{number}", " ".join(words), words[0]))
        of_topics = pd.DataFrame(topics, columns=["qid", "query", "answer"])
        return Dataset(docs, of_topics, pd.DataFrame(evidence, columns=["qid", "part", "docno", "text"]))


def jobs(folder: Path) -> Iterator[Pipeline]:
    """A pipeline for every retriever, over one store."""
    source = Passages(TOPICS)
    for retriever in RETRIEVERS:
        components = Components(
            dataset=source, chunker=TokenChunker(100, 0), embedder=SentenceTransformerEmbedder(),
            tokenizer=WordTokenizer(), rewriter=NoRewriter(), retriever=retriever, reranker=NoReranker(),
            expander=NoExpander(), compressor=NoCompressor(), order=RankOrder(), measure=Substring(),
            llm=Extractive(), evaluator=None, answers={}, judge=LexicalJudge(),
        )  # fmt: skip
        yield Pipeline(components, Store(folder), 1000, BUDGETS)


def warm() -> None:
    """Compiles the kernel, or reads what was compiled; and imports what the first interval would."""
    Substring().score(["some text"], "some other text", np.array([4, 15]))
    bounded_mean(np.array([0.5, 1.0]))


def rows_of(pipeline: Pipeline) -> pd.DataFrame:
    """Outcomes as a judge would leave them, without asking anybody: two of five topics are right."""
    rng = np.random.default_rng(1)
    labels = rng.choice([1, 2, 3, 4, 5, 5, 5], size=TOPICS)
    answers = pipeline.frame("topics")["answer"]
    return pipeline.retrieved.assign(label=pd.array(labels, dtype="Int8"), answer=answers)


def main() -> None:
    """Prints the table."""
    if not DATA.exists():
        print(f"skipped: {DATA} is not there")
        return
    warm()
    seconds: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        gc.collect()  # or what an earlier stage left is cleared away in a later one's time
        start = time.process_time()
        found = work()
        seconds[name] = seconds.get(name, 0.0) + time.process_time() - start
        return found

    with tempfile.TemporaryDirectory() as scratch:
        for pipeline in jobs(Path(scratch)):
            for frame in ("topics", "run", "layouts", "scored_evidence", "scores", "floors",
                          "evidence_in_corpus", "evidence_trail"):  # fmt: skip
                timed(frame, partial(pipeline.frame, frame))
            parts = timed("parts", partial(evidence_parts, pipeline))
            table = timed("table", partial(funnel, parts))
            rows = rows_of(pipeline)
            rows = timed("causes", partial(with_failures, rows, pipeline, "causes"))
            timed("causes", partial(cause_shares, rows))
    scores, floor = seconds["scores"], seconds["floors"]
    own = sum(seconds[name] for name in ("evidence_in_corpus", "evidence_trail", "parts", "table"))
    n = len(RETRIEVERS)
    steps = ", ".join(f"{row['step']} {row['value']:.3f}" for row in table.to_dict("records"))
    print_header("what", "processor seconds", "of the scores", "of scores and floor")
    print_row(f"scores, {n} retrievers x {len(BUDGETS)} budgets", f"{scores:.2f} s", "", "")
    print_row("their floor, once", f"{floor:.2f} s", "", "")
    print_row("corpus and best chunk, once", f"{seconds['evidence_in_corpus']:.2f} s", "", "")
    print_row(f"candidates, {n} retrievers", f"{seconds['evidence_trail']:.2f} s", "", "")
    tables = seconds["parts"] + seconds["table"]
    print_row(f"tables with intervals, {n} jobs", f"{tables:.2f} s", "", "")
    share = own / scores
    told = f"{share:.2f}{against(GOAL, share, at_most=True)}"
    print_row(f"the funnel: {steps}", f"{own:.2f} s", told, f"{own / (scores + floor):.2f}")
    print_row(f"causes and their shares, {n} jobs", f"{seconds['causes']:.2f} s", "", "")


if __name__ == "__main__":
    main()
