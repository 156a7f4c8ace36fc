"""How often topics are answered, and answers judged."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragauge.contract.answer_measures import infos_of
from ragauge.contract.answering import ASKED
from ragauge.contract.checks import require, require_count
from ragauge.contract.errors import ConfigError
from ragauge.contract.measures import MeasuresLayouts, MeasuresRepeats, VariesContexts
from ragauge.contract.outcomes import MOST_LABELS

if TYPE_CHECKING:
    from ragauge.contract.stages import Components

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Repeats:
    """Number of answers per topic (`llm.repeat`) and of verdicts per answer (`judge.per_answer`)."""

    answers: int = 1
    verdicts: int = 1

    @property
    def several(self) -> bool:
        """Whether a topic has more than one verdict."""
        return self.answers * self.verdicts > 1


ONCE = Repeats()


def checked_repeats(answers: Any, verdicts: Any, components: Components) -> Repeats:
    """The job's repeats (None: one), 1 for deterministic components; ConfigError if they are impossible."""
    answers, verdicts = (1 if times is None else times for times in (answers, verdicts))
    require_count("llm.repeat", answers)
    require_count("judge.per_answer", verdicts)
    of = components
    needing = [name for name, measure in of.answers.items() if isinstance(measure, MeasuresRepeats)]
    if needing and answers == 1:
        raise ConfigError(f"answers.{needing[0]} compares several answers to a topic: set llm.repeat to 2 or more")
    if answers * verdicts == 1:
        return ONCE
    most = f"counts of at most {MOST_LABELS} in all (llm.repeat times judge.per_answer)"
    require("llm.repeat", answers, answers * verdicts <= MOST_LABELS, most)
    if of.judge.mode == "batch":
        raise ConfigError("llm.repeat and judge.per_answer: judge.mode=batch judges once; use judge.mode=single")
    if getattr(of.judge, "prompts", None) is not None:
        raise ConfigError("llm.repeat and judge.per_answer: judge.prompts judges each answer by itself; use one")
    return Repeats(_differing("llm.repeat", answers, of.llm), _differing("judge.per_answer", verdicts, of.judge))


def _differing(key: str, times: int, component: Any) -> int:
    """`times`, or 1 for a deterministic component; ConfigError if the component cannot repeat."""
    if times == 1:
        return 1
    if component.repeated(1) is not None:  # refuses settings under which nothing differs
        return times
    name = component.component or type(component).__name__
    if component.kind in ASKED:
        raise ConfigError(f"{key}={times}: {name} cannot be asked for another reply to a request; allowed is 1")
    log.info("%s=%s: %s gives the same each time, so all %s repeats are equal and made once", key, times, name, times)
    return 1


def of_answer(measure: Any) -> bool:
    """Whether a measure's values depend on the answer, given the context."""
    apart = isinstance(measure, VariesContexts | MeasuresLayouts | MeasuresRepeats)
    return not apart and any(info.of == "answer" for info in infos_of(measure))
