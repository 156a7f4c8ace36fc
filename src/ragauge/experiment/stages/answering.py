"""The stages that answer, measure answers, and judge."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.answer_measures import infos_of
from ragauge.contract.errors import DataError
from ragauge.contract.protocols import (
    AnswerMeasure,
    AnswerMeasureInfo,
    Generator,
    Judge,
    MeasuresLayouts,
    MeasuresPassages,
    Tools,
)
from ragauge.experiment.stages.contexts import texts_of_ranking
from ragauge.experiment.stages.file_digests import digests_of_files
from ragauge.experiment.stages.retrieval import retrieved_chunks
from ragauge.experiment.stages.stage import Budget, Components, Frames, Reads, Stage
from ragauge.retrieval.contexts import longest_passages, numbered_contexts, used_passages
from ragauge.retrieval.passages import passages_of


class Answer(Stage):
    """The answers at this job's n_tokens."""

    name = "answers"
    makes = ("answers",)
    doing = "answering {topics:,} questions"
    asks = "answer"

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        context = "numbered_contexts" if cites(self.components) else "contexts"
        return ("topics[qid,query]", f"{context}[qid,n_tokens,text]")

    @property
    def component(self) -> Generator:
        return self.components.llm

    def inputs(self) -> dict[str, str]:
        return digests_of_files(self.component)

    def make(self, reads: Reads, tools: Tools) -> Frames:
        contexts = reads[self.reads[-1].partition("[")[0]]
        return {"answers": self.component.answer(reads["topics"], contexts, tools)}


def sees_longest(measure: AnswerMeasure) -> bool:
    """Whether a measure looks at the passages of the longest context that the job lays out."""
    return bool(getattr(measure, "sees_longest", False))


class NumberPassages(Stage):
    """numbered_contexts: the contexts as an LLM sees them that is to cite their passages by number."""

    name = "numbered_contexts"
    reads = ("contexts", "used_passages")
    makes = ("numbered_contexts",)
    stored = False

    def make(self, reads: Reads, tools: Tools) -> Frames:
        return {"numbered_contexts": numbered_contexts(reads["contexts"], reads["used_passages"])}


def cites(components: Components) -> bool:
    """Whether the LLM is to cite the passages of its context by number."""
    return bool(getattr(components.llm, "cite", False))


class UsedPassages(Stage):
    """used_passages: what stands in every context, passage by passage."""

    name = "used_passages"
    makes = ("used_passages",)
    stored = False
    _stand_in = staticmethod(used_passages)

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("layouts", "prefixes", *texts_of_ranking(self.components))

    def make(self, reads: Reads, tools: Tools) -> Frames:
        passages = reads["passages"] if "passages" in self.reads else passages_of(reads["run"], retrieved_chunks(reads))
        laid_out = reads["layouts"], reads["prefixes"]
        return {self.makes[0]: self._stand_in(*laid_out, passages, self.budget.n_tokens)}


class LongestPassages(UsedPassages):
    """longest_passages: what stands in the longest context of the grid, and how much of it in this job's."""

    name = "longest_passages"
    makes = ("longest_passages",)
    _stand_in = staticmethod(longest_passages)


class MeasureAnswers(Stage):
    """What one answer measure gives every answer."""

    name = "answer_values"
    makes = ("answer_values",)
    asks = "value"
    group = "answers"
    evaluates = True

    def __init__(self, components: Components, budget: Budget, measure: AnswerMeasure, name: str) -> None:
        super().__init__(components, budget)
        self._measure = measure
        self._name = name
        self.infos = infos_of(measure)

    @property
    def asks_as(self) -> str:
        return f"{self.group}.{self._name}"

    @property
    def doing(self) -> str:  # type: ignore[override]
        return f"measuring {{answers:,}} answers by {self._name}"

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        if isinstance(self._measure, MeasuresLayouts):
            return ("layouts", "prefixes", "scored_evidence", "answers[qid,n_tokens,answer,status]")
        by_passage = isinstance(self._measure, MeasuresPassages)
        context = self._passages if by_passage else "contexts[qid,n_tokens,text]"
        return ("topics", "evidence", context, f"answers[{','.join(self._of_answers)}]")

    @property
    def _passages(self) -> str:
        return "longest_passages" if sees_longest(self._measure) else "used_passages"

    @property
    def _of_answers(self) -> list[str]:
        """The columns of the answers that it is given: those that are in its key."""
        asks_for_marks = "citations" in getattr(self._measure, "needs", ())
        marks = ["cited_answer"] if asks_for_marks and cites(self.components) else []
        return ["qid", "n_tokens", "answer", "status", *marks]

    def inputs(self) -> dict[str, str]:
        return digests_of_files(self.component)

    @property
    def component(self) -> AnswerMeasure:
        return self._measure

    def make(self, reads: Reads, tools: Tools) -> Frames:
        measure = self.component
        answers = reads["answers"]
        answers = answers[[name for name in self._of_answers if name in answers]]
        if isinstance(measure, MeasuresLayouts):
            prefixes = reads["prefixes"]
            here = prefixes[prefixes["n_tokens"] == self.budget.n_tokens]
            found = measure.measure_layouts(reads["scored_evidence"], reads["layouts"], here, answers, tools)
        elif isinstance(measure, MeasuresPassages):
            of_topics = reads["topics"], reads["evidence"], reads[self._passages]
            found = measure.measure_passages(*of_topics, answers, tools)
        else:
            found = measure.measure(reads["topics"], reads["evidence"], reads["contexts"], answers, tools)
        return {"answer_values": checked_values(found, type(measure).__name__, self.infos)}


def checked_values(found: pd.DataFrame, who: str, infos: Sequence[AnswerMeasureInfo]) -> pd.DataFrame:
    """The frame `answer_values` itself; DataError where it is none, or holds a measure without an info."""
    names = {info.name for info in infos}
    frames.check("answer_values", found, who)
    others = sorted(set(found["measure"]) - names)
    if others:
        told = ", ".join(repr(name) for name in sorted(names))
        raise DataError(f"answer_values frame from {who}: measure {others[0]!r}, its name is {told}")
    return found


class Judging(Stage):
    """The verdicts on the answers that are to be judged (frame `asked_answers`)."""

    name = "verdicts"
    reads = ("topics", "evidence", "asked_answers[qid,n_tokens,answer,status]")
    makes = ("verdicts",)
    doing = "judging {asked_answers:,} answers"
    asks = "label"

    @property
    def component(self) -> Judge:
        return self.components.judge

    def inputs(self) -> dict[str, str]:
        return digests_of_files(self.component)

    def make(self, reads: Reads, tools: Tools) -> Frames:
        found = self.component.judge(reads["topics"], reads["evidence"], reads["asked_answers"], tools)
        return {"verdicts": found}
