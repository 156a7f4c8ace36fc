"""One job: its stages, and their outputs as the job's frames.

Knows neither Hydra nor MLflow: components in, frames out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.answer_measures import infos_of
from ragauge.contract.answering import ASKED
from ragauge.contract.errors import MissingError
from ragauge.contract.groups import RANKINGS
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresRepeats
from ragauge.contract.stages import Budget, Stage
from ragauge.estimate.prompts import OF_REPEATS, outcomes_of_repeats
from ragauge.estimate.slicing import SliceBy
from ragauge.estimate.topic_samples import Sample
from ragauge.experiment.clusters import clusters_of_topics
from ragauge.experiment.outcomes import outcomes, retrieved, unjudged, with_values
from ragauge.experiment.slicing import slices_of_topics
from ragauge.experiment.stages.ahead import ahead_of
from ragauge.experiment.stages.answering import AskedContexts, MeasureRankings, OfMeasure, shown
from ragauge.experiment.stages.measuring import RankingColumns
from ragauge.experiment.stages.order import question_stages, stages
from ragauge.experiment.stages.plan import JOINED, Output, Plan
from ragauge.experiment.stages.repeating import ONCE, Repeats, of_answer
from ragauge.experiment.stages.retrieval import is_rewritten
from ragauge.experiment.stages.running import StageRunner
from ragauge.measures.answers import TRUTHFULNESS, truthfulness
from ragauge.measures.questions import DERIVED
from ragauge.store import Key
from ragauge.store.vectors import NotComputed


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
    budgets: those of the job's sweep, if it varies n_tokens.
    cluster: `document` or the attribute that names the clusters of topics; None: topics are independent.
    """

    sample: Sample | None = None
    measures: tuple[str, ...] = RANKINGS
    slices: tuple[SliceBy, ...] = ()
    slice_weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    cluster: str | None = None
    answered: Sample | None = None
    repeats: Repeats = ONCE
    budgets: tuple[int, ...] = ()
    _infos: list[AnswerMeasureInfo] | None = field(default=None, init=False, repr=False)
    _sampled: pd.DataFrame | None = field(default=None, init=False, repr=False)
    _answered: pd.DataFrame | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        derived = tuple(name for name in DERIVED if name in {by.name for by in self.slices})
        budget = Budget(self.n_tokens, tuple(self.grid), self.measures, derived)
        to_answer = None if self.answered is None else self.to_answer
        self.ahead = ahead_of(self)
        self.plan = Plan(stages(self.components, budget, self.to_judge, to_answer, self.ahead))

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
        return is_rewritten(self.components)

    @property
    def several(self) -> bool:
        return self.repeats.several

    @property
    def question_stages(self) -> list[Stage]:
        return question_stages(self.stages)

    # --- what stages made -----------------------------------------------------------------------------

    @property
    def shown_contexts(self) -> pd.DataFrame:
        """The contexts as the LLM sees them, with numbered passages if it cites."""
        return self.frame(shown(self.components) if self.answered is None else AskedContexts.name)

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
        if self._infos is None:
            makers = [stage for stage in self.stages if JOINED in stage.makes]
            # Of a sample the classes alone are estimated: the topics without a verdict have no score to average.
            judged = self.components.judge.kind != "none" and not self.samples
            measured = [info for stage in makers for info in stage.shown(self.frame)]
            self._infos = [*measured, *([TRUTHFULNESS] if judged else [])]
        return self._infos

    @cached_property
    def retrieved(self) -> pd.DataFrame:
        found = retrieved(self)
        return found.assign(**{str(name): found["qid"].map(of) for name, of in self.clusters.items()})

    @cached_property
    def foreseeing(self) -> pd.DataFrame:
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
        if self.several:
            rows = outcomes_of_repeats(rows, self.repeated, self.components.judge.kind != "none")
        for measure in self.components.answers.values():
            if isinstance(measure, MeasuresRepeats):
                first = self.repeated[self.repeated["repeat"] == 0]
                values = measure.measure_repeats(first, self.tools)
                rows = rows.assign(**{str(name): rows["qid"].map(values[name]).astype("float64") for name in values})
        return rows

    # --- several answers, several verdicts ------------------------------------------------------------

    @cached_property
    def parts(self) -> dict[tuple[int, int], Pipeline]:
        """The job by (sample, repeat), once for each answer and verdict that a topic gets; sample by sample.

        A sample is an answer to a topic, a repeat a verdict on it. Part (0, 0) is the job itself, so that a single
        answer keeps all of its keys.
        """
        pairs = product(range(self.repeats.answers), range(self.repeats.verdicts))
        return {pair: self._part(*pair) if any(pair) else self for pair in pairs}

    def _part(self, sample: int, repeat: int) -> Pipeline:
        """The job with another answer and verdict; it shares reads, models, times and choice of topics."""
        of = self.components
        components = replace(
            of,
            llm=of.llm.repeated(sample) if sample else of.llm,
            judge=of.judge.repeated(repeat) if repeat else of.judge,
            answers={} if repeat else {name: one for name, one in of.answers.items() if of_answer(one)},
        )
        part = replace(self, components=components, repeats=ONCE)
        part.seconds, part.made, part._sampled = self.seconds, self.made, self._sampled
        part.unmeasured = self.unmeasured
        # Measures ask the job's own chat model, whichever answer they are about.
        shared = ("shared_chat", "evaluator_chat", "tools", "unjudged")
        vars(part).update({name: getattr(self, name) for name in shared})
        return part

    def _share_outputs(self) -> None:
        """Shares the outputs of the job, or of the part with the same answer, with each part."""
        for (sample, repeat), part in list(self.parts.items())[1:]:
            source, until = (self.parts[sample, 0], "verdicts") if repeat else (self, "answers")
            theirs = {step.stage.label: step for step in part.plan.steps}
            for step in source.plan.steps:
                if step.stage.name == until:
                    break
                if step.output is not None and step.stage.label in theirs:
                    theirs[step.stage.label].output = step.output

    def _by_sample(self) -> dict[int, tuple[pd.DataFrame, pd.DataFrame]]:
        """The answers of every sample, and the values [qid x measure] of answer measures; computed now."""
        found = {}
        for (sample, repeat), part in self.parts.items():
            self._share_outputs()
            if not repeat:
                answers, values = part.answers, part.frame("answer_values")
                measures = [one for one in part.components.answers.values() if of_answer(one)]
                own = values[values["measure"].isin([info.name for one in measures for info in infos_of(one)])]
                found[sample] = answers, own.pivot(index="qid", columns="measure", values="value").astype("float64")
        return found

    @property
    def all_answers(self) -> pd.DataFrame:
        if not self.several:
            return self.answers
        frames = self._by_sample().items()
        tagged = [rows.assign(qid=[f"{qid} {sample}" for qid in rows["qid"]]) for sample, (rows, _) in frames]
        return pd.concat(tagged, ignore_index=True)

    @property
    def all_verdicts(self) -> pd.DataFrame:
        if not self.several:
            return self.verdicts
        self._share_outputs()
        tagged = []
        for (_, repeat), part in self.parts.items():
            rows = part.verdicts
            if repeat and "request" in rows:
                rows = rows.assign(request=f"{repeat} " + rows["request"])
            tagged.append(rows)
        return pd.concat(tagged, ignore_index=True)

    @cached_property
    def repeated(self) -> pd.DataFrame:
        """[qid, n_tokens, sample, repeat, answer, answer_status, label, judge_status], and a column per measure of
        answers: a row per answered topic, sample and repeat.

        label and judge_status are missing for a topic that is not judged.
        """
        by_sample = self._by_sample()
        self._share_outputs()
        rows = []
        for (sample, repeat), part in self.parts.items():
            answers, values = by_sample[sample]
            one = answers[["qid", "n_tokens", "answer", "status"]].rename(columns={"status": "answer_status"})
            verdicts = part.verdicts[["qid", "label", "status"]].rename(columns={"status": "judge_status"})
            for more in (verdicts, values.reset_index()):
                one = one.merge(more, on="qid", how="left", validate="one_to_one")
            rows.append(one.assign(sample=sample, repeat=repeat))
        found = pd.concat(rows, ignore_index=True)
        return found[[*OF_REPEATS, *found.columns.difference(OF_REPEATS)]]

    # --- what topics belong to ------------------------------------------------------------------------

    @cached_property
    def clusters(self) -> pd.DataFrame:
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
                with suppress(MissingError, NotComputed):  # too much of it is missing: the job would end there
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
