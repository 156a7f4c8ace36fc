"""Stages that answer, measure answers, and judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.answer_measures import infos_of
from ragauge.contract.answering import Generator, Judge
from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.identity import identity
from ragauge.contract.measures import (
    AnswerMeasure,
    AnswerMeasureInfo,
    MeasuresLayouts,
    MeasuresPassages,
    MeasuresRanking,
    VariesContexts,
)
from ragauge.contract.stages import (
    TURNS,
    Budget,
    Components,
    Frames,
    Incomplete,
    Read,
    Reads,
    Stage,
)
from ragauge.experiment.stages.ahead import Ahead
from ragauge.experiment.stages.contexts import texts_of_ranking
from ragauge.experiment.stages.retrieval import retrieved_chunks
from ragauge.retrieval.contexts import longest_passages, numbered_contexts, used_passages
from ragauge.retrieval.passages import passages_of

GIVEN = ("qid", "n_tokens", "answer", "status")  # columns of the answers that measures and judges are given


class Answer(Stage):
    """The answers at this job's n_tokens; with `sampled` only to the topics of frame `asked_contexts`.

    ahead: the other budgets of the sweep, whose answers are asked for along with them.
    """

    name = "answers"
    makes = ("answers",)
    asks = "answer"
    of_files = True

    def __init__(
        self, components: Components, budget: Budget, sampled: bool = False, ahead: Ahead | None = None
    ) -> None:
        super().__init__(components, budget)
        self._context = AskedContexts.name if sampled else shown(components)
        self._ahead = ahead

    @property
    def doing(self) -> str:  # type: ignore[override]
        return f"answering {{{self._context}:,}} questions"

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        return (TURNS, Read(self._context, columns=("qid", "n_tokens", "text")))

    @property
    def component(self) -> Generator:
        return self.components.llm

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics, contexts = reads["topics"], reads[self.reads[-1]]
        if self._ahead is None:
            return {"answers": self.component.answer(topics, contexts, tools)}
        found = self.component.answer(topics, self._ahead.contexts(contexts), tools)
        return {"answers": self._ahead.own("answers", found)}


class NumberPassages(Stage):
    """numbered_contexts: the contexts with numbered passages, for an LLM that cites them."""

    name = "numbered_contexts"
    reads = (Read("contexts"), Read("used_passages"))
    makes = ("numbered_contexts",)
    stored = False

    def make(self, reads: Reads, tools: Tools) -> Frames:
        return {"numbered_contexts": numbered_contexts(reads["contexts"], reads["used_passages"])}


def shown(components: Components) -> str:
    """The name of the frame with the contexts that the LLM sees."""
    return "numbered_contexts" if components.llm.cite else "contexts"


class UsedPassages(Stage):
    """used_passages: the text of every context, passage by passage."""

    name = "used_passages"
    makes = ("used_passages",)
    stored = False
    _stand_in = staticmethod(used_passages)

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        return (Read("layouts"), Read("prefixes"), *map(Read, texts_of_ranking(self.components)))

    def make(self, reads: Reads, tools: Tools) -> Frames:
        whole = "passages" in texts_of_ranking(self.components)
        passages = reads["passages"] if whole else passages_of(reads["run"], retrieved_chunks(reads))
        laid_out = reads["layouts"], reads["prefixes"]
        return {self.makes[0]: self._stand_in(*laid_out, passages, self.budget.n_tokens)}


class LongestPassages(UsedPassages):
    """longest_passages: the passages of the grid's longest context, and the part of each in this job's context."""

    name = "longest_passages"
    makes = ("longest_passages",)
    _stand_in = staticmethod(longest_passages)


class OfMeasure(Stage):
    """A stage of the answer measure with this config key; a job may have several."""

    def __init__(self, components: Components, budget: Budget, key: str, measure: Any) -> None:
        super().__init__(components, budget)
        self.key = key
        self.measure = measure


class MeasureAnswers(OfMeasure):
    """The values of one answer measure for every answer."""

    name = "answer_values"
    makes = ("answer_values",)
    asks = "value"
    group = "answers"
    evaluates = True
    of_files = True

    def __init__(self, components: Components, budget: Budget, key: str, measure: AnswerMeasure) -> None:
        super().__init__(components, budget, key, measure)
        self.infos = infos_of(measure)

    @property
    def asks_as(self) -> str:
        return f"{self.group}.{self.key}"

    @property
    def doing(self) -> str:  # type: ignore[override]
        return f"measuring {{answers:,}} answers by {self.key}"

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        if isinstance(self.measure, MeasuresLayouts):
            return (Read("layouts"), Read("prefixes"), Read("scored_evidence"), Read("answers", columns=GIVEN))
        by_passage = isinstance(self.measure, MeasuresPassages)
        context = Read(self._passages) if by_passage else Read("contexts", columns=("qid", "n_tokens", "text"))
        return (Read("topics"), Read("evidence"), context, Read("answers", columns=self._of_answers))

    @property
    def _passages(self) -> str:
        return "longest_passages" if self.measure.sees_longest else "used_passages"

    @property
    def _of_answers(self) -> tuple[str, ...]:
        """The columns of the answers that it reads and has in its key."""
        asks_for_marks = "citations" in self.measure.needs
        marks = ("cited_answer",) if asks_for_marks and self.components.llm.cite else ()
        return (*GIVEN, *marks)

    @property
    def component(self) -> AnswerMeasure:
        found: AnswerMeasure = self.measure
        return found

    def make(self, reads: Reads, tools: Tools) -> Frames:
        measure = self.component
        answers = reads["answers"]
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


class MeasureRankings(MeasureAnswers):
    """The values of one measure of ranking and context."""

    @property
    def doing(self) -> str:  # type: ignore[override]
        return f"measuring {{topics:,}} rankings by {self.key}"

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        return (Read("run"), Read("used_passages"), TURNS)  # it has a value for a topic without passages, too

    def make(self, reads: Reads, tools: Tools) -> Frames:
        measure: MeasuresRanking = self.measure
        found = measure.measure_ranking(
            reads["topics"], reads["run"], reads["used_passages"], self.budget.n_tokens, tools
        )
        return {"answer_values": checked_values(found, type(measure).__name__, self.infos)}


def checked_values(found: pd.DataFrame, who: str, infos: Sequence[AnswerMeasureInfo]) -> pd.DataFrame:
    """The frame `answer_values` itself; DataError for another form, or a measure without an info."""
    names = {info.name for info in infos}
    frames.check("answer_values", found, who)
    others = sorted(set(found["measure"]) - names)
    if others:
        told = ", ".join(repr(name) for name in sorted(names))
        raise DataError(f"answer_values frame from {who}: measure {others[0]!r}, its name is {told}")
    return found


class AskedAnswers(Stage):
    """asked_answers: the answers to judge, chosen by `choose` (default: all)."""

    name = "asked_answers"
    reads = (Read("answers"),)
    makes = ("asked_answers",)
    stored = False

    def __init__(
        self, components: Components, budget: Budget, choose: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    ) -> None:
        super().__init__(components, budget)
        self._choose = choose

    def make(self, reads: Reads, tools: Tools) -> Frames:
        rows = reads[self.reads[0]]
        return {self.makes[0]: rows if self._choose is None else self._choose(rows)}


class AskedContexts(AskedAnswers):
    """asked_contexts: the contexts of the sampled topics to be answered."""

    name = "asked_contexts"
    makes = ("asked_contexts",)

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        return (Read(shown(self.components)),)


class Judging(Stage):
    """The verdicts on frame `asked_answers`; `ahead` as in `Answer`."""

    name = "verdicts"
    reads = (Read("topics"), Read("evidence"), Read("asked_answers", columns=GIVEN))
    makes = ("verdicts",)
    doing = "judging {asked_answers:,} answers"
    asks = "label"
    of_files = True

    def __init__(self, components: Components, budget: Budget, ahead: Ahead | None = None) -> None:
        super().__init__(components, budget)
        self._ahead = ahead

    @property
    def component(self) -> Judge:
        return self.components.judge

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics, evidence, answers = reads["topics"], reads["evidence"], reads["asked_answers"]
        if self._ahead is None:
            return {"verdicts": self.component.judge(topics, evidence, answers, tools)}
        found = self.component.judge(topics, evidence, self._ahead.answers(answers), tools)
        return {"verdicts": self._ahead.own("verdicts", found)}


ANSWERED, JUDGED = "varied_answers", "varied_verdicts"
_KEYS = ["qid", "n_tokens", "variant"]
_ANSWERS = Read(ANSWERED, columns=(*_KEYS, "answer", "status"))


def varied_stages(
    components: Components,
    budget: Budget,
    key: str,
    measure: Any,
    to_answer: Callable[[pd.DataFrame], pd.DataFrame] | None,
) -> Iterator[Stage]:
    """The stages of the measure with this config key; `to_answer` as in `stages`."""
    yield VaryContexts(components, budget, key, measure, to_answer)
    yield AnswerVaried(components, budget, key, measure)
    if measure.judged:
        yield JudgeVaried(components, budget, key, measure)
    yield MeasureVaried(components, budget, key, measure)


class OfVaried(OfMeasure):
    """A stage of a measure that varies contexts."""

    measure: VariesContexts

    @property
    def label(self) -> str:
        return f"{self.name}_{self.key}"

    @property
    def contexts(self) -> str:
        """The name of the frame of the contexts."""
        return f"{self.key}_contexts"

    @property
    def texts(self) -> tuple[str, ...]:
        """The frames that the contexts are made from."""
        return ("used_passages",) if self.measure.varies == "context" else texts_of_ranking(self.components)

    def passages(self, reads: Reads) -> pd.DataFrame:
        """The passages that the contexts are made from, by topic."""
        names = self.texts
        return passages_of(reads["run"], retrieved_chunks(reads)) if len(names) > 1 else reads[names[0]]


class VaryContexts(OfVaried):
    """<key>_contexts: further contexts for the llm besides the job's."""

    name = "varied_contexts"
    stored = False

    def __init__(
        self,
        components: Components,
        budget: Budget,
        key: str,
        measure: Any,
        choose: Callable[[pd.DataFrame], pd.DataFrame] | None,
    ) -> None:
        super().__init__(components, budget, key, measure)
        self._choose = choose

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        return tuple(map(Read, ("topics", *self.texts)))

    @property
    def makes(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.contexts,)

    @property
    def uses(self) -> frozenset[str]:
        return frozenset({"tokenizer"})

    def make(self, reads: Reads, tools: Tools) -> Frames:
        found = self.measure.vary(reads["topics"], self.passages(reads), self.budget.n_tokens, tools)
        found = found[[*_KEYS, "text"]]
        return {self.contexts: found if self._choose is None else self._choose(found)}


