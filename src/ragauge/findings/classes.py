"""The judge's classes by system, at the sweep's budget and at every other; and their estimates for all topics from a
sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import NOT_SAMPLED
from ragauge.contract.finding import (
    Block,
    Cell,
    Col,
    Finding,
    Fold,
    Found,
    Founds,
    Grid,
    Num,
    Picture,
    Section,
    Shown,
    Text,
)
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.jobs import Jobs
from ragauge.contract.metrics import Metric
from ragauge.estimate import HEADLINE_SHARES, asked, ppi_shares
from ragauge.estimate.outcomes import POPULATION, TOPICS, of_these_topics, with_classes
from ragauge.findings import study
from ragauge.findings.ir_score import metric_part
from ragauge.findings.tables import by_budget, number, table
from ragauge.show.figures import judge_shares
from ragauge.show.formats import whole

ABOUT = {POPULATION: "all topics of this kind", TOPICS: "these topics"}  # what shares of a sample stand for
_SHARES = [*(f"judge_share_{c}" for c in JUDGE_CLASSES), "judge_share_missing"]


class Classes(Finding):
    """The judge's classes of the answers."""

    name = "classes"
    metrics = (Metric("correct_share_at_n/*", chart=True),)

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """Shares of the classes, a row per system; None without verdicts."""
        board = found["leaderboard"]
        if not board.judged:
            return None
        charts: dict[str, dict[int, float]] = {}
        for record, system in zip(jobs.records, jobs.systems, strict=True):
            if record.metrics.get("judge_share_missing", 1) < 1:
                chart = charts.setdefault(f"correct_share_at_n/{metric_part(system)}", {})
                chart[record.n_tokens] = record.metrics["correct_share"]
        return Found(board.frame.set_index("system")[_SHARES], steps=charts)

    def show(self, jobs: Jobs, value: pd.DataFrame, found: Founds) -> Shown:
        """Bars, and in a fold right answers by budget."""
        figure = judge_shares(_beside_study(jobs, value), f"Judge classes at N = {jobs.n_tokens} tokens")
        blocks: list[Block] = [
            Text(
                "The judge's classes of the answers. Classes 2 and 4 are hallucinations; 1 and 3 hold no wrong "
                "statement."
            ),
            Picture(
                "judge_shares",
                "Bars of the five judge classes, one per system; the shares are in the leaderboard",
                "Shares of topics by judge class, at the budget of the leaderboard.",
            ),
            Fold("Right answers by N, with intervals", [by_budget(jobs, "Right answers by N", _right)]),
        ]
        moved = {
            s: m for s, by in jobs.metrics_by_system().items() if "judge_prompt_spread" in (m := by[jobs.n_tokens])
        }
        told = ", ".join(f"{100 * m['judge_prompt_spread']:.1f} ({system})" for system, m in moved.items())
        lines = [f"the share of right answers moves with the judge's wording, by points: {told}"] if moved else []
        if moved:
            blocks.insert(1, _by_wording(moved, str(jobs.at_n["prompts_are"].iloc[0])))
        return Shown([Section("Judge classes by system", blocks)], lines, figures={"judge_shares": figure})


def _right(metrics: Any) -> Num | None:
    missing = metrics.get("judge_share_missing", 1)
    if missing >= 1:
        return None
    lacks = f"{missing:.0%} without a verdict" if missing > 0 else ""
    return replace(number(metrics, "correct_share", "share"), note=lacks)


def _by_wording(moved: Mapping[str, Mapping[str, float]], are: str) -> Fold:
    """The share of right answers by each of the judge's prompts."""
    names = sorted({name for m in moved.values() for name in m if name.startswith("correct_share_prompt_")})
    columns = ["System", *(f"Wording {name.rsplit('_', 1)[1]}" for name in names), "Moves by / points"]
    rows: list[list[Cell]] = [
        [system, *(Num(m.get(name), "share") for name in names), Num(m["judge_prompt_spread"], "points")]
        for system, m in moved.items()
    ]
    largest = 100 * max(m["judge_prompt_spread"] for m in moved.values())
    means = {
        "sample": "as of a sample of wordings, whose choice the intervals of shares and paired differences count",
        "fixed": "and these wordings alone are meant: intervals say nothing of others",
    }[are]
    about = f"Every answer was judged under each wording of the judge's prompt. Shares are means over them, {means}."
    return Fold(
        f"The share of right answers moves by up to {largest:.1f} points with the judge's wording",
        [Text(about, "small"), Grid("Right answers by the judge's wording", columns, rows)],
    )


