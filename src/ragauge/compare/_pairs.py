"""Paired differences from the baseline over topics: by scores, by verdicts, and corrected by human labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragauge.compare._metrics import ALPHA, title_of
from ragauge.contract.errors import DataError
from ragauge.contract.families import NOT_SIMULTANEOUS
from ragauge.contract.finding import DIFFERS, Cell, Col, ComparisonFinding, Found, Founds, Grid, Num, Section, Shown
from ragauge.contract.jobs import Compared
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.metrics import HEADLINES, METRICS
from ragauge.contract.outcomes import CLUSTER
from ragauge.estimate import compare_pairs
from ragauge.estimate.clusters import clustered_text, clusterings
from ragauge.estimate.human import human_pairs
from ragauge.estimate.intervals import LEVEL
from ragauge.estimate.outcomes import compared_by_class
from ragauge.estimate.pairs import holm

HEADLINE = "headline"  # the section of IR score, right answers and hallucinations
ALL = "all measures"
_OF_PEOPLE = "run | <measure | topics | by the judge | as people would judge | p | p, Holm"


def pair_frame(
    outcomes: pd.DataFrame,
    base: str,
    seed: int,
    answers: Sequence[AnswerMeasureInfo],
    best_of_all: bool,
    family: str = "section",
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Differences [run_id, measure, difference, lo, hi, p, p_holm, n], and the number of p values in each Holm family.

    A row for every compared run but the baseline, and measure: the run less the baseline, on the n topics of both.

    With the family "section" each section of the measures is one: HEADLINE (IR score, right answers, hallucinations),
    and those of further measures. Every job has many of the latter by default: in one family they would hide a
    difference in the headline. With "measure" each measure is a family, with "all" there is one, ALL. A baseline that
    was chosen for its score has every pair counted, since each might have come out as the one to be shown.
    """
    every = known_pairs(outcomes, seed, answers)
    with_base = every["a"].eq(base) | every["b"].eq(base)
    counted = (every if best_of_all else every[with_base]).dropna(subset=["p"])
    sections = {info.name: info.section for info in answers}
    names = {str(m): {"measure": str(m), "all": ALL}.get(family, sections.get(m, HEADLINE)) for m in every["measure"]}
    families = counted["measure"].map(names)
    p_holm = counted["p"].groupby(families, sort=False).transform(lambda p: holm(p.to_numpy(dtype=float)))
    shown = less_base(every[with_base].assign(p_holm=p_holm), base, outcomes)
    columns = ["run_id", "measure", "difference", "lo", "hi", "p", "p_holm", "n"]
    return shown[columns], {str(name): int(n) for name, n in families.value_counts(sort=False).items()}


def known_pairs(
    outcomes: pd.DataFrame, seed: int, answers: Sequence[AnswerMeasureInfo], level: float = LEVEL
) -> pd.DataFrame:
    """`compare_pairs` without verdict pairs of runs that lack most verdicts: they would look never right."""
    every = compare_pairs(outcomes, "run_id", seed, level, answers)
    judged = list(compared_by_class(outcomes, "run_id"))
    of_verdicts = every["measure"].isin(["correct", "hallucination", "truthfulness"])
    return every[~of_verdicts | (every["a"].isin(judged) & every["b"].isin(judged))]


def less_base(pairs: pd.DataFrame, base: str, outcomes: pd.DataFrame) -> pd.DataFrame:
    """Pairs with the baseline as differences, `run_id` minus baseline, in the order of the runs."""
    turned = pairs["a"].eq(base)
    pairs = pairs.assign(run_id=pairs["b"].where(turned, pairs["a"]))
    # 0 less x, and not -x: no difference is not minus nothing.
    pairs.loc[turned, ["lo", "hi"]] = 0.0 - pairs.loc[turned, ["hi", "lo"]].to_numpy()
    for column in {"difference", "judge_difference"} & set(pairs):
        pairs.loc[turned, column] = 0.0 - pairs.loc[turned, column]
    order = {run_id: i for i, run_id in enumerate(outcomes["run_id"].unique())}
    return pairs.sort_values("run_id", key=lambda ids: ids.map(order), kind="stable", ignore_index=True)


