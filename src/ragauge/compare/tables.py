"""A comparison as text for a terminal, Markdown, LaTeX and CSV."""

from __future__ import annotations

import html
import re
import textwrap
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from ragauge.compare.comparison import Comparison, most_different
from ragauge.contract.answer_measures import column_label
from ragauge.contract.errors import ConfigError
from ragauge.contract.groups import GROUPS
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.measures.rankings import CLASSICS

ALPHA = 0.05
_NOTHING = "–"
_MAX_VALUE, _MAX_QUESTION, _MAX_ANSWER = 60, 120, 160  # characters in a cell
_MIN_NAME = 8  # columns of a terminal that a name keeps
_NAMES = {
    "ir_score": "IR score",
    "correct_share": "right",
    "hallucination_share": "hallucination",
    "judge_share_1": "1 lack",
    "judge_share_2": "2 partly wrong",
    "judge_share_3": "3 incomplete",
    "judge_share_4": "4 wrong",
    "judge_share_5": "5 right",
    "judge_share_missing": "no verdict",
    "predicted_correct_share": "predicted right",
    "predicted_hallucination_share": "predicted hallucination",
    "cost_usd": "cost, USD",
    "judge_cost_usd": "judge's cost, USD",
    **{metric: name for name, metric in CLASSICS.items()},
}
_DEFAULT = (
    "ir_score", "correct_share", "hallucination_share", "predicted_correct_share",
    "predicted_hallucination_share", *(f"judge_share_{c}" for c in (1, 2, 3, 4, "missing")), "p_at_1",
    "r_at_5", "ndcg_at_10", "rr", "cost_usd", "judge_cost_usd",
)  # fmt: skip
_HIGHER = {"ir_score", "correct_share", "judge_share_5", "predicted_correct_share", *CLASSICS.values()}
_LOWER = {
    "hallucination_share", "judge_share_2", "judge_share_4", "judge_share_missing",
    "predicted_hallucination_share",
}  # fmt: skip
_TESTED = {"ir_score": "ir_score", "correct_share": "correct"}  # metric to measure of the pairs


def choose_metrics(comparison: Comparison, asked: str | None = None, everything: bool = False) -> list[str]:
    """The metrics to show: those asked for (names with commas between), all, or a sensible few.

    The few are those that some run has, and costs only where something was paid. ConfigError for a name that
    no run has.
    """
    there = [
        c for c in map(str, comparison.runs) if c not in ("run_id", "run", "system", "n_tokens", "compared")
    ]
    values = comparison.runs[there]
    known = [c for c in there if values[c].notna().any()]
    default = (*_DEFAULT, *(info.name for info in comparison.answers))
    if everything:
        ends = {f"{c}{end}" for c in known for end in ("_lo", "_hi")}
        return [*(c for c in default if c in known), *(c for c in known if c not in {*ends, *default})]
    if asked is None:
        return [c for c in default if c in known and (not c.endswith("cost_usd") or values[c].gt(0).any())]
    chosen = list(dict.fromkeys(CLASSICS.get(name.strip(), name.strip()) for name in asked.split(",")))
    unknown = [name for name in chosen if name not in known]
    if unknown:
        names = ", ".join(c for c in known if not c.endswith(("_lo", "_hi")))
        raise ConfigError(f"--metrics: no run has {unknown[0]!r}; there are {names}")
    return chosen


# --- cells and escapes --------------------------------------------------------------------------------------

# Escape sequences of terminals: CSI, OSC and its kin, and those of two characters.
_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)|\x1b.|\x9b[0-?]*[@-~]", re.S
)
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(value: object) -> str:
    """A text of a corpus, model or person as one line that does nothing to a terminal."""
    text = _BIDI.sub("", _SEQUENCES.sub("", str(value)))
    text = "".join(" " if c.isspace() else "" if unicodedata.category(c) == "Cc" else c for c in text)
    # Lone surrogates, which a JSON corpus may hold, have no UTF-8.
    return " ".join(text.encode("utf-8", "replace").decode("utf-8").split())


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|~!#])", r"\\\1", html.escape(text, quote=False))


# A star or bracket at the beginning of a row would be read as an argument of the row before it.
_LATEX: dict[str, str | int | None] = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "*": "{*}",
    "[": "{[}", "|": r"\textbar{}", "·": r"\textperiodcentered{}", "–": "--", "†": r"$\dagger$",
    "…": r"\ldots{}", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
}  # fmt: skip


