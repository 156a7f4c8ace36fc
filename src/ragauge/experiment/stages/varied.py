"""The stages of a measure for which the llm answers from other contexts, too: from one text alone, say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.answer_measures import infos_of
from ragauge.contract.errors import DataError
from ragauge.contract.identity import identity
from ragauge.contract.protocols import AnswerMeasure, Generator, Judge, RewritesAnswers, Tools, VariesContexts
from ragauge.experiment.stages.answering import GIVEN, OfMeasure, checked_values
from ragauge.experiment.stages.contexts import texts_of_ranking
from ragauge.experiment.stages.file_digests import digests_of_files
from ragauge.experiment.stages.retrieval import retrieved_chunks
from ragauge.experiment.stages.stage import QUESTIONS, Budget, Components, Frames, Incomplete, Read, Reads, Stage
from ragauge.retrieval.passages import passages_of

ANSWERED, JUDGED = "varied_answers", "varied_verdicts"
_KEYS = ["qid", "n_tokens", "variant"]
_ANSWERS = Read(ANSWERED, columns=(*_KEYS, "answer", "status"))


def varied_stages(components: Components, budget: Budget, key: str, measure: Any) -> Iterator[Stage]:
    """The stages of one such measure, which has this key in the config."""
    yield VaryContexts(components, budget, key, measure)
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
        """What the frame of the contexts is called."""
        return f"{self.key}_contexts"

    @property
    def texts(self) -> tuple[str, ...]:
        """The frames from which the contexts are made."""
        return ("used_passages",) if self.measure.varies == "context" else texts_of_ranking(self.components)

    def passages(self, reads: Reads) -> pd.DataFrame:
        """What the contexts are made from, by topic."""
        names = self.texts
        return passages_of(reads["run"], retrieved_chunks(reads)) if len(names) > 1 else reads[names[0]]


class VaryContexts(OfVaried):
    """<key>_contexts: what the llm is to answer from, beside the job's contexts."""

    name = "varied_contexts"
    stored = False

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
        return {self.contexts: found[[*_KEYS, "text"]]}


class AnswerVaried(OfVaried):
    """varied_answers: what the llm answers from these contexts; as `answers`, with `variant`.

    Neither the retriever nor this job's n_tokens is in its key, but what they bring.
    """

    name = ANSWERED
    makes = (ANSWERED,)

    @property
    def doing(self) -> str:  # type: ignore[override]
        return f"answering {{{self.contexts}:,}} questions for {self.key}"

    @property
    def reads(self) -> tuple[Read, ...]:  # type: ignore[override]
        return (QUESTIONS, Read(self.contexts))

    @property
    def component(self) -> Generator:
        return self.components.llm

    def inputs(self) -> dict[str, str]:
        return digests_of_files(self.component)

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
    """varied_verdicts: what the judge says of these answers; as `verdicts`, with `variant`."""

    name = JUDGED
    reads = (Read("topics"), Read("evidence"), _ANSWERS)
    makes = (JUDGED,)
    doing = f"judging {{{ANSWERED}:,}} answers"

    @property
    def component(self) -> Judge:
        return self.components.judge

    def inputs(self) -> dict[str, str]:
        return digests_of_files(self.component)

    def params(self) -> dict[str, Any]:
        changes = {"measure": identity(self.measure)} if isinstance(self.measure, RewritesAnswers) else {}
        return {**super().params(), **changes}

    def make(self, reads: Reads, tools: Tools) -> Frames:
        topics, evidence = reads["topics"], reads["evidence"]
        answers = to_judge(self.measure, reads[ANSWERED])
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
    """What the measure makes of the answers from its contexts."""

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


def to_judge(measure: VariesContexts, answers: pd.DataFrame) -> pd.DataFrame:
    """The answers that the judge is asked about: those of the llm, or what the measure makes of them."""
    return measure.to_judge(answers) if isinstance(measure, RewritesAnswers) else answers


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """The frames one below the other; the first, which has no rows, says which columns there are."""
    filled = [part for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else parts[0]
