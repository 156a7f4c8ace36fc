"""Shares of a window that nobody judged, foreseen from a predictor and corrected by its training labels."""

from __future__ import annotations

from known_truth.rows import SEED, Row, percent
from simulations.foreseen import drifts, held

_WORDS = {
    "alike": "the window is like the training",
    "shifted": "two features are shifted by 0.7 standard deviations",
    "bent": "P(right) is no logistic function",
    "bent and shifted": "P(right) is no logistic function, and two features are shifted",
    "rare": "5 % are right",
    "other answers": "answers got worse at the same features: no interval can hold",
}
_TRIALS = 300


def _row(kind: str) -> Row:
    def measure(trials: int) -> str:
        of = held(kind, 200, 400, trials, SEED)
        held_by = (percent(of[name]) for name in ("right", "hallucination", "these", "topics"))
        return f"{'; '.join(held_by)}; {of['width']:.3f}"

    return Row(
        f"{_WORDS[kind]}: coverage of right, hallucination, right of these, right without labels; width",
        "200 training topics of 3 systems, 400 answers",
        "0 %" if kind == "other answers" else "about 95 %, the fourth less",
        "as the fourth",
        measure,
        _TRIALS,
    )


def _drift(kind: str, wanted: str) -> Row:
    return Row(
        f"{_WORDS[kind]}: drift is found at 5 %",
        "200 training topics of 3 systems, 400 answers",
        wanted,
        "no test",
        lambda trials: percent(drifts(kind, trials, SEED)),
        _TRIALS,
    )


SECTIONS: dict[str, list[Row]] = {
    "Shares of a window, foreseen": [
        *map(_row, _WORDS),
        _drift("alike", "about 5 %"),
        _drift("shifted", "nearly always"),
    ],
}
