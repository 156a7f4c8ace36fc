"""The kinds of components that measure: evidence in contexts (group `measure`), and answers (list `answers`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragauge.contract.component import Component, Tools
from ragauge.contract.default import Default


class Measure(Component):
    """Config group `measure`: the share of the evidence in a context.

    name: the measure's name in frames and tags. fold: the differences of spelling that do not count.
    correct: "floor" takes off what unrelated text is given. threads: 0 takes a thread for every core.
    """

    name = Default[str]()
    fold = Default[tuple[str, ...]](())
    correct = Default("none")
    threads = Default[int | None](None)

    @abstractmethod
    def score(self, evidence: Sequence[str], context: str, ends: np.ndarray) -> np.ndarray:
        """Share of evidence i in context[:ends[j]], float64 [len(evidence), len(ends)] in [0, 1]."""

    def score_all(
        self, evidence: Sequence[Sequence[str]], contexts: Sequence[str], ends: Sequence[np.ndarray]
    ) -> Sequence[np.ndarray]:
        """`score` of every context."""
        return [self.score(*of_context) for of_context in zip(evidence, contexts, ends, strict=True)]

    def embedded(self, docs: Sequence[str], evidence: Sequence[str]) -> list[str]:
        """The texts other than chunks and questions that it embeds, from some documents and evidence parts."""
        return []


@dataclass(frozen=True)
class Pieces:
    """The passages of one layout and their start offsets; a space separates them."""

    texts: Sequence[str]
    starts: Sequence[int]


class MeasuresPieces(Measure):
    """A measure of evidence on single passages that takes the shared models in `uses`; its chat model is the evaluator.

    Called in place of `Measure.score`.
    """

    def score(self, evidence: Sequence[str], context: str, ends: np.ndarray) -> np.ndarray:
        """TypeError, since it measures passages."""
        raise TypeError(f"measure {self.name} takes passages (score_pieces)")

    @abstractmethod
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


class AnswerMeasure(Component):
    """A measure of the list `answers`: a value of an answer besides its judge class.

    info: how the measure is shown; infos: the same of one with several values.
    needs: the parts that a job must have (`Needed`). Where one lacks, the job ends before any work; a measure that is
        `optional` is left out instead.
    sees_longest: whether `measure_passages` is given what stands in the longest context that the job lays out.
    job_metrics: the names of what `of_job` gives.
    repeat: how many topics are measured once more. may_lack_claims: whether an answer may hold no claim to measure.
    stages: the dotted path of a function of components, budget, key and measure that gives its stages; "": the usual.
    """

    info = Default[AnswerMeasureInfo]()
    infos = Default[tuple[AnswerMeasureInfo, ...]](())
    needs = Default(frozenset[str]())
    optional = Default(False)
    sees_longest = Default(False)
    job_metrics = Default[tuple[str, ...]](())
    repeat = Default(0)
    may_lack_claims = Default(False)
    stages = Default("")

    @abstractmethod
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

    def check_topics(self, topics: pd.DataFrame) -> None:
        """Raises errors in its own files for these topics; by default nothing."""

    def of_job(self, topics: pd.DataFrame, answers: pd.DataFrame) -> dict[str, float]:
        """Further metrics over all answers of a job by name, without intervals; {} if there is nothing to measure."""
        return {}


class MeasuresOtherwise(AnswerMeasure):
    """An answer measure with another method, or stages of its own, in place of `measure`."""

    def measure(self, *frames: Any, **named: Any) -> pd.DataFrame:
        """TypeError, since another method measures."""
        raise TypeError(f"{type(self).__name__} does not measure by `measure`")


class MeasuresPassages(MeasuresOtherwise):
    """An answer measure on the single passages of a context; called in place of `measure`."""

    @abstractmethod
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


class MeasuresLayouts(MeasuresOtherwise):
    """An answer measure of evidence in contexts; called in place of `measure`."""

    @abstractmethod
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


class MeasuresRanking(MeasuresOtherwise):
    """An answer measure without answers; called in place of `measure`, for all topics."""

    @abstractmethod
    def measure_ranking(
        self, topics: pd.DataFrame, run: pd.DataFrame, passages: pd.DataFrame, n_tokens: int, tools: Tools
    ) -> pd.DataFrame:
        """Frame `answer_values` with a row for every topic and info, as `AnswerMeasure.measure` gives it.

        topics: [qid, query]; run: frame `run`; passages: frame `used_passages`, of the contexts of n_tokens.
        """


class VariesContexts(MeasuresOtherwise):
    """An answer measure on answers from other contexts than the job's, such as a single text.

    Called in place of `measure`. varies: whether these are made of the texts of the "ranking" or of the
    passages of the "context". judged: whether the judge says what the answers from them are worth. calls: the prefix of
    the metrics of these calls, such as erag_.
    """

    varies = Default[str]()
    calls = Default[str]()
    judged = Default(False)

    @abstractmethod
    def vary(self, topics: pd.DataFrame, passages: pd.DataFrame, n_tokens: int, tools: Tools) -> pd.DataFrame:
        """The contexts to answer from: [qid, n_tokens, variant, text], each variant once a topic.

        passages: frame `used_passages`, or of a ranking [qid, rank, docno, text]. `tools` has the tokenizer
        alone.
        """

    @abstractmethod
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

    def to_judge(self, answers: pd.DataFrame) -> pd.DataFrame:
        """The answers to judge, from the llm's [qid, n_tokens, variant, answer, status]; it may add variants."""
        return answers


class MeasuresRepeats(AnswerMeasure):
    """An answer measure of all answers to a topic (`llm.repeat`); `measure` leaves its values missing."""

    @abstractmethod
    def measure_repeats(self, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Values [qid x name of an info] from [qid, n_tokens, sample, answer], missing where there is nothing."""