def _escape_latex(text: str) -> str:
    return text.translate(str.maketrans(_LATEX))


@dataclass(frozen=True)
class _Format:
    """How a format writes texts and marks numbers; templates take the number as `{}`."""

    escape: Callable[[str], str]
    best: str
    differs: str
    interval: str
    minus: str
    about_best: str
    padded: int = 0

    def text(self, value: object) -> str:
        """Any text, harmless in this format."""
        return self.escape(clean(value))

    def number(self, value: float, spec: str) -> str:
        """A number by its format specification; a dash for NaN."""
        return self.escape(_NOTHING) if value != value else format(value, spec).replace("-", self.minus)

    def marked(self, value: float, spec: str, best: bool, differs: bool, lo: float, hi: float) -> str:
        """A number with its marks and its interval, where there is one."""
        number = self.number(value, spec)
        cell = (self.differs if differs else "{}").format(self.best.format(number) if best else number)
        cell = cell.ljust(len(number) + self.padded)
        if lo != lo or hi != hi:
            return cell
        return self.interval.format(cell, self.number(lo, spec), self.number(hi, spec))


_TEXT = _Format(str, "{}^", "{}†", "{} [{}, {}]", "-", "^ best of its column", padded=2)
_MARKDOWN = _Format(_escape_markdown, "**{}**", "{}†", "{} [{}, {}]", "−", "Bold: best of its column")
_LATEX_FORMAT = _Format(
    _escape_latex, r"\textbf{{{}}}", r"{}$^{{\dagger}}$", r"{} {{\scriptsize [{}, {}]}}", "$-$",
    "Bold: best of its column",
)  # fmt: skip


