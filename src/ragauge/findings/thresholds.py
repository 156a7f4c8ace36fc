"""The thresholds h and k, and what each is worth: one fit of score and class, which zones and predictor share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragauge.contract.finding import (
    Cell,
    Finding,
    Found,
    Founds,
    Grid,
    Heading,
    Num,
    Picture,
    Section,
    Shown,
    Tagged,
    Text,
)
from ragauge.contract.jobs import Jobs
from ragauge.estimate import fit_thresholds, share_by_zone, summary
from ragauge.estimate.outcomes import fit_rows
from ragauge.show.figures import sorted_scores
from ragauge.show.formats import score, share, whole

_ZONES = {"above_k": "above k", "between": "between h and k", "below_h": "below h", "missing": "no verdict"}
SIDES = (("h", "lack of information below"), ("k", "right above"))


@dataclass(frozen=True)
class Fitted:
    """estimates: thresholds, zones and predictor; zones: of `share_by_zone`, a row per zone."""

    estimates: summary.Estimates
    zones: pd.DataFrame


class ThresholdsFound(Finding):
    """Where the score begins to tell lack and right answers apart."""

    name = "thresholds"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`Fitted`; None where no topic has both an IR score and a verdict."""
        judged, first = fit_rows(jobs.outcomes), jobs.records[0]
        if not judged["label"].notna().any():
            return None
        options = {**first["estimate"], "zones": first.get("zones")}
        estimates = summary.estimate(judged, jobs.n_boot, jobs.seed, **options)
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
        """The sorted scores with both thresholds, and what each is worth."""
        fitted = value.estimates
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
                "rejected are the thresholds that a paired test over topics does not tell from the best. The gain "
                "is the accuracy on topics that the fit has not seen (five folds) less that of the constant guess; "
                "only where its interval is above 0 is a threshold called useful.",
                "small",
            ),
            *_warnings(both),
            Heading("What the thresholds would say, beside what the judge found"),
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
    """A threshold in a line for the terminal: its value, and what it is worth on unseen topics."""
    note = f"; degenerate: says “{t.degenerate}”" if t.degenerate else ""
    verdict = "useful" if t.useful else "not shown to be useful"
    return (
        f"{letter} = {t.value:.3f} ({says}; not rejected {t.set_min:.3f}-{t.set_max:.3f}; on unseen "
        f"topics {100 * t.gain.value:+.1f} points over a constant guess, 95 % {100 * t.gain.lo:+.1f} to "
        f"{100 * t.gain.hi:+.1f}: {verdict}{note})"
    )


class NothingFitted(Finding):
    """Why there are no thresholds and no predictor."""

    name = "nothing_fitted"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """What the jobs lack for a fit; None where there is one."""
        if "thresholds" in found:
            return None
        return Found("verdicts" if jobs.outcomes["label"].isna().all() else "IR scores")

    def show(self, jobs: Jobs, value: str, found: Founds) -> Shown:
        """A line for the terminal; the page has no section of what there is not."""
        return Shown(lines=[f"no {value}: no thresholds and no predictor"])


def _by_budget(judged: pd.DataFrame, seed: int) -> dict[str, dict[int, float]]:
    charts: dict[str, dict[int, float]] = {"threshold_h_at_n": {}, "threshold_k_at_n": {}}
    known = judged[judged["label"].notna()]
    for n in sorted(known["n_tokens"].unique().tolist()):
        fitted = fit_thresholds(known[known["n_tokens"] == n], n_boot=0, seed=seed, n_splits=0)
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
    columns = "Zone | Share by score | Class | Share by judge | Difference / points"
    rows: list[list[Cell]] = []
    for row in zones.to_dict("records"):
        there = row["zone"] != "missing"
        rows.append(
            [
                _ZONES[row["zone"]],
                share(row["share"]) if there else "–",
                str(row["classes"] or "–"),
                Num(row["judged_share"], "share"),
                Num(row["difference"], "points", row["lo"], row["hi"]) if there else "–",
            ]
        )
    return Grid("Shares by zone", columns, rows)
