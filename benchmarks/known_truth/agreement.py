"""The judge beside people."""

from __future__ import annotations

import simulations.agreement as sim
from known_truth.rows import SEED, Row, percent


def _erring(shares: str, errs: float, n: int, trials: int) -> str:
    held, width = sim.kappa_of_an_erring_judge(shares, errs, n, trials, SEED)
    return f"{percent(held)}; {width:.2f}"


_ERRING = [(shares, errs, n) for shares in sim.ERRING for errs in (0.02, 0.1) for n in (20, 40, 100)]
# A percentile bootstrap over topics.
_ERRING_BEFORE = ("BEFORE",) * 18

SECTIONS: dict[str, list[Row]] = {
    "Judge beside people: coverage of 95 % intervals": [
        Row(
            "Cohen's kappa, the judge errs more on half of the topics",
            f"{n} topics, {rows} answers each",
            "about 95 %",
            "the same; not shown",
            lambda trials, n=n, rows=rows: percent(  # type: ignore[misc]
                sim.kappa_coverage(n, rows, trials, SEED)
            ),
            1000,
        )
        for n, rows in ((30, 1), (120, 1), (120, 5))
    ]
    + [
        Row(
            f"Cohen's kappa, {shares}, the judge errs in {100 * errs:g} %: coverage; mean width",
            f"{n} labels",
            "at least 93 %",
            before,
            lambda trials, args=(shares, errs, n): _erring(*args, trials),  # type: ignore[misc]
            1000,
        )
        for (shares, errs, n), before in zip(_ERRING, _ERRING_BEFORE, strict=True)
    ],
}
