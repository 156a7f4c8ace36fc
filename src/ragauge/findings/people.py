"""The judge compared with people: agreement, and shares and differences corrected by human labels."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import besides_rankings, in_order
from ragauge.contract.errors import DataError
from ragauge.contract.finding import (
    Block,
    Cell,
    Col,
    Finding,
    Found,
    Founds,
    Grid,
    Heads,
    JobFinding,
    Num,
    Section,
    Shown,
    Text,
)
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.metrics import METRICS, Metric
from ragauge.contract.record import JobRecord
from ragauge.contract.topics import QUESTIONS, labelled_as, measured_as
from ragauge.estimate import Agreement
from ragauge.estimate import summary as metrics_of
from ragauge.estimate.human import FEW_LABELS, human_agreement, human_pairs, human_shares, powered_share
from ragauge.estimate.outcomes import POPULATION, clusters_by_topic
from ragauge.findings.classes import ABOUT, shares_by_system, shares_of_all
from ragauge.findings.tables import SHORT, between, number, table
from ragauge.findings.terminal import NAME_WIDTH, job_line
from ragauge.show.formats import score, share, whole

log = logging.getLogger(__name__)


class PeopleFound(JobFinding):
    """Shares from a judge's probabilities, corrected by human labels."""

    name = "people"
    metrics = (
        "ares_{context_relevance,answer_faithfulness,answer_relevance}_{ppi,labels_only}{,_lo,_hi}",
        "ares_{context_relevance,answer_faithfulness,answer_relevance}_{labels,ppi_lambda}",
        Metric("ares_{context_relevance,answer_faithfulness,answer_relevance}_ppi_effective_n", group="judge"),
    )

    def compute(self, job: Job, found: Founds) -> Found:
        """The reason if the labels give no shares of classes."""
        refused = None
        if job.settings.human_labels is not None and "human_label" in job.outcomes:
            try:
                human_shares(job.outcomes)
            except DataError as error:  # found here, as the estimates may come from the store
                refused = str(error)
        return Found(refused, metrics=powered_by_people(job.outcomes))

    def show(self, job: Job, value: str | None, found: Founds) -> Shown:
        """The reason, as a warning."""
        return Shown(notes=[] if value is None else [f"no shares as people would judge: {value}"])


def powered_by_people(outcomes: pd.DataFrame) -> dict[str, float]:
    """Metrics <measure>_ppi, _labels_only (each with _lo and _hi), and their sample sizes; {} without labels.

    They cover every question for which the outcomes have labels and a judge's probabilities, over the topics that have
    a probability. Tells where labels are few, are on answers without one, or are no sample.
    """
    values: dict[str, float] = {}
    for question in QUESTIONS:
        name, column = measured_as(question), labelled_as(question)
        if name not in outcomes or column not in outcomes:
            continue
        rows = outcomes[outcomes[name].notna()]
        n, beside = int(rows[column].notna().sum()), int(outcomes[column].notna().sum())
        if beside > n:
            log.warning("%s: %d labels are on answers without a value, and left out", name, beside - n)
        if n == 0:
            continue
        try:
            clusters = clusters_by_topic(rows, rows["qid"].to_numpy())
            labels, said = (rows[of].to_numpy(dtype=float) for of in (column, name))
            found = powered_share(labels, said, clusters=clusters)
        except DataError as error:
            log.warning("%s: no estimate as people would judge: %s", name, error)
            continue
        if n < FEW_LABELS:
            log.warning("%s: %d labels by people are few: below %d an interval says little", name, n, FEW_LABELS)
        for end, estimate in (("ppi", found.powered), ("labels_only", found.labels_only)):
            values |= metrics_of.with_interval(f"{name}_{end}", estimate)
        values |= {
            f"{name}_labels": n,
            f"{name}_ppi_effective_n": found.effective_n,
            f"{name}_ppi_lambda": found.lam,
        }
    return values


@dataclass(frozen=True)
class People:
    """agreement over all jobs; shares and pairs at n_tokens; refused: why labels could not be used."""

    agreement: Agreement
    shares: pd.DataFrame | None
    pairs: pd.DataFrame | None
    refused: Sequence[str]


