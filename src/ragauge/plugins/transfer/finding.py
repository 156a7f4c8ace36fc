"""Transfer: predictions for an unseen retriever, dataset, chunker or LLM by a predictor fitted on the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge.contract.finding import (
    Block,
    Finding,
    Fold,
    Found,
    Founds,
    Heading,
    Num,
    Picture,
    Section,
    Shown,
    Text,
)
from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.jobs import Jobs
from ragauge.contract.metrics import Metric
from ragauge.estimate.outcomes import fit_rows
from ragauge.findings.tables import SHORT, between, number, table
from ragauge.findings.thresholds import features_of
from ragauge.plugins.transfer.measured import Transfer, leave_one_out, transfer_metrics
from ragauge.show.drawing import CLASS_COLOURS, MARKERS, legend, legend_rows, new_figure, plain
from ragauge.show.formats import score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRANSFER_GROUPS = ("retriever", "chunker", "llm")


class Transfers(Finding):
    """Transfer errors with one left out, by the left-out column."""

    name = "transfer"
    after = "predicted"
    metrics = (
        Metric("transfer_mae", group="predictor", headline=True),
        Metric("transfer{,_*}_{mae,mae_lo,mae_hi,mae_base,mae_perfect,kendall_tau}", group="predictor"),
    )

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """{left-out column: `Transfer`}; None if nothing was judged twice."""
        if "thresholds" not in found:
            return None
        rows = fit_rows(jobs.outcomes, features_of(jobs))
        known = rows[rows["label"].notna()]
        moved = {
            by: leave_one_out(rows, by, **jobs.records[0].estimate, n_boot=jobs.n_boot, seed=jobs.seed)
            for by in TRANSFER_GROUPS
            if known[by].nunique() > 1
        }
        same = [jobs, *(other for other in jobs.siblings if other.means == jobs.means)]
        if (over := over_datasets(same)) is not None:
            moved["dataset"] = over
        if not moved:
            return None
        tables = {f"transfer_{by}": one.table for by, one in moved.items()}
        return Found(moved, metrics=transfer_metrics(moved), tables=tables)

    def show(self, jobs: Jobs, value: dict[str, Transfer], found: Founds) -> Shown:
        """Predicted against judged shares, a figure for each."""
        blocks: list[Block] = []
        for by, moved in value.items():
            blocks += [*([Heading(f"By {by}")] if len(value) > 1 else []), *_blocks(by, moved)]
        drawn = {f"transfer_{by}": transfer_figure(moved.table) for by, moved in value.items()}
        return Shown([Section("Transfer to what the predictor has not seen", blocks, folded=True)], figures=drawn)


def over_datasets(groups: Sequence[Jobs]) -> Transfer | None:
    """Leaves one dataset out among groups with equal measuring settings; None if under two have verdicts."""
    judged = sorted(
        (jobs for jobs in groups if fit_rows(jobs.outcomes, features_of(jobs))["label"].notna().any()),
        key=lambda jobs: min(record.number for record in jobs.records),
    )
    if len(judged) < 2:
        return None
    # Topics of two collections are different ones, whatever their qids.
    rows = pd.concat(
        [
            (rows := fit_rows(jobs.outcomes, features_of(jobs))).assign(
                dataset=jobs.dataset, qid=jobs.dataset + "/" + rows["qid"].astype(str)
            )
            for jobs in judged
        ],
        ignore_index=True,
    )
    first = judged[0]
    return leave_one_out(rows, "dataset", **first.records[0].estimate, n_boot=first.n_boot, seed=first.seed)


def _blocks(by: str, t: Transfer) -> list[Block]:
    missed, tau = t.mean_absolute_error, t.kendall_tau
    grid = table(
        f"Transfer by {by}",
        "Left out | <Class | Predicted | Judged | Difference / points | Rows",
        t.table,
        lambda row: [
            str(row["group"]),
            f"{row['class']} {SHORT[row['class']]}",
            Num(row["predicted"], "share"),
            Num(row["judged"], "share"),
            number(row, "difference", "points"),
            Num(row["n"], "whole"),
        ],
    )
    return [
        Text(
            f"Each {by} is predicted by a model of the others, fitted on other topics. On as many new topics the class "
            f"shares would be missed by {_points(missed.value)} points on average"
            f"{between(missed.lo, missed.hi, _points)}. Perfect transfer would miss by "
            f"{_points(t.mean_absolute_error_perfect)}, as topics are drawn by chance. The others' shares, unchanged, "
            f"miss by {_points(t.mean_absolute_error_base.value)}. Kendall's τ between the predicted and "
            f"the judged order is {score(tau.value)}{between(tau.lo, tau.hi, score)}."
        ),
        Picture(
            f"transfer_{by}",
            f"Predicted class shares against judged ones, a marker per left-out {by}; the table has the values",
            "Points on the dashed line are predicted as the judge found them.",
        ),
        Fold("The values, with intervals", [grid]),
    ]


def _points(value: Any) -> str:
    return f"{100 * value:.1f}" if value == value else "–"


def transfer_figure(table: pd.DataFrame) -> Figure:
    """Predicted against judged share of each class, a marker per left-out group.

    `table` has group, class, predicted and judged.
    """
    groups = list(dict.fromkeys(table["group"]))
    figure, axes = new_figure(3.6, legend_rows(len(groups) + len(CLASS_COLOURS), 2))
    top = float(max(table["predicted"].max(), table["judged"].max(), 0.1)) * 1.08
    axes.plot([0, top], [0, top], color="#999999", lw=1, ls="--", zorder=1)
    for i, group in enumerate(groups):
        rows = table[table["group"] == group]
        marker = MARKERS[i % len(MARKERS)]
        axes.scatter(
            rows["judged"],
            rows["predicted"],
            c=[CLASS_COLOURS[int(c)] for c in rows["class"]],
            marker=marker,
            s=48,
            alpha=0.85,
            edgecolors="white",
            linewidths=0.5,
            zorder=2,
        )
    for c, colour in CLASS_COLOURS.items():
        axes.plot([], [], "s", color=colour, label=f"{c} {JUDGE_CLASSES[c]}")
    for i, group in enumerate(groups):
        axes.plot([], [], MARKERS[i % len(MARKERS)], color="#444444", label=plain(group))
    axes.set_xlim(0, top)
    axes.set_ylim(0, top)
    axes.set_box_aspect(1)
    axes.grid(alpha=0.25)
    axes.set_xlabel("share that the judge found")
    axes.set_ylabel("share predicted from the other groups")
    legend(figure, axes, 2)
    return figure
