"""The result of a gate: a check for every bound of every rule and job, and the exit code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ragauge.contract.errors import DataError, GateError
from ragauge.plugins.gate.rules import Action

# missed: a metric is beyond min or max. regressed: it is worse than in a baseline. inconclusive: its interval,
# or that of the difference, leaves both open. invalid: there is no value, or none that compares.
Verdict = Literal["pass", "missed", "regressed", "inconclusive", "invalid"]
Kind = Literal["min", "max", "baseline", "job"]
_NAN = math.nan


@dataclass(frozen=True)
class Check:
    """One bound of one rule, checked in one job.

    `bound` is the minimum, the maximum or the tolerance. `value`, `lo` and `hi` are the metric and its 95 % interval.
    In a comparison `difference`, `difference_lo` and `difference_hi` are the job less the baseline over the `n` topics
    of both, with the limits of the two one-sided tests. `topics` is how many topics would decide what is inconclusive,
    NaN where that is not known. `reason` says what is invalid. At a look, `look` is its number (0: none) of `looks`, on
    `look_topics` of at most `max_topics`, at the one-sided `level`, which the limits have, too.
    """

    job: str
    run_id: str
    metric: str
    kind: Kind
    verdict: Verdict
    action: Action = "block"
    bound: float = _NAN
    value: float = _NAN
    lo: float = _NAN
    hi: float = _NAN
    baseline: str = ""
    difference: float = _NAN
    difference_lo: float = _NAN
    difference_hi: float = _NAN
    n: int = 0
    topics: float = _NAN
    reason: str = ""
    look: int = 0
    looks: int = 0
    look_topics: int = 0
    max_topics: float = _NAN
    level: float = _NAN

    @property
    def asked(self) -> str:
        """The rule in words, such as `ir_score at least 0.6`."""
        if self.kind == "job":
            return "the job has finished"
        form = {
            "min": "at least {:g}",
            "max": "at most {:g}",
            "baseline": "no worse than the baseline by {:g}",
        }
        return f"{self.metric} {form[self.kind].format(self.bound)}"

    @property
    def said(self) -> str:
        """The result, in one sentence."""
        if self.verdict == "invalid":
            return f"{self.metric}: {self.reason}" if self.metric else self.reason
        return self._found + self._at_look + (f"; {self.reason}" if self.reason else "")

    @property
    def _found(self) -> str:
        if self.kind == "baseline":
            return self._compared
        bound, value = f"{self.bound:g}", f"{self.metric}={self.value:.4f}"
        known = math.isfinite(self.lo) and math.isfinite(self.hi)
        interval = f" [{self.lo:.4f}, {self.hi:.4f}]" if known else ""
        side = ("below", "at least") if self.kind == "min" else ("above", "at most")
        if self.verdict == "inconclusive":
            return f"{value}{interval} is neither clearly {side[0]} nor clearly {side[1]} {bound}: inconclusive"
        return f"{value}{interval} is {side[0] if self.verdict == 'missed' else side[1]} {bound}"

    @property
    def _compared(self) -> str:
        found = (
            f"{self.metric} differs by {self.difference:+.4f} [{self.difference_lo:+.4f}, "
            f"{self.difference_hi:+.4f}] from {self.baseline} over {self.n:,} topics, tolerance "
            f"{self.bound:g}: {self.verdict}"
        )
        if self.verdict != "inconclusive" or self.look:
            return found
        if not math.isfinite(self.topics):
            return f"{found}; no number of topics would decide it"
        more = int(self.topics) - self.n
        return f"{found}; about {more:,} more topics would decide it, at a fifth of alpha since that is a second look"

    @property
    def _at_look(self) -> str:
        if not self.look:
            return ""
        said = (
            f"; look {self.look} of {self.looks}, on {self.look_topics:,} of at most {self.max_topics:,.0f} topics, "
            f"one-sided level {self.level:.2g}"
        )
        if self.verdict != "inconclusive":
            return f"{said}: no more topics are needed"
        return f"{said}: " + ("more topics may decide it" if self.look < self.looks else "the last look leaves it open")


@dataclass(frozen=True)
class GateResult:
    """All checks of a gate, in the order of jobs and rules."""

    checks: Sequence[Check]
    strict: bool = False
    notes: Sequence[str] = ()

    def fails(self, check: Check) -> bool:
        """Whether a check alone makes the gate fail: exit code 3."""
        failing = {"missed", "regressed", *(["inconclusive"] if self.strict else [])}
        return check.action == "block" and check.verdict in failing

    @property
    def failed(self) -> list[Check]:
        """The checks that make the gate fail."""
        return [check for check in self.checks if self.fails(check)]

    @property
    def invalid(self) -> list[Check]:
        """The blocking checks that could not be made."""
        return [c for c in self.checks if c.action == "block" and c.verdict == "invalid"]

    @property
    def told(self) -> list[Check]:
        """The checks that did not pass and do not change the exit code."""
        other = {id(check) for check in (*self.failed, *self.invalid)}
        return [c for c in self.checks if c.verdict != "pass" and id(c) not in other]

    @property
    def exit_code(self) -> int:
        """3 if a check failed, else 2 if one could not be made, else 0."""
        return GateError.exit_code if self.failed else DataError.exit_code if self.invalid else 0

    def raise_for(self) -> None:
        """GateError if a check failed, else DataError if a blocking one could not be made."""
        if self.failed:
            raise GateError("quality gate not met: " + "; ".join(check.said for check in self.failed))
        if self.invalid:
            raise DataError("quality gate not decided: " + "; ".join(check.said for check in self.invalid))

    def as_json(self) -> dict[str, Any]:
        """The result as JSON values; null for an unknown number."""
        return {
            "exit_code": self.exit_code,
            "strict": self.strict,
            "notes": list(self.notes),
            "checks": [
                {
                    **{name: None if _unknown(value) else value for name, value in asdict(check).items()},
                    "fails": self.fails(check),
                    "said": check.said,
                }
                for check in self.checks
            ],
        }


def _unknown(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
