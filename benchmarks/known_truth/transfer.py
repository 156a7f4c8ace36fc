"""Transfer to a retriever that the predictor has not seen."""

from __future__ import annotations

import simulations.transfer as sim
from known_truth.rows import SEED, Row, percent

_TRIALS = 40
_SHARED = "120 topics, three retrievers; topics differ by 2 logits in how easy they are"


def _points(share: float) -> str:
    return f"{100 * share:.2f}"


def _perfect(trials: int) -> str:
    found = sim.transferred(120, 2, 0, trials, SEED)
    return f"told {_points(found.told)}, on new topics {_points(found.new_topics)}"


def _expected(trials: int) -> str:
    found = sim.transferred(120, 2, 0, trials, SEED)
    return f"told {_points(found.perfect)}, on new topics {_points(found.new_topics)}"


def _shifted(trials: int) -> str:
    found = sim.transferred(120, 2, 1.5, trials, SEED)
    return f"told {_points(found.told)}, on new topics {_points(found.new_topics)}"


SECTIONS: dict[str, list[Row]] = {
    "Transfer: error and intervals": [
        Row(
            "mean absolute error of class shares, points; the score says it all",
            _SHARED,
            "told = on new topics",
            "told 1.97, on new topics 2.31",
            _perfect,
            _TRIALS,
        ),
        Row(
            "error that perfect transfer shows, points; transfer is perfect",
            _SHARED,
            "told = on new topics",
            "not told",
            _expected,
            _TRIALS,
        ),
        Row(
            "mean absolute error, points; one retriever is right more often than its score says",
            _SHARED,
            "told = on new topics",
            "told 5.53, on new topics 5.52",
            _shifted,
            _TRIALS,
        ),
        *(
            Row(
                f"intervals hold: true differences of shares; the mean error on new topics ({what})",
                _SHARED,
                "about 95 %",
                before,
                lambda trials, lift=lift: "{}; {}".format(  # type: ignore[misc]
                    *(
                        percent(share)
                        for share in (
                            sim.transferred(120, 2, lift, trials, SEED).differences_covered,
                            sim.transferred(120, 2, lift, trials, SEED).error_covered,
                        )
                    )
                ),
                _TRIALS,
            )
            for what, lift, before in (
                ("perfect transfer", 0, "92.2 %; 92.5 %"),
                ("one retriever differs", 1.5, "89.4 %; 87.5 %"),
            )
        ),
    ],
}
