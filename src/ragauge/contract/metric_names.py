"""The names of metrics, as findings declare them: what a gate may name is known before any work.

Beside these a job has its answer measures (`AnswerMeasureInfo.name` with `MEASURE_ENDS`), its measures of rankings, its
slices, and what its components count.
"""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ragauge.contract.groups import CALLS

MEASURE_ENDS = (
    "", "_lo", "_hi", "_missing", "_no_claims", "_repeat_difference", "_repeat_difference_lo",
    "_repeat_difference_hi", "_repeat_topics", "_repeat_missing",
)  # fmt: skip
# Of what follows from verdicts: without a verdict the metrics of these are no values.
OF_VERDICTS = (
    "correct_share", "hallucination_share", "rejection_share", *(f"judge_share_{c}" for c in range(1, 6)),
)  # fmt: skip


@dataclass(frozen=True)
class Metric:
    """Metrics that a finding may log.

    names: as MLflow shows them. `a{,_lo,_hi}` stands for a, a_lo and a_hi, and `*` for a part that only a job knows.
    what: their meaning, with range or unit, and how they are estimated; "" where docs/method.md has a row.
    checked_by: the row of benchmarks/VALIDITY.md that shows the interval. chart: whether they are charts, and no single
    value.
    """

    names: str
    what: str = ""
    checked_by: str = "–"
    chart: bool = False


def spelled(declared: Iterable[Metric | str], charts: bool = False) -> list[str]:
    """The names that are declared, of single values or of charts; a text is a Metric of these names."""
    metrics = [Metric(one) if isinstance(one, str) else one for one in declared]
    return [name for metric in metrics if metric.chart == charts for name in _alternatives(metric.names)]


def _alternatives(text: str) -> list[str]:
    parts = re.split(r"\{([^}]*)\}", text)
    choices = [part.split(",") if at % 2 else [part] for at, part in enumerate(parts)]
    return ["".join(chosen) for chosen in itertools.product(*choices)]


# What is estimated from verdicts, of a job and of the jobs of a sweep together.
ESTIMATES = (
    "threshold_{h,k}{,_lo,_hi,_set_min,_set_max,_accuracy,_base_rate,_degenerate,_gain,_gain_lo,_gain_hi}",
    "zone_right_{above,share,missed}",
    "zone_lack_{below,share,missed}",
    "predictor_{log_loss,log_loss_base,brier,brier_base,ece,calibration_slope,calibration_intercept}",
    "predictor_auc_{correct,lack}",
    "human_labels",
    "judge_{kappa,agreement}{,_lo,_hi}",
)
COSTS = (
    f"{{{','.join(CALLS)}}}{{llm_calls,llm_calls_cached,llm_usage_unknown,prompt_tokens,completion_tokens,cost_usd}}",
)
# Of every job, and of the MLflow run that pools a sweep, beside what their findings declare.
OF_EVERY_JOB = ("topics", "stages_made", "seconds_{total,*}")
OF_EVERY_SWEEP = ("jobs{,_failed}", "seconds_{jobs,pooled}")
OF_EVERY_CHART = (Metric("tokens", chart=True),)


_OF_PACKAGES_TAG = "ragauge.metrics"  # of an MLflow run


def as_tag(names: Sequence[str]) -> dict[str, str]:
    """The tag by which a job's run names the metrics of findings that packages bring; {} where there are none."""
    return {_OF_PACKAGES_TAG: json.dumps(list(names))} if names else {}


def from_tags(tags: Mapping[str, str]) -> list[str]:
    """The names in the tags of a run; [] where there are none, or the tag cannot be read."""
    try:
        return [str(name) for name in json.loads(tags.get(_OF_PACKAGES_TAG, "[]"))]
    except (ValueError, TypeError):
        return []


def is_known(name: str, known: Iterable[str]) -> bool:
    """Whether a metric's name is one of the known names, or of the form of one with a `*`."""
    return any(name == one or ("*" in one and fnmatchcase(name, one)) for one in known)


def closest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like one that is not known, as " Did you mean ...?"; "" for none."""
    close = difflib.get_close_matches(name, [one for one in known if "*" not in one], n=1, cutoff=0.6)
    return f" Did you mean {close[0]}?" if close else ""


def measure_metrics(names: Iterable[str]) -> list[str]:
    """The metrics of answer measures of these names."""
    return [f"{name}{end}" for name in names for end in MEASURE_ENDS]
