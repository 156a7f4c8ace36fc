"""Answers every topic several times, and judges every answer several times.

A sample is an answer to a topic, a repeat a verdict on it. Each pair of both is a part: a pipeline of its own, with the
llm and judge that `repeated` gives. Part (0, 0) is the job itself, so that a single answer keeps all of its keys.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge.contract.answer_measures import infos_of
from ragauge.contract.answering import ASKED
from ragauge.contract.checks import require, require_count
from ragauge.contract.errors import ConfigError
from ragauge.contract.measures import MeasuresLayouts, MeasuresRepeats, VariesContexts
from ragauge.contract.outcomes import MOST_LABELS
from ragauge.estimate.prompts import OF_REPEATS, outcomes_of_repeats

if TYPE_CHECKING:
    from ragauge.experiment.stages.stage import Components

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Repeats:
    """Number of answers per topic (`llm.repeat`) and of verdicts per answer (`judge.per_answer`)."""

    answers: int = 1
    verdicts: int = 1

    @property
    def several(self) -> bool:
        """Whether a topic has more than one verdict."""
        return self.answers * self.verdicts > 1


ONCE = Repeats()


def checked_repeats(answers: Any, verdicts: Any, components: Components) -> Repeats:
    """The job's repeats (None: one), 1 for deterministic components; ConfigError if they are impossible."""
    answers, verdicts = (1 if times is None else times for times in (answers, verdicts))
    require_count("llm.repeat", answers)
    require_count("judge.per_answer", verdicts)
    of = components
    needing = [name for name, measure in of.answers.items() if isinstance(measure, MeasuresRepeats)]
    if needing and answers == 1:
        raise ConfigError(f"answers.{needing[0]} compares several answers to a topic: set llm.repeat to 2 or more")
    if answers * verdicts == 1:
        return ONCE
    most = f"counts of at most {MOST_LABELS} in all (llm.repeat times judge.per_answer)"
    require("llm.repeat", answers, answers * verdicts <= MOST_LABELS, most)
    if of.judge.mode == "batch":
        raise ConfigError("llm.repeat and judge.per_answer: judge.mode=batch judges once; use judge.mode=single")
    if getattr(of.judge, "prompts", None) is not None:
        raise ConfigError("llm.repeat and judge.per_answer: judge.prompts judges each answer by itself; use one")
    return Repeats(_differing("llm.repeat", answers, of.llm), _differing("judge.per_answer", verdicts, of.judge))


def _differing(key: str, times: int, component: Any) -> int:
    """`times`, or 1 for a deterministic component; ConfigError if the component cannot repeat."""
    if times == 1:
        return 1
    if component.repeated(1) is not None:  # refuses settings under which nothing differs
        return times
    name = component.component or type(component).__name__
    if component.kind in ASKED:
        raise ConfigError(f"{key}={times}: {name} cannot be asked for another reply to a request; allowed is 1")
    log.info("%s=%s: %s gives the same each time, so all %s repeats are equal and made once", key, times, name, times)
    return 1


def parts_of(pipeline: Any) -> dict[tuple[int, int], Any]:
    """The parts of a job by (sample, repeat), the job itself first; sample by sample."""
    times = pipeline.repeats
    found = {(0, 0): pipeline}
    for sample in range(times.answers):
        for repeat in range(times.verdicts):
            if sample or repeat:
                found[sample, repeat] = _part(pipeline, sample, repeat)
    return found


def _part(pipeline: Any, sample: int, repeat: int) -> Any:
    """The job with another answer and verdict; it shares reads, models, times and choice of topics."""
    of: Any = pipeline.components
    components = replace(
        of,
        llm=of.llm.repeated(sample) if sample else of.llm,
        judge=of.judge.repeated(repeat) if repeat else of.judge,
        answers={} if repeat else {name: one for name, one in of.answers.items() if _of_answer(one)},
    )
    part = replace(pipeline, components=components, repeats=ONCE)
    part.seconds, part.made = pipeline.seconds, pipeline.made
    part._sampled = pipeline._sampled
    # Measures ask the job's own chat model, whichever answer they are about.
    shared = ("shared_chat", "evaluator_chat", "tools", "unjudged")
    vars(part).update({name: getattr(pipeline, name) for name in shared})
    return part


