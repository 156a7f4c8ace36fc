"""Score against cost: tokens of context, seconds and money, with the frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge.contract.finding import (
    Cell,
    Col,
    Finding,
    Fold,
    Found,
    Founds,
    Grid,
    Heads,
    Num,
    Picture,
    Section,
    Shown,
    Text,
)
from ragauge.contract.jobs import Jobs
from ragauge.contract.metrics import LEAST_JUDGED, METRICS, MISSING, capitalised
from ragauge.show.drawing import LINE_COLOURS, MARKERS, WIDTH, legend, legend_rows, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COSTS = {"tokens": "context_tokens", "seconds": "seconds_per_topic", "cost": "cost_usd_per_topic"}
_P50 = "latency_total_p50"


class ScoreAgainstCost(Finding):
    """The jobs that no other beats at the same or a lower cost."""

    name = "pareto"
    after = "foresight"

    def compute(self, jobs: Jobs, found: Founds) -> Found:
        """The table of `score_against_cost`."""
        table = score_against_cost(jobs)
        return Found(table, tables={"score_against_cost": table})

    def show(self, jobs: Jobs, value: pd.DataFrame, found: Founds) -> Shown:
        """Points and frontier; nothing if the jobs' costs per topic do not differ."""
        figure = frontiers(value)
        if figure is None:
            return Shown()
        blocks = [
            Text(
                "Each point is a job. A job is on the frontier if no other job beats it at the same or a lower cost. "
                "For every job below the line there is another that is better and costs no more. Scores are as "
                "observed: of two jobs whose intervals in the leaderboard overlap, either may be the better."
            ),
            Picture(
                "pareto",
                "Points of score against cost, one per job, with the frontier; the jobs on it are in the table below",
                "Score against what a topic costs. Rings are jobs on the frontier.",
            ),
            _on_frontier(value),
        ]
        return Shown([Section("Score against cost", blocks)], figures={"pareto": figure})


def _on_frontier(table: pd.DataFrame) -> Fold:
    money = bool(table["cost"].gt(0).any())
    costs = {"tokens": "tokens", "seconds": "seconds", **({"cost": "money"} if money else {})}
    on = table[table[[f"on_{name}" for name in costs]].any(axis=1)]
    right = bool((table["measure"] == "correct").all())
    rows: list[list[Cell]] = []
    for row in on.sort_values("score", ascending=False, kind="stable").to_dict("records"):
        cells: list[Cell] = [Num(row["score"], "share" if right else "score"), Num(row["tokens"], "whole")]
        cells += [Num(row["seconds"], "milliseconds"), *([Num(row["cost"], "usd")] if money else [])]
        best = ", ".join(word for name, word in costs.items() if row[f"on_{name}"])
        rows.append([str(row["system"]), str(row["n_tokens"]), *cells, best])
    columns: Heads = [
        "System",
        "N",
        Col(capitalised(METRICS["correct" if right else "ir_score"].label)),
        "Tokens",
        "Seconds",
        *(["US dollars"] if money else []),
        "<Best for its",
    ]
    seconds = (
        "Seconds: the median of questions sent one by one."
        if table["latency"].all()
        else "Seconds are those of a batch, from question to answer, over its topics, at the time when the outputs "
        "were made. Replies that the ledger held took none."
    )
    paid = " US dollars: what all calls cost when they were asked first." if money else ""
    return Fold("The jobs on a frontier", [Text(seconds + paid, "small"), Grid("Jobs on a frontier", columns, rows)])