class AnswerVaried(OfVaried):
    """varied_answers: the llm's answers from these contexts, as `answers` with `variant`.

    Its key holds not the retriever and this job's n_tokens, but their output.
    """

    name = ANSWERED
    makes = (ANSWERED,)
    of_files = True

    @property
    def doing(self) -> str:  # type: ignore[override]
        return f"answering {{{self.contexts}:,}} questions for {self.key}"

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        return (TURNS, Read(self.contexts))

    @property
    def component(self) -> Generator:
        return self.components.llm

    @property
    def replies_as(self) -> str:  # type: ignore[override]
        return self.measure.calls

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics, contexts = reads["topics"], reads[self.contexts]
        who = type(self.component).__name__
        parts = [frames.empty("answers").assign(variant=pd.Series(dtype="int64"))]
        for variant, rows in contexts.groupby("variant"):  # so a topic has one context, as it has in a job
            asked = rows[["qid", "n_tokens", "text"]].reset_index(drop=True)
            found = frames.check("answers", self.component.answer(topics, asked, tools), who)
            if set(found["qid"]) != set(asked["qid"]):
                raise DataError(f"answers frame from {who}: it has not the topics of the contexts")
            parts.append(found.assign(variant=variant))
        found = _joined(parts)
        if found["answer"].isna().any():
            raise Incomplete({ANSWERED: found})
        return {ANSWERED: found}


