"""Makes a comparison of runs, prints it and writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from ragauge.compare._metrics import choose_metrics
from ragauge.compare._order import comparison_findings
from ragauge.compare._settings import common_settings, differing, heading_of, run_table
from ragauge.compare._sources import SourceRuns, check_alike, check_same_topics, limits_of, read_outcomes
from ragauge.contract.answer_measures import from_tags, in_order
from ragauge.contract.checks import require_fraction
from ragauge.contract.errors import ConfigError
from ragauge.contract.families import Families
from ragauge.contract.finding import Shown
from ragauge.contract.jobs import Compared
from ragauge.contract.metrics import from_tags as metrics_of
from ragauge.contract.visible import csv_text
from ragauge.show import tables

_WIDTH = 120  # columns of a comparison that is printed from Python


@dataclass(frozen=True)
class Comparison(Compared):
    """Compared runs, and the values of the findings about them.

    `found` has the values of the findings by name (`ragauge.compare._order`), such as pairs, people, slices and
    causes; `csv` the frames that they give to the CSV files `runs` and `topics`.
    """

    found: Mapping[str, Any] = field(default_factory=dict)
    csv: Mapping[str, Sequence[pd.DataFrame]] = field(default_factory=dict)

    @property
    def pairs(self) -> pd.DataFrame:
        """The differences: a row per compared run but the baseline, and measure; as `pair_frame` gives them."""
        frame: pd.DataFrame = self.found["pairs"].table
        return frame

    @property
    def n_tests(self) -> Mapping[str, int]:
        """Number of p values in Holm's correction, by family."""
        counts: Mapping[str, int] = self.found["pairs"].n_tests
        return counts

    def __str__(self) -> str:
        return text(self, self.metrics, self.topics, _WIDTH)

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on the meaning of the numbers and on the limits of the comparison."""
        return sheet(self, self.metrics, self.topics).notes


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
    family: str | None = None,
    equivalent: float | None = None,
) -> Comparison:
    """The comparison of the runs that the sources name.

    A source is the id of an MLflow run of a job or of a sweep, or the beginning of one, or the folder of a sweep or a
    job. A sweep stands for its finished jobs. Runs that are named one by one are all compared, with the first of them
    unless `baseline` (an id, its beginning, or a run's name) says otherwise. In a sweep, or where `n_tokens` is given,
    the jobs of one budget are compared: by default the largest that all systems have. The baseline of a sweep is the
    best IR score among these. n_boot and seed default to those of the baseline's config. `slices` asks for the runs by
    slice of their topics. `family` names the tests that Holm's correction counts together: those of a "section" of the
    measures, of a "measure", or "all". The default is "all" where the baseline's config has report.family=all, else
    "section". `equivalent` is a margin in (0, 1): which runs are no better and no worse than the baseline by more.

    Raises ConfigError and DataError for runs that are not there, not finished, or not comparable: other datasets, other
    measures, topics that occur twice. `across_datasets` allows other datasets and pairs topics that have the same qid,
    question and truth.
    """
    if equivalent is not None:
        require_fraction("equivalent", equivalent)
    found = _alike(sources, uri, across_datasets)
    runs = found.runs
    params = differing(runs)
    table, at, base = _sides(run_table(runs, params), found.swept, n_tokens, baseline)
    by_id = {run.run_id: run for run in runs}
    answers = in_order(from_tags(run.tags) for run in runs)
    outcomes = read_outcomes([by_id[i] for i in table.loc[table["compared"], "run_id"]], found.readers, answers)
    if across_datasets:
        check_same_topics(outcomes, base)
    names = dict(zip(table["run_id"], table["run"], strict=True))
    return found_of(
        Compared(
            outcomes=_with_differences(outcomes, base),
            names=names,
            baseline=base,
            answer_measures=answers,
            n_tokens=at,
            n_boot=int(by_id[base].params.get("bootstrap", 1000)) if n_boot is None else n_boot,
            seed=int(by_id[base].params.get("seed", 0)) if seed is None else seed,
            slices=slices,
            families=_families(by_id[base].params, family),
            equivalent=equivalent,
            runs=table,
            params=params,
            common=common_settings(runs, params),
            baseline_chosen=found.swept and baseline is None,
            limits=[*found.notes, *limits_of(runs, params, outcomes, base, at, names)],
            package_metrics=list(dict.fromkeys(name for run in runs for name in metrics_of(run.tags))),
        )
    )


def found_of(runs: Compared) -> Comparison:
    """The comparison of the runs, showing the default metrics."""
    values: dict[str, Any] = {}
    frames: dict[str, list[pd.DataFrame]] = {}
    for finding in comparison_findings():
        found = finding.compute(runs, values)
        if found is not None:
            values[finding.name] = found.value
            for name, frame in found.tables.items():
                frames.setdefault(name, []).append(frame)
    given: dict[str, Any] = {**vars(runs), "metrics": choose_metrics(runs)}
    return Comparison(**given, found=values, csv=frames)


def sheet(comparison: Comparison, metrics: Sequence[str], n_topics: int) -> tables.Sheet:
    """The comparison's findings as a sheet, with these metrics and at most `n_topics` topics of each kind."""
    c = replace(comparison, metrics=metrics, topics=n_topics)
    findings = [finding for finding in comparison_findings() if finding.name in c.found]
    shown: list[Shown] = [finding.show(c, c.found[finding.name], c.found) for finding in findings]
    return tables.Sheet(
        heading_of(c),
        [section for one in shown for section in one.sections],
        [*(note for one in shown for note in one.notes), *c.limits],
        {name: run_id for run_id, name in c.names.items()},
    )


def text(comparison: Comparison, metrics: Sequence[str], n_topics: int, width: int) -> str:
    """The comparison for a terminal of `width` columns."""
    return tables.terminal(sheet(comparison, metrics, n_topics), width)


def markdown(comparison: Comparison, metrics: Sequence[str], n_topics: int) -> str:
    """The comparison as Markdown with pipe tables."""
    return tables.markdown(sheet(comparison, metrics, n_topics))


def latex(comparison: Comparison, metrics: Sequence[str]) -> str:
    """Booktabs tables of the compared runs, without topics."""
    compared = comparison.runs[comparison.runs["compared"]]
    if compared["n_tokens"].nunique() == 1 and compared["system"].is_unique:
        compared = compared.assign(run=compared["system"])  # the caption names the budget
    names = dict(zip(compared["run_id"], compared["run"], strict=True))
    return tables.latex(sheet(replace(comparison, runs=compared, names=names), metrics, 0))


def runs_csv(comparison: Comparison, metrics: Sequence[str]) -> str:
    """CSV with a row per run: differences, metrics with interval ends, and columns of findings.

    Numbers have full precision; missing ones are empty.
    """
    c = comparison
    ends = [name + end for name in metrics for end in ("", "_lo", "_hi") if name + end in c.runs]
    frame = c.runs[["run_id", "run", "n_tokens"]].assign(is_baseline=c.runs["run_id"] == c.baseline)
    params = c.params.drop(columns="n_tokens", errors="ignore").reset_index(names="run_id")
    for more in (params, c.runs[["run_id", *ends]], *c.csv.get("runs", ())):
        frame = frame.merge(more, on="run_id", how="left", validate="one_to_one")
    return csv_text(frame)


def topics_csv(comparison: Comparison) -> str:
    """CSV with a row per compared run and topic: scores, classes, answers, and columns of findings."""
    c = comparison
    columns = ["qid", "query", "answer_reference", "ir_score", "label", "answer"]
    columns += [*(info.name for info in c.answer_measures), "ir_score_difference"]
    frame = c.outcomes[["run_id", *(name for name in columns if name in c.outcomes)]]
    frame.insert(1, "run", frame["run_id"].map(c.names))
    for more in c.csv.get("topics", ()):
        frame = frame.merge(more, on=["run_id", "qid"], how="left", validate="one_to_one")
    return csv_text(frame)


def _families(params: Mapping[str, str], family: str | None) -> Families:
    """Families of a run's parameters; `family` overrides them; the default is sections unless they say all."""
    families = Families.of_params(params)
    return replace(families, family=family or ("all" if families.family == "all" else "section"))


def _alike(sources: Sequence[str], uri: str | None, across_datasets: bool) -> SourceRuns:
    """The runs that the sources name; ConfigError or DataError if they are not comparable."""
    found = SourceRuns.of(sources, uri)
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
    at, compared = _choose_compared(table, swept, n_tokens)
    table["compared"] = table["run_id"].isin(compared)
    return table, at, _choose_baseline(table[table["compared"]], baseline, swept)


def _choose_compared(table: pd.DataFrame, swept: bool, n_tokens: int | None) -> tuple[int | None, list[str]]:
    """The budget of the pairs (None if the runs have several), and the ids of the compared runs."""
    budgets = sorted(set(table["n_tokens"].tolist()))
    if n_tokens is None and not swept:
        return (budgets[0] if len(budgets) == 1 else None), table["run_id"].tolist()
    if n_tokens is None:
        of_systems = [set(rows["n_tokens"]) for _, rows in table.groupby("system")]
        n_tokens = int(max(set.intersection(*of_systems) or budgets))
    ids = table.loc[table["n_tokens"] == n_tokens, "run_id"].tolist()
    if len(ids) < 2:
        raise ConfigError(
            f"n_tokens={n_tokens}: {len(ids)} of the runs have this budget, and a pair takes two; there are "
            + ", ".join(f"{n} ({count} runs)" for n, count in table["n_tokens"].value_counts().sort_index().items())
        )
    return n_tokens, ids


def _choose_baseline(compared: pd.DataFrame, asked: str | None, swept: bool) -> str:
    if asked is None:
        scores = compared.get("ir_score", pd.Series(dtype=float)).dropna()
        row = compared.index.get_loc(scores.idxmax()) if swept and len(scores) else 0
        return str(compared["run_id"].iloc[row])
    named = compared[(compared["run"] == asked) | (compared["system"] == asked)]
    if named.empty:
        named = compared[compared["run_id"].str.startswith(asked)]
    if len(named) != 1:
        there = ", ".join(f"{row['run']} ({row['run_id'][:8]})" for row in compared.to_dict("records"))
        many = "none" if named.empty else "several"
        raise ConfigError(f"baseline {asked!r} is {many} of the compared runs; these are {there}")
    return str(named["run_id"].iloc[0])


def _with_differences(outcomes: pd.DataFrame, base: str) -> pd.DataFrame:
    reference = outcomes[outcomes["run_id"] == base].set_index("qid")["ir_score"]
    difference = outcomes["ir_score"] - outcomes["qid"].map(reference)
    return outcomes.assign(ir_score_difference=difference.where(outcomes["run_id"] != base))
