"""The judge beside people."""

from __future__ import annotations

import simulations.agreement as sim
from known_truth.rows import SEED, Row, percent


def _erring(shares: str, errs: float, n: int, trials: int) -> str:
    held, width = sim.kappa_of_an_erring_judge(shares, errs, n, trials, SEED)
    return f"{percent(held)}; {width:.2f}"


_ERRING = [(shares, errs, n) for shares in sim.ERRING for errs in (0.02, 0.1) for n in (20, 40, 100)]
# A percentile bootstrap over topics.
_ERRING_BEFORE = (
    "27.4 %; 0.18", "50.5 %; 0.16", "79.9 %; 0.12", "78.5 %; 0.57", "91.5 %; 0.44", "93.5 %; 0.27",
    "21.9 %; 0.21", "48.0 %; 0.44", "79.1 %; 0.47", "53.5 %; 0.52", "80.9 %; 0.71", "94.1 %; 0.58",
    "26.4 %; 0.07", "50.1 %; 0.07", "80.0 %; 0.05 (100 trials)", "88.0 %; 0.30 (100 trials)",
    "88.0 %; 0.21 (100 trials)", "94.0 %; 0.15 (100 trials)",
)  # fmt: skip

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
