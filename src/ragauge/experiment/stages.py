"""The stages of a job as a list: what each reads, what it makes, and the component that does it.

The key of a stage's output follows from this and nothing else (`ragauge.experiment.pipeline`), so that a new
stage is a class here and a line in `stages`. A stage's version is raised when its code, or that of what it
calls in ragauge, gives another output: tests/experiment/test_versions.py fails where it was forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import code_of, identity
from ragauge.contract.protocols import (
    AnswerMeasure,
    Chunker,
    Generator,
    Judge,
    Measure,
    Reranker,
    Retriever,
    Source,
    Tokenizer,
    Tools,
)
from ragauge.experiment.stage import Budget, Components, Frames, Incomplete, Reads, Stage
from ragauge.measures import (
    classics,
    corrected_parts,
    floor_means,
    floors,
    mean_over_parts,
    part_scores,
    qrels_of,
)
from ragauge.measures.floor import is_corrected, raw
from ragauge.measures.rankings import CLASSICS
from ragauge.retrieval.contexts import build_contexts, contexts_at
from ragauge.retrieval.ranking import check_reranked
from ragauge.store import file_sha256


class ReadDataset(Stage):
    """Files to docs, topics, evidence; and skipped: the rows that were dropped, with the reason."""

    name = "dataset"
    makes = ("docs", "topics", "evidence", "skipped")
    uses = frozenset()

    @property
    def component(self) -> Source:
        return self.components.dataset

    def inputs(self) -> dict[str, str]:
        return {role: file_digest(path) for role, path in self.component.files().items()}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        data = self.component.load()
        if data.topics.empty:
            raise ConfigError(f"dataset {self.component.name}: no topic is left to evaluate")
        skipped = pd.DataFrame({"skipped": list(data.skipped)}, dtype="str")
        return {"docs": data.docs, "topics": data.topics, "evidence": data.evidence, "skipped": skipped}


class Chunk(Stage):
    """Documents to chunks."""

    name = "chunks"
    reads = ("docs",)
    makes = ("chunks",)

    @property
    def component(self) -> Chunker:
        return self.components.chunker

    def make(self, reads: Reads, tools: Tools) -> Frames:
        return {"chunks": self.component.chunk(reads["docs"], tools)}


class Index(Stage):
    """The retriever's index folder."""

    name = "index"
    reads = ("chunks",)

    @property
    def component(self) -> Retriever:
        return self.components.retriever

    @property
    def uses(self) -> frozenset[str]:
        found: frozenset[str] = getattr(self.component, "index_uses", self.component.uses)
        return found

    def params(self) -> dict[str, Any]:
        return {"index": {**self.component.index_identity(), **code_of(self.component)}}

    def fill(self, folder: Path, reads: Reads, tools: Tools) -> None:
        self.component.build_index(reads["chunks"], folder, tools)


class Retrieve(Stage):
    """The ranked chunks of every topic."""

    name = "run"
    reads = ("chunks", "index/", "topics[qid,query]")
    makes = ("run",)

    @property
    def component(self) -> Retriever:
        return self.components.retriever

    def make(self, reads: Reads, tools: Tools) -> Frames:
        transformer = self.component.transformer(reads["chunks"], reads.folder("index"), tools)
        run = transformer(reads["topics"][["qid", "query"]])
        # Topics whose queries an LLM failed to write were searched by the question alone.
        if "queries" in run and {"llm", "question"} <= set(run["queries"]):
            raise Incomplete({"run": run})
        return {"run": run}


class Rerank(Stage):
    """A run to another run of its chunks."""

    name = "reranked"
    reads = ("run", "chunks", "topics[qid,query]")
    makes = ("run",)

    @property
    def component(self) -> Reranker:
        return self.components.reranker

    def make(self, reads: Reads, tools: Tools) -> Frames:
        run = reads["run"]
        chunks = reads["chunks"]
        retrieved = chunks[chunks["docno"].isin(run["docno"])].reset_index(drop=True)
        made = self.component.rerank(run, reads["topics"][["qid", "query"]], retrieved, tools)
        return {"run": check_reranked(run, made, type(self.component).__name__)}


class LayOut(Stage):
    """C, and the ends of every C_N of the grid."""

    name = "context"
    reads = ("run", "chunks", "topics[qid]")
    makes = ("layouts", "prefixes")

    @property
    def component(self) -> Tokenizer:
        return self.components.tokenizer

    @property
    def uses(self) -> frozenset[str]:
        return frozenset({"tokenizer"})

    def params(self) -> dict[str, Any]:
        after = bool(self.components.retriever.reorder_after_cut)
        return {"n_grid": list(self.budget.grid), "reorder_after_cut": after}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        layouts, prefixes = build_contexts(
            reads["run"],
            reads["chunks"],
            tools.tokenizer,
            self.budget.grid,
            reads["topics"]["qid"].tolist(),
            reorder_after_cut=self.components.retriever.reorder_after_cut,
        )
        return {"layouts": layouts, "prefixes": prefixes}


class Score(Stage):
    """Scores of the whole grid, and part_scores: a row per evidence part."""

    name = "scores"
    reads = ("layouts", "prefixes", "evidence")
    makes = ("scores", "part_scores")
    uses = frozenset()

    @property
    def component(self) -> Measure:
        found: Measure = raw(self.components.measure)
        return found

    def make(self, reads: Reads, tools: Tools) -> Frames:
        parts = part_scores(self.component, reads["evidence"], reads["layouts"], reads["prefixes"])
        return {"scores": mean_over_parts(parts, self.component.name), "part_scores": parts}


