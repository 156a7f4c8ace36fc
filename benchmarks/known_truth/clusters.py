"""Topics in clusters: what intervals and tests hold over documents, and over topics as if these were independent."""

from __future__ import annotations

from functools import cache

import numpy as np

import simulations.clusters as sim
import simulations.more_clusters as more
from known_truth.rows import SEED, Row, percent

_INTERVALS = {**sim.INTERVALS, **sim.REFITS}
KINDS = {**_INTERVALS, **sim.HELD, **sim.TESTS}


@cache
def found(kind: str, trials: int, rho: float) -> list[np.ndarray]:
    """Of every cell what `sim.measured` gives."""
    return [sim.measured(KINDS[kind][0], sizes, rho, trials, SEED) for sizes in sim.cells(trials, rho).values()]


def row(kind: str, trials: int, before: bool = False) -> str:
    """How often a trial is true and, of intervals, how wide they are, over the cells of `sim.cells`.

    Over documents, with the width over that over topics; `before`: over topics.
    """
    shares = [percent(*(float(one[int(before), 0]) for one in found(kind, trials, rho))) for rho in (sim.RHO, 0.0)]
    said = f"{shares[0]}; without correlation {shares[1]}"
    if before or kind not in _INTERVALS:
        return said
    widths = [[float(one[0, 1] / one[1, 1]) for one in found(kind, trials, rho)] for rho in (sim.RHO, 0.0)]
    wide, free = (f"{min(of):.2f} to {max(of):.2f}" for of in widths)
    return f"{said}; {wide} times as wide, without correlation {free}"


def alike(trials: int, before: bool = False) -> str:
    """Coverage of a rare share whose topics are nearly alike in a document."""
    sizes = [*sim.SOME.values(), sim.UNEVEN]
    measured = [sim.measured(sim.share_of(0.05), one, 0.8, trials, SEED) for one in sizes]
    return percent(*(float(one[int(before), 0]) for one in measured))


_BEFORE: dict[str, str] = {
    "twenty useless measures: one foresees": "7.5 to 30.0 % (40 trials); without correlation 5.0 to 7.5 %",
    "share of 0.3": "66.0 to 93.3 %; without correlation 92.7 to 95.7 %",
    "share of 0.05": "70.3 to 93.3 %; without correlation 94.0 to 95.0 %",
    "mean score": "56.7 to 89.7 %; without correlation 95.3 to 97.0 %",
    "mean of any size, by bootstrap": "59.0 to 80.7 %; without correlation 93.1 to 95.2 %",
    "paired difference of shares": "69.3 to 89.7 %; without correlation 95.7 to 96.0 %",
    "paired difference of scores": "57.7 to 88.7 %; without correlation 94.3 to 96.7 %",
    "paired difference of scores, 3 % of the topics lose 0.5": "78.3 to 100.0 %; without correlation 95.7 to 100.0 %",
    "kappa": "68.7 to 93.0 %; without correlation 92.7 to 97.0 %",
    "agreement of judge and people": "66.0 to 93.7 %; without correlation 94.0 to 96.7 %",
    "share by a judged sample (PPI)": "70.0 to 95.8 %; without correlation 93.3 to 98.3 %",
    "share as people would judge (PPI)": "72.5 to 100.0 %; without correlation 95.0 to 100.0 %",
    "mean over slices that share documents": "62.5 to 80.0 %; without correlation 90.0 to 97.5 %",
    "AUC of a measure": "83.3 to 88.3 %; without correlation 91.7 to 93.3 %",
    "shares of retrievers left out, predicted less judged": "76.7 to 90.8 %; without correlation 91.4 to 95.3 %",
    "mean absolute error of transfer": "87.5 to 97.5 %; without correlation 97.5 to 100.0 %",
    "ablation, right answers": "53.3 to 90.0 %; without correlation 88.3 to 98.3 %",
    "band of a curve over four budgets": "33.3 to 71.7 %; without correlation 95.0 to 100.0 %",
    "of four equal systems the first is in the set of the best": "60.8 to 81.7 %; without correlation 92.5 to 94.2 %",
    "the best threshold is among those not rejected": "91.7 to 99.4 %; without correlation 95.6 to 99.4 %",
    "two equal systems, right answers: called different": "7.0 to 24.0 %; without correlation 1.0 to 3.0 %",
    "two equal systems, IR score: called different": "10.0 to 39.0 %; without correlation 3.0 to 7.0 %",
    "two equal curves: called different at some budget": "33.3 to 88.3 %; without correlation 5.0 to 6.7 %",
    "a useless score: k is called useful": "0.0 to 1.1 %; without correlation 0.6 to 1.1 %",
    "gate, right answers: equal systems, called regressed": "7.8 to 21.1 %; without correlation 2.8 to 3.3 %",
    "gate, scores: equal systems, called regressed": "7.2 to 22.8 %; without correlation 5.6 %",
    "gate, right answers: worse by its tolerance, passes": "11.1 to 20.6 %; without correlation 4.4 to 5.6 %",
    "gate, scores: worse by its tolerance, passes": "16.1 to 25.6 %; without correlation 3.3 to 7.2 %",
}
_WANTED = {
    **dict.fromkeys(_INTERVALS, "at least 93 %, of unequal documents 90 %"),
    **dict.fromkeys(sim.HELD, "at least 93 %"),
}
_WANTED |= dict.fromkeys(sim.TESTS, "at most 5.5 %, and the simulation's error")


