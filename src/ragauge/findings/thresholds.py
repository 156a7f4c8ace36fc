"""The thresholds h and k, guaranteed zones and the predictor: one fit of class on score, and its validation."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragauge.contract.finding import (
    Card,
    Cell,
    Finding,
    Found,
    Founds,
    Grid,
    Heading,
    JobFinding,
    Num,
    Picture,
    Section,
    Shown,
    Tagged,
    Text,
)
from ragauge.contract.identity import identity
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.metrics import ESTIMATES, NO_VERDICT, SHARES, Metric
from ragauge.contract.outcomes import COLUMNS, names
from ragauge.contract.stages import Stages
from ragauge.estimate import fit_thresholds, share_by_zone, summary
from ragauge.estimate.outcomes import fit_rows
from ragauge.estimate.prediction import settings_of
from ragauge.findings.estimates import findings
from ragauge.findings.ir_score import floor_of
from ragauge.findings.tables import number, table
from ragauge.show.figures import reliability, sorted_scores
from ragauge.show.formats import score, share, whole
from ragauge.store import Store

_OF_FAILURES = list(names(column for column in COLUMNS if column.by == "failures"))


class Estimates(JobFinding):
    """Shares of classes, thresholds and zones, the predictor, answer measures, and labels by people."""

    name = "estimates"
    metrics = (
        *SHARES,
        NO_VERDICT,
        Metric("judged{,_of}_topics", group="judge"),
        Metric("correct_share_prompt_*", group="judge"),
        Metric("judge_prompt_spread", group="judge"),
        Metric("{correct,hallucination}_share_{effective_n,classical,classical_lo,classical_hi}", group="judge"),
        Metric("human_{correct,hallucination}_share{,_lo,_hi,_effective_n,_classical}", group="judge"),
        *ESTIMATES,
    )

    def compute(self, job: Job, found: Founds) -> Found:
        """The stored `Findings`: metrics, the figure, the predictor and sampled shares."""
        pipeline, record = job.pipeline, job.record
        assert isinstance(pipeline.store, Store)
        floors = floor_of(pipeline.components.measure, job.frame("floor_means"))
        value = findings(
            pipeline.store,
            job.outcomes.drop(columns=_OF_FAILURES, errors="ignore"),  # no estimate depends on them
            record.name,
            job.n_boot,
            job.seed,
            {**record.estimate, "zones": record.zones or None},
            score_settings(pipeline),
            job.answer_measures,
            floors.get(job.n_tokens),
        )
        figure, shares = value.figure, value.sampled_shares
        return Found(
            value,
            metrics=value.metrics,
            logged={} if shares is None else {"sampled_shares": shares},
            files={} if figure is None else {f"figures/{figure.name}": lambda path: shutil.copy(figure, path)},
            model=value.predictor,
        )


def score_settings(pipeline: Stages) -> dict[str, Any]:
    """The settings that determine the meaning of this job's scores for a predictor."""
    of = pipeline.components
    measure = {**identity(of.measure), **shared_models_of_measure(pipeline)}
    return settings_of(measure, identity(of.tokenizer), [pipeline.n_tokens])


def shared_models_of_measure(pipeline: Stages) -> dict[str, Any]:
    """The identities of the evidence measure's models by kind; {} for none."""
    models = {"embedder": pipeline.components.embedder, "chat": pipeline.evaluator_chat}
    uses = pipeline.components.measure.uses
    return {name: pipeline.identity_of(model) for name, model in models.items() if name in uses}


_ZONES = {"above_k": "above k", "between": "between h and k", "below_h": "below h", "missing": "no verdict"}
SIDES = (("h", "lack of information below"), ("k", "right above"))


@dataclass(frozen=True)
class Fitted:
    """estimates: thresholds, zones and predictor; zones: of `share_by_zone`, a row per zone."""

    estimates: summary.Estimates
    zones: pd.DataFrame


