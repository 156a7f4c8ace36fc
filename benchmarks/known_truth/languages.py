"""Questions in another language than their document, and questions whose language is to be recognised."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

import simulations.languages as sim
from known_truth.rows import SEED, Row, percent

ALL = tuple(sim.TEXTS)
_BEFORE = "no such number"


def strays(languages: tuple[str, ...], trials: int) -> str:
    """The shares of strays and of the others that are rejected, each over all languages, and of the worst."""
    found = np.array(list(sim.rejected(languages, trials, SEED).values()))
    (strays, own), lowest, highest = found.mean(axis=0), found[:, 0].min(), found[:, 1].max()
    return (
        f"rejected {percent(strays)} of the strays (at least {percent(lowest)} of a language), and {percent(own)} of "
        f"the others (at most {percent(highest)})"
    )


def recognised(trials: int) -> str:
    """The shares of questions whose language is found, and taken for another; those of the worst by name."""
    found: Mapping[str, tuple[float, float]] = sim.recognised(trials, SEED)
    right, wrong = np.mean(list(found.values()), axis=0)
    below = ", ".join(f"{one.capitalize()} {percent(share)}" for one, (share, _) in found.items() if share < 0.95)
    return f"found {percent(right)}, taken for another {percent(wrong)}; below 95 %: {below or 'none'}"


def _row(what: str, setting: str, wanted: str, measure: Callable[[int], str]) -> Row:
    return Row(what, setting, wanted, _BEFORE, measure, 1000)


_OF_STRAYS = "at least 95 % of the strays and at most 2 % of the others are rejected"
SECTIONS: dict[str, list[Row]] = {
    "Languages": [
        _row(
            "questions in another language than their document, of XQuAD's eleven languages",
            "a fifth of the drafts stray, `language=auto`; per language",
            _OF_STRAYS,
            lambda n: strays(sim.XQUAD, n),
        ),
        _row(
            f"questions in another language than their document, of {len(ALL)} languages",
            "a fifth of the drafts stray, `language=auto`; per language",
            _OF_STRAYS,
            lambda n: strays(ALL, n),
        ),
        _row(
            f"the language of a short question, of {len(ALL)} languages",
            "five forms of questions with names and years drawn anew; per language",
            "at most 2 % are taken for another language",
            recognised,
        ),
    ]
}
