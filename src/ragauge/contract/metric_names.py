"""Names of metrics declared by findings, so that a gate can be checked before any work.

Beside these a job has its answer measures (`AnswerMeasureInfo.name` with `MEASURE_ENDS`), its measures of rankings, its
slices, and what its components count. In MLflow those that people read first stand alone, `correct_share` for one. The
others are in groups, which MLflow folds into sections: `interval/correct_share_lo`.
"""

from __future__ import annotations

import difflib
import functools
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

MISSING = "judge_share_missing"  # the share of answers to judge that have no verdict
# The least share of verdicts with which right answers and hallucinations of a system are compared.
LEAST_JUDGED = 0.5


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
    """The declared names of single values, or of charts; a text stands for a Metric of these names."""
    metrics = [Metric(one) if isinstance(one, str) else one for one in declared]
    return [name for metric in metrics if metric.chart == charts for name in _alternatives(metric.names)]


def _alternatives(text: str) -> list[str]:
    parts = re.split(r"\{([^{}]*)\}", text)
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
    f"{{{','.join(CALLS)}}}{{llm_cut,llm_thoughts}}",
)
# Of every job, and of the MLflow run that pools a sweep, beside what their findings declare.
OF_EVERY_JOB = ("topics", "stages_made", "seconds_{total,*}")
OF_EVERY_SWEEP = ("jobs{,_failed}", "seconds_{jobs,pooled}")
OF_EVERY_CHART = (Metric("tokens", chart=True),)

# What people read first: these have no group in MLflow, nor have answer measures and what no pattern below fits.
_READ_FIRST = frozenset({
    "ir_score", "ir_score_floor", *OF_VERDICTS, "judge_share_missing", "predicted_correct_share", "threshold_h",
    "threshold_k", "predictor_auc_correct", "predictor_auc_lack", "transfer_mae", "ndcg_at_10", "topics", "jobs",
    "jobs_failed", "llm_calls", "cost_usd", "seconds_total",
})  # fmt: skip
# The groups of the others: the first pattern that fits the whole name decides.
_GROUPS = {
    "chart": r"tokens|.*_at_(n|day)",
    "interval": r".*_(lo|hi)",
    "missing": r".*_(missing|no_claims|failed)|.*llm_(cut|thoughts)",
    "stage": r"seconds_(?!per_topic).*|stages_made|latency_.*",
    "cost": r".*(llm_calls|llm_calls_cached|usage_unknown|_tokens|cost_usd)|prompt_tokens|.*_per_topic",
    "funnel": r"(funnel|failure)_.*",
    "threshold": r"(threshold|zone)_.*",
    "predictor": r"(predictor|predicted|transfer|unjudged)_.*",
    "leaderboard": r"(best_set_size|top_optimism|detectable_difference)_.*",
    "ranking": r"(chunk_)?(rr|ap|.*_at_\d+)(_.*)?",
    "judge": r"(judge|judged|human)_.*|.*_(classical|effective_n)|correct_share_prompt_.*",
    "size": r"unread_.*|topics_.*|n_chunks|cluster.*|ir_score_topics|evidence_respelled",
}


@functools.cache  # a reader of many runs meets each name once a run
def in_group(name: str) -> str:
    """A metric's name in MLflow, such as `interval/em_lo` for em_lo; unchanged for headlines and grouped names."""
    if "/" in name or name in _READ_FIRST:
        return name
    return next((f"{group}/{name}" for group, form in _GROUPS.items() if re.fullmatch(form, name)), name)


def without_groups(logged: Mapping[str, float]) -> dict[str, float]:
    """Logged metrics by their names without groups."""
    ends = {name: name.partition("/")[2] for name in logged}
    return {end if end and in_group(end) == name else name: logged[name] for name, end in ends.items()}


_OF_PACKAGES_TAG = "ragauge.metrics"  # of an MLflow run


def as_tag(names: Sequence[str]) -> dict[str, str]:
    """The tag with the metric names of packages' findings; {} without any."""
    return {_OF_PACKAGES_TAG: json.dumps(list(names))} if names else {}


def from_tags(tags: Mapping[str, str]) -> list[str]:
    """The names in the tags of a run; [] if the tag is absent or unreadable."""
    try:
        return [str(name) for name in json.loads(tags.get(_OF_PACKAGES_TAG, "[]"))]
    except (ValueError, TypeError):
        return []


def is_known(name: str, known: Iterable[str]) -> bool:
    """Whether a metric's name is known, or matches a known one with a `*`."""
    return any(name == one or ("*" in one and fnmatchcase(name, one)) for one in known)


def closest(name: str, known: Iterable[str]) -> str:
    """The most similar known name, as " Did you mean ...?"; "" for none."""
    close = difflib.get_close_matches(name, [one for one in known if "*" not in one], n=1, cutoff=0.6)
    return f" Did you mean {close[0]}?" if close else ""


def measure_metrics(names: Iterable[str]) -> list[str]:
    """The metrics of answer measures of these names."""
    return [f"{name}{end}" for name in names for end in MEASURE_ENDS]
