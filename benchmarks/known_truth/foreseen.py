"""Shares of a window that nobody judged, foreseen from a predictor and corrected by its training labels."""

from __future__ import annotations

from functools import cache

from known_truth.rows import SEED, Row, percent
from simulations.foreseen import held

_WORDS = {
    "alike": "the window is like the training",
    "shifted": "two features are shifted by 0.7 standard deviations",
    "bent": "P(right) is no logistic function",
    "bent and shifted": "P(right) is no logistic function, and two features are shifted",
    "rare": "5 % are right",
    "other answers": "answers got worse at the same features: no interval can hold",
}
_TRIALS = 300


@cache
def _found(kind: str, n_training: int, trials: int) -> dict[str, float]:
    return held(kind, n_training, 400, trials, SEED)


def _row(kind: str, n_training: int) -> Row:
    def measure(trials: int) -> str:
        of = _found(kind, n_training, trials)
        held_by = (percent(of[name]) for name in ("right", "hallucination", "these", "topics"))
        return f"{'; '.join(held_by)}; {of['width']:.3f}"

    return Row(
        f"{_WORDS[kind]}: coverage of right, hallucination, right of these, right without labels; width",
        f"{n_training} training topics of 3 systems, 400 answers",
        "0 %" if kind == "other answers" else "93 to 97 %, the fourth less",
        "as the fourth",
        measure,
        _TRIALS,
    )


_CASES = (*((kind, 200) for kind in _WORDS), ("alike", 800), ("bent and shifted", 800))

SECTIONS: dict[str, list[Row]] = {
    "Shares of a window, foreseen": [_row(*case) for case in _CASES]
    + [
        Row(
            f"{_WORDS[kind]}: drift is found at 5 %",
            "200 training topics of 3 systems, 400 answers",
            wanted,
            "no test",
            lambda trials, kind=kind: percent(_found(kind, 200, trials)["drift"]),  # type: ignore[misc]
            _TRIALS,
        )
        for kind, wanted in (("alike", "at most 5 %"), ("shifted", "nearly always"))
    ],
}
