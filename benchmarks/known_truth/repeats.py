"""Several answers to a topic and several verdicts on an answer."""

from __future__ import annotations

import simulations.repeats as sim
from known_truth.rows import SEED, Row

_WORLDS = {
    "topics, answers and judge vary": sim.World(1.2, 0.8, 0.1),
    "the same, and right answers to a topic are one text": sim.World(1.2, 0.8, 0.1, alike=True),
    "no variance between answers (null)": sim.World(1.2, 0.8, 0.1, fixed=True),
    "no variance between answers, right answers one text (null)": sim.World(1.2, 0.8, 0.1, alike=True, fixed=True),
    "a judge without error (null)": sim.World(1.2, 0.8, 0.0, alike=True),
    "nearly all right, nearly all the same": sim.World(19.0, 1.0, 0.02, alike=True),
}


def _components(world: sim.World, n: int, trials: int) -> str:
    found = sim.estimates(world, n, 3, 2, trials, SEED, n_boot=200)
    return "; ".join(
        f"{name} {row['true']:.4f}: bias {row['bias']:+.4f} (error {row['error']:.4f}), {row['covered']:.1%}".replace(
            "%", " %"
        )
        for name, row in found.iterrows()
    )


def _coverage(world: sim.World, n: int, r: int, trials: int) -> str:
    found = sim.coverage(world, n, r, trials, SEED)
    return "; ".join(f"{name.replace('_', ' ')} {share:.1%}".replace("%", " %") for name, share in found.items())


def _foresight(n: int, noise: float, trials: int) -> str:
    truth, held = sim.foresight_coverage(sim.World(3.0, 1.0, 0.0), n, 3, noise, trials, SEED)
    return f"true {truth:+.3f}: {held:.1%}".replace("%", " %").replace("-", "−")


SECTIONS: dict[str, list[Row]] = {
    "Repeats": [
        *(
            Row(
                f"{what}: true components of variance of right answers, bias (its Monte Carlo error), coverage",
                f"{n} topics, 3 answers to each, 2 verdicts on each",
                "bias 0; 90 % or more of intervals, but where few topics differ and at a component of 0",
                "no such number",
                lambda trials, world=world, n=n: _components(world, n, trials),  # type: ignore[misc]
                1000,
            )
            for n in (30, 120)
            for what, world in _WORLDS.items()
        ),
        *(
            Row(
                f"{what}: coverage of the share of right answers, of right once, right always, and of equal verdicts",
                f"{n} topics, 3 answers to each",
                "93 to 97 %, or more",
                "no such number",
                lambda trials, world=world, n=n: _coverage(world, n, 3, trials),  # type: ignore[misc]
                500,
            )
            for n in (30, 120)
            for what, world in list(_WORLDS.items())[:3] + list(_WORLDS.items())[-1:]
        ),
        *(
            Row(
                f"rank correlation of a score and the variance of being right, score {told}: coverage",
                f"{n} topics, 3 answers to each",
                "93 to 97 %",
                "no such number",
                lambda trials, n=n, noise=noise: _foresight(n, noise, trials),  # type: ignore[misc]
                300,
            )
            for n in (30, 120)
            for told, noise in (("near the chance of a right answer", 0.1), ("of noise (null)", 100.0))
        ),
    ],
}
