"""Interfaces of measures: of evidence in contexts (group `measure`), and of answers (list `answers`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from ragauge.contract.component import Tools


@runtime_checkable
class Measure(Protocol):
    """Config group `measure`: the share of the evidence in a context (and `MeasureOffers`)."""

    @property
    def name(self) -> str:
        """The measure's name in frames and tags."""

    def score(self, evidence: Sequence[str], context: str, ends: np.ndarray) -> np.ndarray:
        """Share of evidence i in context[:ends[j]], float64 [len(evidence), len(ends)] in [0, 1]."""


@runtime_checkable
class ScoresAll(Protocol):
    """A measure of evidence that takes many contexts in one call."""

    def score_all(
        self, evidence: Sequence[Sequence[str]], contexts: Sequence[str], ends: Sequence[np.ndarray]
    ) -> Sequence[np.ndarray]:
        """`Measure.score` of every context."""


@dataclass(frozen=True)
class Pieces:
    """The passages of one layout and their start offsets; a space separates them."""

    texts: Sequence[str]
    starts: Sequence[int]


@runtime_checkable
class MeasuresPieces(Protocol):
    """A measure of evidence on single passages that takes the shared models in `uses`.

    Called in place of `Measure.score`. Its chat model is the evaluator.
    """

    uses: ClassVar[frozenset[str]]

    @property
    def name(self) -> str:
        """The measure's name in frames and tags."""

    def score_pieces(
        self,
        evidence: Sequence[Sequence[str]],
        layouts: Sequence[Pieces],
        ends: Sequence[np.ndarray],
        tools: Tools,
    ) -> list[np.ndarray]:
        """For every layout float64 [its evidence, its ends] in [0, 1]: evidence i in layout[:ends[j]].

        NaN where it could not be measured, because a request got no answer.
        """


@dataclass(frozen=True)
class AnswerMeasureInfo:
    """The display properties of an answer measure.

    name: in metrics, tables and frames (letters, digits, _); label: in the report and on the terminal.
    direction: which values are better. unit: "share" in [0, 1], shown in per cent, "ratio" in [0, 1], shown
        as a number, "signed" in [-1, 1], or "score", of any size.
    section: the section of the report that it stands in.
    of: the object that it describes: the "answer", the "context" that the LLM gets, the "ranking" that the context is
        taken from, or the judge's "verdict". Context and ranking are known before an LLM is asked for the answer.
    on_terminal: whether the leaderboard on the terminal shows it, too.
    compared: whether systems are compared by it. False: it describes a topic, and no value of it is better.
    limit: a mean above it prints `beyond`, a sentence in which {share} is the mean in per cent.
    """

    name: str
    label: str
    direction: Literal["higher", "lower"] = "higher"
    unit: Literal["share", "ratio", "signed", "score"] = "score"
    section: str = "Answers"
    of: Literal["answer", "context", "ranking", "verdict"] = "answer"
    on_terminal: bool = True
    compared: bool = True
    limit: float | None = None
    beyond: str = ""

    def warning(self, mean: float, system: str = "") -> str | None:
        """The sentence on a mean above the limit, with the system's name if given; else None."""
        if self.limit is None or not mean > self.limit:
            return None
        told = self.beyond.replace("{share}", f"{mean:.1%}")
        return f"{system}: {told}" if system else told

    @property
    def bounded(self) -> bool:
        """Whether all values lie in [0, 1]."""
        return self.unit in ("share", "ratio")


Needed = Literal["references", "evidence", "contexts", "answers", "citations", "chat", "changed", "generator", "judge"]


class AnswerMeasure(Protocol):
    """A measure of the list `answers`: a value of an answer besides its judge class.

    Optional members, such as the parts that a job `needs` to have, are in
    `ragauge.contract.offers.AnswerMeasureOffers`.
    """

    uses: ClassVar[frozenset[str]]

    @property
    def info(self) -> AnswerMeasureInfo:
        """How the measure is shown."""

    def measure(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        contexts: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`, a row for every row of `answers` and every info.

        `value` is missing where there is no answer or it could not be measured; `status` says why. `detail`,
        where it is there, is JSON that shows what the value rests on.
        """


@runtime_checkable
class MeasuresJob(Protocol):
    """An answer measure with further values over all answers of a job."""

    def of_job(self, topics: pd.DataFrame, answers: pd.DataFrame) -> dict[str, float]:
        """Metrics of the job by name, without intervals; {} if there is nothing to measure."""


@runtime_checkable
class MeasuresPassages(Protocol):
    """An answer measure on the single passages of a context; called in place of `measure`."""

    def measure_passages(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`, as `AnswerMeasure.measure` gives it.

        passages: frame `used_passages`, what stands in the topic's context. A measure with `sees_longest = True` gets
            `longest_passages`: the text of the longest context that the job lays out. `chars` characters of each
            passage stand in this job's context, or 0, `longest` in that one.
        """


@runtime_checkable
class MeasuresLayouts(Protocol):
    """An answer measure of evidence in contexts; called in place of `measure`."""

    def measure_layouts(
        self,
        evidence: pd.DataFrame,
        layouts: pd.DataFrame,
        prefixes: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`, as `AnswerMeasure.measure` gives it.

        evidence: the parts that contexts are scored by; layouts and prefixes: the frames of these names, the
        latter at the job's budget.
        """


@runtime_checkable
class MeasuresRanking(Protocol):
    """An answer measure without answers; called in place of `measure`, for all topics."""

    def measure_ranking(
        self, topics: pd.DataFrame, run: pd.DataFrame, passages: pd.DataFrame, n_tokens: int, tools: Tools
    ) -> pd.DataFrame:
        """Frame `answer_values` with a row for every topic and info, as `AnswerMeasure.measure` gives it.

        topics: [qid, query]; run: frame `run`; passages: frame `used_passages`, of the contexts of n_tokens.
        """


@runtime_checkable
class VariesContexts(Protocol):
    """An answer measure on answers from other contexts than the job's, such as a single text.

    Called in place of `measure`. varies: whether these are made of the texts of the "ranking" or of the
    passages of the "context". judged: whether the judge says what the answers from them are worth. calls: the prefix of
    the metrics of these calls, such as erag_.
    """

    varies: ClassVar[Literal["ranking", "context"]]
    calls: ClassVar[str]

    @property
    def judged(self) -> bool:
        """Whether `measure_varied` gets verdicts."""

    def vary(self, topics: pd.DataFrame, passages: pd.DataFrame, n_tokens: int, tools: Tools) -> pd.DataFrame:
        """The contexts to answer from: [qid, n_tokens, variant, text], each variant once a topic.

        passages: frame `used_passages`, or of a ranking [qid, rank, docno, text]. `tools` has the tokenizer
        alone.
        """

    def measure_varied(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        varied: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`, as `AnswerMeasure.measure` gives it.

        varied: [qid, n_tokens, variant, answer, status], and with `judged` the judge's `label`.
        """


@runtime_checkable
class MeasuresRepeats(Protocol):
    """An answer measure of all answers to a topic (`llm.repeat`); `measure` leaves its values missing."""

    def measure_repeats(self, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Values [qid x name of an info] from [qid, n_tokens, sample, answer], missing where there is nothing."""


@runtime_checkable
class RewritesAnswers(Protocol):
    """A measure that varies contexts and has the judge see rewritten answers."""

    def to_judge(self, answers: pd.DataFrame) -> pd.DataFrame:
        """The answers to judge, from the llm's [qid, n_tokens, variant, answer, status].

        May add variants.
        """
