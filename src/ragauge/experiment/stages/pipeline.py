"""One job: its stages, and what they make as the job's frames.

Knows neither Hydra nor MLflow: components in, frames out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.groups import RANKINGS
from ragauge.contract.protocols import ASKED, AnswerMeasureInfo, BringsChat
from ragauge.contract.topics import without_reference
from ragauge.estimate import choose_topics
from ragauge.estimate.slicing import SliceBy
from ragauge.experiment.outcomes.joined import outcomes, retrieved
from ragauge.experiment.outcomes.sample import Sample
from ragauge.experiment.outcomes.slicing import slices_of_topics
from ragauge.experiment.stages.answering import MeasureAnswers, cites
from ragauge.experiment.stages.order import is_rewritten, stages
from ragauge.experiment.stages.running import StageRunner
from ragauge.experiment.stages.stage import Budget, Stage
from ragauge.experiment.stages.varied import OfMeasure
from ragauge.measures.questions import DERIVED
from ragauge.measures.truthfulness import TRUTHFULNESS, truthfulness
from ragauge.store import Key


@dataclass(frozen=True)
class Line:
    """One stage of a job as `ragauge stages` shows it: its key, and whether its output is stored."""

    name: str
    key: Key | None
    stored: bool | None


@dataclass
class Pipeline(StageRunner):
    """One job: its components, its budget, and the stages, each computed on first use.

    n_grid: budgets in tokens at which the score is laid out; n_tokens is added to it.
    sample: which topics are judged; None is all of them.
    measures: those of the run, over documents or over chunks.
    slices, slice_weights: by what topics are sliced, and how slices count in averages.
    """

    sample: Sample | None = None
    measures: tuple[str, ...] = RANKINGS
    slices: tuple[SliceBy, ...] = ()
    slice_weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def asks(self) -> bool:
        """Whether somebody is asked before the judge, which may cost."""
        own = any("chat" in stage.uses and self.chat_of(stage) is not None for stage in self.stages)
        return own or self.shared_chat is not None or self.components.llm.kind in ASKED

    @cached_property
    def grid(self) -> list[int]:
        """All budgets, ascending, in tokens."""
        return sorted({*self.n_grid, self.n_tokens})

    @cached_property
    def stages(self) -> list[Stage]:
        """The job's stages in order."""
        derived = tuple(name for name in DERIVED if name in {by.name for by in self.slices})
        return stages(self.components, Budget(self.n_tokens, tuple(self.grid), self.measures, derived))

    def leave_out(self, answers: Collection[str]) -> None:
        """Takes answer measures out of the job, by the names that they have in the config."""
        if answers:
            kept = {name: one for name, one in self.components.answers.items() if name not in answers}
            self.components = replace(self.components, answers=kept)
            self.__dict__["stages"] = [
                stage
                for stage in self.stages
                if not isinstance(stage, (MeasureAnswers, OfMeasure))
                or getattr(stage, "measure", stage.component) in kept.values()
            ]
            self.__dict__.pop("answer_measures", None)

    @property
    def rewritten(self) -> bool:
        """Whether a rewriter's queries are searched for (frame `queries`) in place of the questions."""
        return is_rewritten(self.components)

    # --- what stages made -----------------------------------------------------------------------------

    def frame_of_job(self, name: str) -> pd.DataFrame | None:
        """asked_answers: the answers that are to be judged."""
        return self.to_judge(self.answers) if name == "asked_answers" else None

    @property
    def contexts(self) -> pd.DataFrame:
        """C_N of every topic at this job's n_tokens."""
        return self.frame("contexts")

    @property
    def shown_contexts(self) -> pd.DataFrame:
        """The contexts as the LLM sees them: of one that cites, with the passages numbered."""
        return self.frame("numbered_contexts") if cites(self.components) else self.contexts

    @property
    def answers(self) -> pd.DataFrame:
        """The answers at this job's n_tokens; stored when none is missing."""
        return self.frame("answers")

    @property
    def verdicts(self) -> pd.DataFrame:
        """The verdicts on this job's answers, those to judge; stored when none is missing."""
        return self.frame("verdicts")

    def contexts_from_ledger(self) -> pd.DataFrame:
        """`shown_contexts` without a call: Unasked where a retriever would have to ask a chat model."""
        chats = [chat for stage in self.stages if (chat := self.chat_of(stage)) is not None]
        for chat in chats:
            chat.from_ledger = True
        try:
            return self.shown_contexts
        finally:
            for chat in chats:
                chat.from_ledger = False

    @cached_property
    def answer_measures(self) -> list[AnswerMeasureInfo]:
        """How the measures of every topic beside the IR score are shown, in the order of the stages."""
        makers = [stage for stage in self.stages if "answer_values" in stage.makes]
        # Of a sample the classes alone are estimated: the topics without a verdict have no score to average.
        judged = self.components.judge.kind != "none" and self.sample is None
        measured = [info for stage in makers for info in stage.shown(self.frame)]
        return [*measured, *([TRUTHFULNESS] if judged else [])]

    @cached_property
    def retrieved(self) -> pd.DataFrame:
        """One row per topic at this n_tokens, before any LLM."""
        return retrieved(
            self.frame("topics"),
            self.frame("scores"),
            self.frame("part_scores"),
            self.contexts,
            self.frame("run"),
            self.n_tokens,
        )

    @cached_property
    def outcomes(self) -> pd.DataFrame:
        """`retrieved` with answer, answer measures, label and statuses; and which topics were sampled."""
        values = self.frame("answer_values")
        found = (self.retrieved, self.answers, self.verdicts, values)
        rows = outcomes(*found, self.sampled, self.unjudged)
        if TRUTHFULNESS in self.answer_measures:
            rows[TRUTHFULNESS.name] = truthfulness(rows["label"], rows.get("unanswerable"))
        return rows

    @cached_property
    def sliced(self) -> pd.DataFrame | None:
        """The slices of every topic ([qid, slice:<name> ...]); None where there are none to be."""
        topics = self.frame("topics")
        return slices_of_topics(topics, self.slices, self.slice_weights, lambda: self.frame("derived"))

    @property
    def asked_before(self) -> bool:
        """Whether the requests of the llm are those of the retriever: one service, asked once."""
        llm, retriever = self.components.llm, self.components.retriever
        if not (isinstance(llm, BringsChat) and isinstance(retriever, BringsChat)):
            return False
        return self.identity_of(llm.own_chat) == self.identity_of(retriever.own_chat)

    def lines(self) -> Iterator[Line]:
        """The job's stages with their keys, and whether their output is in the store.

        Nothing is made and nobody is asked: the key of a stage that reads what is not there is not known.
        """
        there: set[str] = set()
        for stage in self.stages:
            reads = {read.partition("[")[0] for read in stage.reads}
            makes = set(stage.makes) or {f"{stage.label}/"}
            if not {"answers" if name == "asked_answers" else name for name in reads} <= there:
                there -= makes
                yield Line(stage.label, None, False)
            elif not stage.stored:
                there |= makes
                yield Line(stage.label, None, None)
            else:
                key = self._key(stage)
                found = self.store.find(key) is not None
                there = there | makes if found else there - makes
                yield Line(stage.label, key, found)

    # --- the topics that are judged ---------------------------------------------------------------------

    @property
    def sampled_by_prediction(self) -> bool:
        """Whether the topics to judge are chosen by a predictor, from what all jobs of a sweep retrieved."""
        return self.sample is not None and self.sample.design == "neyman"

    @cached_property
    def sampled(self) -> pd.DataFrame | None:
        """Which topics are judged: [qid, stratum, judged]; None where all are. Uniform unless set."""
        if self.sample is None:
            return None
        qids = self.frame("topics")["qid"]
        even = pd.Series(0.5, index=qids[~qids.isin(self.unjudged)])  # which are drawn does not hang on it
        return choose_topics(even, self.sample.n, seed=self.sample.seed, design="uniform")

    @cached_property
    def unjudged(self) -> frozenset[str]:
        """The topics without a reference answer that the judge needs."""
        if not getattr(self.components.judge, "needs_reference", True):
            return frozenset()
        return frozenset(without_reference(self.frame("topics")))

    def set_sampled(self, frame: pd.DataFrame) -> None:
        """Takes a choice of topics that was made elsewhere, such as for all jobs of a sweep."""
        self.__dict__["sampled"] = frame

    def to_judge(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows of the topics that are judged: of a sample, and such as have something to judge by."""
        if self.unjudged:
            frame = frame[~frame["qid"].isin(self.unjudged)]
        if self.sampled is None:
            return frame
        return frame[frame["qid"].isin(self.sampled.loc[self.sampled["judged"], "qid"])]

    def set_verdicts(self, frame: pd.DataFrame) -> None:
        """Takes verdicts that were made elsewhere, together with those of other jobs."""
        frame = frames.check("verdicts", frame, "a judge")
        self._check_missing("verdicts", frame, "label")
        self._frames["verdicts"] = frame