def _setting(trials: int) -> str:
    some = "30, 120, 500 topics, 3, 5, 10 a document" if trials >= 300 else "30 to 500 topics, 5, 10 a document"
    return f"latent correlation {sim.RHO}; {some}; 40 documents of 1 to 30"


_BEFORE_OTHER = {  # over topics, of 6 and 12 documents and of 30 to 60
    "gain of a threshold": ("90.0 to 91.0 %", "85.5 to 94.5 %"),
    "AUC of the predictor": ("86.7 %", "80.0 to 96.7 %"),
    "calibration error (ECE) of the predictor": ("100.0 %", "98.3 to 100.0 %"),
    "calibration slope of the predictor": ("95.0 to 100.0 %", "100.0 %"),
    "calibration intercept of the predictor": ("100.0 %", "100.0 %"),
    "Spearman's correlation of score and right answers": ("82.0 to 90.0 %", "83.0 to 96.0 %"),
    "Kendall's tau of six systems": ("91.0 to 98.0 %", "96.0 to 100.0 %"),
    "shrunk slices, each with documents of its own": ("80.3 to 90.0 %", "65.8 to 91.5 %"),
    "shrunk slices that share documents": ("83.8 to 95.8 %", "85.8 to 95.4 %"),
    "equal slices that share documents, shrunk": ("84.6 to 97.5 %", "83.3 to 97.5 %"),
    "difference by slice, right answers": ("91.2 to 100.0 %", "89.4 to 100.0 %"),
    "difference by slice, shrunk": ("90.6 to 100.0 %", "86.9 to 100.0 %"),
    "change of a step of the funnel, 20 % lose half": ("79.0 to 96.5 %", "66.0 to 91.5 %"),
    "change of a step of the funnel, 3 % lose half": ("98.5 to 100.0 %", "81.5 to 99.5 %"),
    "share of a cause of failures": ("79.0 to 91.5 %", "65.5 to 90.0 %"),
    "share of a cause of failures, judged by strata": ("83.5 to 84.0 %", "78.5 to 89.5 %"),
    "what noise costs an LLM": ("85.0 %", "70.0 to 95.0 %"),
    "evidence in several documents less in one": ("96.7 to 98.3 %", "96.7 to 98.3 %"),
    "share by three prompts of the judge, a sample": ("84.0 to 90.7 %", "72.7 to 94.0 %"),
    "share by three prompts that differ by 3.4 points": ("90.0 %", "90.7 to 97.3 %"),
    "paired difference of right answers by a judged sample": ("87.0 to 98.0 %", "69.0 to 96.0 %"),
    "two equal systems, three prompts: called different": ("8.0 to 10.0 %", "5.0 to 27.0 %"),
    "two equal systems: called different in some of four slices": ("0.0 to 1.7 %", "0.0 to 10.0 %"),
    "scores as far apart as the margin: called equivalent": ("1.0 to 16.7 %", "4.7 to 26.3 %"),
    "right answers as far apart as the margin: called equivalent": ("0.0 to 1.7 %", "0.7 to 14.3 %"),
    "five looks, worse by its tolerance: passes": ("8.0 to 17.5 %", "4.5 to 24.5 %"),
    "five looks, equal systems: called regressed": ("8.5 to 20.0 %", "9.5 to 26.0 %"),
    "five looks document by document, worse by its tolerance: passes": ("11.5 to 22.0 %", "11.0 to 37.0 %"),
    "zone, a useless score: its promise is broken": ("7.3 to 9.3 %", "5.3 to 6.0 %"),
    "zone, a steep score: its promise is broken": ("0.0 to 4.7 %", "0.0 to 9.3 %"),
}


