"""Runs side by side: what a comparison holds, how it is made, and where its runs differ most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ragauge.compare._checks import check_alike, check_same_topics, notes_on, notes_on_values
from ragauge.compare._found import Found
from ragauge.compare._order import comparison_findings
from ragauge.compare._pairs import (
    choose_baseline,
    choose_compared,
    pair_frame,
    read_outcomes,
    with_differences,
)
from ragauge.compare._settings import common_settings, differing, run_table
from ragauge.contract.answer_measures import from_tags, in_order
from ragauge.contract.errors import ConfigError
from ragauge.contract.finding import Section, Shown
from ragauge.contract.frames import HALLUCINATIONS
from ragauge.contract.jobs import Compared
from ragauge.contract.metric_names import from_tags as metrics_of
from ragauge.contract.protocols import AnswerMeasureInfo

_RIGHT = 5


@dataclass(frozen=True)
class Comparison:
    """Runs side by side.

    `runs` has a row per run: `run_id`, `run` (a name that no other has), `system` (the name but for the
    budget), `n_tokens`, `compared` (whether it makes a pair), and every metric as it was logged, NaN
    where there is none; those of the verdicts are NaN where a run has no verdict. `params` are the parameters
    that differ [run_id x parameter], NaN where a run has none of that name; `common` the components and
    settings that do not.

    `pairs` has a row per compared run but the baseline, and measure (`ir_score`, `correct`,
    `hallucination`): [run_id, measure, difference, lo, hi, p, p_holm, n]; differences are the run less the
    baseline, on the n topics that both have. `n_tests` is how many p values Holm's correction counted, by
    section: HEADLINE of these three, and the sections of the answer measures, each a family of its own.
    `outcomes` has a row per compared run and topic: [run_id, qid, query, answer_reference, ir_score, label,
    answer, ir_score_difference], the difference to the baseline NaN where that lacks the topic.

    `answers` are the answer measures of the runs: a metric each, a measure of the pairs and a column of the
    outcomes. `metrics` are those of findings that packages brought to the jobs.

    `found` has the values of the comparison's findings by name (`ragauge.compare._order`), such as people,
    slices and causes, and `sections` how these are shown.
    `sampled` is True where some compared run judged a sample of its topics.

    `baseline` is a run_id; `baseline_chosen` where it was taken for the best IR score. `n_tokens` is the
    budget of the compared runs, None where it differs between them. `notes` are sentences on what limits the
    comparison.
    """

    runs: pd.DataFrame
    params: pd.DataFrame
    common: Mapping[str, str]
    pairs: pd.DataFrame
    n_tests: Mapping[str, int]
    outcomes: pd.DataFrame
    baseline: str
    baseline_chosen: bool
    n_tokens: int | None
    n_boot: int
    seed: int
    notes: Sequence[str]
    answers: Sequence[AnswerMeasureInfo] = ()
    metrics: Sequence[str] = ()
    sampled: bool = False
    found: Mapping[str, Any] = field(default_factory=dict)
    sections: Sequence[Section] = ()

    @property
    def names(self) -> dict[str, str]:
        """The name of every run: {run_id: run}."""
        return dict(zip(self.runs["run_id"], self.runs["run"], strict=True))


def compare(
    sources: Sequence[str],
    uri: str | None = None,
    *,
    n_tokens: int | None = None,
    baseline: str | None = None,
    n_boot: int | None = None,
    seed: int | None = None,
    across_datasets: bool = False,
    slices: bool = False,
) -> Comparison:
    """The comparison of the runs that the sources name.

    A source is the id of an MLflow run of a job or of a sweep, or the beginning of one, or the folder of a
    sweep or a job; a sweep stands for its finished jobs. Runs that are named one by one are all compared,
    with the first of them unless `baseline` (an id, its beginning, or a run's name) says otherwise. Of a
    sweep, or where `n_tokens` is given, the jobs of one budget are: by default the largest that all systems
    have. The baseline of a sweep is the best IR score among these. n_boot and seed default to those of the
    baseline's config. `slices` asks for the runs by slice of their topics.

    Raises ConfigError and DataError for runs that are not there, not finished, or not to be compared: other
    datasets (but for `across_datasets`, which pairs topics that have the same qid, question and truth), other
    measures, topics that occur twice.
    """
    found = _alike(sources, uri, across_datasets)
    runs, notes = found.runs, list(found.notes)
    params = differing(runs)
    table, at, base = _sides(run_table(runs, params), found.swept, n_tokens, baseline)
    by_id = {run.run_id: run for run in runs}
    n_boot = int(by_id[base].params.get("bootstrap", 1000)) if n_boot is None else n_boot
    seed = int(by_id[base].params.get("seed", 0)) if seed is None else seed
    answers = in_order(from_tags(run.tags) for run in runs)
    outcomes = read_outcomes([by_id[i] for i in table.loc[table["compared"], "run_id"]], found.readers, answers)
    if across_datasets:
        check_same_topics(outcomes, base)
    chosen = found.swept and baseline is None
    pairs, n_tests = pair_frame(outcomes, base, seed, answers, best_of_all=chosen)
    names = dict(zip(table["run_id"], table["run"], strict=True))
    notes += [*notes_on(runs, params, outcomes, base, at, names), *notes_on_values(outcomes, answers, names)]
    values, shown = _found(Compared(outcomes, names, base, answers, at, n_boot, seed, slices))
    notes += [note for one in shown for note in one.notes]
    return Comparison(
        runs=table,
        params=params,
        common=common_settings(runs, params),
        pairs=pairs,
        n_tests=n_tests,
        outcomes=with_differences(outcomes, base, answers),
        baseline=base,
        baseline_chosen=chosen,
        n_tokens=at,
        n_boot=n_boot,
        seed=seed,
        notes=notes,
        answers=answers,
        metrics=list(dict.fromkeys(name for run in runs for name in metrics_of(run.tags))),
        sampled="judged" in outcomes and not outcomes["judged"].all(),
        found=values,
        sections=[section for one in shown for section in one.sections],
    )


def _alike(sources: Sequence[str], uri: str | None, across_datasets: bool) -> Found:
    """The runs that the sources name; ConfigError and DataError where these are not to be compared."""
    found = Found.of(sources, uri)
    n = len(found.runs)
    if n < 2:
        raise ConfigError(f"a comparison takes two runs or more, or a sweep; {', '.join(sources)} gives {n}")
    check_alike(found.runs, across_datasets)
    return found


def _sides(
    table: pd.DataFrame, swept: bool, n_tokens: int | None, baseline: str | None
) -> tuple[pd.DataFrame, int | None, str]:
    """The runs with a column `compared`, the budget of the pairs, and the baseline."""
    if swept:
        table = table.sort_values("n_tokens", kind="stable", ignore_index=True)
    at, compared = choose_compared(table, swept, n_tokens)
    table["compared"] = table["run_id"].isin(compared)
    return table, at, choose_baseline(table[table["compared"]], baseline, swept)


def _found(runs: Compared) -> tuple[dict[str, Any], list[Shown]]:
    """The values of the findings that found something, by name, and how each is shown."""
    values: dict[str, Any] = {}
    shown = []
    for finding in comparison_findings():
        found = finding.compute(runs, values)
        if found is not None:
            values[finding.name] = found.value
            shown.append(finding.show(runs, found.value, values))
    return values, shown


def most_different(comparison: Comparison, by: str, n: int) -> tuple[pd.DataFrame, int]:
    """The n topics that the baseline and another run disagree on most, and on how many they do at all.

    A topic comes once, with the run that is furthest off: [qid, query, run_id, ir_score, label, answer], and
    the baseline's ir_score_base, label_base, answer_base. `by` is `ir_score` (the largest difference first)
    or `class`: right against a hallucination, right against lack of information or an incomplete answer, a
    hallucination against these, then the others that differ, each by the difference in IR score; a topic
    without both verdicts is left out.
    """
    of_base = comparison.outcomes["run_id"] == comparison.baseline
    columns = ["qid", "query", "run_id", "ir_score", "label", "answer"]
    base = comparison.outcomes.loc[of_base, ["qid", "ir_score", "label", "answer"]]
    rows = comparison.outcomes.loc[~of_base, columns].merge(base, on="qid", suffixes=("", "_base"))
    rows["_off"] = (rows["ir_score"] - rows["ir_score_base"]).abs()
    if by == "class":
        both = rows["label"].notna() & rows["label_base"].notna()
        rows = rows[both & rows["label"].ne(rows["label_base"]).fillna(False)].copy()
        rows["_kind"] = (rows["label"].map(_kind) - rows["label_base"].map(_kind)).abs().astype(int)
    else:
        rows = rows[rows["_off"] > 0].assign(_kind=0)
    rows = rows.sort_values(["_kind", "_off"], ascending=False, kind="stable").drop_duplicates("qid")
    rows = rows.sort_values(["_kind", "_off", "qid"], ascending=[False, False, True], kind="stable")
    return rows.drop(columns=["_kind", "_off"]).head(n).reset_index(drop=True), len(rows)


def _kind(label: int) -> int:
    """A place on a line on which a right answer and a hallucination are furthest apart."""
    return 3 if label == _RIGHT else 0 if label in HALLUCINATIONS else 1