class ThresholdsFound(Finding):
    """The thresholds at which the score separates lack and right answers."""

    name = "thresholds"
    metrics = (*ESTIMATES, Metric("threshold_{h,k}_at_n", chart=True))

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`Fitted`; None without a topic that has a verdict and all features."""
        judged, first = fit_rows(jobs.outcomes), jobs.records[0]
        if not fit_rows(jobs.outcomes, features_of(jobs))["label"].notna().any():
            return None
        options: dict[str, Any] = {**first.estimate, "zones": first.zones or None}
        estimates = summary.estimate(jobs.outcomes, jobs.n_boot, jobs.seed, **options)
        h, k = estimates.thresholds.h.value, estimates.thresholds.k.value
        zones = share_by_zone(judged, h, k, jobs.n_boot, jobs.seed)
        return Found(
            Fitted(estimates, zones),
            metrics=estimates.metrics,
            steps=_by_budget(judged, jobs.seed),
            tables={"zones": zones},
            model=(estimates.model, estimates.example),
        )

    def show(self, jobs: Jobs, value: Fitted, found: Founds) -> Shown:
        """The sorted scores with both thresholds, and the gain of each."""
        fitted = value.estimates
        if not fitted.thresholds.k.n:
            return Shown(lines=["no IR scores: no thresholds"])
        title = "All systems and budgets of the sweep, and its thresholds"
        figure = sorted_scores(fit_rows(jobs.outcomes), fitted.thresholds, title, fitted.zones)
        both = [(letter, says, getattr(fitted.thresholds, letter)) for letter, says in SIDES]
        blocks = [
            Text(
                "Below h a lack of information is likely (class 1), above k a right answer (class 5), between them "
                "a risk of hallucination. Each is the threshold with the fewest disagreements between score and "
                "class, over all jobs of the sweep."
            ),
            Picture(
                "sorted_scores",
                "IR scores in rising order, coloured by judge class, with the thresholds h and k as lines",
                "Every judged answer of every job. The strip below shows the classes alone, in the same order; of "
                "many topics, their shares.",
            ),
            _table(both),
            Text(
                "Stability is how far the value moves when topics are resampled; it is no confidence interval. Not "
                "rejected are the thresholds that a paired test over topics finds no worse than the best. The gain is "
                "the accuracy on topics that the fit has not seen (five folds), less that of the constant guess that "
                "is better for the job. A threshold is called useful only where the interval of its gain is above 0.",
                "small",
            ),
            *_warnings(both),
            *_without_zones(fitted.zones),
            Heading("Shares by the thresholds, beside the judge's"),
            _by_zone(value.zones),
            Text(
                f"Over all {whole(fitted.thresholds.k.n + fitted.thresholds.n_missing)} judged answers of the "
                "sweep. A difference is the bias of reading class shares off the thresholds.",
                "small",
            ),
        ]
        section = Section("Sorted scores and thresholds", blocks)
        return Shown([section], [threshold_line(*one) for one in both], {"sorted_scores": figure})


def threshold_line(letter: str, says: str, t: Any) -> str:
    """A terminal line on a threshold: its value, and its gain on unseen topics."""
    at = f"{letter} = {t.value:.3f}, {says.replace(' of information', '')}"
    if t.degenerate:
        return f"{at}: {'every' if t.degenerate == 'always' else 'no'} score lies {t.side} it, no use shown"
    gain, lo, hi = (f"{100 * value:.1f}" for value in (t.gain.value, t.gain.lo, t.gain.hi))
    return f"{at}: {gain} points over guessing ({lo} to {hi}), {'useful' if t.useful else 'no use shown'}"


def features_of(jobs: Jobs) -> list[str]:
    """The features of the jobs' predictor: `estimate.features`."""
    features: list[str] = jobs.records[0].estimate["features"]
    return features


class NothingFitted(Finding):
    """The reason for missing thresholds and predictor."""

    name = "nothing_fitted"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """The reason why the jobs have no fit; None if they have one."""
        if "thresholds" in found:
            return None
        if jobs.outcomes["label"].isna().all():
            return Found("verdicts")
        features = features_of(jobs)
        return Found("IR scores" if features == ["ir_score"] else f"values of {', '.join(features)}")

    def show(self, jobs: Jobs, value: str, found: Founds) -> Shown:
        """A line for the terminal; the page has no such section."""
        return Shown(lines=[f"no {value}: no thresholds and no predictor"])


