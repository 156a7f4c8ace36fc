"""The target for comparing measures: the judge's class, or an answer measure, by `foresight.target`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ragauge.contract.errors import ConfigError
from ragauge.contract.finding import Found, Founds, JobFinding
from ragauge.contract.jobs import Job
from ragauge.contract.settings import Settings

if TYPE_CHECKING:
    from ragauge.contract.measures import AnswerMeasureInfo

JUDGE = "judge"  # the target that is the judge's class


class Target(JobFinding):
    """Checks the setting in every job, before any work; only the sweep uses the target."""

    name = "foresight_target"
    after = "all"

    def check(self, settings: Settings, measures: Sequence[AnswerMeasureInfo]) -> None:
        """Calls `check_target` on the config."""
        check_target(settings.foresight.target, measures)

    def compute(self, job: Job, found: Founds) -> Found | None:
        """Returns nothing."""
        return None


def targets(infos: Iterable[AnswerMeasureInfo]) -> list[str]:
    """The answer measures with values in [0, 1] that can be targets."""
    return [i.name for i in infos if i.of == "answer" and i.unit == "share" and i.direction == "higher"]


def check_target(target: str | None, infos: Iterable[AnswerMeasureInfo]) -> None:
    """ConfigError for a `foresight.target` that is neither the judge nor one of `targets`."""
    fit = [JUDGE, *targets(infos)]
    if target is not None and target not in fit:
        raise ConfigError(f"foresight.target={target!r}: allowed are {', '.join(fit)}")