class JudgeVaried(OfVaried):
    """varied_verdicts: the judge's verdicts on these answers, as `verdicts` with `variant`."""

    name = JUDGED
    reads = (Read("topics"), Read("evidence"), _ANSWERS)
    makes = (JUDGED,)
    doing = f"judging {{{ANSWERED}:,}} answers"
    of_files = True

    @property
    def component(self) -> Judge:
        return self.components.judge

    @property
    def replies_as(self) -> str:  # type: ignore[override]
        return f"{self.measure.calls}judge_"

    def params(self) -> dict[str, Any]:
        rewrites = type(self.measure).to_judge is not VariesContexts.to_judge
        changes = {"measure": identity(self.measure)} if rewrites else {}
        return {**super().params(), **changes}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics, evidence = reads["topics"], reads["evidence"]
        answers = self.measure.to_judge(reads[ANSWERED])
        parts = [frames.empty("verdicts").assign(variant=pd.Series(dtype="int64"))]
        for variant, rows in answers[answers["answer"].notna()].groupby("variant"):
            asked = rows[["qid", "n_tokens", "answer", "status"]].reset_index(drop=True)
            found = frames.check("verdicts", self.component.judge(topics, evidence, asked, tools))
            parts.append(found.assign(variant=variant))
        found = _joined(parts)
        if found["label"].isna().any():
            raise Incomplete({JUDGED: found})
        return {JUDGED: found}


class MeasureVaried(OfVaried):
    """The measure's values of the answers from its contexts."""

    name = "answer_values"
    makes = ("answer_values",)
    asks = "value"

    def __init__(self, components: Components, budget: Budget, key: str, measure: Any) -> None:
        super().__init__(components, budget, key, measure)
        self.infos = infos_of(measure)

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        verdicts = (Read(JUDGED, columns=(*_KEYS, "label")),) if self.measure.judged else ()
        texts = map(Read, ("topics", "evidence", *self.texts))
        return (*texts, _ANSWERS, *verdicts, Read("answers", columns=GIVEN))

    @property
    def component(self) -> AnswerMeasure:
        found: Any = self.measure
        return found  # type: ignore[no-any-return]

    def make(self, reads: Reads, tools: Tools) -> Frames:
        varied = reads[ANSWERED]
        if self.measure.judged:
            varied = varied.merge(reads[JUDGED], on=_KEYS, how="outer", validate="one_to_one")
        found = self.measure.measure_varied(
            reads["topics"], reads["evidence"], self.passages(reads), varied, reads["answers"], tools
        )
        return {"answer_values": checked_values(found, type(self.measure).__name__, self.infos)}


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """The concatenated frames, with the columns of the first, empty one."""
    filled = [part for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else parts[0]
