"""Compares every measure per topic with the outcome of the answer, to find which one predicts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge.contract.finding import (
    Block,
    Cell,
    Col,
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
from ragauge.contract.metrics import IR_SCORE
from ragauge.findings.tables import between, number
from ragauge.plugins.foresight.measures import BEFORE, Foresight, foresight
from ragauge.plugins.foresight.target import JUDGE
from ragauge.show.drawing import LINE_COLOURS, legend, legend_rows, new_figure, plain
from ragauge.show.formats import score, whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AFTER = ("answer",)
_GROUPS = {"before": ("Known before the LLM answers", BEFORE), "after": ("Known once it has answered", AFTER)}
ALPHA = 0.05  # of the tests of which measure foresees best
_SHOWN = 25  # measures in the figure; all are in the table
_HEIGHT = 0.26  # inches of a measure


class Foresees(Finding):
    """How well each measure foresees which answers are right."""

    name = "foresight"
    after = "predicted"
    metrics = ("foresight_{auc_right,auc_lack,spearman,kendall}/*",)

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`Foresight`; None if there is no target to compare with."""
        target = jobs.records[0].foresight.get("target")
        value = foresight(jobs.at_n, jobs.answer_measures, target, jobs.n_boot, jobs.seed)
        if value is None:
            return None
        return Found(value, metrics=value.metrics(), tables={"measures": value.table}, logged={"measures": value.table})

    def show(self, jobs: Jobs, value: Foresight, found: Founds) -> Shown:
        """The measures known before the LLM answers, and those after."""
        figure = foresight_figure(value)
        judged = value.target == JUDGE
        against = "the judge's class" if judged else f"`{value.target}`"
        systems = "system" if value.n_systems == 1 else "systems"
        blocks: list[Block] = [
            Text(
                f"The tables compare every measure of a topic with {against}, at N = {jobs.n_tokens} tokens, "
                f"over {whole(value.n_topics)} topics and {value.n_systems} {systems}. {best_sentence(value)}".rstrip()
            ),
            Picture(
                "foresight",
                "The area under the ROC curve of every measure for right answers, with intervals",
                "AUC for right answers: the probability that a right answer has a higher value than one that is not "
                "right, within a system. 0.5 is chance.",
            ),
        ]
        for title, of in _GROUPS.values():
            rows = value.table[value.table["of"].isin(of)]
            if len(rows):
                blocks += [Heading(title), foresight_grid(title, rows, value)]
        measures = value.table["measure"].nunique()
        blocks.append(
            Text(
                "AUC for lack: the probability that a lack of information has a lower value than another answer. AUC "
                "and Spearman's correlation compare topics within a system; Kendall's tau compares the systems' "
                "means, and says little of a few systems. † marks a difference to the IR score that remains after "
                f"Holm's correction over {measures} measures (p < 0.05), on the topics that have both. What a measure "
                "adds is the AUC, right, that a predictor of both gains on unseen topics. A measure whose lower values "
                "are better counts with its sign changed. All of it is in measures.json and tables/measures.csv.",
                "small",
            )
        )
        drawn = {} if figure is None else {"foresight": figure}
        section = Section("Which measure foresees the answers", blocks)
        return Shown([section], figures=drawn)


def best_sentence(value: Foresight) -> str:
    """Names the measure that best foresees the answers before an LLM is asked; "" if none is defined."""
    best = best_of(value)
    if best is None:
        return ""
    auc = f"AUC {score(best['value'])}{between(best['lo'], best['hi'], score)}"
    if best["shown"]:
        return f"Among the measures known before the LLM answers, {best['label']} foresees best: {auc}{best['beside']}."
    return (
        "No measure that is known before the LLM answers is shown to foresee which answers are right; the best is "
        f"{best['label']}: {auc}."
    )


