"""Made evidence: how it ranks systems, how people's labels correct its means, and what deeper pools would bring."""

from __future__ import annotations

import numpy as np

import simulations.annotation as sim
from known_truth.rows import SEED, Row, percent

_READERS = 3
_TOPICS = "default world, 75 topics with evidence, five retrievers pooled to depth 10"


def _ranked(errs: float, per: str) -> str:
    found = [sim.rankings(sim.world(), errs, SEED + i, per) for i in range(_READERS if errs else 1)]
    of = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
    each = [one["tau"] for one in found]
    return (
        f"tau {of['tau']:.3f} ({of['lo']:.3f} to {of['hi']:.3f}; readers {min(each):.3f} to {max(each):.3f}), lowest "
        f"budget {of['least']:.3f}, ties {percent(of['ties'])}; corrected {of['corrected']:.3f}; mean score made "
        f"{of['mean_made']:.3f}, gold {of['mean_gold']:.3f}"
    )


def _covered(errs: float, labelled: int, trials: int) -> str:
    found = sim.coverage(sim.world(), errs, 200, labelled, trials, SEED)
    return (
        f"means {percent(found['coverage'])}, a difference {percent(found['difference'])}; bias "
        f"{100 * found['bias']:+.1f} points (uncorrected {100 * found['made_bias']:+.1f}); width "
        f"{found['width']:.2f} of that of the labels alone"
    )


def _deeper(depth: int, trials: int) -> str:
    found = sim.deeper(sim.world(), depth, 75, trials, SEED)
    means = f"brought {found['truth']:.1f} parts, estimated {found['estimate']:.1f} in the mean"
    return f"{percent(found['coverage'])}; {means}"


SECTIONS: dict[str, list[Row]] = {
    "Made evidence": [
        *(
            Row(
                "Kendall's tau-b of 15 systems' IR scores by gold and by made evidence, mean over ten budgets, the "
                f"reader's verdict wrong on {errs:.0%} "
                + ("of the passages" if per == "passage" else "of what holds evidence and of what it takes for it"),
                f"{_TOPICS}, {_READERS if errs else 1} reader(s)",
                "at least .8 at 10 %",
                "no made evidence",
                lambda trials, args=(errs, per): _ranked(*args),  # type: ignore[misc]
                0,
            )
            for errs, per in ((0.0, "passage"), (0.1, "passage"), (0.3, "passage"), (0.1, "answer"), (0.3, "answer"))
        ),
        *(
            Row(
                f"corrected mean IR scores of five systems: coverage, the reader wrong on {errs:.0%} of the passages",
                f"200 topics drawn from the world's, {labelled} labelled by people, N = 300",
                "93 to 97 %",
                "no made evidence",
                lambda trials, args=(errs, labelled): _covered(*args, trials),  # type: ignore[misc]
                300,
            )
            for errs, labelled in ((0.0, 50), (0.1, 25), (0.1, 50), (0.3, 50))
        ),
        *(
            Row(
                f"evidence at ranks {depth + 1} to {2 * depth}: coverage of the interval, a reader without error",
                "75 topics drawn from the world's",
                "at least 90 %",
                "no such number",
                lambda trials, depth=depth: _deeper(depth, trials),  # type: ignore[misc]
                100,
            )
            for depth in (3, 5, 10)
        ),
    ],
}