def by_run(outcomes: pd.DataFrame, table: pd.DataFrame, name: str, ends: Mapping[str, str]) -> pd.DataFrame:
    """A table [run_id, measure, ...] as one row per run with columns `<name>_<measure><end>`."""
    wide = pd.DataFrame({"run_id": outcomes["run_id"].unique()})
    for measure in dict.fromkeys(table["measure"]):
        of = table.loc[table["measure"] == measure, ["run_id", *ends]]
        of = of.rename(columns={column: f"{name}_{measure}{end}" for column, end in ends.items()})
        wide = wide.merge(of, on="run_id", how="left", validate="one_to_one")
    return wide


def shown_titles(runs: Compared, measures: Iterable[str]) -> dict[str, str]:
    """Titles of the shown measures: the headline's, and the answer measures among the metrics."""
    answers = {info.name: info for info in runs.answer_measures}
    shown = [m for m in dict.fromkeys(measures) if m in HEADLINES or m in runs.metrics]
    return {m: METRICS[m].label if m in HEADLINES else title_of(m, answers) for m in shown}


@dataclass(frozen=True)
class Pairs:
    """table: as `pair_frame` gives it. n_tests: how many p values Holm's correction counted, by family: HEADLINE
    and the sections of the answer measures, or the measures, or ALL.
    """

    table: pd.DataFrame
    n_tests: Mapping[str, int]


class PairedDifferences(ComparisonFinding):
    """The differences of every compared run from the baseline."""

    name = "pairs"

    def compute(self, runs: Compared, found: Founds) -> Found | None:
        """`Pairs`; per run the columns `difference_<measure>` with `_lo`, `_hi`, `_p`, `_p_holm` and `_topics`."""
        table, n_tests = pair_frame(
            runs.outcomes, runs.baseline, runs.seed, runs.answer_measures, runs.baseline_chosen, runs.families.family
        )
        ends = {"difference": "", "lo": "_lo", "hi": "_hi", "p": "_p", "p_holm": "_p_holm", "n": "_topics"}
        wide = by_run(runs.outcomes, table.astype({"n": "Int64"}), "difference", ends)
        return Found(Pairs(table, n_tests), tables={"runs": wide})

    def show(self, runs: Compared, value: Pairs, found: Founds) -> Shown:
        """The headline, a row per run; then each section of shown measures, a row per measure and run."""
        answers = {info.name: info for info in runs.answer_measures}
        sections = _headline(runs, value.table)
        by_section: dict[str, list[str]] = {}
        for name in runs.metrics:
            if name in answers:
                by_section.setdefault(answers[name].section, []).append(name)
        for section, names in by_section.items():
            rows: list[list[Cell]] = [
                [title_of(name, answers), runs.names[row["run_id"]], *_difference(row)]
                for name in names
                for row in value.table[value.table["measure"] == name].to_dict("records")
            ]
            if rows:
                heading = f"{runs.pairs_heading}: {section}"
                grid = Grid(heading, "measure | <run | topics | difference | p | p, Holm", rows)
                sections.append(Section(heading, [grid]))
        return Shown(sections, notes=_about_tests(runs, value, by_section))


def _headline(runs: Compared, pairs: pd.DataFrame) -> list[Section]:
    """The differences in IR score, right answers and hallucinations."""
    by_run = {(row["run_id"], row["measure"]): row for row in pairs.to_dict("records")}
    shown = [measure for measure in HEADLINES if (pairs["measure"] == measure).any()]
    if not shown:
        return []
    heads: list[Col | str] = ["run"]
    for measure in shown:
        heads += ["topics", f"{METRICS[measure].label}, difference", "p", "p, Holm"]
    rows: list[list[Cell]] = []
    for run_id in dict.fromkeys(pairs["run_id"]):
        cells: list[Cell] = [runs.names[run_id]]
        for measure in shown:
            row = by_run.get((run_id, measure))
            cells += [Num(None)] * 4 if row is None else _difference(row)
        rows.append(cells)
    return [Section(runs.pairs_heading, [Grid(runs.pairs_heading, heads, rows)])]


def _difference(row: Mapping[Any, Any]) -> list[Cell]:
    tag = DIFFERS if row["p_holm"] < ALPHA else ""
    difference = Num(row["difference"], "signed", row["lo"], row["hi"], tag)
    return [Num(row["n"], "whole"), difference, Num(row["p"], "p"), Num(row["p_holm"], "p")]