def foresight_grid(title: str, rows: pd.DataFrame, value: Foresight) -> Grid:
    judged, with_ir = value.target == JUDGE, IR_SCORE.name in set(value.table["measure"])
    several = value.n_systems > 2
    aucs = {"auc_right": "AUC, right", **({"auc_lack": "AUC, lack"} if judged else {})}
    columns: list[Col | str] = ["Measure", "Topics"]
    for name in aucs.values():
        columns += [Col(name), *([f"less {IR_SCORE.label}"] if with_ir else [])]
    before = with_ir and bool(rows["of"].isin(BEFORE).any())
    columns += [f"adds to {IR_SCORE.label}"] if before else []
    columns += ["Spearman / over topics", *(["Kendall / over systems"] if several else [])]
    lines: list[tuple[float, list[Cell]]] = []
    for measure, part in rows.groupby("measure", sort=False):
        of = part.set_index("statistic").to_dict("index")
        cells: list[Cell] = [Tagged(str(part["label"].iloc[0]), below=str(measure)), Num(part["n"].iloc[0], "whole")]
        for auc in aucs:
            e = of[auc]
            cells.append(number(e, "value"))
            if with_ir:
                mark = "†" if e["p_holm"] < 0.05 else ""
                cells.append(number(e, "less_ir", "signed", mark))
        if before:
            cells.append(number(of["auc_right"], "adds", "signed"))
        for statistic in ("spearman", *(["kendall"] if several else [])):
            e = of[statistic]
            cells.append(number(e, "value"))
        lines.append((-_number(of["auc_right"]["value"]), cells))
    return Grid(title, columns, [cells for _, cells in sorted(lines, key=lambda line: line[0])])


def foresight_figure(found: Foresight) -> Figure | None:
    """AUC of every measure for right answers, the best first, with intervals; None if none is defined."""
    table = found.table[found.table["statistic"] == "auc_right"].dropna(subset="value")
    table = table.sort_values("value", ascending=False, kind="stable").head(_SHOWN)
    if table.empty:
        return None
    drawn = [(title, of, table["of"].isin(of)) for title, of in _GROUPS.values()]
    drawn = [(title, of, rows) for title, of, rows in drawn if rows.any()]
    figure, axes = new_figure(0.7 + _HEIGHT * len(table), legend_rows(len(drawn), 1))
    at = np.arange(len(table))[::-1]
    for turn, (title, _, rows) in enumerate(drawn):
        values = table.loc[rows, "value"].to_numpy(dtype=float)
        lo, hi = (table.loc[rows, end].fillna(table["value"]).to_numpy(dtype=float) for end in ("lo", "hi"))
        reach = np.abs(np.vstack([values - lo, hi - values]))
        style: dict[str, Any] = {"fmt": "os"[turn], "color": LINE_COLOURS[turn], "ms": 5, "lw": 1.2}
        axes.errorbar(values, at[rows.to_numpy()], xerr=reach, label=title, **style)
    axes.axvline(0.5, color="#777777", lw=1, ls=":")
    ir_score = table.loc[table["measure"] == IR_SCORE.name, "value"]
    if len(ir_score):
        axes.axvline(float(ir_score.iloc[0]), color=LINE_COLOURS[0], lw=0.8, alpha=0.5)
    axes.set_yticks(at, [plain(label) for label in table["label"]], fontsize=8.5)
    axes.set_ylim(-0.6, len(table) - 0.4)
    axes.set_xlabel("AUC for right answers; 0.5 is chance")
    axes.grid(axis="x", alpha=0.25)
    legend(figure, axes, 1)
    return figure


def best_of(found: Foresight) -> dict[str, Any] | None:
    """The measure known before the LLM answers that foresees best; None if none is defined.

    shown: whether it is better than chance, tested over all these measures at once (`p_chance`). label: the labels of
        all measures that tie. beside: how many others may be as good (`p_best`), in words.
    """
    rows = found.table[(found.table["statistic"] == "auc_right") & found.table["of"].isin(BEFORE)]
    rows = rows.dropna(subset="value")
    if rows.empty:
        return None
    best = rows.sort_values("value", ascending=False, kind="stable").iloc[0]
    row = {str(column): value for column, value in best.items()}
    label = " = ".join(rows.loc[np.isclose(rows["value"], best["value"], rtol=0, atol=1e-12), "label"])
    also = int((rows["p_best"] >= ALPHA).sum()) - label.count(" = ") - 1
    beside = f"; {also} other{'s' if also > 1 else ''} may be as good" if also > 0 else ""
    return {**row, "label": label, "shown": not row["p_chance"] >= ALPHA, "beside": beside}


def _number(value: float) -> float:
    return value if value == value else -1.0