@dataclass(frozen=True)
class _Table:
    """Cells that are escaped for their format; the first `n_keys` columns are texts, the others numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_keys: int


# --- what every format shows --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _View:
    """The tables of a comparison in one format."""

    c: Comparison
    metrics: Sequence[str]
    format: _Format

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
        if metric in self.answers:
            return self.format.text(column_label(self.answers[metric]))
        return self.format.text(_NAMES.get(metric, metric))

    @cached_property
    def several_budgets(self) -> bool:
        """Whether there are jobs at other budgets than that of the pairs."""
        return self.c.n_tokens is not None and bool((self.c.runs["n_tokens"] != self.c.n_tokens).any())

    def parameters(self) -> _Table | None:
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
        return _Table([self.format.text(name) for name in header], rows, len(header))

    def _value(self, value: object) -> str:
        """A parameter, which may be a whole prompt, as far as a table has room for it."""
        return self.format.text(_fit(clean(value), _MAX_VALUE)) if isinstance(value, str) else self.missing

    @property
    def missing(self) -> str:
        """What stands where there is no value."""
        return self.format.escape(_NOTHING)

    def metric_table(self, runs: pd.DataFrame, ids: bool) -> _Table:
        """The metrics of the runs, a row per run, the best marked."""
        groups = runs["n_tokens"] if self.several_budgets else pd.Series(0, index=runs.index)
        columns = {name: self._metric(runs, name, groups) for name in self.metrics}
        keys = {"run": [self.format.text(run) for run in runs["run"]]}
        if ids:
            keys["id"] = [run_id[:8] for run_id in runs["run_id"]]
        header = [*keys, *map(self._name, columns)]
        rows = [list(row) for row in zip(*keys.values(), *columns.values(), strict=True)]
        return _Table(header, rows, len(keys))

    def _metric(self, runs: pd.DataFrame, name: str, groups: pd.Series) -> list[str]:
        values = runs[name]
        known = values.dropna()
        whole = len(known) > 0 and bool((known % 1 == 0).all()) and bool((known.abs() > 1).any())
        spec = ",.0f" if whole else ".4f" if name.endswith("cost_usd") else ".3f"
        by_group = values.groupby(groups)
        best = pd.Series(False, index=runs.index)
        lower = name in _LOWER or (name in self.answers and self.answers[name].direction == "lower")
        if name in _HIGHER | _LOWER or name in self.answers:
            # Where all are equal, none is best.
            top = by_group.transform("min" if lower else "max")
            best = values.eq(top) & (by_group.transform("min") < by_group.transform("max"))
        nan = pd.Series(float("nan"), index=runs.index)
        lows, highs = (runs.get(f"{name}_{end}", nan) for end in ("lo", "hi"))
        p = [self.p_values.get((run_id, _TESTED.get(name, name)), 1.0) for run_id in runs["run_id"]]
        rows = zip(values, best, p, lows, highs, strict=True)
        return [self.format.marked(v, spec, b, q < ALPHA, lo, hi) for v, b, q, lo, hi in rows]

    def pair_table(self) -> _Table:
        """The differences from the baseline, a row per run."""
        measures = {"ir_score": "IR score", "correct": "right"}
        measures |= {name: column_label(info) for name, info in self.answers.items()}
        by_run = {(row["run_id"], row["measure"]): row for row in self.c.pairs.to_dict("records")}
        shown = [m for m in measures if (self.c.pairs["measure"] == m).any()]
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
        return _Table([self.format.text(name) for name in header], rows, 1)

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
        if self.c.answers:
            tests += " and of answer measures (↑ higher, ↓ lower is better)"
        if (c.pairs["measure"] == "correct").any():
            tests += " and McNemar's exact test of right answers"
        said = [
            f.about_best
            + (" among the runs of its N; only those of one N make pairs." if self.several_budgets else "."),
            f.text(
                f"† differs from {base} after Holm's correction over {c.n_tests} comparisons (p < {ALPHA}), "
                f"by {tests}, paired by topic."
            ),
        ]
        if c.baseline_chosen:
            said.append(
                f.text(f"{base} was taken for its IR score, the best of them, so Holm counts all pairs.")
            )
        if c.n_boot:
            said.append(
                f.text(
                    "In brackets: 95 % bootstrap intervals over topics; of metrics as logged, of differences "
                    f"from {c.n_boot:,} replicates with seed {c.seed}."
                )
            )
        return said

    def topics(self, n: int) -> list[tuple[str, pd.DataFrame]]:
        """The lists of topics that differ most, each with its heading."""
        lists = []
        for by, what in (("ir_score", "IR score"), ("class", "judge class")):
            rows, count = most_different(self.c, by, n)
            if by == "class" and self.c.outcomes["label"].isna().all():
                continue
            lists.append((f"Topics that differ most in {what}: {len(rows)} of {count}", rows))
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
        return (
            f"{len(self.c.runs)} runs{where}{topics}. In common: {', '.join([*parts, *others]) or 'nothing'}."
        )

    def pairs_heading(self) -> str:
        """Heading of the paired differences; not escaped."""
        at = "" if self.c.n_tokens is None else f", N = {self.c.n_tokens} tokens"
        return f"Paired differences from {self.c.names[self.c.baseline]}{at}"


def _budgets(values: Sequence[int]) -> str:
    found = sorted(set(values))
    return ", ".join(map(str, found)) if len(found) < 5 else f"{found[0]} to {found[-1]}, {len(found)} in all"


def _p(value: float) -> str:
    return _NOTHING if value != value else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _class_name(label: Any) -> str:
    return _NAMES["judge_share_missing" if pd.isna(label) else f"judge_share_{int(label)}"]


# --- the formats --------------------------------------------------------------------------------------------


def text(comparison: Comparison, metrics: Sequence[str], n_topics: int, width: int) -> str:
    """The comparison for a terminal of `width` columns; a table that is wider goes on below itself."""
    view = _View(comparison, metrics, _TEXT)
    parameters = view.parameters()
    blocks = [_wrap(view.heading(), width)]
    if parameters is not None:
        blocks.append("What differs\n" + _text_table(parameters, width))
    n_tokens = comparison.runs["n_tokens"].tolist()
    starts = [i for i in range(1, len(n_tokens)) if view.several_budgets and n_tokens[i] != n_tokens[i - 1]]
    table = view.metric_table(comparison.runs, ids=True)
    blocks.append("Metrics\n" + _text_table(table, width, starts))
    blocks.append(_wrap(view.pairs_heading(), width) + "\n" + _text_table(view.pair_table(), width))
    blocks.append("\n".join(_wrap(line, width) for line in (*view.about_tests(), *comparison.notes)))
    if n_topics:
        for heading, rows in view.topics(n_topics):
            blocks.append("\n".join([_wrap(heading, width), *_text_topics(view, rows, width)]))
    return "\n\n".join(blocks) + "\n"


def _wrap(line: str, width: int) -> str:
    return textwrap.fill(clean(line), max(width, 20), break_on_hyphens=False)


def _text_topics(view: _View, rows: pd.DataFrame, width: int) -> list[str]:
    lines = []
    for number, row in enumerate(rows.to_dict("records"), 1):
        lines.append(_fit(f"{number:>3}. {clean(row['qid'])}: {clean(row['query'])}", width))
        sides = view.sides(row)
        names = max(_cells(name) for name, *_ in sides)
        classes = max(len(side[2]) for side in sides)
        for name, score, judged, answer in sides:
            lines.append(_fit(f"     {_pad(name, names)}  {score}  {judged:<{classes}}  {answer}", width))
    return lines


def _text_table(table: _Table, width: int, starts: Collection[int] = ()) -> str:
    """Columns side by side as far as they fit; the rest below, behind the key columns again.

    Where not even one fits beside the keys, the first column is cut short. Before the rows numbered `starts`
    a line is left empty.
    """
    columns = list(zip(table.header, *table.rows, strict=True))
    sizes = [max(map(_cells, column)) for column in columns]
    # Of a table of texts the first column alone is repeated.
    n_keys = table.n_keys if table.n_keys < len(columns) else 1
    others = sum(size + 2 for size in sizes[1:n_keys]) + 2 + max(sizes[n_keys:], default=0)
    sizes[0] = min(sizes[0], max(width - others, _MIN_NAME))
    room = width - sum(size + 2 for size in sizes[:n_keys])
    blocks: list[list[int]] = [[]]
    for column in range(n_keys, len(columns)):
        if blocks[-1] and sum(sizes[c] + 2 for c in blocks[-1]) + sizes[column] > room:
            blocks.append([])
        blocks[-1].append(column)
    lines = []
    for block in blocks:
        shown = [*range(n_keys), *block]
        for number, row in enumerate(zip(*(columns[c] for c in shown), strict=True), -1):
            lines += [""] if number in starts else []
            cells = [
                _pad(_fit(cell, sizes[c]), sizes[c], right=c >= table.n_keys)
                for cell, c in zip(row, shown, strict=True)
            ]
            lines.append(_fit("  ".join(cells).rstrip(), width))
    return "\n".join(lines)


def _cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def _pad(text: str, size: int, right: bool = False) -> str:
    blank = " " * max(0, size - _cells(text))
    return blank + text if right else text + blank


def _fit(text: str, width: int) -> str:
    """The text, or as much of it as fits with an ellipsis."""
    if _cells(text) <= width:
        return text
    kept = text[: max(width - 1, 1)]
    while _cells(kept) > max(width - 1, 1):
        kept = kept[:-1]
    return kept + "…"


def markdown(comparison: Comparison, metrics: Sequence[str], n_topics: int) -> str:
    """The comparison as Markdown with pipe tables."""
    view = _View(comparison, metrics, _MARKDOWN)
    f = view.format
    parameters = view.parameters()
    blocks = [f.text(view.heading())]
    if parameters is not None:
        blocks += ["### What differs", _markdown_table(parameters)]
    blocks += ["### Metrics", _markdown_table(view.metric_table(comparison.runs, ids=True))]
    blocks += [f"### {f.text(view.pairs_heading())}", _markdown_table(view.pair_table())]
    lines = [*view.about_tests(), *map(f.text, comparison.notes)]
    blocks.append("\n".join(f"- {line}" for line in lines))
    if n_topics:
        for heading, rows in view.topics(n_topics):
            cells = [
                (*(f.text(_fit(clean(row[x]), _MAX_QUESTION)) if first else "" for x in ("qid", "query")),
                 f.text(name), f.text(judged), f.text(_fit(answer, _MAX_ANSWER)), score)
                for row in rows.to_dict("records")
                for first, (name, score, judged, answer) in zip((True, False), view.sides(row), strict=True)
            ]  # fmt: skip
            table = _Table(["qid", "question", "run", "class", "answer", "IR score"], cells, 5)
            blocks += [f"### {heading}", *([_markdown_table(table)] if cells else [])]
    return "\n\n".join(blocks) + "\n"


def _markdown_table(table: _Table) -> str:
    numbers = len(table.header) - table.n_keys
    rule = [*["---"] * table.n_keys, *["---:"] * numbers]
    return "\n".join("| " + " | ".join(row) + " |" for row in (table.header, rule, *table.rows))


def latex(comparison: Comparison, metrics: Sequence[str]) -> str:
    """Two booktabs tables of the compared runs: their metrics, and their differences from the baseline."""
    compared = comparison.runs[comparison.runs["compared"]]
    if compared["n_tokens"].nunique() == 1 and compared["system"].is_unique:
        compared = compared.assign(run=compared["system"])  # the caption names the budget
    view = _View(replace(comparison, runs=compared), metrics, _LATEX_FORMAT)
    f, common = view.format, comparison.common
    ids = zip(compared["run"], compared["run_id"], strict=True)
    on = f" on {f.text(common['dataset'])}" if "dataset" in common else ""
    topics = f", {common['topics']} topics" if "topics" in common else ""
    at = "" if comparison.n_tokens is None else f", $N = {comparison.n_tokens}$ tokens"
    metrics_caption = [f"RAG systems{on}{topics}{at}.", *view.about_tests(), *map(f.text, comparison.notes)]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            *(f"% {clean(run)}: MLflow run {run_id}" for run, run_id in ids),
            _latex_table(
                view.metric_table(view.c.runs, ids=False), " ".join(metrics_caption), "tab:ragauge-metrics"
            ),
            _latex_table(
                view.pair_table(),
                f"{f.text(view.pairs_heading())}. Marks, tests and intervals as in "
                r"Table~\ref{tab:ragauge-metrics}.",
                "tab:ragauge-differences",
            ),
        ]
    )


def _latex_table(table: _Table, caption: str, label: str) -> str:
    frame = pd.DataFrame(list(table.rows), columns=list(range(len(table.header))))
    return frame.to_latex(
        index=False,
        escape=False,
        header=list(table.header),
        column_format="l" * table.n_keys + "r" * (len(table.header) - table.n_keys),
        caption=caption,
        label=label,
        position="t",
    )


def runs_csv(comparison: Comparison, metrics: Sequence[str]) -> str:
    """A row per run: what differs, the metrics with their ends, and the differences from the baseline.

    Numbers in full precision; nothing where there is none. The differences are `difference_<measure>` with
    `_lo`, `_hi`, `_p`, `_p_holm` and `_topics`.
    """
    c = comparison
    ends = [name + end for name in metrics for end in ("", "_lo", "_hi") if name + end in c.runs]
    frame = c.runs[["run_id", "run", "n_tokens"]].assign(is_baseline=c.runs["run_id"] == c.baseline)
    params = c.params.drop(columns="n_tokens", errors="ignore").reset_index(names="run_id")
    frame = frame.merge(params, on="run_id", validate="one_to_one")
    frame = frame.merge(c.runs[["run_id", *ends]], on="run_id", validate="one_to_one")
    for measure in dict.fromkeys(c.pairs["measure"]):
        pairs = c.pairs[c.pairs["measure"] == measure].drop(columns="measure")
        names = {"difference": "", "lo": "_lo", "hi": "_hi", "p": "_p", "p_holm": "_p_holm", "n": "_topics"}
        pairs = pairs.rename(columns={k: f"difference_{measure}{v}" for k, v in names.items()})
        pairs = pairs.astype({f"difference_{measure}_topics": "Int64"})
        frame = frame.merge(pairs, on="run_id", how="left", validate="one_to_one")
    return _csv(frame)


def topics_csv(comparison: Comparison) -> str:
    """A row per compared run and topic: scores, classes and answers, and the difference from the baseline."""
    outcomes = comparison.outcomes.assign(run=comparison.outcomes["run_id"].map(comparison.names))
    first = ["run_id", "run", "qid"]
    return _csv(outcomes[[*first, *(c for c in outcomes if c not in first)]])


def _csv(frame: pd.DataFrame) -> str:
    texts = frame.select_dtypes(include=["object", "string"]).columns
    cleaned = frame.copy()
    for column in texts:
        cleaned[column] = frame[column].map(clean, na_action="ignore")
    return str(cleaned.to_csv(index=False, lineterminator="\n"))
