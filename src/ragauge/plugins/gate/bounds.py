"""The rules of a gate as bounds on a job's metrics: looks up slices and checks names before any work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from ragauge.contract.checks import require
from ragauge.contract.errors import ConfigError
from ragauge.contract.groups import GROUPS
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.metrics import OF_VERDICTS, closest, is_known, measure_metrics
from ragauge.contract.settings import Settings
from ragauge.estimate.slicing import text_of
from ragauge.findings.order import metrics_of_jobs
from ragauge.findings.slices import metric_names, metrics_of_slices
from ragauge.measures.rankings import full_name, metric_of
from ragauge.plugins.gate.gating import check_tolerance
from ragauge.plugins.gate.rules import MOST_LOOKS, Gate, Rule

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline

_MAX_LISTED = 12  # names in a message


@dataclass(frozen=True)
class Bound:
    """A rule for one metric of a job, under its name in MLflow.

    `measure` is the metric of the slice without the slice's name, `slice` its attribute and value; None for
    all topics.
    """

    metric: str
    measure: str
    slice: tuple[str, str] | None
    rule: Rule


def bounds(rules: Sequence[Rule], slices: pd.DataFrame | None) -> list[Bound]:
    """A bound for every rule, and for every slice if a rule is about each slice of an attribute.

    `slices` has a column slice:<attribute> for each; None where the job has no slices. ConfigError for a
    slice that there is not.
    """
    names = {} if slices is None else metric_names(slices)
    return [bound for rule in rules for bound in _of_rule(rule, names)]


def _of_rule(rule: Rule, names: Mapping[tuple[str, str], str]) -> Iterator[Bound]:
    if rule.slice is None:
        start, _, measure = rule.metric.rpartition("/")
        of_slice = {name: at for at, name in names.items()}
        if start in of_slice:
            yield Bound(rule.metric, measure, of_slice[start], rule)
        elif start.startswith("slice/"):
            raise ConfigError(f"{rule.where}: no such slice; there are {_some([*of_slice]) or 'none'}")
        else:
            yield Bound(rule.metric, rule.metric, None, rule)
        return
    if "/" in rule.metric:
        raise ConfigError(f"{rule.where}: slice: the metric names a slice itself")
    by, label = rule.slice
    there = {at: name for at, name in names.items() if at[0] == by}
    if label is not None:
        there = {at: name for at, name in there.items() if at[1] == text_of(label)}
    if not there:
        labels = [value for attribute, value in names if attribute == by]
        listed = _some(labels or list(dict.fromkeys(at[0] for at in names)))
        what = f"{by}: {label}" if label is not None else by
        raise ConfigError(f"{rule.where}: no such slice ({what}); there are {listed or 'none: slices is empty'}")
    for at, name in there.items():
        yield Bound(f"{name}/{rule.metric}", rule.metric, at, rule)


def check_bounds(
    found: Sequence[Bound], known: Sequence[str], answers: Sequence[AnswerMeasureInfo], verdicts: bool = True
) -> None:
    """ConfigError for a metric outside `known`, and for a tolerance that cannot be tested.

    `answers` are the job's answer measures; `verdicts` is False without a judge.
    """
    for bound in found:
        rule = bound.rule
        alone = rule.minimum is None and rule.maximum is None  # such a slice needs no metric of its own
        name = bound.measure if alone else bound.metric
        if not is_known(name, known):
            own = ", ".join(info.name for info in answers) or "none"
            hint = closest(name, known) or f" docs/method.md lists them; answer measures here: {own}"
            said = "" if name in rule.where else f" ({name})"
            raise ConfigError(f"{rule.where}: no such metric{said}.{hint}")
        measure = bound.measure.rpartition("/")[2].removesuffix("_lo").removesuffix("_hi")
        if not verdicts and measure in OF_VERDICTS:
            raise ConfigError(f"{rule.where}: this job has no verdicts: llm=none, or judge=none")
        if rule.tolerance is not None:
            check_tolerance(bound.measure, rule.tolerance, answers, f"{rule.where}: tolerance")


def check_settings(gate: Gate, where: str = "gate.") -> None:
    """ConfigError for a tolerance without a baseline, an unused baseline, and settings of a look without a look."""
    if gate.look is None and (gate.max_topics is not None or gate.series):
        key = "series" if gate.max_topics is None else "max-topics" if where == "--" else "max_topics"
        raise ConfigError(f"{where}{key}: it is of a look at growing topics; give {where}look=2/5")
    told = gate.baseline or gate.baseline_tag
    if gate.compares and not told:
        rule = next(rule for rule in gate.rules if rule.tolerance is not None)
        raise ConfigError(
            f"{rule.where}: a tolerance is of a baseline: give {where}baseline=<MLflow run id> or "
            f"{where}{'baseline-tag' if where == '--' else 'baseline_tag'}=<tag>"
        )
    if told and not gate.compares:
        raise ConfigError(f"{where}baseline: no rule has a tolerance, such as ir_score: {{tolerance: 0.02}}")


def check_looks(settings: Settings, pipeline: Pipeline, gate: Gate, found: Sequence[Bound]) -> None:
    """ConfigError for `judge.looks` of a job whose gate could not stop its judging."""
    looks = settings.judge.get("looks")
    if looks is None:
        return
    whole = isinstance(looks, int) and not isinstance(looks, bool)
    require("judge.looks", looks, whole and 2 <= looks <= MOST_LOOKS, f"integers from 2 to {MOST_LOOKS}, null for none")
    key, sample = f"judge.looks={looks}", pipeline.sample
    if sample is None or sample.design != "uniform" or sample.n < 2 * looks:
        raise ConfigError(
            f"{key} divides a uniform sample into that many batches: give judge.sample=n, at least {2 * looks}"
        )
    if settings.sample_target == "topics":
        raise ConfigError(
            f"{key}: its bounds are for the population that the topics come from: use sample_target=population"
        )
    if pipeline.components.judge.mode == "batch":
        raise ConfigError(f"{key}: judge.mode=batch judges all jobs of a sweep at once; use judge.mode=single")
    if gate.look is not None:
        raise ConfigError(f"{key} and gate.look: the job takes its looks itself; leave gate.look out")
    if not any(_decides(bound) for bound in found):
        raise ConfigError(
            f"{key} stops once the gate is decided, and no rule is about verdicts: give one, such as "
            "+gate.correct_share={tolerance: 0.05} with a baseline, or +gate.correct_share=0.6"
        )


def _decides(bound: Bound) -> bool:
    """Whether verdicts decide a rule."""
    limits = bound.rule.minimum is not None or bound.rule.maximum is not None
    return bound.measure in OF_VERDICTS and (bound.rule.tolerance is not None or (limits and bound.rule.by != "value"))


def metrics_of_job(pipeline: Pipeline) -> list[str]:
    """The names, some with a *, of the metrics that a job may log; slices only of the dataset's."""
    measures = [info.name for info in pipeline.answer_measures]
    of_answers = list(pipeline.components.answers.values())
    parts = [getattr(pipeline.components, group) for group in GROUPS]
    return [
        *metrics_of_jobs(),
        *measure_metrics(measures),
        *metrics_of_slices(pipeline.sliced, measures),
        *(metric_of(full_name(name)) for name in pipeline.measures),
        *(name for part in parts for name in part.counts),
        *pipeline.components.reranker.topic_counts,
        *(name for measure in of_answers for name in measure.job_metrics),
    ]


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
