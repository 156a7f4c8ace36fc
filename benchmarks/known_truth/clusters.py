"""Topics in clusters: what intervals and tests hold over documents, and over topics as if these were independent."""

from __future__ import annotations

from functools import cache

import numpy as np

import simulations.clusters as sim
from known_truth.rows import SEED, Row, percent

KINDS = {**sim.INTERVALS, **sim.HELD, **sim.TESTS}


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
    if before or kind not in sim.INTERVALS:
        return said
    widths = [[float(one[0, 1] / one[1, 1]) for one in found(kind, trials, rho)] for rho in (sim.RHO, 0.0)]
    wide, free = (f"{min(of):.2f} to {max(of):.2f}" for of in widths)
    return f"{said}; {wide} times as wide, without correlation {free}"


def alike(trials: int, before: bool = False) -> str:
    """Coverage of a rare share whose topics are nearly alike in a document."""
    sizes = [*sim.SOME.values(), sim.UNEVEN]
    measured = [sim.measured(sim.share_of(0.05), one, 0.8, trials, SEED) for one in sizes]
    return percent(*(float(one[int(before), 0]) for one in measured))


_BEFORE: dict[str, str] = {}
_WANTED = {
    **dict.fromkeys(sim.INTERVALS, "at least 93 %, of unequal documents 90 %"),
    **dict.fromkeys(sim.HELD, "at least 93 %"),
}
_WANTED |= dict.fromkeys(sim.TESTS, "at most 5.5 %")


def _setting(trials: int) -> str:
    some = "30, 120, 500 topics, 3, 5, 10 a document" if trials >= 300 else "30 to 500 topics, 5, 10 a document"
    return f"latent correlation {sim.RHO}; {some}; 40 documents of 1 to 30"


SECTIONS: dict[str, list[Row]] = {
    "Clusters: topics about the same documents": [
        Row(
            f"clusters: {kind}",
            _setting(trials),
            _WANTED[kind],
            _BEFORE.get(kind, ""),
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
            "@ALIKE_BEFORE@",
            lambda n: alike(n),
            300,
        )
    ]
}
