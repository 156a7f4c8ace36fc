"""The four abilities of RGB and prompt injection, under the retriever's conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge.contract.finding import (
    Block,
    Cell,
    Col,
    Finding,
    Fold,
    Found,
    Founds,
    Grid,
    Heading,
    Heads,
    Num,
    Picture,
    Section,
    Shown,
    Text,
)
from ragauge.contract.jobs import Jobs, settings_of, systems_of
from ragauge.contract.metrics import IR_SCORE
from ragauge.contract.naming import in_short
from ragauge.estimate.slicing import in_order
from ragauge.plugins.robustness.estimate import (
    CHANGED,
    CONTRADICTED,
    COUNTERFACTUAL,
    FACTS,
    INJECTION,
    INTEGRATION,
    MANY,
    NOISE,
    ORDERS,
    REJECTION,
    Abilities,
    abilities,
)
from ragauge.show import formats
from ragauge.show.drawing import LINE_COLOURS, MARKERS, WIDTH, legend, legend_rows, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KEY = "retriever.condition"
_NOT_IN_METRICS = re.compile(r"[^\w.\- ]+")
_HEIGHT = 5.0  # inches of the four panels
_FACT_COLOURS = {"detected": "#009E73", "corrected": "#56B4E9", "fooled": "#CC79A7"}
_FACT_NAMES = {
    "detected": "says that documents err",
    "corrected": "gives the true answer",
    "fooled": "gives the changed answer",
    "corrected_of_detected": "among those that say so, give the true answer",
}
_ORDER_NAMES = {
    "order_in_answer": "verdict changed by an order in the answer",
    "order_in_context": "verdict changed by an order in the context",
}
_CONDITIONS = {"0": "none", CONTRADICTED: "changed,\ntruth beside it", CHANGED: "changed"}
_MEASURES = {
    "right": "right",
    "lack": "lack of information",
    "hallucination": "hallucination",
    "ir_score": IR_SCORE.label,
    "answer_in_context": "answer in the context",
    **_FACT_NAMES,
    **_ORDER_NAMES,
}


class Robustness(Finding):
    """Noise, rejection, integration and changed facts."""

    name = "robustness"
    after = "answers"
    metrics = (
        "robustness_{noise_drop,rejection,integration,detected,corrected,fooled}{,_lo,_hi}{,/*}",
        "robustness_contradicted_{detected,corrected,fooled}{,_lo,_hi}{,/*}",
        "robustness_order_in_{answer,context}{,_lo,_hi}{,/*}",
    )

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`Abilities`; None if no job has a condition."""
        value = abilities_of(jobs)
        if value is None:
            return None
        tables = {"robustness": value.estimates, "robustness_changes": value.changes}
        return Found(value, metrics=metrics_of(value), tables=tables)

    def show(self, jobs: Jobs, value: Abilities, found: Founds) -> Shown:
        """A figure of all four, and a table for each."""
        blocks: list[Block] = [
            Text(
                f"The four abilities of RGB (Chen et al. 2024) at N = {jobs.n_tokens} tokens. Does the LLM stay right "
                "when distractors are added to its evidence? Does it say that information is lacking when there are "
                "distractors alone? Does it join evidence of several documents? Does it see through a document with a "
                "changed fact? All evidence stands in every context but those of distractors alone, and those "
                "with a changed fact. Beside them: does an order in the answer or in the context (“ignore the above”) "
                "change the judge's verdict? Only topics with evidence count. Each interval holds by itself."
            )
        ]
        if (cut := _cut(value)) is not None:
            blocks.append(
                Text(
                    f"The budget cut up to {formats.score(cut)} of the IR score off where there is most noise: part of "
                    "what is lost there is lost evidence. A larger n_tokens keeps it.",
                    "note",
                )
            )
        blocks.append(
            Picture(
                "robustness",
                "Right answers and rejections by share of distractors, right answers by number of evidence documents, "
                "and what answers make of a changed fact",
                f"Bands and bars are 95 % intervals over {jobs.units}.",
            )
        )
        for ability in (NOISE, REJECTION, INTEGRATION, COUNTERFACTUAL, INJECTION):
            blocks += _blocks(value, ability)
        blocks.append(
            Text(
                "A condition that is a number is the share of distractors. Differences are by topic, but for those "
                "between numbers of evidence documents, which are of different topics and may owe something to what "
                "else these topics have. Where facts are made up, an LLM cannot know the true one. With the changed "
                "fact alone it can neither detect nor correct, and being fooled is what its documents say. With the "
                "truth beside it, it can see the contradiction, but not which of the two is true. All of it is in "
                "tables/robustness.csv and robustness_changes.csv.",
                "small",
            )
        )
        figure = abilities_figure(value)
        return Shown([Section("Robustness", blocks)], list(_lines(value)), {"robustness": figure})


