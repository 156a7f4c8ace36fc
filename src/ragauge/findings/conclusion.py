"""The conclusion: origins of failures, whether a system is shown to be better, and what to try next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragauge.contract.finding import Finding, Found, Founds, Shown
from ragauge.contract.jobs import Jobs
from ragauge.diagnose.failures import EVERY_CAUSE
from ragauge.findings.failures import Causes
from ragauge.findings.leaderboard import Board

_NAMED = 4  # systems that a sentence names


class Conclusion(Finding):
    """A summary of the other findings in three sentences."""

    name = "conclusion"

    def compute(self, jobs: Jobs, found: Founds) -> Found:
        """The sentences that this sweep's findings support."""
        board: Board = found["leaderboard"]
        causes: Causes | None = found.get("failures")
        alike = board.alike_sentences(board.headline) if board.headline else []
        sentences = [_failures(causes, board.judged), " ".join(alike) or _best(board), _next(causes)]
        return Found([one for one in sentences if one])

    def show(self, jobs: Jobs, value: list[str], found: Founds) -> Shown:
        """The sentences before all else."""
        return Shown(lead=value)


def _failures(causes: Causes | None, judged: bool) -> str:
    """The origin of most failures; without a majority the first three origins."""
    if causes is None:
        return "No answer failed." if judged else ""
    rows = [row for row in causes.origins.to_dict("records") if row["failures"]]
    n = int(causes.origins["n"].iloc[0])
    failures = f"{n:,}{'' if judged else ' contexts that lack evidence'}"
    apart = f" {causes.unanswerable:,} of them are answers to unanswerable questions." if causes.unanswerable else ""
    if not rows:
        return f"Nothing shows where the {n:,} failures come from: the dataset names no evidence for them."
    if rows[0]["lo"] > 0.5:
        share, ends = _share(rows[0], "95 % interval ")
        return f"Most failures come from {rows[0]['origin']}: {share} of {failures}{ends}.{apart}"
    parts = [(row["origin"], *_share(row)) for row in rows[:3]]
    first, *others = (f"{share} {{}}from {where}{ends}" for where, share, ends in parts)
    what = "failures" if judged else "the lost evidence"
    return ", ".join([first.format(f"of {what} come "), *(one.format("") for one in others)]) + f".{apart}"


def _share(row: dict[Any, Any], name: str = "") -> tuple[str, str]:
    """The share of an origin, and its interval in brackets."""
    ends = f" ({name}{100 * row['lo']:.0f} to {100 * row['hi']:.0f})" if row["lo"] == row["lo"] else ""
    return f"{100 * row['share']:.0f} %", ends


def _best(board: Board) -> str:
    """The systems that may be the best by the headline measure, and those shown not to be."""
    measure = board.headline
    marks = board.best.marks(measure) if measure else {}
    if measure is None or len(marks) < 2:
        return ""
    what = board.label_of(measure)
    best, others = ([name for name in board.systems if marks.get(name) is kept] for kept in (True, False))
    if not others:
        return f"No system is shown to be better than another in {what}."
    if len(best) == 1:
        return f"{best[0]} is shown to be the best in {what}."
    worse = f"{_listed(others)} {'is' if len(others) == 1 else 'are'} shown to be worse"
    return f"{what[0].upper()}{what[1:]}: {_listed(best, 'or')} may be best; {worse}."


def _listed(names: Sequence[str], word: str = "and") -> str:
    """`a, b and c`; of many the first ones, and the number of others."""
    shown = [*names] if len(names) <= _NAMED else [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} others"]
    return f" {word} ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _next(causes: Causes | None) -> str:
    """The advice for the most frequent cause of the first origin."""
    cause = EVERY_CAUSE.get(str(causes.origins["cause"].iloc[0])) if causes is not None else None
    if cause is None:
        return ""
    what = cause.advice.partition(":")[0].removesuffix(".")
    return f"Next: {what[0].lower()}{what[1:]} ({cause.overrides})."