def _by_budget(judged: pd.DataFrame, seed: int) -> dict[str, dict[int, float]]:
    charts: dict[str, dict[int, float]] = {"threshold_h_at_n": {}, "threshold_k_at_n": {}}
    known = judged[judged["label"].notna()]
    for n in sorted(known.n_tokens.unique().tolist()):
        fitted = fit_thresholds(known[known.n_tokens == n], n_boot=0, seed=seed, n_splits=0)
        charts["threshold_h_at_n"][n] = fitted.h.value
        charts["threshold_k_at_n"][n] = fitted.k.value
    return charts


def _table(both: list[tuple[str, str, Any]]) -> Grid:
    columns = (
        "Threshold | Value / stability | Equally good | Not rejected | Accuracy / on the fit | "
        "Constant guess | Gain / unseen topics, points | Pairs"
    )
    rows: list[list[Cell]] = []
    for letter, says, t in both:
        more = len(t.intervals) - 1
        equal = f"{score(t.interval.left)} to {score(t.interval.right)}"
        rows.append(
            [
                Tagged(letter, below=says),
                Num(t.value, "score", t.lo, t.hi),
                Tagged(equal, below=f"and {more} more" if more else ""),
                f"{score(t.set_min)} to {score(t.set_max)}",
                Num(t.accuracy, "share"),
                Num(t.base_rate, "share"),
                Num(t.gain.value, "points", t.gain.lo, t.gain.hi, "useful" if t.useful else ""),
                Num(t.n, "whole"),
            ]
        )
    return Grid("Thresholds", columns, rows)


def _warnings(both: list[tuple[str, str, Any]]) -> list[Text]:
    weak = [
        f"{letter} is not shown to be useful: on unseen topics it does not reliably beat the constant guess."
        for letter, _, t in both
        if not t.useful
    ]
    flat = [
        f"{letter} is degenerate: {'every score lies' if t.degenerate == 'always' else 'no score lies'} {t.side} "
        "it, so this sweep shows no threshold that says more than a constant guess."
        for letter, _, t in both
        if t.degenerate
    ]
    return [Text(text, "note") for text in (*weak, *flat)]


def _by_zone(zones: pd.DataFrame) -> Grid:
    def cells(row: Mapping[Any, Any]) -> list[Cell]:
        there = row["zone"] != "missing"
        of_score = share(row["share"]) if there else "–"
        classes, judged = str(row["classes"] or "–"), Num(row["judged_share"], "share")
        return [_ZONES[row["zone"]], of_score, classes, judged, number(row, "difference", "points") if there else "–"]

    return table("Shares by zone", "Zone | Share by score | Class | Share by judge | Difference / points", zones, cells)


class ZonesFound(Finding):
    """The zones of scores that need no LLM."""

    name = "zones"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """The zones of the fit; `thresholds` logs their metrics and table."""
        return Found(found["thresholds"].estimates.zones) if "thresholds" in found else None

    def show(self, jobs: Jobs, value: Any, found: Founds) -> Shown:
        """Both zones; nothing without any, which the section of thresholds then explains."""
        return Shown([] if _without_zones(value) else [Section("Zones with a guarantee", zone_blocks(value))])


def _without_zones(value: Any) -> list[Text]:
    """The reason for the lack of any zone; nothing if there is one."""
    if value.right.n or value.lack.n:
        return []
    says = (
        f"No IR score guarantees what the answer is, with {100 * value.confidence:g} % confidence and at most "
        f"{100 * value.alpha:g} % of exceptions. Right answers: {value.right.why_none}. Lack of information: "
        f"{value.lack.why_none}."
    )
    return [Text(says, "note")]


def zone_blocks(value: Any) -> list[Text]:
    """The guarantee of each zone, or the reason why it is missing."""
    blocks = [
        Text(
            f"Where a score is enough to do without an LLM: with {100 * value.confidence:g} % confidence, at most "
            f"{100 * value.alpha:g} % of the answers in a zone are of another class than the zone's. That holds for "
            "new topics of the same kind, answered and judged as here."
        )
    ]
    for zone, says in ((value.right, "right"), (value.lack, "a lack of information")):
        if zone.n:
            blocks.append(
                Text(
                    f"{zone.side.capitalize()} {zone.value:.2f} at most {100 * value.alpha:g} % of the answers "
                    f"are not {says}. {share(zone.share)} of all answers lie there; {share(zone.missed)} of "
                    f"these were not {says}."
                )
            )
        else:
            blocks.append(Text(f"There is no zone for “{says}”: {zone.why_none}."))
    blocks.append(
        Text(
            "Each side holds by itself with this confidence. Thresholds are tested from strict to loose (Learn "
            "then Test), a topic with several answers counts once, and a missing verdict counts as missed. "
            "Assumed: topics are independent draws, and answers with higher scores are not less often right.",
            "small",
        )
    )
    return blocks


