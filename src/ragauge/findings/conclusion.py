"""The conclusion: origins of failures, whether a system is shown to be better, and what to try next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from ragauge.contract.finding import Finding, Found, Founds, Shown
from ragauge.contract.jobs import Jobs
from ragauge.contract.record import JobRecord
from ragauge.diagnose.causes import in_question
from ragauge.diagnose.failures import EVERY_CAUSE, NOT_KNOWN
from ragauge.estimate.outcomes import right_of
from ragauge.findings.failures import Causes, fitting
from ragauge.findings.leaderboard import Board

_JUDGE = "the judge"  # origin of failures without a verdict
_NAMED = 4  # systems that a sentence names


class Conclusion(Finding):
    """A summary of the other findings in three sentences."""

    name = "conclusion"

    def compute(self, jobs: Jobs, found: Founds) -> Found:
        """The sentences that this sweep's findings support."""
        board: Board = found["leaderboard"]
        causes: Causes | None = found.get("failures")
        alike = board.alike_sentences(board.headline) if board.headline else []
        if causes is None:
            none_failed = board.judged and bool(right_of(in_question(jobs.at_n)).all())
            first, step = ["No answer failed."] if none_failed else [], ""
        else:
            first, step = [_failures(causes, board.judged), _in_context(causes)], _next(causes, jobs.records)
        sentences = [*first, " ".join(alike) or _best(board), step]
        return Found([one for one in sentences if one])

    def show(self, jobs: Jobs, value: list[str], found: Founds) -> Shown:
        """The sentences before all else."""
        return Shown(lead=value)


def _failures(causes: Causes, judged: bool) -> str:
    """Where failures come from: every origin, whose shares sum to 100 %; first whether one has the majority."""
    rows = [row for row in causes.origins.to_dict("records") if row["failures"]]
    n, first = int(causes.origins["n"].iloc[0]), rows[0]
    apart = f" {causes.unanswerable:,} of them are answers to unanswerable questions." if causes.unanswerable else ""
    if causes.unanswerable == 1:
        apart = " 1 of them is an answer to an unanswerable question."
    if first["origin"] == NOT_KNOWN:
        return f"Nothing shows where the {n:,} failures come from: {_lack_evidence(causes)}.{apart}"
    if first["origin"] == _JUDGE and len(rows) == 1:
        return f"{n:,} answers have no verdict: nothing shows whether they are right.{apart}"
    answers = judged or first["origin"] == _JUDGE  # else contexts were measured alone
    shares, said = _percentages([row["share"] for row in rows]), []
    for at, (row, share) in enumerate(zip(rows, shares, strict=True)):
        if row["origin"] == NOT_KNOWN:
            said.append(f"{share} are not known: {_lack_evidence(causes)}")
        elif at == 0 and row["lo"] > 0.5:
            what = f"{n:,}{'' if answers else ' contexts that lack evidence'}"
            ends = f" (95 % interval {100 * row['lo']:.0f} to {100 * row['hi']:.0f})"
            said.append(f"Most failures {_come_from(row)}: {share} of {what}{ends}")
        else:
            what = (" of failures" if answers else " of the lost evidence") if at == 0 else ""
            ends = f" ({100 * row['lo']:.0f} to {100 * row['hi']:.0f})" if row["lo"] == row["lo"] else ""
            said.append(f"{share}{what} {_come_from(row, at == 0)}{ends}")
    return ", ".join(said) + f".{apart}"


def _come_from(row: dict[Any, Any], first: bool = True) -> str:
    if row["origin"] == _JUDGE:
        return "have no verdict"
    return f"{'come ' * first}from {row['origin']}"


def _lack_evidence(causes: Causes) -> str:
    n = causes.unknown
    return f"{n:,} {'question lacks' if n == 1 else 'questions lack'} evidence"


def _percentages(shares: Sequence[float]) -> list[str]:
    """Shares that sum to 1 as whole percentages that sum to 100: the largest remainders are rounded up."""
    whole = [int(100 * share + 1e-9) for share in shares]
    by_rest = sorted(range(len(shares)), key=lambda at: whole[at] - 100 * shares[at])
    for at in by_rest[: 100 - sum(whole)]:
        whole[at] += 1
    return [f"{one} %" for one in whole]


def _in_context(causes: Causes) -> str:
    """How many failures without known evidence had the reference answer in their context."""
    there, not_there = causes.in_context, causes.not_in_context
    if not there + not_there:
        return ""
    return (
        f"In {there:,} of {there + not_there:,} failures without evidence the reference answer stood in the context, "
        f"which points to the LLM; in {not_there:,} it did not, which points to retrieval."
    )


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


def _next(causes: Causes, records: Sequence[JobRecord]) -> str:
    """How to make evidence if most failures lack it; else the advice for the first origin that has some."""
    rows = [row for row in causes.origins.to_dict("records") if row["failures"]]
    if rows[-1]["origin"] == NOT_KNOWN and rows[-1]["share"] > 0.5:
        return (
            f"Next: let a chat model find the evidence in your documents ({_annotate(records[0])})." if records else ""
        )
    known = [EVERY_CAUSE[str(row["cause"])] for row in rows if row["origin"] != NOT_KNOWN]
    cause = next((one for cause in known if (one := fitting(cause, records))), None)
    if cause is None:
        return ""
    what = cause.advice.partition(":")[0].removesuffix(".")
    where = f" ({cause.overrides})" if cause.overrides else ", in the system that was recorded or asked"
    return f"Next: {what[0].lower()}{what[1:]}{where}."


def _annotate(record: JobRecord) -> str:
    """The command that makes evidence for the topics of a job."""
    given = [one for one in record.overrides if one.startswith(("dataset=", "dataset."))]
    recorded = dict(one.split("=", 1) for one in record.overrides if one.startswith("recorded."))
    if record.choices.get("dataset") == "samples":
        given = [one for one in given if one != "dataset=samples"]
        if not any(one.startswith("dataset.path=") for one in given):
            given.insert(0, f"dataset.path={recorded.get('recorded.path', '<samples.jsonl>')}")
        if not any(one.startswith("dataset.docs=") for one in given):
            given.append(f"dataset.docs={recorded.get('recorded.docs', '<documents.jsonl>')}")
        given.insert(0, "dataset=samples")
    return " ".join(["ragauge annotate", *map(_quoted, given), "evaluator=openai out=annotated.jsonl"])


def _quoted(override: str) -> str:
    """The override, quoted for a shell; `<…>` stays as it is, since the reader replaces it."""
    return override if "<" in override else shlex.quote(override)