def other(kind: str, trials: int, before: bool = False) -> str:
    """How often a trial is true over 6 and 12 documents, and over 30 to 60, and of intervals the width beside that over
    topics; `before`: over topics.
    """
    trial, found = {**more.INTERVALS, **more.TESTS}[kind][0], []
    for sizes in (more.FEW, more.MANY):
        found.append([sim.measured(trial, one, sim.RHO, trials, SEED) for one in sizes.values()])
    few, many = (percent(*(float(one[int(before), 0]) for one in of)) for of in found)
    widths = [float(one[0, 1] / one[1, 1]) for of in found for one in of if one[1, 1] > 0]
    wide = f"; {min(widths):.2f} to {max(widths):.2f} times as wide" * (kind in more.INTERVALS and not before)
    return f"6 and 12 documents {few}, 30 to 60 {many}{wide}"


def _loss(name: str, trials: int) -> str:
    """How often a loss is held over 6, 12 and 40 documents."""
    cells = [*more.FEW.values(), sim.UNEVEN]
    held = [sim.measured(sim.loss(name), sizes, sim.RHO, trials, SEED)[0, 0] for sizes in cells]
    return f"{percent(held[0])}, {percent(held[1])}, {percent(held[2])}"


def _planned(size: int, difference: float, trials: int) -> str:
    n, power, alone, of_alone = more.power_of_plan(size, sim.RHO, difference, trials, SEED)
    return f"{percent(power)} with {n:,} topics (planned as if independent: {percent(of_alone)} with {alone:,})"


SECTIONS: dict[str, list[Row]] = {
    "Clusters: topics about the same documents": [
        Row(
            f"clusters: {kind}",
            _setting(trials),
            _WANTED[kind],
            _BEFORE.get(kind, "no such number"),
            lambda n, kind=kind: row(kind, n),  # type: ignore[misc]
            trials,
        )
        for kind, (_, trials) in KINDS.items()
    ]
    + [
        Row(
            "clusters: for comparison, share of 0.05, latent correlation 0.8",
            "30, 120, 500 topics, 5, 10 a document; 40 documents of 1 to 30",
            "too little where documents are few",
            "39.0 to 84.0 %",
            lambda n: alike(n),
            300,
        )
    ],
    "Clusters: further intervals, tests, looks and plans": [
        *(
            Row(
                f"clusters: {kind}",
                "latent correlation 0.3; 6 documents of 5 topics, 12 of 10; 30 of 3, 60 of 5, 40 of 1 to 30",
                "at least 93 %" if kind in more.INTERVALS else "at most 5.5 %, and the simulation's error",
                "6 and 12 documents {}, 30 to 60 {}".format(*_BEFORE_OTHER[kind]),
                lambda n, kind=kind: other(kind, n),  # type: ignore[misc]
                trials,
            )
            for kind, (_, trials) in {**more.INTERVALS, **more.TESTS}.items()
        ),
        *(
            Row(
                f"clusters: {title} of the predictor",
                "latent correlation 0.3; 6 documents of 5 topics; 12 of 10; 40 of 1 to 30",
                "at least 93 %, of unequal documents 90 %",
                before,
                lambda n, name=name: _loss(name, n),  # type: ignore[misc]
                50,
            )
            for name, title, before in (
                ("log_loss", "log loss", "with fits held fixed 84.0 % of 6 documents"),
                ("brier", "Brier score", "with fits held fixed 90.0 % of 6 documents"),
            )
        ),
        *(
            Row(
                f"clusters: planned topics, scores, a difference of {difference}: power of the test over documents",
                f"latent correlation 0.3; {size} topics a document, planned for 80 %",
                "78 to 85 %",
                "the figures as if independent",
                lambda n, args=(size, difference): _planned(*args, n),  # type: ignore[misc]
                trials,
            )
            for size, difference, trials in ((3, 0.1, 200), (5, 0.1, 200), (10, 0.1, 200), (10, 0.05, 100))
        ),
    ],
}
