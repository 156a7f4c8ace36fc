"""A judge asked again."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd

import simulations.stability as sim
from known_truth.rows import SEED, Row
from ragauge.contract.component import Tools
from ragauge.store import Store

_CASES = ((0.2, 0.0), (0.0, 0.4), (0.2, 0.4))  # noise, liking for the first place
_NAMES = {"agreement": "same order", "agreement_other": "other order", "position_effect": "position effect"}


def _told(found: pd.DataFrame) -> str:
    return "; ".join(
        f"{name} {100 * found.loc[key, 'bias']:+.1f}, {found.loc[key, 'covered']:.1%}".replace("%", " %")
        for key, name in _NAMES.items()
    )


def _over_http(noise: float, liking: float) -> str:
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(store=Store(Path(folder)), embedder=None, tokenizer=None)  # type: ignore[arg-type]
        found = sim.asked_over_http(150, noise, liking, tools, SEED)
    assert found is not None
    assert found.agreement_other is not None
    assert found.position_effect is not None
    truth = sim.truth(noise, liking)
    return "; ".join(
        f"{name} {e.value:.3f} ({e.lo:.3f} to {e.hi:.3f}), true {true:.3f}"
        for name, e, true in zip(
            _NAMES.values(),
            (found.agreement, found.agreement_other, found.position_effect),
            truth,
            strict=True,
        )
    )


SECTIONS: dict[str, list[Row]] = {
    "Judge asked again: noise and position effect": [
        *(
            Row(
                f"noise {noise:g}, liking for the first place {liking:g}: bias in points, coverage",
                f"{n} topics of four answers",
                "0.0; 95 % or more",
                "no such number",
                lambda trials, n=n, noise=noise, liking=liking: _told(  # type: ignore[misc]
                    sim.estimates(n, noise, liking, trials, SEED)
                ),
                200,
            )
            for n in (20, 60)
            for noise, liking in _CASES
        ),
        *(
            Row(
                f"a chat server with noise {noise:g} and liking {liking:g}, over HTTP",
                "150 topics of four answers, asked three times",
                "the interval holds the truth",
                before + " of the labels called position flips, no interval",
                lambda _, noise=noise, liking=liking: _over_http(noise, liking),  # type: ignore[misc]
                0,
            )
            for (noise, liking), before in zip(_CASES, ("26.2 %", "20.0 %", "39.3 %"), strict=True)
        ),
    ],
}
