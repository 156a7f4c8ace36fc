"""Checks every rule of the quality gate of a job, before its work and at its end, and of ended runs."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from ragauge import compare
from ragauge.contract.answer_measures import from_tags, in_order
from ragauge.contract.errors import ConfigError, DataError, RagaugeError
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.metrics import MISSING, OF_VERDICTS
from ragauge.contract.outcomes import PREFIX
from ragauge.contract.record import JobRecord
from ragauge.contract.settings import Settings
from ragauge.contract.visible import visible
from ragauge.findings.order import metrics_of_jobs
from ragauge.plugins.gate.baseline import (
    Sought,
    check_measures,
    check_topics,
    find_baseline,
    measured_otherwise,
)
from ragauge.plugins.gate.bounds import Bound, bounds, check_bounds, check_looks, check_settings, metrics_of_job
from ragauge.plugins.gate.gating import Paired, decide, paired_difference, topics_to_decide
from ragauge.plugins.gate.looks import LEAST_LEVEL, SIDE, p_beyond, widened
from ragauge.plugins.gate.rules import Gate, read_gate
from ragauge.plugins.gate.taken import Looks, OwnLooks, Stand
from ragauge.plugins.gate.verdicts import Check, GateResult, Verdict
from ragauge.track import LoggedRun, Reader, has_experiment, tracking_uri

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline

log = logging.getLogger(__name__)
# Shares that answers without a verdict may belong to; that of right answers counts them as not right.
_MAY_BE = {"hallucination_share", *(f"judge_share_{c}" for c in range(1, 5))}


@dataclass(frozen=True)
class Gated:
    """A job under a gate: its name and metrics, and its run if rules compare it with a baseline.

    `slices` gives a frame with the columns slice:<attribute> of the job's topics, None where it has none. `looks`
    are those that the job takes at its own sample (`judge.looks`).
    """

    name: str
    run_id: str
    metrics: Mapping[str, float]
    slices: Callable[[], pd.DataFrame | None] = lambda: None
    run: LoggedRun | None = None
    reader: Reader | None = None
    looks: Looks | None = None


def gate_of(settings: Settings) -> Gate:
    """The gate of a job; ConfigError for a bad one."""
    gate = read_gate(settings.gate)
    check_settings(gate)
    return gate


def check(settings: Settings, pipeline: Pipeline, name: str, experiment: str, sweep_id: str | None) -> None:
    """ConfigError or DataError, before any work, for a gate that cannot be checked on this job.

    It checks names of metrics and slices; that the baseline is there, has the same topics and the compared answer
    measures; and that a look follows the earlier ones.
    """
    slices = pipeline.sliced  # checks the slices, whether there is a gate or not
    gate = gate_of(settings)
    if not gate.rules:
        return
    found = bounds(gate.rules, slices)
    answers = pipeline.answer_measures
    verdicts = "none" not in (pipeline.components.llm.kind, pipeline.components.judge.kind)
    check_bounds(found, metrics_of_job(pipeline), answers, verdicts)
    base = None
    check_looks(settings, pipeline, gate, found)
    if gate.compares:
        base, _ = find_baseline(gate, settings.tracking.uri, Sought(name, experiment, "", sweep_id))
        check_topics(pipeline.entry("dataset").digest, base)
        compared = [bound.measure for bound in found if bound.rule.tolerance is not None]
        check_measures(compared, [info.name for info in answers], base)
    if gate.look is not None:
        uri = tracking_uri(settings.tracking.uri)
        looks = Looks(gate, Reader(uri) if has_experiment(uri, experiment) else None, name, experiment)
        topics = len(pipeline.frame("topics"))
        # Which topics of a sample are judged in both runs is known at the end.
        known = [bound for bound in found if not pipeline.samples or bound.measure not in OF_VERDICTS]
        for key in (key for bound in known for key in _looked_at(bound, base)):
            looks.stand(key, topics)


def _looked_at(bound: Bound, base: LoggedRun | None) -> list[tuple[object, ...]]:
    """The values that identify the checks of a bound across runs, for `Looks.stand`."""
    rule = bound.rule
    ends = (("min", rule.minimum), ("max", rule.maximum)) if rule.by == "interval" else ()
    keys: list[tuple[object, ...]] = [(kind, bound.metric, end) for kind, end in ends if end is not None]
    return keys if base is None or rule.tolerance is None else [*keys, _of_baseline(bound, base)]


def _of_baseline(bound: Bound, base: LoggedRun) -> tuple[object, ...]:
    return "baseline", bound.metric, bound.rule.tolerance, base.name


def check_recorded(settings: Settings) -> None:
    """ConfigError for a gate that cannot be checked on a job of recorded outcomes."""
    gate = gate_of(settings)
    check_bounds(bounds(gate.rules, None), metrics_of_jobs(), ())
    if gate.compares:
        raise ConfigError("gate: recorded outcomes have no baseline to be compared with; leave tolerance out")


def enforce(settings: Settings, record: JobRecord, slices: Callable[[], pd.DataFrame | None] = lambda: None) -> None:
    """Checks a finished job, by its record, against the gate of its config.

    GateError (exit code 3) where a rule that blocks is not met, DataError where one cannot be decided; what
    only is to be investigated is a warning.
    """
    gate = gate_of(settings)
    if not gate.rules:
        return
    job = Gated(record.name, record.run_id, record.metrics, slices)
    if gate.compares or gate.look or settings.judge.get("looks"):
        reader = Reader(tracking_uri(settings.tracking.uri))
        run = reader.run(record.run_id)
        job = replace(job, run=run, reader=reader, looks=OwnLooks.of_run(gate, run))
    result = evaluate(gate, [job], settings.tracking.uri)
    for check in result.told:
        log.warning("gate: %s", check.said)
    for check in result.checks:
        if check.verdict == "pass" and check.kind == "baseline":
            log.info("gate: %s", check.said)
    result.raise_for()


def evaluate(gate: Gate, jobs: Sequence[Gated], uri: str | None = None) -> GateResult:
    """Checks every bound of every rule in every job; decides all differences from baselines together.

    Names are taken to be checked (`check_bounds`). A baseline that cannot be had makes its checks invalid. Earlier
    looks are read from MLflow, and this one is written into the job's run; ConfigError for a look that cannot be taken.
    """
    checks: list[Check] = []
    compared: dict[int, Paired] = {}  # by the place of the check
    notes: list[str] = []
    taken: list[Looks] = []
    for job in jobs:
        looks = job.looks
        if gate.look is not None:
            assert job.run is not None
            assert job.reader is not None
            looks = Looks(gate, job.reader, job.run.name, job.run.experiment, job.run_id)
            taken.append(looks)
        found = bounds(gate.rules, job.slices())
        against = _Against.of(gate, job, uri) if gate.compares else None
        notes += against.notes if against else []
        for bound in found:
            # A job that looks at its own sample has all values of other measures at once.
            at = looks if job.looks is None or bound.measure in OF_VERDICTS else None
            checks += _by_value(job, bound, at)
            if bound.rule.tolerance is None:
                continue
            assert against is not None
            check, pair = against.check(bound, gate, at)
            if pair is not None:
                compared[len(checks)] = pair
            checks.append(check)
    verdicts = decide(list(compared.values()), gate.alpha)
    for (place, pair), verdict in zip(compared.items(), verdicts, strict=True):
        topics = math.nan
        if verdict == "inconclusive" and gate.look is None:
            topics = topics_to_decide(pair, len(compared), gate.alpha)
        checks[place] = replace(checks[place], verdict=verdict, topics=topics)
    for looks in taken:
        notes += looks.notes
        looks.write()
    return GateResult(checks, gate.strict, list(dict.fromkeys(notes)))


def _by_value(job: Gated, bound: Bound, looks: Looks | None) -> list[Check]:
    """The checks of a rule's minimum and maximum.

    The metric's 95 % interval decides, and is inconclusive where the bound lies inside of it. For a metric without an
    interval, and for a rule with by=value, the value does. At a look the interval is as much wider as the look's level
    asks for, its halves taken for 1.96 standard errors each. An answer without a verdict may be of any class but the
    right one: the upper end of the share of a class is that much higher.
    """
    value, lo, hi = (float(job.metrics.get(f"{bound.metric}{end}", math.nan)) for end in ("", "_lo", "_hi"))
    measure = bound.measure.rpartition("/")[2].removesuffix("_lo").removesuffix("_hi")
    reason = ""
    missing = float(job.metrics.get(MISSING, 0.0)) if measure in OF_VERDICTS else 0.0
    may_be = missing if bound.measure in _MAY_BE else 0.0
    if missing >= 1:
        reason = "no answer has a verdict"
    elif value != value:
        reason = "this job has no value"
    found = []
    for kind, limit in (("min", bound.rule.minimum), ("max", bound.rule.maximum)):
        if limit is None:
            continue
        by_interval = bound.rule.by == "interval" and lo == lo and hi == hi
        low, high = (lo, hi) if by_interval else (value, value)
        high = min(high + may_be, 1.0) if may_be else high
        verdict = "invalid" if reason else _verdict(kind, limit, low, high)
        told = f"{missing:.1%} of the answers have no verdict" if missing > 0 else ""
        check = Check(
            job.name, job.run_id, bound.metric, kind, verdict, bound.rule.action, limit,  # type: ignore[arg-type]
            value, lo, high if by_interval else hi, reason=reason or told,
        )  # fmt: skip
        found.append(_at_look(check, looks, measure, job) if looks and by_interval and not reason else check)
    return found


def _at_look(check: Check, looks: Looks, measure: str, job: Gated) -> Check:
    """Decides a minimum or maximum by the metric's interval, at a look."""
    sampled = "judged_topics" if measure in OF_VERDICTS and "judged_topics" in job.metrics else "topics"
    tag, stand = looks.stand((check.kind, check.metric, check.bound), job.metrics.get(sampled, math.nan))
    low, high = (p_beyond(check.value, limit, check.bound) for limit in (check.lo, check.hi))
    p_pass, p_fail = stand.corrected(*((low, high) if check.kind == "min" else (high, low)))
    looks.take(tag, stand, p_pass, p_fail)
    verdict: Verdict = "pass" if p_pass <= SIDE else "missed" if p_fail < SIDE else "inconclusive"
    level = stand.level(SIDE)
    lo, hi = (widened(check.value, limit, level) for limit in (check.lo, check.hi))
    if check.lo >= 0 and check.hi <= 1:
        lo, hi = max(lo, 0.0), min(hi, 1.0)
    return replace(_of_look(check, stand, level), verdict=verdict, lo=lo, hi=hi)