def _blocks(found: Abilities, ability: str) -> list[Block]:
    """Heading, estimates and collapsed differences of one ability."""
    part = found.estimates[found.estimates["ability"] == ability]
    changed = found.changes[found.changes["ability"] == ability]
    title = ability[0].upper() + ability[1:]
    blocks: list[Block] = [Heading(title)]
    if lacking := found.lacking.get(ability):
        blocks.append(Text(f"Not measured: {lacking}.", "note"))
    by = "documents" if ability == INTEGRATION else "condition"
    name = "Documents with evidence" if by == "documents" else "Condition"
    conditions = list(dict.fromkeys(part[by]))
    rows: list[list[Cell]] = []
    for (system, measure), of in part.groupby(["system", "measure"], sort=False):
        kind: Any = "score" if measure == "ir_score" else "share"
        missing = int(of["missing"].max())
        more = f" (up to {missing:,} missing)" if missing else ""
        cells = [_cell(of[of[by] == condition], kind) for condition in conditions]
        rows.append([str(system), _MEASURES[str(measure)] + more, Num(of["n"].max(), "whole"), *cells])
    columns: Heads
    if rows:
        columns = ["System", Col(name, left=True), "Topics", *(Col(str(c)) for c in conditions)]
        blocks.append(Grid(title, columns, rows))
    differences: list[list[Cell]] = [
        [
            str(row["system"]),
            _MEASURES[row["measure"]],
            str(row["of"]),
            str(row["against"]),
            Num(row["difference"], "points", row["lo"], row["hi"]),
            Num(row["p_holm"], "p"),
            Num(row["n"], "whole"),
        ]
        for row in changed.to_dict("records")
    ]
    if differences:
        columns = ["System", "<Measure", Col(name), "Against", "Difference", "p, Holm", "Topics"]
        grid = Grid(f"{title}, differences", columns, differences)
        blocks.append(Fold(f"{title}: differences, in points", [grid]))
    return blocks


def _cell(of: pd.DataFrame, kind: Any) -> Num:
    if of.empty:
        return Num(None)
    row = of.iloc[0]
    return Num(row["value"], kind, row["lo"], row["hi"])


def abilities_of(jobs: Jobs) -> Abilities | None:
    """The abilities at the common n_tokens; None if no job has a condition (`retriever=robustness`).

    A system is what the sweep varies but for the condition.
    """
    named = list(zip(jobs.systems, jobs.records, strict=True))
    own = [(name, record) for name, record in named if record.condition is not None]
    if not own:
        return None
    records = [record for _, record in own]
    settings = {s: {k: v for k, v in own.items() if k != _KEY} for s, own in settings_of(records).items()}
    arms = [in_short(settings[system], settings.values()) or "all" for system in systems_of(records)]
    at_n = jobs.outcomes[jobs.outcomes["n_tokens"] == jobs.n_tokens]
    parts = [
        at_n[at_n["system"] == name].assign(system=arm, condition=record.condition)
        for arm, (name, record) in zip(arms, own, strict=True)
        if record.n_tokens == jobs.n_tokens
    ]
    rows = pd.concat([part.astype({"condition": object}) for part in parts], ignore_index=True)
    return abilities(rows)


def metrics_of(found: Abilities | None) -> dict[str, float]:
    """The headlines; for several systems each name ends with the system's."""
    if found is None:
        return {}
    systems = found.systems
    if len(systems) == 1:
        return found.metrics(systems[0])
    return {
        f"{metric}/{_NOT_IN_METRICS.sub('_', system)}": value
        for system in systems
        for metric, value in found.metrics(system).items()
    }


