"""One job: its stages, and their outputs as the job's frames.

Knows neither Hydra nor MLflow: components in, frames out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.answering import ASKED
from ragauge.contract.errors import MissingError
from ragauge.contract.groups import RANKINGS
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate.slicing import SliceBy
from ragauge.estimate.topic_samples import Sample
from ragauge.experiment.clusters import clusters_of_topics
from ragauge.experiment.outcomes import outcomes, retrieved, unjudged, with_values
from ragauge.experiment.slicing import slices_of_topics
from ragauge.experiment.stages import repeating
from ragauge.experiment.stages.answering import AskedContexts, MeasureRankings, OfMeasure, shown
from ragauge.experiment.stages.measuring import RankingColumns
from ragauge.experiment.stages.order import stages
from ragauge.experiment.stages.plan import JOINED, Output, Plan
from ragauge.experiment.stages.retrieval import is_rewritten
from ragauge.experiment.stages.running import StageRunner
from ragauge.experiment.stages.stage import Budget
from ragauge.measures.answers import TRUTHFULNESS, truthfulness
from ragauge.measures.questions import DERIVED
from ragauge.store import Key


@dataclass(frozen=True)
class Line:
    """One stage of a job's plan: its key, and whether its output is stored (None: never).

    waits_for: the stage that has to be made before the key is known; None where it is known.
    """

    name: str
    key: Key | None
    stored: bool | None
    waits_for: str | None = None


@dataclass
class Pipeline(StageRunner):
    """One job: its components, its budget, and the stages, each computed on first use.

    n_grid: budgets in tokens at which the score is laid out; n_tokens is added to it.
    sample: which topics are judged; None is all that are answered.
    answered: which topics are answered; None is all of them.
    measures: those of the run, over documents or over chunks.
    slices, slice_weights: by what topics are sliced, and how slices count in averages.
    repeats: how often topics are answered, and answers judged.
    cluster: `document` or the attribute that names the clusters of topics; None: topics are independent.
    """

    sample: Sample | None = None
    measures: tuple[str, ...] = RANKINGS
    slices: tuple[SliceBy, ...] = ()
    slice_weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    cluster: str | None = None
    answered: Sample | None = None
    repeats: repeating.Repeats = repeating.ONCE
    _infos: list[AnswerMeasureInfo] | None = field(default=None, init=False, repr=False)
    _sampled: pd.DataFrame | None = field(default=None, init=False, repr=False)
    _answered: pd.DataFrame | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        derived = tuple(name for name in DERIVED if name in {by.name for by in self.slices})
        budget = Budget(self.n_tokens, tuple(self.grid), self.measures, derived)
        to_answer = None if self.answered is None else self.to_answer
        self.plan = Plan(stages(self.components, budget, self.to_judge, to_answer))

    @property
    def asks(self) -> bool:
        """Whether an LLM is asked before the judge, which may cost."""
        own = any("chat" in stage.uses and self.chat_of(stage) is not None for stage in self.stages)
        return own or self.shared_chat is not None or self.components.llm.kind in ASKED

    @cached_property
    def grid(self) -> list[int]:
        """All budgets, ascending, in tokens."""
        return sorted({*self.n_grid, self.n_tokens})

    def leave_out(self, answers: Collection[str]) -> None:
        """Removes answer measures from the job by their config names."""
        if answers:
            kept = {name: one for name, one in self.components.answers.items() if name not in answers}
            self.components = replace(self.components, answers=kept)
            self.plan = self.plan.without(lambda stage: isinstance(stage, OfMeasure) and stage.key in answers)
            self._infos = self._joined = None

    @property
    def rewritten(self) -> bool:
        """Whether the job searches for a rewriter's queries (frame `queries`) instead of the questions."""
        return is_rewritten(self.components)

    # --- what stages made -----------------------------------------------------------------------------

    @property
    def contexts(self) -> pd.DataFrame:
        """C_N of every topic at this job's n_tokens."""
        return self.frame("contexts")

    @property
    def shown_contexts(self) -> pd.DataFrame:
        """The contexts as the LLM sees them, with numbered passages if it cites."""
        return self.frame(shown(self.components) if self.answered is None else AskedContexts.name)

    @property
    def answers(self) -> pd.DataFrame:
        """The answers at this job's n_tokens; stored when none is missing."""
        return self.frame("answers")

    @property
    def verdicts(self) -> pd.DataFrame:
        """The verdicts on this job's answers, those to judge; stored when none is missing."""
        return self.frame("verdicts")

    def contexts_from_ledger(self) -> pd.DataFrame:
        """`shown_contexts` without a call; raises Unasked if a retriever would ask a chat model."""
        with self.without_calls():
            return self.shown_contexts

    @contextmanager
    def without_calls(self) -> Iterator[None]:
        """Makes stages that would ask a chat model or a service raise Unasked within the block."""
        chats = [chat for stage in self.stages if (chat := self.chat_of(stage)) is not None]
        for chat in chats:
            chat.from_ledger = True
        try:
            yield
        finally:
            for chat in chats:
                chat.from_ledger = False

    @property
    def answer_measures(self) -> list[AnswerMeasureInfo]:
        """The infos of the answer measures, in the order of the stages."""
        if self._infos is None:
            makers = [stage for stage in self.stages if JOINED in stage.makes]
            # Of a sample the classes alone are estimated: the topics without a verdict have no score to average.
            judged = self.components.judge.kind != "none" and not self.samples
            measured = [info for stage in makers for info in stage.shown(self.frame)]
            self._infos = [*measured, *([TRUTHFULNESS] if judged else [])]
        return self._infos

    @cached_property
    def retrieved(self) -> pd.DataFrame:
        """One row per topic at this n_tokens before any LLM call, with the columns of `clusters`."""
        found = retrieved(
            self.frame("topics"),
            self.frame("scores"),
            self.frame("part_scores"),
            self.contexts,
            self.frame("run"),
            self.n_tokens,
        )
        return found.assign(**{str(name): found["qid"].map(of) for name, of in self.clusters.items()})

    @cached_property
    def foreseeing(self) -> pd.DataFrame:
        """`retrieved` with the measures that need no answer, as input of a predictor."""
        before = [step for step in self.plan.steps if isinstance(step.stage, MeasureRankings | RankingColumns)]
        steps = self._have(before)
        return with_values(self.retrieved, pd.concat([step.done.frame(JOINED) for step in steps], ignore_index=True))

    @cached_property
    def outcomes(self) -> pd.DataFrame:
        """`retrieved` with answer, answer measures, label, statuses, and the sample of topics."""
        values = self.frame("answer_values")
        found = (self.retrieved, self.answers, self.verdicts, values)
        rows = outcomes(*found, self.sampled, self.unjudged)
        if TRUTHFULNESS in self.answer_measures:
            rows[TRUTHFULNESS.name] = truthfulness(rows["label"], rows.get("unanswerable"))
        return repeating.with_repeats(self, rows)

    # The job by (sample, repeat), once for each answer and verdict that a topic gets, and what all of them say.
    parts = cached_property(repeating.parts_of)
    repeated = cached_property(repeating.repeated)
    all_answers, all_verdicts = property(repeating.all_answers), property(repeating.all_verdicts)

    @cached_property
    def clusters(self) -> pd.DataFrame:
        """The chosen clusters and those of shared evidence, by qid (`clusters_of_topics`)."""
        return clusters_of_topics(self.frame("topics"), self.frame("evidence"), self.cluster)

    @cached_property
    def sliced(self) -> pd.DataFrame | None:
        """The slices of every topic ([qid, slice:<name> ...]); None without slices."""
        topics = self.frame("topics")
        return slices_of_topics(topics, self.slices, self.slice_weights, lambda: self.frame("derived"))

    @property
    def asked_before(self) -> bool:
        """Whether llm and retriever share their requests to one service, asked once."""
        llm, retriever = self.components.llm, self.components.retriever
        if llm.own_chat is None or retriever.own_chat is None:
            return False
        return self.identity_of(llm.own_chat) == self.identity_of(retriever.own_chat)

    def lines(self) -> Iterator[Line]:
        """The job's plan: its stages with their keys, and whether their output is in the store.

        Nothing that is stored is made, and no LLM is asked. The key of a stage whose input is not there is not known.
        """
        for step in self.plan.steps:
            stage, waits = step.stage, step.waits_for
            if waits is not None:
                yield Line(stage.label, None, False if stage.stored else None, waits)
                continue
            key = self._key(step) if stage.stored else None
            found = None if key is None else step.output is not None or self.store.find(key) is not None
            if found is not False:
                with suppress(MissingError):  # too much of it is missing: the job would end there
                    self._have([step])  # from the store, or of what is there
            yield Line(stage.label, key, found)

    def plan_in_words(self) -> str:
        """A sentence: the stored part of the plan, the first stage to run, and those after it."""
        told = list(self.lines())
        missing = [line for line in told if line.stored is False]
        first = [line.name for line in missing if line.waits_for is None]
        after = [line.name for line in missing if line.waits_for is not None]
        parts = [f"{what} {', '.join(names)}" for what, names in (("made", first), ("then", after)) if names]
        return "; ".join([f"stages: {sum(line.stored is True for line in told)} stored", *parts])

    # --- the topics that are judged ---------------------------------------------------------------------

    @property
    def samples(self) -> bool:
        """Whether a sample of the topics is judged, or answered and judged."""
        return self.sample is not None or self.answered is not None

    @property
    def sampled_by_prediction(self) -> bool:
        """Whether a predictor chooses the topics to judge from the retrieval of all jobs of a sweep."""
        return self.sample is not None and self.sample.design == "neyman"

    @property
    def sampled(self) -> pd.DataFrame | None:
        """The topics to judge: [qid, stratum, judged]; None if all. A uniform sample unless set.

        A uniform sample of the judge's is within that of the llm: both are the first topics of one random order.
        """
        if self._sampled is None and self.sample is not None:
            self._sampled = self.sample.chosen(self.frame("topics")["qid"], self.unjudged)
        return self.chosen_to_answer if self._sampled is None else self._sampled

    @property
    def chosen_to_answer(self) -> pd.DataFrame | None:
        """The topics to answer, as in `sampled`; None if all."""
        if self._answered is None and self.answered is not None:
            self._answered = self.answered.chosen(self.frame("topics")["qid"], self.unjudged)
        return self._answered

    def to_answer(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows of the topics to answer."""
        chosen = self.chosen_to_answer
        return frame if chosen is None else _of(chosen, frame).reset_index(drop=True)

    @cached_property
    def unjudged(self) -> frozenset[str]:
        """The topics without a reference answer that the judge needs."""
        return unjudged(self.components.judge, self.frame("topics"))

    def set_sampled(self, frame: pd.DataFrame) -> None:
        """Sets a choice of topics made elsewhere, such as for all jobs of a sweep."""
        self._sampled = frame
        for part in list(vars(self).get("parts", {}).values())[1:]:
            part.set_sampled(frame)
        for name in ("outcomes", "repeated"):
            self.__dict__.pop(name, None)
        for name in ("asked_answers", "verdicts"):
            self.plan.step(name).output = None

    def to_judge(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows of the topics to judge: sampled, and with a reference to judge by."""
        if self.unjudged:
            frame = frame[~frame["qid"].isin(self.unjudged)]
        return frame if self.sampled is None else _of(self.sampled, frame)

    def set_verdicts(self, frame: pd.DataFrame) -> None:
        """Sets verdicts made together with those of other jobs."""
        frame = frames.check("verdicts", frame, "a judge")
        self._check_missing("verdicts", frame, "label")
        self.plan.step("verdicts").output = Output(held={"verdicts": frame})


def _of(chosen: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the chosen topics."""
    return frame[frame["qid"].isin(chosen.loc[chosen["judged"], "qid"])]
