"""The predictor: calibration error, log loss, and scores outside of those of the fit."""

from __future__ import annotations

import simulations.predictor as sim
from known_truth.rows import SEED, Row, percent


def _calibration(n: int, bend: float, trials: int) -> str:
    told, _, covered = sim.calibration_error(n, bend, trials, SEED)
    return f"{told:.3f}; interval holds it {percent(covered)}"


def _outside(spline: bool, trials: int) -> str:
    lowest, error = sim.outside_error(spline, trials, SEED)
    return f"lowest P {lowest:.2f}, mean error {error:.2f}"


SECTIONS: dict[str, list[Row]] = {
    "Predictor: calibration, log loss and scores outside of the fit": [
        *(
            Row(
                f"mean calibration error told, {what}",
                f"{n} topics",
                wanted,
                before,
                lambda trials, n=n, bend=bend: _calibration(n, bend, trials),  # type: ignore[misc]
                200,
            )
            for what, bend, n, wanted, before in (
                ("perfectly calibrated", 1, 30, "0", "0.184"),
                ("perfectly calibrated", 1, 120, "0", "0.095"),
                ("perfectly calibrated", 1, 1000, "0", "0.033"),
                (
                    "true logits are half of those told",
                    0.5,
                    1000,
                    "0.098",
                    "0.092 (of 0.087, mean of absolutes)",
                ),
            )
        ),
        *(
            Row(
                "log loss: its interval holds the mean over all fits; that of its own fits",
                f"{n} topics",
                "about 95 % of the mean; fits held fixed, so less on few topics",
                "the same; not said what it is about",
                lambda trials, n=n: "{1}; {0}".format(  # type: ignore[misc]
                    *map(percent, sim.log_loss_coverage(n, trials, SEED))
                ),
                40,
            )
            for n in (30, 120)
        ),
        *(
            Row(
                f"P(right) from 0.12 to 0.88 by a straight logit, fitted on scores 0.3 to 0.6: {what}",
                "300 topics",
                "error outside small, no P near 0",
                before,
                lambda trials, spline=spline: _outside(spline, trials),  # type: ignore[misc]
                20,
            )
            for what, spline, before in (
                ("spline, constant outside", True, "lowest P 0.00, mean error 0.34"),
                ("straight logit, goes on outside", False, "the same"),
            )
        ),
    ],
}
