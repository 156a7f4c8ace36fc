"""IR scores under people's evidence (`human_evidence`), for a job and for a sweep's systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.finding import Cell, Finding, Found, Founds, Grid, JobFinding, Num, Section, Shown, Text
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.metrics import IR_SCORE
from ragauge.contract.settings import Settings
from ragauge.measures import mean_over_parts, part_scores
from ragauge.measures.floor import is_corrected, raw
from ragauge.plugins.annotate.corrected import Corrected, corrected_mean
from ragauge.plugins.annotate.people import evidence_of, read_sheet
from ragauge.plugins.annotate.records import BY, DATASET

METRIC = "ir_score_people"
RECORD = "people_ir_scores"  # of job.json: {qid: score, null without evidence by people}


class ByPeoplesEvidence(JobFinding):
    """The mean IR score, corrected by people's evidence on a sample of the topics."""

    name = "people_evidence"
    after = "scores"
    metrics = (f"{METRIC}{{,_lo,_hi}}",)

    def check(self, settings: Settings, measures: Sequence[AnswerMeasureInfo]) -> None:
        """ConfigError or DataError for an unusable sheet."""
        read_sheet(str(settings.human_evidence))

    def compute(self, job: Job, found: Founds) -> Found | None:
        """The metrics, and the scores by people's evidence for the sweep."""
        people = _scores_by_people(job)
        rows = job.outcomes
        of = corrected_of(rows, people)
        metrics = {METRIC: of.mean.value, f"{METRIC}_lo": of.mean.lo, f"{METRIC}_hi": of.mean.hi}
        kept = {qid: None if np.isnan(score) else float(score) for qid, score in people.items()}
        return Found((of, float(rows["ir_score"].mean())), metrics=metrics, record={RECORD: kept})

    def show(self, job: Job, value: Any, found: Founds) -> Shown:
        """One line."""
        of, made = value
        line = (
            f"  {IR_SCORE.label} by people's evidence on {of.mean.n} topics (PPI): {of.mean.value:.3f} "
            f"(95 % {of.mean.lo:.3f} to {of.mean.hi:.3f}); by made evidence {made:.3f}"
        )
        return Shown(lines=[line])


class OfSystemsByPeoplesEvidence(Finding):
    """The systems' IR scores, corrected by people's evidence and ranked."""

    name = "people_evidence"
    after = "people"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """A row per system at the sweep's budget; None if no job has scores by people's evidence."""
        wide = jobs.at_n.drop_duplicates(["qid", "system"]).set_index(["qid", "system"])
        of_system: dict[str, tuple[pd.DataFrame, dict[str, float]]] = {}
        for system, record in zip(jobs.systems, jobs.records, strict=True):
            if record.added.get(RECORD) and record.n_tokens == jobs.n_tokens:
                scores = {qid: float("nan") if one is None else one for qid, one in record.added[RECORD].items()}
                of_system[system] = (wide.xs(system, level="system").reset_index(), scores)
        if not of_system:
            return None
        means = {system: corrected_of(*of) for system, of in of_system.items()}
        order = sorted(means, key=lambda system: -means[system].mean.value)
        best = order[0]
        rows = []
        for system in order:
            made = of_system[system][0]["ir_score"].mean()
            rows.append((system, float(made), means[system], _apart(of_system[best], of_system[system])))
        return Found(rows, tables={"people_evidence": _table(rows)})

    def show(self, jobs: Jobs, value: Any, found: Founds) -> Shown:
        """A row per system, the best first."""
        by_made = sorted(value, key=lambda row: -row[1])
        places = {row[0]: place for place, row in enumerate(by_made, start=1)}
        rows: list[list[Cell]] = [
            [
                system,
                Num(of.mean.value, "score", of.mean.lo, of.mean.hi, tag="best" if place == 0 else ""),
                Num(made, "score"),
                Num(places[system], "whole"),
                "–" if place == 0 else Num(apart.mean.value, "signed", apart.mean.lo, apart.mean.hi),
                Num(of.lam, "score"),
            ]
            for place, (system, made, of, apart) in enumerate(value)
        ]
        n = value[0][2].mean.n
        said = (
            f"IR scores as people's evidence would give them, from {n} topics that people labelled (`human_evidence`): "
            "prediction-powered inference, the scores by made evidence being the predictions. λ is their weight: "
            "near 0 they say nothing, and the labels alone count. Intervals are 95 %, over topics."
        )
        heads = f"System | {IR_SCORE.label}, corrected | By made evidence | Place by made evidence"
        heads += " | Behind the best | λ"
        title = f"{IR_SCORE.label}s by people's evidence"
        return Shown([Section(title, [Text(said), Grid(title, heads, rows)])])