class Floor(Stage):
    """floors: what the measure gives every evidence part in unrelated text; floor_means: that over topics.

    Neither the retriever nor this job's n_tokens is in its key: the jobs of a sweep share one.
    """

    name = "floor"
    reads = ("chunks", "evidence")
    makes = ("floors", "floor_means")
    uses = frozenset({"tokenizer"})

    @property
    def component(self) -> Measure:
        found: Measure = raw(self.components.measure)
        return found

    def params(self) -> dict[str, Any]:
        return {"component": identity(self.component), "n_grid": list(self.budget.grid)}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        found = floors(self.component, reads["evidence"], reads["chunks"], tools.tokenizer, self.budget.grid)
        return {"floors": found, "floor_means": floor_means(found)}


class CorrectScores(Stage):
    """Scores and part_scores, each part's less its floor: `measure.correct=floor`."""

    name = "corrected"
    reads = ("part_scores", "floors")
    makes = ("scores", "part_scores")

    def params(self) -> dict[str, Any]:
        return {"correct": "floor"}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        parts = corrected_parts(reads["part_scores"], reads["floors"])
        return {"scores": mean_over_parts(parts, self.components.measure.name), "part_scores": parts}


class ScoreRanking(Stage):
    """classics: measures of the run over whole documents, as IR knows them ([metric, value])."""

    name = "classics"
    reads = ("run", "evidence")
    makes = ("classics",)

    def params(self) -> dict[str, Any]:
        return {"measures": list(CLASSICS)}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        qrels = qrels_of(reads["evidence"])
        values = classics(reads["run"], qrels, list(CLASSICS)) if len(qrels) else {}
        rows = [(CLASSICS[name], value) for name, value in values.items()]
        return {"classics": pd.DataFrame(rows, columns=["metric", "value"])}


class Cut(Stage):
    """C_N of every topic at this job's n_tokens."""

    name = "contexts"
    reads = ("layouts", "prefixes")
    makes = ("contexts",)
    stored = False

    def make(self, reads: Reads, tools: Tools) -> Frames:
        return {"contexts": contexts_at(reads["layouts"], reads["prefixes"], self.budget.n_tokens)}


class Answer(Stage):
    """The answers at this job's n_tokens."""

    name = "answers"
    reads = ("topics[qid,query]", "contexts[qid,n_tokens,text]")
    makes = ("answers",)
    asks = "answer"

    @property
    def component(self) -> Generator:
        return self.components.llm

    def make(self, reads: Reads, tools: Tools) -> Frames:
        return {"answers": self.component.answer(reads["topics"], reads["contexts"], tools)}


class MeasureAnswers(Stage):
    """What one answer measure gives every answer."""

    name = "answer_values"
    reads = (
        "topics",
        "evidence",
        "contexts[qid,n_tokens,text]",
        "answers[qid,n_tokens,answer,status]",
    )
    makes = ("answer_values",)
    asks = "value"

    def __init__(self, components: Components, budget: Budget, measure: AnswerMeasure) -> None:
        super().__init__(components, budget)
        self._measure = measure

    @property
    def component(self) -> AnswerMeasure:
        return self._measure

    def make(self, reads: Reads, tools: Tools) -> Frames:
        found = self.component.measure(
            reads["topics"], reads["evidence"], reads["contexts"], reads["answers"], tools
        )
        who, name = type(self.component).__name__, self.component.info.name
        frames.check("answer_values", found, who)
        others = sorted(set(found["measure"]) - {name})
        if others:
            raise DataError(f"answer_values frame from {who}: measure {others[0]!r}, its name is {name!r}")
        return {"answer_values": found}


class Judging(Stage):
    """The verdicts on the answers that are to be judged (frame `asked_answers`)."""

    name = "verdicts"
    reads = ("topics", "evidence", "asked_answers[qid,n_tokens,answer,status]")
    makes = ("verdicts",)
    asks = "label"

    @property
    def component(self) -> Judge:
        return self.components.judge

    def make(self, reads: Reads, tools: Tools) -> Frames:
        found = self.component.judge(reads["topics"], reads["evidence"], reads["asked_answers"], tools)
        return {"verdicts": found}


def stages(components: Components, budget: Budget) -> list[Stage]:
    """The stages of a job in order; a later one that makes a frame anew is what those after it read."""

    def chosen() -> Iterator[Stage]:
        yield ReadDataset(components, budget)
        yield Chunk(components, budget)
        yield Index(components, budget)
        yield Retrieve(components, budget)
        if components.reranker.kind != "none":
            yield Rerank(components, budget)
        yield LayOut(components, budget)
        yield Score(components, budget)
        yield Floor(components, budget)
        if is_corrected(components.measure):
            yield CorrectScores(components, budget)
        yield ScoreRanking(components, budget)
        yield Cut(components, budget)
        yield Answer(components, budget)
        for measure in components.answers.values():
            yield MeasureAnswers(components, budget, measure)
        yield Judging(components, budget)

    return list(chosen())


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes; read once per process while the file stays as it is."""
    stat = path.stat()
    return _file_digest(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=64)
def _file_digest(path: Path, size: int, mtime_ns: int) -> str:
    return file_sha256(path)
