"""The stages of `answers=[agreement]`: index and run of every other retriever, then the overlaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.retrieval import Retriever
from ragauge.contract.stages import QUESTIONS, Budget, Components, Frames, Read, Reads, Stage
from ragauge.experiment.stages.answering import MeasureRankings, checked_values
from ragauge.experiment.stages.documents import Index, chunks_to_search
from ragauge.plugins.performance.agreement import Agreement


def stages(components: Components, budget: Budget, key: str, measure: Any) -> Iterator[Stage]:
    """The stages of the measure, which has this key in the config."""
    for name in measure.retrievers:
        yield Index(replace(components, retriever=measure), budget, name)
        yield RetrieveBeside(components, budget, name, measure.retrievers[name])
    yield MeasureBeside(components, budget, key, measure)


class RetrieveBeside(Stage):
    """beside_<name>: the ranked chunks of every topic by another retriever."""

    name = "beside"
    doing = "retrieving for {topics:,} topics, to compare"
    of_files = True

    def __init__(self, components: Components, budget: Budget, arm: str, retriever: Retriever) -> None:
        super().__init__(components, budget)
        self._retriever = retriever
        self._index = f"{Index.name}:{arm}"
        self.label_of_arm = f"{self.name}_{arm}"
        self.reads = (Read("chunks"), Read(self._index, folder=True), QUESTIONS)
        self.makes = (self.label_of_arm,)

    @property
    def label(self) -> str:
        return self.label_of_arm

    @property
    def component(self) -> Retriever:
        return self._retriever

    def make(self, reads: Reads, tools: Tools) -> Frames:
        chunks = chunks_to_search(self.component, reads)
        run = self.component.transformer(chunks, reads.folder(self._index), tools)(reads["topics"])
        return {self.label_of_arm: frames.check("run", run, type(self.component).__name__)}


class MeasureBeside(MeasureRankings):
    """The overlap of the job's run with those of the other retrievers."""

    measure: Agreement

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        of_run = ("qid", "docno", "rank")
        others = (f"{RetrieveBeside.name}_{name}" for name in self.measure.retrievers)
        return (QUESTIONS, Read("run", columns=of_run), *(Read(name, columns=of_run) for name in others))

    def params(self) -> dict[str, Any]:
        return {**super().params(), "n_tokens": self.budget.n_tokens}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        others = {name: reads[f"{RetrieveBeside.name}_{name}"] for name in self.measure.retrievers}
        found = self.measure.measure_beside(reads["topics"], reads["run"], others, self.budget.n_tokens)
        return {"answer_values": checked_values(found, type(self.measure).__name__, self.infos)}