class BesidePeople(Finding):
    """The judge's agreement with human labels, and shares corrected by them."""

    name = "people"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`People`; None without human labels."""
        rows = jobs.outcomes
        if "human_label" not in rows or rows["human_label"].isna().all():
            return None
        refused: list[str] = []

        def kept(estimate: Callable[[pd.DataFrame], pd.DataFrame | None], what: str) -> Any:
            def tried(part: pd.DataFrame) -> pd.DataFrame | None:
                try:
                    return estimate(part)
                except DataError as error:
                    of = f"{what}{part['system'].iloc[0]}: " if what else ""
                    refused.append(f"{of}{error}")
                    return None

            return tried

        agreement = human_agreement(rows, ("qid", "system", "n_tokens"))
        shares = shares_by_system(jobs.at_n, kept(human_shares, "no shares for "))
        pairs = kept(human_pairs, "")(jobs.at_n)
        known = {"human_shares": shares, "human_pairs": pairs}
        tables = {name: frame for name, frame in known.items() if frame is not None and len(frame)}
        tables["judge_agreement"] = agreement.confusion.reset_index(names=agreement.confusion.index.name or "")
        return Found(
            People(agreement, shares, pairs, tuple(refused)), metrics=metrics_of.agreement(agreement), tables=tables
        )

    def show(self, jobs: Jobs, value: People, found: Founds) -> Shown:
        """Agreement with its table, then the corrected shares and differences."""
        a = value.agreement
        more = f", {whole(a.n_missing)} more a label only" if a.n_missing else ""
        blocks: list[Block] = [
            Text(
                f"{whole(a.n)} answers have a label by people and a verdict{more}. Cohen's κ "
                f"{score(a.kappa.value)}{between(a.kappa.lo, a.kappa.hi, score)}; equal labels "
                f"{share(a.agreement.value)}{between(a.agreement.lo, a.agreement.hi, share)}."
            ),
            _confusion(a.confusion),
        ]
        if value.shares is not None:
            said = "The shares of all topics as people would judge them, the verdicts corrected by the labels (PPI++):"
            blocks += [Text(said), shares_of_all(value.shares, "Labels alone")]
        if value.pairs is not None and len(value.pairs):
            blocks += [
                Text(
                    "Differences between systems as people would judge them. They are those of the verdicts, "
                    "corrected by the labels that both answers of a topic have (PPI++, t test, Holm's correction over "
                    "all pairs of a measure). A judge whose errors differ between systems bends the leaderboard's "
                    "tests, but not "
                    "these."
                ),
                _pairs(value.pairs),
            ]
        blocks += [Text(reason, "note") for reason in value.refused]
        return Shown([Section("The judge beside people", blocks)])


def _confusion(confusion: pd.DataFrame) -> Grid:
    names = [(str(c), SHORT.get(int(c), "no verdict") if str(c).isdigit() else "no verdict") for c in confusion.columns]
    columns: Heads = ["People say", *(Col(title, name) for title, name in names)]
    rows: list[list[Cell]] = [
        [f"{label} {SHORT[int(label)]}", *(Num(count, "whole") for count in row)]  # type: ignore[call-overload]
        for label, row in confusion.iterrows()
    ]
    return Grid("Human labels by verdict", columns, rows)


def _pairs(pairs: pd.DataFrame) -> Grid:
    return table(
        "Differences as people would judge",
        "Pair | <Measure | By the judge | As people would judge | p | p, Holm | Labelled topics",
        pairs,
        lambda pair: [
            f"{pair['a']} – {pair['b']}",
            METRICS[pair["measure"]].difference,
            Num(pair["judge_difference"], "points"),
            number(pair, "difference", "points"),
            Num(pair["p"], "p"),
            Num(pair["p_holm"], "p"),
            Num(pair["n"], "whole"),
        ],
    )


def in_numbers(record: JobRecord, jobs: int | None = None, width: int = NAME_WIDTH) -> list[str]:
    """The numbers of a finished job: a line, and further ones with a judged sample or human labels.

    A job outside of sweeps has a line of its answer measures, too.

    jobs: the number of the sweep's jobs; the line then begins with the job's place among them. width: columns of its
    name.
    """
    target = record.sample_target or POPULATION
    place = "" if jobs is None else f"{record.number + 1:>{len(str(jobs))}}/{jobs}  "
    measured = measured_line(record) if jobs is None and record.sweep_id is None else ""
    lines = [place + job_line(record.name, record.metrics, width), *filter(None, [measured])]
    return [*lines, *judged_lines(record.metrics, target)]


def measured_line(record: JobRecord) -> str:
    """`  exact match 50.0% (95 % 27.9% to 72.1%), token F1 0.612 (…)`: the answer measures; "" without any."""
    said = []
    for info in besides_rankings(in_order([record.answer_measures])):
        if info.on_terminal and info.name in record.metrics:
            spec = ".1%" if info.unit == "share" else ".3f"
            said.append(f"{info.label} {record.metrics[info.name]:{spec}}{_range(record.metrics, info.name, spec)}")
    return f"  {', '.join(said)}" if said else ""


def judged_lines(values: Mapping[str, float], target: str = POPULATION) -> list[str]:
    """Lines on a judged sample and on human labels; none without either.

    target: one of TARGETS, for the shares of a sample.
    """
    found = []
    if "judged_topics" in values:
        n, of = values["judged_topics"], values["judged_of_topics"]
        lacks = f", no verdict {missing:.1%}" if (missing := values.get("judge_share_missing", 0.0)) > 0 else ""
        found.append(
            f"  {n:.0f} of {of:.0f} judged; of {ABOUT[target]}: {_share_of('right', values, 'correct_share')}, "
            f"{_share_of('hallucination', values, 'hallucination_share')}{lacks}"
        )
    if "human_labels" in values:
        n, kappa = values["human_labels"], values.get("judge_kappa", math.nan)
        if kappa == kappa:
            said = f"kappa {kappa:.2f}{_range(values, 'judge_kappa', '.2f')}"
        else:
            said = "kappa is not defined, since chance alone would agree always"
        equal = values.get("judge_agreement", math.nan)
        same = f", equal {equal:.1%}{_range(values, 'judge_agreement', '.1%')}" if equal == equal else ""
        found.append(f"  judge against {n:.0f} labels by people: {said}{same}")
    return found


def _share_of(word: str, values: Mapping[str, float], name: str) -> str:
    value = values.get(name, math.nan)
    return f"{word} –" if value != value else f"{word} {value:.1%}{_range(values, name, '.1%')}"


def _range(values: Mapping[str, float], name: str, spec: str) -> str:
    """The 95 % interval of a metric in brackets; empty without one."""
    lo, hi = (values.get(f"{name}{end}", math.nan) for end in ("_lo", "_hi"))
    return f" (95 % {lo:{spec}} to {hi:{spec}})" if lo == lo and hi == hi else ""