def _of_look(check: Check, stand: Stand, level: float) -> Check:
    return replace(
        check, look=stand.look.number, looks=stand.look.of, look_topics=stand.topics, max_topics=stand.most, level=level
    )


def _verdict(kind: str, limit: float, lo: float, hi: float) -> str:
    """pass, missed or inconclusive for one bound and a metric between `lo` and `hi`."""
    if kind == "max":  # a maximum is a minimum of the negative
        lo, hi, limit = -hi, -lo, -limit
    return "pass" if lo >= limit else "missed" if hi < limit else "inconclusive"


@dataclass(frozen=True)
class _Against:
    """A job and its baseline: the outcomes of both, or why they are incomparable."""

    job: Gated
    baseline: LoggedRun | None = None
    outcomes: pd.DataFrame | None = None
    answers: Sequence[AnswerMeasureInfo] = ()
    refused: str = ""

    @classmethod
    def of(cls, gate: Gate, job: Gated, uri: str | None) -> _Against:
        assert job.run is not None
        assert job.reader is not None
        run = job.run
        base = None
        try:
            sought = Sought(run.name, run.experiment, run.run_id, run.tags.get("sweep_id"))
            base, reader = find_baseline(gate, uri or job.reader.uri, sought)
            check_topics(run.tags.get("dataset_digest"), base)
            answers = in_order([from_tags(run.tags), from_tags(base.tags)])
            readers = {run.run_id: job.reader, base.run_id: reader}
            outcomes = _read([run, base], readers, answers)
            compare.check_same_topics(outcomes, base.run_id)
        except RagaugeError as error:
            return cls(job, base, refused=str(error))
        return cls(job, base, outcomes, answers)

    @property
    def notes(self) -> list[str]:
        """The baseline of the job, in words."""
        if self.baseline is None:
            return []
        base = visible(self.baseline.name, one_line=True)
        own = visible(self.job.name, one_line=True)
        return [f"baseline of {own}: {base} ({self.baseline.run_id})"]

    def check(self, bound: Bound, gate: Gate, looks: Looks | None) -> tuple[Check, Paired | None]:
        """The check of a tolerance, its verdict still open, and the difference; None if it is invalid.

        At a look the limits are at the look's level, and each p is corrected for the looks so far.
        """
        job, tolerance = self.job, bound.rule.tolerance
        assert tolerance is not None
        name = "the baseline" if self.baseline is None else f"the baseline {self.baseline.run_id[:8]}"
        value = float(job.metrics.get(bound.metric, math.nan))
        check = Check(
            job.name, job.run_id, bound.metric, "baseline", "invalid", bound.rule.action, tolerance, value,
            baseline=name,
        )  # fmt: skip
        if self.outcomes is None or self.baseline is None or job.run is None:
            return replace(check, reason=self.refused), None
        if reason := measured_otherwise(job.run, self.baseline, bound.measure):
            return replace(check, reason=reason), None
        rows = _of_slice(self.outcomes, job.run_id, bound.slice)
        seed = int(job.run.params.get("seed", 0))
        alpha, stand, tag = gate.alpha, None, ""
        if looks is not None:
            tag, stand = looks.stand(_of_baseline(bound, self.baseline), self._topics(bound.measure))
            alpha = stand.level(gate.alpha)
            check = _of_look(check, stand, alpha)
        try:
            pair = paired_difference(
                rows, job.run_id, self.baseline.run_id, bound.measure, tolerance, "run_id", self.answers,
                max(alpha, LEAST_LEVEL), seed,
            )  # fmt: skip
        except RagaugeError as error:
            return replace(check, reason=str(error).removeprefix(f"{bound.measure}: ")), None
        check = replace(check, difference=pair.difference, difference_lo=pair.lo, difference_hi=pair.hi, n=pair.n)
        if pair.missing > gate.max_missing_share:
            reason = (
                f"{pair.missing:.1%} of the topics have no value in this run or in {name} (allowed "
                f"{gate.max_missing_share:.1%})"
            )
            return replace(check, reason=reason), None
        if looks is not None and stand is not None:
            p_pass, p_regressed = stand.corrected(pair.p_pass, pair.p_regressed)
            pair = replace(pair, p_pass=p_pass, p_regressed=p_regressed)
            looks.take(tag, stand, p_pass, p_regressed)
        return replace(check, verdict="inconclusive"), pair

    def _topics(self, measure: str) -> int:
        """The number of topics of both runs; for a measure of verdicts, of those judged in both."""
        assert self.outcomes is not None
        rows = self.outcomes
        if measure in OF_VERDICTS and "judged" in rows:
            rows = rows[rows["judged"].eq(True)]
        return int(rows.groupby("qid")["run_id"].nunique().eq(2).sum())


def _read(
    runs: Sequence[LoggedRun], readers: Mapping[str, Reader], answers: Sequence[AnswerMeasureInfo]
) -> pd.DataFrame:
    try:
        return compare.read_outcomes(runs, readers, answers)
    except (ValueError, TypeError, KeyError) as error:  # a table that somebody else wrote
        names = " and ".join(run.run_id for run in runs)
        raise DataError(f"the questions of runs {names} cannot be read: {error}") from error


def _of_slice(outcomes: pd.DataFrame, run_id: str, at: tuple[str, str] | None) -> pd.DataFrame:
    """The rows, of both runs, of the topics in this run's slice."""
    if at is None:
        return outcomes
    by, label = at
    own = outcomes["run_id"].eq(run_id) & outcomes[PREFIX + by].eq(label)
    return outcomes[outcomes["qid"].isin(outcomes.loc[own, "qid"])]