class PredictorFound(Finding):
    """The predictor of judge classes, validated on unseen topics."""

    name = "predictor"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """The cross-validation of the fit; `thresholds` logs its metrics."""
        return Found(found["thresholds"].estimates.validation) if "thresholds" in found else None

    def show(self, jobs: Jobs, value: Any, found: Founds) -> Shown:
        """Out-of-fold measures and reliability."""
        e, curve = value.estimates, value.reliability
        features = features_of(jobs)
        read = "the IR score" if features == ["ir_score"] else ", ".join(features)
        figure = reliability({"P(5, right)": curve[curve["n"] > 0]}, "Out-of-fold reliability of the predictor")
        blocks = [
            Text(
                f"A multinomial logistic regression gives the probability of each class from {read}. All "
                f"numbers are of topics that it had not seen ({value.n_splits}-fold cross-validation by topic). An "
                "interval is about what predictors fitted on as many topics reach on average; this very one may do "
                "better or worse."
            ),
            Picture(
                "reliability",
                "Predicted probability of a right answer against the observed share, in ten bins",
                "Reliability: on the dashed line, of the answers with a predicted probability of 0.3 three in ten "
                "are right. The area of a point grows with the rows in its bin.",
            ),
            _measures(e),
        ]
        auc = e["auc_correct"]
        known = f"{score(auc.lo)} to {score(auc.hi)}; " if auc.lo == auc.lo else ""
        teller = "IR score tells" if features == ["ir_score"] else "Predictor tells"
        card = Card(f"{teller} right answers apart", f"AUC {score(auc.value)}", f"{known}0.5 is chance")
        return Shown(
            [Section("Reliability of the predictor", blocks, folded=True)],
            [line] if (line := predictor_line(value, found.get("transfer", {}))) else [],
            {"reliability": figure},
            [card] if auc.value == auc.value else [],
        )


def predictor_line(validation: Any, moved: Mapping[str, Any]) -> str:
    """A terminal line on the predictor's errors on unseen topics and systems.

    moved: that of `transfer`; the line names its first group. The line leaves out an AUC that no answers define, and is
    empty without any.
    """
    named = {"right answers": "auc_correct", "lack": "auc_lack"}
    values = {what: validation.estimates[name].value for what, name in named.items()}
    known = {what: f"{value:.3f}" for what, value in values.items() if value == value}
    for by, transfer in moved.items():
        if (missed := transfer.mean_absolute_error.value) == missed:
            return f"predictor: an unseen {by}'s shares {100 * missed:.1f} points off on average" + (
                f"; AUC {known['right answers']}" if "right answers" in known else ""
            )
    told = ", ".join(f"{auc} for {what}" for what, auc in known.items())
    return f"predictor, on unseen topics: AUC {told}" if told else ""


_MEASURES = (
    ("AUC, right or not", "", "auc_correct", "0.500", "higher"),
    ("AUC, lack of information or not", "", "auc_lack", "0.500", "higher"),
    ("Log loss, nats", "", "log_loss", "log_loss_base", "lower"),
    ("Brier score", "", "brier", "brier_base", "lower"),
    ("Calibration error of P(right), less its noise", "below 0: nothing but noise", "ece", "–", "nearer to 0"),
    ("Slope of calibration", "under 1: probabilities too far apart", "calibration_slope", "–", "nearer to 1"),
    (
        "Intercept of calibration, logits",
        "above 0: right more often than predicted",
        "calibration_intercept",
        "–",
        "nearer to 0",
    ),
)


def _measures(estimates: Any) -> Grid:
    columns = "Measure | Predictor | Without it | <Better is"

    def cell(name: str) -> Any:
        e = estimates.get(name) if name in estimates else None
        return name if e is None else Num(e.value, "score", e.lo, e.hi)

    rows: list[list[Cell]] = [
        [Tagged(title, below=note), cell(name), cell(base), better] for title, note, name, base, better in _MEASURES
    ]
    return Grid("Measures of the predictor", columns, rows)