def _beside_study(jobs: Jobs, shares: pd.DataFrame) -> pd.DataFrame:
    """The shares, beside the study's published ones on its data and budget."""
    if jobs.records[0].choices.get("dataset") != "hotpotqa" or jobs.n_tokens != study.JUDGE_SHARES_N_TOKENS:
        return shares
    published = pd.DataFrame(
        {f"{s}, study": [*study.JUDGE_SHARES[s], 0.0] for s in shares.index if s in study.JUDGE_SHARES}, index=_SHARES
    ).T
    return pd.concat([shares, published])


def shares_by_system(rows: pd.DataFrame, shares: Callable[[pd.DataFrame], pd.DataFrame | None]) -> pd.DataFrame | None:
    """The concatenated shares of all systems with a column system; None without any."""
    found = {system: shares(part) for system, part in rows.groupby("system", sort=False)}
    known = [frame.assign(system=system) for system, frame in found.items() if frame is not None]
    return pd.concat(known, ignore_index=True) if known else None


def shares_of_all(shares: pd.DataFrame, alone: str) -> Grid:
    """The two headline shares: estimated for all topics, and of the judged ones `alone`."""
    return table(
        "Estimated shares of all topics",
        ["System", "<Share", "All topics", Col(alone), "Seen", "Effective"],
        shares[shares["share"].isin(HEADLINE_SHARES)],
        lambda row: [
            str(row["system"]),
            "right" if row["share"] == "correct_share" else "hallucination",
            number(row, "estimate", "share"),
            number(row, "classical", "share"),
            Num(row["n_judged"], "whole"),
            Num(row["effective_n"], "whole"),
        ],
    )


class Sample(Finding):
    """Shares of all topics, estimated from a judged sample."""

    name = "sample"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`ppi_shares` by system; None where all topics were judged."""
        shares = shares_by_system(jobs.at_n, _sampled)
        return None if shares is None else Found(shares, tables={"sampled_shares": shares})

    def show(self, jobs: Jobs, value: pd.DataFrame, found: Founds) -> Shown:
        """The shares of all beside those of the judged."""
        first, rows = value.iloc[0], jobs.at_n
        answered = "answered and " * bool(rows["answer_status"].eq(NOT_SAMPLED).any())
        target = TOPICS if of_these_topics(rows) else POPULATION
        about = Text(
            f"{whole(first['n_judged'])} of {whole(first['n_topics'])} topics were {answered}judged at "
            f"N = {jobs.n_tokens}. Intervals of shares and differences are for {ABOUT[target]} "
            f"(sample_target={target}). "
            "The shares of all topics are prediction-powered estimates (PPI++): the predictor's shares, corrected by "
            "its errors on the judged topics. Beside them is what the judged topics say alone. The effective number "
            "is how many judged topics would say as much without the predictor. Thresholds and predictor are fitted "
            "on the judged topics, thresholds with the weights of their strata; paired differences of right answers "
            "and hallucinations are prediction-powered, too."
            + " The predictor was given the verdicts of an earlier run, too."
            * ("earlier_label" in rows)
        )
        return Shown([Section("A sample of topics was judged", [about, shares_of_all(value, "Judged alone")])])


def _sampled(rows: pd.DataFrame) -> pd.DataFrame | None:
    """Shares of all topics from a judged sample; None if all were judged."""
    rows = with_classes(rows)
    return ppi_shares(rows) if len(asked(rows)) < len(rows) else None