def corrected_of(
    rows: pd.DataFrame, people: dict[str, float], column: str = "ir_score", least: float = 0.0
) -> Corrected:
    """The `corrected_mean` of a row per topic; the dataset's own evidence counts as people's."""
    made = rows[column].to_numpy(dtype=float, na_value=np.nan)
    given = rows[BY].eq(DATASET).to_numpy() if BY in rows else np.zeros(len(rows), dtype=bool)
    given = given & ~np.isnan(made)
    asked = rows["qid"].isin(people).to_numpy() & ~given
    by_people = rows["qid"].map(people).to_numpy(dtype=float)
    truth = np.where(given, made, np.where(asked, by_people, np.nan))
    clusters = rows["topic_cluster"].factorize()[0] if "topic_cluster" in rows else None
    keep = ~rows["unanswerable"].to_numpy(dtype=bool) if "unanswerable" in rows else np.ones(len(rows), dtype=bool)
    return corrected_mean(
        truth[keep], made[keep], (asked | given)[keep], given[keep].astype(float),
        None if clusters is None else clusters[keep], least=least,
    )  # fmt: skip


def _apart(best: tuple[pd.DataFrame, dict[str, float]], other: tuple[pd.DataFrame, dict[str, float]]) -> Corrected:
    """The corrected difference between a system and the best one, over their common topics."""
    rows = other[0].merge(best[0][["qid", "ir_score"]], on="qid", suffixes=("", "_best"))
    people = {qid: score - best[1][qid] for qid, score in other[1].items() if qid in best[1]}
    return corrected_of(rows.assign(apart=rows["ir_score"] - rows["ir_score_best"]), people, "apart", -1.0)


def _table(rows: Sequence[tuple[str, float, Corrected, Corrected]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "system": system,
                "ir_score_people": of.mean.value,
                "lo": of.mean.lo,
                "hi": of.mean.hi,
                "ir_score": made,
                "people_only": of.people_only,
                "lambda": of.lam,
                "difference": apart.mean.value,
                "difference_lo": apart.mean.lo,
                "difference_hi": apart.mean.hi,
                "labelled": of.mean.n,
            }
            for system, made, of, apart in rows
        ]
    )


def _scores_by_people(job: Job) -> dict[str, float]:
    """{qid: IR score of the job's context by people's evidence}, NaN if people found none."""
    measure = job.pipeline.components.measure
    if is_corrected(measure):
        raise ConfigError("human_evidence: measure.correct=floor is not computed by people's evidence; leave it out")
    if "chat" in raw(measure).uses:
        raise ConfigError("human_evidence: the measure asks an LLM; choose substring, subsequence or words")
    sheet = read_sheet(str(job.settings.human_evidence))
    qids = job.frame("topics")["qid"]
    evidence = evidence_of(sheet, job.frame("docs"), qids)
    if evidence.empty:
        raise DataError(f"{sheet.file}: no topic has a passage whose grade reaches min_grade, so there is no evidence")
    prefixes = job.frame("prefixes")
    wanted = prefixes["qid"].isin(evidence["qid"]) & prefixes["n_tokens"].eq(job.n_tokens)
    prefixes = prefixes[wanted].reset_index(drop=True)
    parts = part_scores(measure, evidence, job.frame("layouts"), prefixes, job.pipeline.tools)
    scores = mean_over_parts(parts, measure.name).set_index("qid")["value"]
    return {qid: float(scores.get(qid, np.nan)) for qid in sheet.rows}
