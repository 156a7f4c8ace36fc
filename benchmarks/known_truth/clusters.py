"""Topics in clusters: what intervals and tests hold over documents, and over topics as if these were independent."""

from __future__ import annotations

from functools import cache

import numpy as np

import simulations.clusters as sim
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
    "log loss of the predictor": "80.0 to 92.5 %; without correlation 92.5 to 97.5 %",
    "Brier score of the predictor": "77.5 to 92.5 %; without correlation 92.5 to 97.5 %",
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
    ]
}