def _about_tests(runs: Compared, value: Pairs, shown: Mapping[str, object]) -> list[str]:
    """Sentences that explain marks, intervals and p values."""
    base = runs.names[runs.baseline]
    clustered = CLUSTER in runs.outcomes
    tests = "a sign-flip permutation test of the IR score"
    if runs.answer_measures:
        tests += " and of measures (↑ higher, ↓ lower is better)"
    if (value.table["measure"] == "correct").any():
        tests += " and McNemar's exact test of right answers and hallucinations"
        tests = "a permutation test that flips the signs of whole clusters" if clustered else tests
        if "judged" in runs.outcomes and not runs.outcomes["judged"].all():
            tests += " (of a sample of judged topics the t test of the prediction-powered difference)"
    titles = shown_titles(runs, value.table["measure"])
    family = runs.families.family
    main = ALL if family == "all" else HEADLINE
    names = {name: titles.get(name, name) for name in value.n_tests if name in titles or name in shown}
    apart = ", ".join(f"{title} {value.n_tests[name]}" for name, title in names.items())
    counted = [f"over {value.n_tests[main]} comparisons"] if main in value.n_tests else []
    counted += [f"of all {value.table['measure'].nunique()} measures together"] if family == "all" else []
    counted += [f"(each {family} by itself: {apart})"] if apart else []
    said = [
        f"† differs from {base} after Holm's correction {' '.join(counted)}, p < {ALPHA}, by {tests}, paired by topic."
    ]
    if runs.baseline_chosen:
        said.append(f"{base} was taken {_why_chosen(runs.runs)}, so Holm counts all pairs.")
    measured = [one for _, rows in runs.outcomes.groupby("run_id") for one in clusterings(rows)]
    if measured:
        text = clustered_text(measured, clustered)
        said.append(f"{text[0].upper()}{text[1:]}.")
    over = "clusters of topics" if clustered else "topics"
    in_words = runs.families.in_words(titles)
    return [
        *said,
        f"{in_words[0].upper()}{in_words[1:]}.",
        f"In brackets: 95 % intervals over {over}; of metrics as logged, of differences paired by topic. "
        f"{NOT_SIMULTANEOUS}.",
    ]


def _why_chosen(table: pd.DataFrame) -> str:
    """Why this run of a sweep is the baseline; runs that tie on IR score are not called the best."""
    scores = table.loc[table["compared"], "ir_score"].dropna() if "ir_score" in table else table["run_id"].iloc[:0]
    if scores.empty:
        return "as the first, since none has an IR score"
    tied = int(scores.eq(scores.max()).sum())
    return "for its IR score, the best of them" if tied == 1 else f"as the first of {tied} with the best IR score"


class AsPeopleJudge(ComparisonFinding):
    """Differences in verdicts from the baseline, corrected by human labels on both runs' answers."""

    name = "people"

    def compute(self, runs: Compared, found: Founds) -> Found | None:
        """`human_pairs` with `run_id` for a and b, or why the labels cannot be used; None without labels.

        Holm's correction counts all pairs of a measure.
        """
        if "human_label" not in runs.outcomes:
            return None
        try:
            every = human_pairs(runs.outcomes, "run_id")
        except DataError as error:
            return Found(f"{error}.")
        if every is None:
            return None
        with_base = every["a"].eq(runs.baseline) | every["b"].eq(runs.baseline)
        return Found(less_base(every[with_base], runs.baseline, runs.outcomes).drop(columns=["a", "b"]))

    def show(self, runs: Compared, value: pd.DataFrame | str, found: Founds) -> Shown:
        """A row per run and measure."""
        if isinstance(value, str):
            return Shown(notes=[value])
        rows: list[list[Cell]] = []
        for row in value.to_dict("records"):
            topics, *tested = _difference(row)
            by_judge = Num(row["judge_difference"], "signed")
            rows.append([runs.names[row["run_id"]], METRICS[row["measure"]].label, topics, by_judge, *tested])
        heading = f"{runs.pairs_heading}, as people would judge (verdicts corrected by labels)"
        return Shown([Section(heading, [Grid(heading, _OF_PEOPLE, rows)])] if rows else [])