def score_against_cost(jobs: Jobs) -> pd.DataFrame:
    """A row per job: [system, n_tokens, measure, score, tokens, seconds, cost, on_tokens, …, latency].

    measure is `correct` where all jobs have verdicts on at least half of their answers,
    else `ir_score`; score is that of the job. Tokens of context,
    seconds and US dollars are per topic, NaN where unknown. Seconds are the median of `measure_latency` where all jobs
    have it (`latency` is then true), else those of a batch. on_* say whether the job is on the Pareto frontier of the
    score against that cost.
    """
    metrics = [record.metrics for record in jobs.records]
    judged = all(m.get(MISSING, 1) <= 1 - LEAST_JUDGED for m in metrics)
    measured = all(_P50 in m for m in metrics)
    sources = {**_COSTS, "seconds": _P50 if measured else _COSTS["seconds"]}
    table = pd.DataFrame(
        {
            "system": jobs.systems,
            "n_tokens": [record.n_tokens for record in jobs.records],
            "measure": "correct" if judged else "ir_score",
            "score": [float(m.get("correct_share" if judged else "ir_score", "nan")) for m in metrics],
            **{name: [float(m.get(key, "nan")) for m in metrics] for name, key in sources.items()},
        }
    )
    for name in sources:
        table[f"on_{name}"] = frontier(table[name].to_numpy(), table["score"].to_numpy())
    return table.assign(latency=measured)


_HEIGHT = 2.5  # inches of one panel
_AXES = {
    "tokens": "tokens of context, mean over topics",
    "seconds": "seconds per topic, of a batch",
    "cost": "US dollars per topic",
}
_LATENCY = "seconds of one question, median"


def frontiers(table: pd.DataFrame) -> Figure | None:
    """Score against each cost, a panel each, a point per job in its system's colour; rings mark the frontier.

    `table` is that of `score_against_cost`. A cost that is unknown or the same for all jobs has no panel;
    None where no panel is left.
    """
    from matplotlib.figure import Figure

    panels = [name for name in _AXES if table[name].notna().any() and table[name].dropna().nunique() > 1]
    if not panels or table["score"].isna().all():
        return None
    systems = list(dict.fromkeys(table["system"]))
    rows = legend_rows(len(systems) + 1, 2)
    figure = Figure(figsize=(WIDTH, _HEIGHT * len(panels) + 0.2 * rows), layout="constrained")
    axes: Any = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for ax, name in zip(axes, panels, strict=True):
        _panel(ax, table.dropna(subset=[name]), name, systems)
        latency = name == "seconds" and bool(table["latency"].all())
        ax.set_xlabel(_LATENCY if latency else _AXES[name])
        ax.set_ylabel(METRICS[str(table["measure"].iloc[0])].words)
    legend(figure, axes[0], 2)
    return figure


def _panel(ax: Any, table: pd.DataFrame, name: str, systems: list[str]) -> None:
    for i, system in enumerate(systems):
        own = table[table["system"] == system]
        colour, marker = LINE_COLOURS[i % len(LINE_COLOURS)], MARKERS[i % len(MARKERS)]
        ax.plot([], [], marker, color=colour, label=plain(system))
        ax.scatter(own[name], own["score"], s=34, color=colour, marker=marker, alpha=0.9, zorder=3)
    best = table[table[f"on_{name}"]].sort_values([name, "score"])
    ax.step(best[name], best["score"], where="post", color="#444444", lw=1, zorder=1)
    ax.scatter(best[name], best["score"], s=120, facecolors="none", edgecolors="#444444", zorder=2)
    ax.plot([], [], "o-", color="#444444", mfc="none", ms=9, lw=1, label="frontier")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    ax.set_xlim(left=0, right=float(table[name].max()) * 1.08)
    ax.set_ylim(0, max(1.1 * float(table["score"].max()), 0.01))
    if (table["measure"] == "correct").all():
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")


def frontier(cost: np.ndarray, score: np.ndarray) -> np.ndarray:
    """bool [points]: whether no other point is better in cost or score and not worse in the other.

    Equal points are on the frontier together. A point whose cost or score is NaN is not on it.
    """
    cost, score = np.asarray(cost, dtype=float), np.asarray(score, dtype=float)
    known = ~(np.isnan(cost) | np.isnan(score))
    at_most = cost[:, None] <= cost[None, :]
    at_least = score[:, None] >= score[None, :]
    better = (cost[:, None] < cost[None, :]) | (score[:, None] > score[None, :])
    beaten = (at_most & at_least & better & known[:, None]).any(axis=0)
    found: np.ndarray = known & ~beaten
    return found