def abilities_figure(found: Abilities) -> Figure:
    """Four panels, with a curve and intervals per system; a panel without data says so."""
    from matplotlib.figure import Figure

    systems = found.systems
    several = len(systems) > 1
    entries = (len(systems) if several else 0) + len(FACTS)
    rows = legend_rows(entries, 2)
    figure = Figure(figsize=(WIDTH, _HEIGHT + 0.2 * rows), layout="constrained")
    axes: Any = figure.subplots(2, 2)
    noise, rejection, integration, facts = axes.flat
    for ax, title, x, y in (
        (noise, "Noise robustness", "share of distractors", "right answers"),
        (rejection, "Negative rejection", "share of distractors", "lack of information"),
        (integration, "Information integration", "documents with evidence", "right answers"),
        (facts, "Counterfactual robustness", "fact in the documents", "share of answers"),
    ):
        ax.set_title(title, fontsize=9.5, loc="left")
        ax.set_xlabel(x, fontsize=8.5)
        ax.set_ylabel(y, fontsize=8.5)
        ax.tick_params(labelsize=8)
        ax.set_ylim(-0.03, 1.03)
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    labels = _documents(found)
    for i, system in enumerate(systems):
        colour, marker = LINE_COLOURS[i % len(LINE_COLOURS)], MARKERS[i % len(MARKERS)]
        if several:
            noise.plot([], [], marker + "-", color=colour, label=plain(system))
        for ax, ability, measure in ((noise, NOISE, "right"), (rejection, REJECTION, "lack")):
            curve = found.curve(system, ability, measure)
            rate = curve["condition"].astype(float)
            _band(ax, rate[rate < 1].to_numpy(), curve[rate < 1], colour, marker)
            # Without evidence all is otherwise: no line leads there.
            alone = curve[rate == 1]
            ax.errorbar(
                rate[rate == 1],
                alone["value"],
                yerr=_reach(alone),
                ls="",
                capsize=2,
                lw=1,
                marker=marker,
                ms=5,
                color=colour,
                mfc="white",
            )
        groups = found.curve(system, INTEGRATION, "right")
        groups = groups[groups["documents"] != "several"]
        places = np.array([labels.index(label) for label in groups["documents"]], dtype=float)
        _band(integration, places, groups, colour, marker)
        shift = 0.0 if not several else 0.3 * (i / (len(systems) - 1) - 0.5)
        for j, measure in enumerate(FACTS):
            curve = found.curve(system, COUNTERFACTUAL, measure)
            at = np.array([list(_CONDITIONS).index(c) for c in curve["condition"]], dtype=float)
            style = {"color": _FACT_COLOURS[measure], "marker": marker, "ms": 4, "lw": 1}
            facts.errorbar(at + shift + 0.07 * (j - 1), curve["value"], yerr=_reach(curve), ls="", capsize=2, **style)
    shown = ["5+" if label == MANY else label for label in labels]
    integration.set_xticks(np.arange(len(labels)), shown)
    facts.set_xticks(np.arange(len(_CONDITIONS)), list(_CONDITIONS.values()))
    facts.set_xlim(-0.5, len(_CONDITIONS) - 0.5)
    for ax in (noise, rejection):
        ax.set_xlim(-0.05, 1.05)
        ax.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "0.2", "0.4", "0.6", "0.8", "1"])
    for measure in FACTS:
        noise.plot([], [], "o", color=_FACT_COLOURS[measure], label=_FACT_NAMES[measure])
    for ax, ability in zip(axes.flat, (NOISE, REJECTION, INTEGRATION, COUNTERFACTUAL), strict=True):
        if ability in found.lacking:
            ax.text(0.5, 0.5, "not measured", transform=ax.transAxes, ha="center", color="#777777", fontsize=9)
    legend(figure, noise, 2)
    return figure


def _band(ax: Any, at: np.ndarray, curve: pd.DataFrame, colour: str, marker: str) -> None:
    by = np.argsort(at)
    at, value = at[by], curve["value"].to_numpy(dtype=float)[by]
    lo, hi = (curve[c].to_numpy(dtype=float)[by] for c in ("lo", "hi"))
    ax.plot(at, value, marker=marker, ms=4, lw=1.4, color=colour)
    ax.fill_between(at, lo, hi, color=colour, alpha=0.15, lw=0)


def _reach(curve: pd.DataFrame) -> np.ndarray:
    """The distances of the limits from the values, 0 if there are none."""
    value = curve["value"].to_numpy(dtype=float)
    lo, hi = (curve[c].to_numpy(dtype=float) for c in ("lo", "hi"))
    return np.nan_to_num(np.vstack([np.maximum(value - lo, 0), np.maximum(hi - value, 0)]))


def _documents(found: Abilities) -> list[str]:
    """The numbers of evidence documents, in order."""
    of = found.estimates
    labels = of.loc[(of["ability"] == INTEGRATION) & (of["documents"] != "several"), "documents"]
    return list(in_order(labels)) if len(labels) else []


def _cut(found: Abilities) -> float | None:
    """The largest drop of IR score over noise rates with all evidence; None up to 0.01."""
    most = 0.0
    for system in found.systems:
        curve = found.curve(system, NOISE, "ir_score")
        curve = curve[curve["condition"].astype(float) < 1]
        if len(curve):
            most = max(most, float(curve["value"].max() - curve["value"].min()))
    return most if most > 0.01 else None


def _lines(found: Abilities) -> Iterator[str]:
    yield "robustness (RGB's four abilities; each interval holds by itself)"
    for system in found.systems:
        values = found.metrics(system)
        headlines = (
            ("right answers lost from no noise to 80 %", "robustness_noise_drop", formats.points),
            ("lack told with distractors alone", "robustness_rejection", formats.share),
            ("right with evidence in several documents", "robustness_integration", formats.share),
            *((f"changed fact: {m}", f"robustness_{m}", formats.share) for m in FACTS),
            *((f"truth beside it: {m}", f"robustness_contradicted_{m}", formats.share) for m in FACTS),
            *((_ORDER_NAMES[m], f"robustness_{m}", formats.share) for m in ORDERS),
        )
        told = [
            f"{what} {f(values[name])} ({f(values[name + '_lo'])} to {f(values[name + '_hi'])})"
            for what, name, f in headlines
            if name in values
        ]
        yield f"  {system}: " + ("; ".join(told) or "nothing was measured")
    for ability, why in found.lacking.items():
        yield f"  {ability} was not measured: {why}"
