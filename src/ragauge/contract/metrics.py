"""The declaration of a metric by the finding that logs it.

Terminal, report, comparison, gate, CSV, LaTeX, the table of docs/method.md and MLflow's groups take label, direction
and unit from here. Metrics that several rooms speak of stand in `METRICS`. Beside declared ones a job has its answer
measures (`AnswerMeasureInfo.name` with `MEASURE_ENDS`), its measures of rankings, its slices, and what its components
count.
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
from typing import Literal, get_args

from ragauge.contract.groups import CALLS, RANKINGS
from ragauge.contract.usage import TOKENS

MEASURE_ENDS = (
    "", "_lo", "_hi", "_missing", "_no_claims", "_repeat_difference", "_repeat_difference_lo",
    "_repeat_difference_hi", "_repeat_topics", "_repeat_missing",
)  # fmt: skip
# The least share of verdicts with which right answers and hallucinations of a system are compared.
LEAST_JUDGED = 0.5

Group = Literal[
    "", "predictor", "ranking", "judge", "cost", "threshold", "leaderboard", "funnel", "stage", "size", "missing",
    "interval", "chart",
]  # fmt: skip
ORDER: Sequence[Group] = get_args(Group)  # in which a comparison shows metrics
Better = Literal["higher", "lower", ""]
Listed = Literal["everywhere", "compare", "on request"]


@dataclass(frozen=True)
class Metric:
    """Metrics that a finding may log.

    names: as MLflow shows them. `a{,_lo,_hi}` stands for a, a_lo and a_hi, and `*` for a part that only a job knows.
    what: their meaning, with range or unit, and how they are estimated; "" where docs/method.md has a row.
    checked_by: the row of benchmarks/VALIDITY.md that shows the interval. chart: whether they are charts, and no single
    value.
    label: the title of a column; without one MLflow and gates alone know the metric. noun: in sentences and beside
    axes, where it differs from the label. better: the end that a comparison marks as the best. unit: how the number is
    written. group: the section of MLflow's page that folds it, and its place in a comparison; None: as the name ends.
    headline: whether it stands above MLflow's sections. listed: "everywhere" is the terminal, the report
    and comparisons; "compare" is comparisons alone, for a metric with a table or line of its own elsewhere; "on
    request" is a comparison that is asked for it.
    """

    names: str
    what: str = ""
    checked_by: str = "–"
    chart: bool = False
    label: str = ""
    noun: str = ""
    better: Better = ""
    unit: Literal["score", "share", "signed", "whole", "usd", "seconds", "milliseconds"] = "score"
    group: Group | None = None
    headline: bool = False
    listed: Listed = "everywhere"

    @property
    def name(self) -> str:
        """The first of the names, whose value the label is for."""
        return _alternatives(self.names)[0]

    @property
    def words(self) -> str:
        """The words in a sentence: `IR score`, `right answers`."""
        return self.noun or self.label

    @property
    def difference(self) -> str:
        """The title of a column of differences: `IR score`, `right, points`."""
        return self.label + ", points" * (self.unit == "share")


def capitalised(words: str) -> str:
    """The words with a capital at their head; the rest stays as it is."""
    return words[:1].upper() + words[1:]


def metrics_in(declared: Iterable[Metric | str]) -> list[Metric]:
    """The declared metrics; a text stands for a Metric of these names."""
    return [Metric(one) if isinstance(one, str) else one for one in declared]


def spelled(declared: Iterable[Metric | str], charts: bool = False) -> list[str]:
    """The declared names of single values, or of charts."""
    return [name for one in metrics_in(declared) if one.chart == charts for name in _alternatives(one.names)]


@functools.cache
def _alternatives(text: str) -> tuple[str, ...]:
    parts = re.split(r"\{([^{}]*)\}", text)
    choices = [part.split(",") if at % 2 else [part] for at, part in enumerate(parts)]
    return tuple("".join(chosen) for chosen in itertools.product(*choices))


def _share(name: str, label: str, noun: str = "", better: Better = "", listed: Listed = "compare") -> Metric:
    return Metric(f"{name}{{,_lo,_hi}}", label=label, noun=noun, better=better, unit="share", group="", listed=listed)


IR_SCORE = Metric("ir_score{,_lo,_hi}", label="IR score", better="higher", group="", listed="compare")
CORRECT = _share("correct_share", "right", "right answers", "higher")
HALLUCINATION = _share("hallucination_share", "hallucination", "hallucinations", "lower")
REJECTION = _share(
    "rejection_share", "rejected", "unanswerable questions that were rejected", "higher", listed="on request"
)
CLASS_SHARES = (
    _share("judge_share_1", "1 lack", "lack of information"),
    _share("judge_share_2", "2 partly wrong", better="lower"),
    _share("judge_share_3", "3 incomplete"),
    _share("judge_share_4", "4 wrong", better="lower"),
    _share("judge_share_5", "5 right", better="higher", listed="on request"),
)
NO_VERDICT = _share("judge_share_missing", "no verdict", better="lower")  # of the answers to judge
COST = Metric("cost_usd", label="cost, USD", unit="usd", group="cost", headline=True, listed="compare")
SHARES = (CORRECT, HALLUCINATION, REJECTION, *CLASS_SHARES)
# Measures of a ranking that a job has unless its config lists others, and those of them that comparisons show.
_COMPARED_RANKINGS = ("P@1", "R@5", "nDCG@10", "RR")
CLASSICS = tuple(
    Metric(
        f"{name.replace('@', '_at_').lower()}{{,_lo,_hi}}", label=name, better="higher", group="ranking",
        headline=name == "nDCG@10", listed="compare" if name in _COMPARED_RANKINGS else "on request",
    )
    for name in sorted(RANKINGS, key=lambda name: (*_COMPARED_RANKINGS, *RANKINGS).index(name))
)  # fmt: skip
MISSING = NO_VERDICT.name
# Of what follows from verdicts: without a verdict the metrics of these are no values.
OF_VERDICTS = tuple(metric.name for metric in SHARES)
# What systems are compared by before all else, as pairs of systems name it.
HEADLINES = {"ir_score": IR_SCORE, "correct": CORRECT, "hallucination": HALLUCINATION}
# The metrics that pairs name otherwise.
MEASURE_OF = {metric.name: measure for measure, metric in HEADLINES.items() if metric.name != measure}
# By the name of the metric, and by that of pairs.
METRICS: Mapping[str, Metric] = {**{one.name: one for one in (IR_SCORE, *SHARES, NO_VERDICT, COST)}, **HEADLINES}

# What is estimated from verdicts, of a job and of the jobs of a sweep together.
ESTIMATES = (
    Metric("threshold_{h,k}", group="threshold", headline=True),
    Metric(
        "threshold_{h,k}{_lo,_hi,_set_min,_set_max,_accuracy,_base_rate,_degenerate,_gain,_gain_lo,_gain_hi}",
        group="threshold",
    ),
    Metric("zone_right_{above,share,missed}", group="threshold"),
    Metric("zone_lack_{below,share,missed}", group="threshold"),
    Metric("predictor_auc_{correct,lack}", group="predictor", headline=True),
    Metric(
        "predictor_{log_loss,log_loss_base,brier,brier_base,ece,calibration_slope,calibration_intercept}",
        group="predictor",
    ),
    Metric("human_labels", group="judge"),
    Metric("judge_{kappa,agreement}{,_lo,_hi}", group="judge"),
)
_PAID = f"{{llm_calls,llm_calls_cached,llm_usage_unknown,{','.join(TOKENS)},cost_usd}}"
COSTS = (
    Metric("llm_calls", group="cost", headline=True),
    COST,
    Metric("judge_cost_usd", label="judge's cost, USD", unit="usd", group="cost", listed="compare"),
    Metric(f"latency_{_PAID}", group="stage"),
    Metric(f"{{{','.join(CALLS)}}}{_PAID}", group="cost"),
    Metric(f"{{{','.join(CALLS)}}}{{llm_cut,llm_echoes,llm_thoughts}}", group="missing"),
)
# Of every job, and of the MLflow run that pools a sweep, beside what their findings declare.
OF_EVERY_JOB = (
    "topics", Metric("seconds_total", group="stage", headline=True), Metric("stages_made", group="stage"), "seconds_*",
)  # fmt: skip
OF_EVERY_SWEEP = (Metric("jobs{,_failed}", group=""), "seconds_{jobs,pooled}")
OF_EVERY_CHART = (Metric("tokens", chart=True),)


Declared = Mapping[str, Metric]  # by name


def by_name(declared: Iterable[Metric | str]) -> dict[str, Metric]:
    """The metrics by each of their names (some with a *); the first that declares a name counts."""
    found: dict[str, Metric] = {}
    for metric in metrics_in(declared):
        for name in _alternatives(metric.names):
            found.setdefault(name, metric)
    return found


COMMON = by_name((*METRICS.values(), *CLASSICS, *ESTIMATES, *COSTS, *OF_EVERY_JOB, *OF_EVERY_SWEEP))
# The groups by the ends of names: the first pattern that fits decides, those of intervals and charts before a
# declaration.
_FIRST: Mapping[Group, str] = {"chart": r"tokens|.*_at_(n|day)", "interval": r".*_(lo|hi)"}
_ELSE: Mapping[Group, str] = {
    "missing": r".*_(missing|no_claims|failed)|.*llm_(cut|echoes|thoughts)",
    "stage": r"seconds_.*",
    "cost": r".*(llm_calls|llm_calls_cached|usage_unknown|_tokens|cost_usd)",
    "predictor": r"(predictor|predicted)_.*",
    "ranking": r"(chunk_)?(rr|ap|.*_at_\d+)(_.*)?",
    "judge": r"(judge|judged|human)_.*",
}


def in_group(name: str, declared: Declared = COMMON) -> str:
    """A metric's name in MLflow, such as `interval/em_lo` for em_lo; unchanged for headlines and grouped names."""
    if "/" in name:
        return name
    group = _by_end(name, _FIRST)
    if not group:
        metric = declared.get(name) or COMMON.get(name) or _by_form(name, declared)
        if metric is not None and metric.headline:
            return name
        group = _by_end(name, _ELSE) if metric is None or metric.group is None else metric.group
    return f"{group}/{name}" if group else name


def _by_end(name: str, forms: Mapping[Group, str]) -> Group:
    return next((group for group, form in forms.items() if re.fullmatch(form, name)), "")


def _by_form(name: str, declared: Declared) -> Metric | None:
    return next((metric for form, metric in declared.items() if "*" in form and fnmatchcase(name, form)), None)


def without_groups(logged: Mapping[str, float]) -> dict[str, float]:
    """Logged metrics by their names without groups."""
    parted = {name: name.partition("/") for name in logged}
    return {
        end if group in ORDER and end and "/" not in end else name: logged[name]
        for name, (group, _, end) in parted.items()
    }


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
