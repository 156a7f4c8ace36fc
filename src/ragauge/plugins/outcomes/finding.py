"""The page of recorded outcomes: their estimates, and predictions for unjudged systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.finding import (
    Block,
    Card,
    Cell,
    Col,
    Found,
    Grid,
    Heading,
    Heads,
    Num,
    Picture,
    Section,
    Tagged,
    Text,
)
from ragauge.contract.metrics import IR_SCORE
from ragauge.contract.record import JobRecord
from ragauge.estimate import bounded_mean, fit_zones, share_estimates, summary
from ragauge.estimate.clusters import clustered_line, clusterings
from ragauge.estimate.outcomes import clusters_of
from ragauge.estimate.prediction import METHODS, foresee
from ragauge.estimate.summary import Estimates
from ragauge.findings.tables import table
from ragauge.findings.thresholds import SIDES, predictor_line, threshold_line, zone_blocks
from ragauge.findings.what_ran import versions
from ragauge.show.drawing import LINE_COLOURS, legend, legend_rows, new_figure, plain, save
from ragauge.show.figures import sorted_scores
from ragauge.show.formats import score
from ragauge.show.html import Page, write_report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


REPORT = "report.html"
# Shares of answers that may be missed in a zone, tried beside the configured one.
ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.5)


@dataclass(frozen=True)
class Recorded:
    """The results from recorded outcomes.

    rows: all of them. judged: those of systems that have verdicts, on which the estimates are fitted.
    foreseen: the class shares of the other systems (`ragauge.estimate.prediction`). alphas: the zones at other
    promises, [alpha, zone, threshold, share, missed].
    """

    rows: pd.DataFrame
    judged: pd.DataFrame
    estimates: Estimates
    foreseen: pd.DataFrame
    alphas: pd.DataFrame

    @classmethod
    def of(cls, rows: pd.DataFrame, shares: Any, record: JobRecord, where: object) -> Recorded:
        """The estimates with the settings of a job's record.

        shares: the known shares of the classes of systems without a judge. DataError, which names `where`, without a
        label.
        """
        of_judged = rows.groupby("system")["label"].transform("count") > 0
        judged, others = rows[of_judged], rows[~of_judged]
        if judged.empty:
            raise DataError(f"{where}: no row has a label")
        n_boot, seed, estimate, zones = record.bootstrap, record.seed, record.estimate, record.zones
        estimates = summary.estimate(judged, n_boot, seed, **estimate, zones=zones)
        h, k = estimates.thresholds.h.value, estimates.thresholds.k.value
        foreseen = foresee(judged, others, h, k, shares, **estimate, seed=seed)
        return cls(rows, judged, estimates, foreseen, zones_by_alpha(judged, zones["confidence"]))

    def found(self, experiment: str, note: str) -> Found:
        """Metrics, tables, figures and the report."""
        values = {**_shares(self.judged), **self.estimates.metrics, **foreseen_errors(self.foreseen)}
        page = self._page(experiment, note)
        figures = {f"figures/{name}.png": partial(save, figure) for name, figure in page.figures.items()}
        return Found(
            metrics={**values, "topics": len(self.judged)},
            tables={"zones_by_alpha": self.alphas, "foreseen": self.foreseen},
            files={**figures, REPORT: partial(write_report, [page])},
        )

    def _page(self, experiment: str, note: str) -> Page:
        title = f"{experiment}: recorded outcomes, and their thresholds"
        estimates, foreseen = self.estimates, self.foreseen
        figures = {"sorted_scores": sorted_scores(self.judged, estimates.thresholds, title, estimates.zones)}
        if len(foreseen):
            figures["foreseen"] = foreseen_figure(foreseen)
        sections = [
            Section("What was recorded", [*([Text(note)] if note else []), *_recorded(_systems(self.rows))]),
            Section("Zones with a guarantee", [*zone_blocks(estimates.zones), *_alphas(self.alphas)]),
            Section("Thresholds and predictor", _worth(estimates)),
            *([Section("Systems that nobody judged here", _foreseen(foreseen))] if len(foreseen) else []),
        ]
        about = " · ".join(f"{name} {version}" for name, version in versions().items())
        cards: list[Card] = []
        return Page(
            "recorded outcomes", experiment, f"{experiment}: recorded outcomes", about, 0, [], cards, sections, figures
        )

    @property
    def lines(self) -> list[str]:
        """Thresholds, zones, predictor and predicted shares on the terminal."""
        both = [threshold_line(letter, says, getattr(self.estimates.thresholds, letter)) for letter, says in SIDES]
        clusters = [one for _, rows in self.judged.groupby("system") for one in clusterings(rows)]
        lines = [*([clustered_line(clusters, True)] if clusters else []), *both]
        lines += [zones_line(self.estimates.zones), predictor_line(self.estimates.validation, {})]
        for row in self.foreseen.query("share == 'right'").to_dict("records"):
            known = f", judged {row['judged']:.1%}" if row["judged"] == row["judged"] else ""
            shares = f"predictor {row['predictor']:.1%}, above k {row['thresholds']:.1%}"
            lines.append(f"right answers of {row['system']}: {shares}{known}")
        return lines


def zones_line(zones: Any) -> str:
    """Both zones with their guarantees, or that there is none, in a line for the terminal."""
    parts = [
        f"{zone.side} {zone.value:.2f} ({zone.share:.1%} of the answers) at most {zones.alpha:.0%} not {says}"
        if zone.n
        else f"none for {says}"
        for zone, says in ((zones.right, "right"), (zones.lack, "lack"))
    ]
    return f"zones ({zones.confidence:.0%} confidence): {'; '.join(parts)}"


def zones_by_alpha(judged: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """The zones at each of `ALPHAS`: [alpha, zone, threshold, share, missed]; each valid by itself.

    `zone` is right (above) or lack (below); threshold and missed are NaN where no threshold holds.
    """
    rows = []
    for alpha in ALPHAS:
        found = fit_zones(judged, alpha, confidence)
        for name, zone in (("right", found.right), ("lack", found.lack)):
            rows.append((alpha, name, zone.value, zone.share, zone.missed))
    return pd.DataFrame(rows, columns=["alpha", "zone", "threshold", "share", "missed"])


def _shares(judged: pd.DataFrame) -> dict[str, float]:
    """Mean score, right, lack and missing shares; a recording may merge classes 2 to 4."""
    values = summary.with_interval(
        "ir_score", bounded_mean(judged["ir_score"], judged["qid"], clusters=clusters_of(judged))
    )
    shares = share_estimates(judged)
    for name in ("correct_share", "judge_share_1", "judge_share_missing"):
        values |= summary.with_interval(name, shares[name])
    return values


def _systems(rows: pd.DataFrame) -> pd.DataFrame:
    """[system, n, ir_score, right, lack]: shares NaN if no row of the system has a label."""
    grouped = rows.groupby("system", sort=False)
    table = grouped["ir_score"].agg(n="size", ir_score="mean").reset_index()
    known = grouped["label"].count().to_numpy() > 0
    for name, c in (("right", 5), ("lack", 1)):
        share = rows["label"].eq(c).fillna(False).astype(float).groupby(rows["system"], sort=False).mean()
        table[name] = share.where(known).to_numpy()
    return table


def _recorded(systems: pd.DataFrame) -> list[Block]:
    grid = table(
        "Systems",
        f"System | Answers | {IR_SCORE.label} | Right | Lack",
        systems,
        lambda row: [
            str(row["system"]),
            Num(row["n"], "whole"),
            Num(row["ir_score"]),
            Num(row["right"], "share"),
            Num(row["lack"], "share"),
        ],
    )
    return [
        grid,
        Picture("sorted_scores", "IR scores in rising order, coloured by judge class, with thresholds and zones"),
    ]


def _alphas(alphas: pd.DataFrame) -> list[Block]:
    grid = table(
        "Zones by what may be missed",
        "At most missed | <Zone | Threshold | Answers in it | Missed here",
        alphas,
        lambda row: [
            Num(row["alpha"], "share"),
            "right, above" if row["zone"] == "right" else "lack, below",
            score(row["threshold"]) if row["threshold"] == row["threshold"] else "none",
            Num(row["share"], "share"),
            Num(row["missed"], "share"),
        ],
    )
    return [
        Heading("What other promises would give"),
        grid,
        Text("Each row holds by itself; choosing among rows after looking does not.", "small"),
    ]


def _worth(estimates: Estimates) -> list[Block]:
    columns = "Threshold | Value | Not rejected | Accuracy / on the fit | Constant guess | Gain / unseen topics, points"
    rows: list[list[Cell]] = []
    for letter, says in SIDES:
        t = getattr(estimates.thresholds, letter)
        note = f"; degenerate: says “{t.degenerate}”" if t.degenerate else ""
        gain = Num(t.gain.value, "points", t.gain.lo, t.gain.hi, "useful" if t.useful else "")
        rows.append(
            [
                Tagged(letter, below=says + note),
                Num(t.value, "score", t.lo, t.hi),
                f"{score(t.set_min)} to {score(t.set_max)}",
                Num(t.accuracy, "share"),
                Num(t.base_rate, "share"),
                gain,
            ]
        )
    e = estimates.validation.estimates
    named = {"AUC of right": "auc_correct", "AUC of lack": "auc_lack", "log loss": "log_loss"}
    known = [
        f"{what} {score(e[name].value)} ({score(e[name].lo)} to {score(e[name].hi)})"
        for what, name in named.items()
        if e[name].value == e[name].value
    ]
    found: list[Block] = [Grid("Thresholds", columns, rows)]
    if known:
        base = f"without the score {score(e['log_loss_base'].value)}"
        found.append(Text(f"Predictor, on topics that it had not seen: {', '.join(known)}, {base}."))
    return found


def _foreseen(foreseen: pd.DataFrame) -> list[Block]:
    ways = ("predictor", "thresholds", "unchanged", "judged")
    columns: Heads = ["System", "<Share", *(Col(way.capitalize()) for way in ways)]

    def cells(row: Mapping[Any, Any]) -> list[Cell]:
        return [str(row["system"]), str(row["share"]), *(Num(row[way], "share") for way in ways)]

    return [
        Text(
            "The predictor and the thresholds were fitted on the judged answers above and applied to the scores of "
            "other systems. “Unchanged” takes the judged system's shares as they are."
        ),
        Picture("foreseen", "Right answers of each system: judged, predicted, and the share of scores above k"),
        table("Foreseen shares", columns, foreseen, cells),
    ]


def foreseen_figure(table: pd.DataFrame) -> Figure:
    """Shares of right answers of unjudged systems: foreseen in three ways, and as known."""
    rows = table[table["share"] == "right"]
    figure, axes = new_figure(2.6, legend_rows(4, 2))
    at = np.arange(len(rows))
    drawn = (
        ("judged", "what the judge found", "_", 900, "black"),
        ("predictor", "predictor", "o", 60, LINE_COLOURS[0]),
        ("thresholds", "share of scores above k", "s", 50, LINE_COLOURS[1]),
        ("unchanged", "as in the judged system", "^", 40, "#999999"),
    )
    for column, label, marker, size, colour in drawn:
        axes.scatter(at, 100 * rows[column], marker=marker, s=size, color=colour, zorder=2)
        axes.plot([], [], marker, ms=7, color=colour, label=label)
    axes.set_xticks(at, [plain(str(system)) for system in rows["system"]])
    axes.set_xlim(-0.5, len(rows) - 0.5)
    axes.set_ylim(0, None)
    axes.set_ylabel("right answers, %")
    axes.grid(axis="y", alpha=0.25)
    legend(figure, axes, 2)
    return figure


def foreseen_errors(table: pd.DataFrame) -> dict[str, float]:
    """Mean absolute errors of a table of `foresee`: `unjudged_<share>_mae_<method>`, over systems with known
    shares; {} without any.
    """
    known = table[table["judged"].notna()]
    return {
        f"unjudged_{share}_mae_{method}": float((rows[method] - rows["judged"]).abs().mean())
        for share, rows in known.groupby("share", sort=False)
        if share != "between"
        for method in METHODS
    }