def _of_answer(measure: Any) -> bool:
    """Whether a measure's values depend on the answer, given the context."""
    apart = isinstance(measure, VariesContexts | MeasuresLayouts | MeasuresRepeats)
    return not apart and any(info.of == "answer" for info in infos_of(measure))


def share_outputs(pipeline: Any) -> None:
    """Shares the outputs of the job, or of the part with the same answer, with each part."""
    for (sample, repeat), part in pipeline.parts.items():
        if sample or repeat:
            source, until = (pipeline.parts[sample, 0], "verdicts") if repeat else (pipeline, "answers")
            theirs = {step.stage.label: step for step in part.plan.steps}
            for step in source.plan.steps:
                if step.stage.name == until:
                    break
                if step.output is not None and step.stage.label in theirs:
                    theirs[step.stage.label].output = step.output


def repeated_answers(pipeline: Any) -> dict[int, tuple[pd.DataFrame, pd.DataFrame]]:
    """The answers of every sample, and the values [qid x measure] of answer measures; computed now."""
    found = {}
    for (sample, repeat), part in pipeline.parts.items():
        share_outputs(pipeline)
        if not repeat:
            answers, values = part.answers, part.frame("answer_values")
            names = [info.name for one in part.components.answers.values() if _of_answer(one) for info in infos_of(one)]
            of_answer = values[values["measure"].isin(names)]
            found[sample] = answers, of_answer.pivot(index="qid", columns="measure", values="value").astype("float64")
    return found


def all_answers(pipeline: Any) -> pd.DataFrame:
    """The concatenated answers of all samples for counting costs, each with its own qid."""
    if not pipeline.repeats.several:
        return pipeline.answers
    frames = repeated_answers(pipeline).items()
    tagged = [rows.assign(qid=[f"{qid} {sample}" for qid in rows["qid"]]) for sample, (rows, _) in frames]
    return pd.concat(tagged, ignore_index=True)


def all_verdicts(pipeline: Any) -> pd.DataFrame:
    """The concatenated verdicts of all parts for counting costs; requests of repeats differ."""
    if not pipeline.repeats.several:
        return pipeline.verdicts
    share_outputs(pipeline)
    tagged = []
    for (_, repeat), part in pipeline.parts.items():
        rows = part.verdicts
        if repeat and "request" in rows:
            rows = rows.assign(request=f"{repeat} " + rows["request"])
        tagged.append(rows)
    return pd.concat(tagged, ignore_index=True)


def repeated(pipeline: Any) -> pd.DataFrame:
    """A row per answered topic, sample and repeat: [qid, n_tokens, sample, repeat, answer, answer_status, label,
    judge_status], and a column per measure of answers.

    label and judge_status are missing for a topic that is not judged.
    """
    by_sample = repeated_answers(pipeline)
    share_outputs(pipeline)
    rows = []
    for (sample, repeat), part in pipeline.parts.items():
        answers, values = by_sample[sample]
        one = answers[["qid", "n_tokens", "answer", "status"]].rename(columns={"status": "answer_status"})
        verdicts = part.verdicts[["qid", "label", "status"]].rename(columns={"status": "judge_status"})
        for more in (verdicts, values.reset_index()):
            one = one.merge(more, on="qid", how="left", validate="one_to_one")
        rows.append(one.assign(sample=sample, repeat=repeat))
    found = pd.concat(rows, ignore_index=True)
    return found[[*OF_REPEATS, *found.columns.difference(OF_REPEATS)]]


def with_repeats(pipeline: Any, rows: pd.DataFrame) -> pd.DataFrame:
    """Outcomes over all answers and verdicts (`outcomes_of_repeats`), with columns of `MeasuresRepeats`."""
    of_repeats = [one for one in pipeline.components.answers.values() if isinstance(one, MeasuresRepeats)]
    if pipeline.repeats.several:
        rows = outcomes_of_repeats(rows, pipeline.repeated, pipeline.components.judge.kind != "none")
    for measure in of_repeats:
        repeated = pipeline.repeated
        values = measure.measure_repeats(repeated[repeated["repeat"] == 0], pipeline.tools)
        rows = rows.assign(**{str(name): rows["qid"].map(values[name]).astype("float64") for name in values})
    return rows
