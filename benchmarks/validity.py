"""Simulations with known truth: how often intervals hold it, and how often nothing is called something.

`python benchmarks/validity.py` runs them at full size and writes benchmarks/VALIDITY.md; `--quick` runs a
tenth of the trials and prints the table only. The simulations are those of tests/validity.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tests")]

import simulations as sim  # noqa: E402
from ragauge.estimate import bounded_mean  # noqa: E402
from ragauge.estimate.intervals import paired_share_interval  # noqa: E402

SEED = 1
FULL = 2000  # trials of a simulation, where the row does not say otherwise


@dataclass(frozen=True)
class Row:
    """A line of the table; `measure` takes the number of trials, `before` is what the code before it gave."""

    what: str
    setting: str
    wanted: str
    before: str
    measure: Callable[[int], str]
    trials: int = FULL  # 0: enumerated, nothing is drawn


def percent(*shares: float) -> str:
    """Shares as 12.3 %, several of them with `to` between the lowest and the highest."""
    low, high = min(shares), max(shares)
    return f"{100 * low:.1f} %" if low == high else f"{100 * low:.1f} to {100 * high:.1f} %"


def _binomial(n: int) -> str:
    covered = sim.binomial_coverage(bounded_mean, n)
    return f"mean {percent(float(covered.mean()))}, least {percent(float(covered.min()))}"


_CLUSTERED = ((0.01, 0.3), (0.05, 0.0), (0.05, 0.3), (0.3, 0.3), (0.3, 0.8))  # share and correlation
_DIFFERENCES = ((0.02, 0.02), (0.1, 0.05), (0.3, 0.1), (0.05, 0.0))  # won and lost
_SCORES_BEFORE = ("66.5 %", "40.5 %", "24.5 %", "91.8 %", "92.1 %", "92.2 %", "92.0 %")

SECTIONS: dict[str, list[Row]] = {
    "Intervals of shares and mean scores: coverage of 95 % intervals": [
        Row(
            "share of 0.01, a row a topic",
            "n = 30, enumerated",
            "about 95 %",
            "26.0 %",
            lambda _: percent(float(sim.binomial_coverage(bounded_mean, 30, np.array([0.01]))[0])),
            0,
        ),
        *(
            Row(
                "shares of 0.005 to 0.995, a row a topic",
                f"n = {n}, enumerated",
                "mean 94 to 97 %, least over 86 %",
                before,
                lambda _, n=n: _binomial(n),  # type: ignore[misc]
                0,
            )
            for n, before in ((30, "mean 88.8 %, least 14.0 %"), (120, "mean 93.0 %, least 44.9 %"))
        ),
        Row(
            "shares of 0.01 to 0.3, five rows a topic, correlation 0 to 0.8",
            "40 topics",
            "about 95 %",
            "67.4 to 94.6 % (500 trials)",
            lambda trials: percent(
                *(
                    sim.clustered_coverage(bounded_mean, share, rho, 40, 5, trials, SEED)
                    for share, rho in _CLUSTERED
                )
            ),
        ),
        *(
            Row(
                "mean score: " + name,
                "n = 30",
                "about 95 %",
                before,
                lambda trials, name=name: percent(  # type: ignore[misc]
                    sim.score_coverage(bounded_mean, name, 30, trials, SEED)
                ),
            )
            for name, before in zip(sim.SCORES, _SCORES_BEFORE, strict=True)
        ),
        *(
            Row(
                f"for comparison, {name}: mean score, 95 to 99 % are 1",
                "n = 30",
                "about 95 %",
                "not in use",
                lambda trials, other=other: percent(  # type: ignore[misc]
                    *(sim.score_coverage(other, case, 30, trials, SEED) for case in list(sim.SCORES)[:3])
                ),
                500,
            )
            for name, other in (("bootstrap-t", sim.bootstrap_t), ("logit-t", sim.logit_t))
        ),
        Row(
            "paired difference of shares, 2 to 40 % of the topics differ",
            "n = 30, enumerated",
            "about 95 %",
            "77.0 to 97.5 %",
            lambda _: percent(
                *(sim.difference_coverage(paired_share_interval, *cell, 30) for cell in _DIFFERENCES)
            ),
            0,
        ),
    ],
    "Hallucination share: interval and paired test": [
        Row(
            "share of 0.03, a row a topic: coverage",
            "n = 120, enumerated",
            "about 95 %",
            "no interval",
            lambda _: percent(float(sim.binomial_coverage(bounded_mean, 120, np.array([0.03]))[0])),
            0,
        ),
        *(
            Row(
                f"{rates[0]} against {rates[1]}: called different at 5 %",
                "120 topics, half of them alike",
                wanted,
                "no test",
                lambda trials, rates=rates: percent(  # type: ignore[misc]
                    sim.hallucination_rejections(rates, 0.5, 120, trials, SEED)
                ),
            )
            for rates, wanted in (((0.2, 0.2), "at most 5 %"), ((0.35, 0.15), "nearly always"))
        ),
    ],
    "Thresholds: is one useful, and which are not worse": [
        *(
            Row(
                what + ": called useful",
                f"{n} topics",
                wanted,
                f"{before}: beats the constant guess",
                lambda trials, n=n, slope=slope, share=share: percent(  # type: ignore[misc]
                    sim.useful_thresholds(n, slope, share, trials, SEED)[0]
                ),
                trials,
            )
            for what, n, slope, share, wanted, before, trials in (
                ("a useless score, half are right", 30, 0.0, 0.5, "at most 5 %", "75.8 %", FULL),
                ("a useless score, half are right", 120, 0.0, 0.5, "at most 5 %", "87.2 %", FULL),
                ("a useless score, 70 % are right", 120, 0.0, 0.7, "at most 5 %", "49.9 %", FULL),
                ("a score that gains 24 points", 120, 6.0, 0.5, "nearly always", "100.0 %", 500),
            )
        ),
        *(
            Row(
                f"the best threshold is among those not rejected; logistic of slope {slope:g}",
                f"{n} topics, {rows} row(s) each",
                "92 to 98 %",
                "no such set",
                lambda trials, n=n, rows=rows, slope=slope: "{}; between its ends {}".format(  # type: ignore[misc]
                    *map(percent, sim.threshold_coverage(n, rows, slope, trials, SEED))
                ),
                500,
            )
            for n, rows, slope in ((60, 1, 6.0), (400, 1, 6.0), (400, 1, 20.0), (120, 5, 6.0))
        ),
    ],
    "Sign-flip test: its null is exchangeability": [
        Row(
            f"{what}: rejected at 5 %",
            f"{n} topics",
            wanted,
            "the same; the null was called a mean of 0",
            lambda trials, n=n, skewed=skewed: percent(  # type: ignore[misc]
                sim.sign_flip_rejections(skewed, n, trials, SEED)
            ),
        )
        for what, skewed, wanted in (
            ("symmetric differences", False, "5 %"),
            ("skewed differences of mean 0", True, "not held: not exchangeable"),
        )
        for n in (30, 120)
    ],
    "Predictor: AUC and log loss on unseen topics": [
        *(
            Row(
                f"mean AUC of a {what} score",
                f"{n} topics, half are right",
                wanted,
                before,
                lambda trials, n=n, useless=useless: (  # type: ignore[misc]
                    f"{sim.mean_auc(n, useless, trials, SEED):.3f}"
                ),
                trials,
            )
            for what, useless, n, wanted, before, trials in (
                ("useless", True, 30, "0.500", "0.397 (60 trials)", 120),
                ("useless", True, 120, "0.500", "0.439", 40),
                ("useful", False, 120, "about 0.8", "0.793", 10),
            )
        ),
        *(
            Row(
                "log loss: its interval holds that of its own fits; the mean over all fits",
                f"{n} topics",
                "about 95 % of its own fits",
                "the same; not said what it is about",
                lambda trials, n=n: "{}; {}".format(  # type: ignore[misc]
                    *map(percent, sim.log_loss_coverage(n, trials, SEED))
                ),
                40,
            )
            for n in (120,)
        ),
    ],
}


def table(quick: bool) -> str:
    """The sections as Markdown tables."""
    lines = []
    for title, rows in SECTIONS.items():
        lines += [f"\n## {title}\n", "| what | setting | wanted | before | now |", "|---|---|---|---|---|"]
        for row in rows:
            start = time.perf_counter()
            trials = row.trials // 10 if quick else row.trials
            now = row.measure(trials)
            setting = f"{row.setting}, {trials:,} trials" if trials else row.setting
            lines.append(f"| {row.what} | {setting} | {row.wanted} | {row.before} | {now} |")
            print(f"{time.perf_counter() - start:6.1f} s  {row.what}: {now}", file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs the simulations and writes or prints their table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials; writes no file")
    quick = parser.parse_args().quick
    text = (
        "# Numbers against known truth\n\nWritten by `python benchmarks/validity.py`; seed "
        f"{SEED} throughout. *Before* is what the same simulation gave on version 0.1.0 before these "
        "estimators; *now* is what it gives today. Estimators and assumptions: docs/method.md.\n"
    ) + table(quick)
    if quick:
        print(text)
    else:
        (HERE / "VALIDITY.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
