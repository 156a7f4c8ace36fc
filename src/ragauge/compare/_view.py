"""What every format shows of a comparison: its tables, sentences and lists of topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from ragauge.compare._cells import ALPHA, NOTHING, Format, Table, clean, fit, table_of
from ragauge.compare._metrics import HIGHER, LOWER, NAMES
from ragauge.compare._pairs import HEADLINE
from ragauge.compare.comparison import Comparison, most_different
from ragauge.contract.answer_measures import column_label
from ragauge.contract.finding import Grid, Section, Text
from ragauge.contract.groups import GROUPS
from ragauge.contract.protocols import AnswerMeasureInfo

_MAX_VALUE = 60  # characters of a parameter in a cell
_TESTED = {  # metric to measure of the pairs
    "ir_score": "ir_score", "correct_share": "correct", "hallucination_share": "hallucination",
}  # fmt: skip


@dataclass(frozen=True)
class View:
    """The tables of a comparison in one format."""

    c: Comparison
    metrics: Sequence[str]
    format: Format

    @cached_property
    def p_values(self) -> dict[tuple[str, str], float]:
        """The corrected p value by run_id and measure."""
        pairs = self.c.pairs
        return dict(zip(zip(pairs["run_id"], pairs["measure"], strict=True), pairs["p_holm"], strict=True))

    @cached_property
    def answers(self) -> dict[str, AnswerMeasureInfo]:
        """The answer measures by name."""
        return {info.name: info for info in self.c.answers}

    def _name(self, metric: str) -> str:
        """What a metric is called; escaped."""
        if metric in self.answers and metric not in NAMES:
            return self.format.text(column_label(self.answers[metric]))
        return self.format.text(NAMES.get(metric, metric))

    @cached_property
    def several_budgets(self) -> bool:
        """Whether there are jobs at other budgets than that of the pairs."""
        return self.c.n_tokens is not None and bool((self.c.runs["n_tokens"] != self.c.n_tokens).any())

    def parameters(self) -> Table | None:
        """What differs between the systems, a row per system and its budgets; None where nothing does."""
        c = self.c
        columns = [column for column in c.params if column != "n_tokens"]
        budgets = c.runs["n_tokens"].nunique() > 1
        if not columns and not budgets:
            return None
        rows = []
        for system, of_system in c.runs.groupby("system", sort=False):
            settings = c.params.loc[of_system["run_id"], columns]
            # Two systems of one name differ in something that is no part of it: a row each.
            for _, same in settings.fillna("").groupby(columns, sort=False) if columns else [("", settings)]:
                at = of_system.loc[of_system["run_id"].isin(same.index), "n_tokens"].tolist()
                first = settings.loc[same.index[0]]
                cells = [self._value(first[column]) for column in columns]
                rows.append([self.format.text(system), *cells, *([_budgets(at)] if budgets else [])])
        header = ["system", *columns, *(["n_tokens"] if budgets else [])]
        return Table([self.format.text(name) for name in header], rows, len(header))

    def _value(self, value: object) -> str:
        """A parameter, which may be a whole prompt, as far as a table has room for it."""
        return self.format.text(fit(clean(value), _MAX_VALUE)) if isinstance(value, str) else self.missing

    @property
    def missing(self) -> str:
        """What stands where there is no value."""
        return self.format.escape(NOTHING)

    def metric_tables(self, runs: pd.DataFrame, ids: bool) -> list[tuple[str, Table]]:
        """The metrics of the runs, those of the measures beside the headline in a table of their own; with
        headings, escaped.
        """
        beside = [name for name in self.metrics if name in self.answers and name not in NAMES]
        parts = {"Metrics": [name for name in self.metrics if name not in beside], "Measures": beside}
        return [
            (self.format.text(heading), self.metric_table(runs, ids, names))
            for heading, names in parts.items()
            if names
        ]

    def metric_table(self, runs: pd.DataFrame, ids: bool, names: Sequence[str] | None = None) -> Table:
        """Metrics of the runs (all that are shown, or `names`), a row per run, the best marked."""
        groups = runs["n_tokens"] if self.several_budgets else pd.Series(0, index=runs.index)
        shown = self.metrics if names is None else names
        columns = {name: self._metric(runs, name, groups) for name in shown}
        keys = {"run": [self.format.text(run) for run in runs["run"]]}
        if ids:
            keys["id"] = [run_id[:8] for run_id in runs["run_id"]]
        header = [*keys, *map(self._name, columns)]
        rows = [list(row) for row in zip(*keys.values(), *columns.values(), strict=True)]
        return Table(header, rows, len(keys))

    def _metric(self, runs: pd.DataFrame, name: str, groups: pd.Series) -> list[str]:
        values = runs[name]
        known = values.dropna()
        whole = len(known) > 0 and bool((known % 1 == 0).all()) and bool((known.abs() > 1).any())
        spec = ",.0f" if whole else ".4f" if name.endswith("cost_usd") else ".3f"
        by_group = values.groupby(groups)
        best = pd.Series(False, index=runs.index)
        lower = name in LOWER or (name in self.answers and self.answers[name].direction == "lower")
        if name in HIGHER | LOWER or name in self.answers:
            # Where all are equal, none is best.
            top = by_group.transform("min" if lower else "max")
            best = values.eq(top) & (by_group.transform("min") < by_group.transform("max"))
        nan = pd.Series(float("nan"), index=runs.index)
        lows, highs = (runs.get(f"{name}_{end}", nan) for end in ("lo", "hi"))
        p = [self.p_values.get((run_id, _TESTED.get(name, name)), 1.0) for run_id in runs["run_id"]]
        rows = zip(values, best, p, lows, highs, strict=True)
        return [self.format.marked(v, spec, b, q < ALPHA, lo, hi) for v, b, q, lo, hi in rows]

    def pair_tables(self) -> list[tuple[str, Table]]:
        """The differences from the baseline with their headings, escaped: the headline's, a row per run, then
        those of each section of the measures that are shown, a row per measure and run.
        """
        tables = []
        if (headline := self._headline()) is not None:
            tables.append((self.format.text(self.pairs_heading()), headline))
        by_section: dict[str, list[str]] = {}
        for name in self.metrics:
            if name in self.answers:
                by_section.setdefault(self.answers[name].section, []).append(name)
        for section, names in by_section.items():
            rows = [
                [self._name(name), self.format.text(self.c.names[row["run_id"]]), *self._difference(row)]
                for name in names
                for row in self.c.pairs[self.c.pairs["measure"] == name].to_dict("records")
            ]
            if rows:
                header = ["measure", "run", "topics", "difference", "p", "p, Holm"]
                table = Table([self.format.text(name) for name in header], rows, 2)
                tables.append((self.format.text(f"{self.pairs_heading()}: {section}"), table))
        return tables

    def _headline(self) -> Table | None:
        """The differences in IR score, right answers and hallucinations; None where there are none."""
        measures = {"ir_score": "IR score", "correct": "right", "hallucination": "hallucination"}
        by_run = {(row["run_id"], row["measure"]): row for row in self.c.pairs.to_dict("records")}
        shown = [m for m in measures if (self.c.pairs["measure"] == m).any()]
        if not shown:
            return None
        header = ["run"]
        for measure in shown:
            header += ["topics", f"{measures[measure]}, difference", "p", "p, Holm"]
        rows = []
        for run_id in dict.fromkeys(self.c.pairs["run_id"]):
            cells = [self.format.text(self.c.names[run_id])]
            for measure in shown:
                row = by_run.get((run_id, measure))
                cells += [self.missing] * 4 if row is None else self._difference(row)
            rows.append(cells)
        return Table([self.format.text(name) for name in header], rows, 1)

    def _difference(self, row: Mapping[Any, Any]) -> list[str]:
        f = self.format
        differs = row["p_holm"] < ALPHA
        return [
            f"{row['n']:,}",
            f.marked(row["difference"], "+.3f", False, differs, row["lo"], row["hi"]),
            f.text(_p(row["p"])),
            f.text(_p(row["p_holm"])),
        ]

    def about_tests(self) -> list[str]:
        """Sentences that say what the marks, intervals and p values are; escaped."""
        c, f = self.c, self.format
        base = c.names[c.baseline]
        tests = "a sign-flip permutation test of the IR score"
        if c.answers:
            tests += " and of measures (↑ higher, ↓ lower is better)"
        if (c.pairs["measure"] == "correct").any():
            tests += " and McNemar's exact test of right answers and hallucinations"
            if c.sampled:
                tests += " (of a sample of judged topics the t test of the prediction-powered difference)"
        shown = {self.answers[name].section for name in self.metrics if name in self.answers}
        apart = ", ".join(f"{name} {n}" for name, n in c.n_tests.items() if name in shown)
        counted = [f"over {c.n_tests[HEADLINE]} comparisons"] if HEADLINE in c.n_tests else []
        counted += [f"(each section by itself: {apart})"] if apart else []
        said = [
            f.about_best
            + (" among the runs of its N; only those of one N make pairs." if self.several_budgets else "."),
            f.text(
                f"† differs from {base} after Holm's correction {' '.join(counted)}, p < {ALPHA}, "
                f"by {tests}, paired by topic."
            ),
        ]
        if c.baseline_chosen:
            said.append(f.text(f"{base} was taken {self._why_chosen()}, so Holm counts all pairs."))
        said.append(
            f.text("In brackets: 95 % intervals over topics; of metrics as logged, of differences paired by topic.")
        )
        return said

    def _why_chosen(self) -> str:
        """Why this run of a sweep is the baseline; of several with the best IR score none is called the best."""
        runs = self.c.runs
        scores = runs.loc[runs["compared"], "ir_score"].dropna() if "ir_score" in runs else runs["run_id"].iloc[:0]
        if scores.empty:
            return "as the first, since none has an IR score"
        tied = int(scores.eq(scores.max()).sum())
        return "for its IR score, the best of them" if tied == 1 else f"as the first of {tied} with the best IR score"

    def topics(self, n: int) -> list[tuple[str, pd.DataFrame]]:
        """The lists of topics that differ most, each with its heading."""
        lists = []
        for by, what in (("ir_score", "IR score"), ("class", "judge class")):
            rows, count = most_different(self.c, by, n)
            if by == "class" and self.c.outcomes["label"].isna().all():
                continue
            most = f"Topics that differ most in {what}: {len(rows)} of {count}"
            lists.append((most if count else f"No topic differs in {what}", rows))
        return lists

    def sides(self, row: Mapping[Any, Any]) -> list[tuple[str, str, str, str]]:
        """Run, IR score, class and answer of the baseline and of the other run; not shortened, cleaned."""
        return [
            (
                clean(self.c.names[run_id]),
                self.format.number(row[f"ir_score{end}"], ".3f"),
                _class_name(row[f"label{end}"]),
                "no answer" if pd.isna(row[f"answer{end}"]) else clean(row[f"answer{end}"]),
            )
            for run_id, end in ((self.c.baseline, "_base"), (row["run_id"], ""))
        ]

    def heading(self) -> str:
        """What is compared, in a line; not escaped."""
        common = dict(self.c.common)
        parts = [f"{group} {common[group]}" for group in GROUPS if group in common]
        others = [f"{key}={common[key]}" for key in ("n_tokens", "seed", "bootstrap") if key in common]
        where = f" of experiment {common['experiment']}" if "experiment" in common else ""
        topics = f", {common['topics']} topics" if "topics" in common else ""
        return f"{len(self.c.runs)} runs{where}{topics}. In common: {', '.join([*parts, *others]) or 'nothing'}."

    def pairs_heading(self) -> str:
        """Heading of the paired differences; not escaped."""
        at = "" if self.c.n_tokens is None else f", N = {self.c.n_tokens} tokens"
        return f"Paired differences from {self.c.names[self.c.baseline]}{at}"

    def found(self) -> list[tuple[str, list[str | Table]]]:
        """What findings show: headings, not escaped, each with its paragraphs, escaped, and tables."""
        return [(section.heading, list(self._blocks(section))) for section in self.c.sections]

    def _blocks(self, section: Section) -> Iterator[str | Table]:
        for block in section.blocks:
            if isinstance(block, Grid):
                yield table_of(block, self.format)
            elif isinstance(block, Text):
                yield self.format.text(block.text)


def _budgets(values: Sequence[int]) -> str:
    found = sorted(set(values))
    return ", ".join(map(str, found)) if len(found) < 5 else f"{found[0]} to {found[-1]}, {len(found)} in all"


def _p(value: float) -> str:
    return NOTHING if value != value else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _class_name(label: Any) -> str:
    return NAMES["judge_share_missing" if pd.isna(label) else f"judge_share_{int(label)}"]
