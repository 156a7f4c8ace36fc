"""The predictor on unseen topics."""

from __future__ import annotations

import simulations.predictor as sim
from known_truth.rows import SEED, Row

SECTIONS: dict[str, list[Row]] = {
    "Predictor: AUC on unseen topics": [
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
    ],
}
