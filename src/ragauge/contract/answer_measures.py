"""Display properties of a job's answer measures: checked once, recorded with the job, and read back.

Tables, report and comparison use this record alone and import no class.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, get_args, get_type_hints

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.groups import ANSWERS
from ragauge.contract.measures import AnswerMeasure, AnswerMeasureInfo
from ragauge.contract.metrics import COSTS, MEASURE_ENDS, OF_EVERY_JOB, OF_EVERY_SWEEP, spelled
from ragauge.contract.outcomes import names

ANSWER_MEASURES_TAG = "ragauge.answer_measures"  # of an MLflow run: the record as JSON
RANKINGS_SECTION = "Rankings"  # of the measures of the ranking that every job has
# Why a value is missing on purpose: nobody was asked, or there is nothing to measure. Other missing values
# are failures, and a rerun measures them again.
NO_ANSWER, NO_REFERENCE, NO_EVIDENCE, NO_CONTEXT, NO_CLAIMS = (
    "no answer", "no reference", "no evidence", "no context", "no claims",
)  # fmt: skip
NO_NUGGETS, NO_CITATIONS = "no nuggets", "no citations"
NO_DOCUMENT = "no document"  # of a ranking of texts that are no documents of the corpus
NOT_SAMPLED = "not sampled"  # of a topic that a sample of topics leaves out
NOTHING_USED = "nothing used"  # the answer rests on no passage, so that there is none to look at
SETTLED = (
    "none", NO_ANSWER, NO_REFERENCE, NO_EVIDENCE, NO_CONTEXT, NO_CLAIMS, NO_NUGGETS, NO_CITATIONS,
    NOTHING_USED, NO_DOCUMENT,
)  # fmt: skip
# Of a measure's metrics and columns.
ENDS = (*MEASURE_ENDS, "_in_best_set", "_detail")

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# Columns of outcomes and of tables of runs, and metrics that every job may have.
_TAKEN = {
    *names(), *spelled([*OF_EVERY_JOB, *OF_EVERY_SWEEP, *COSTS]), "n_topics", "n_judged", "run", "run_id", "compared",
    "correct", "topics_skipped", "rr", "truthfulness", "bleu_corpus",
}  # fmt: skip
# Beginnings of ragauge's own metrics and columns.
_OWN = re.compile(
    r"(ir_score|judge|correct|hallucination|threshold|predict|human|transfer|seconds|zone|auc|p_at|r_at|ndcg|funnel|failure)"
    r"(_.*)?|predicted_.*|predictor_.*|best_set_.*|top_optimism_.*"
)


def infos_of(measure: AnswerMeasure) -> tuple[AnswerMeasureInfo, ...]:
    """The measure's `infos`, or its single `info`."""
    several: tuple[AnswerMeasureInfo, ...] = tuple(measure.infos)
    return several or (measure.info,)


def checked(
    of_config: Mapping[str, Sequence[AnswerMeasureInfo]], of_rankings: Sequence[AnswerMeasureInfo] = ()
) -> list[AnswerMeasureInfo]:
    """The infos of the measures by config key; ConfigError for one that cannot be shown.

    of_rankings: the infos of the job's ranking measures, whose names are reserved.
    """
    allowed = get_type_hints(AnswerMeasureInfo)
    names = {info.name + end: f"measures={info.label}" for info in of_rankings for end in ENDS}
    shown = [(key, info) for key, infos in of_config.items() for info in infos]
    for key, info in shown:
        where = f"{ANSWERS}.{key}"
        if not _NAME.fullmatch(info.name):
            raise ConfigError(f"{where}: name {info.name!r}: allowed are letters, digits and _, a letter first")
        for field in ("direction", "unit", "of"):
            value, known = getattr(info, field), get_args(allowed[field])
            if value not in known:
                raise ConfigError(f"{where}: {field} {value!r}: allowed are {', '.join(known)}")
        if not info.label.strip() or not info.section.strip():
            raise ConfigError(f"{where}: label and section may not be empty")
        if info.name in _TAKEN or _OWN.fullmatch(info.name):
            raise ConfigError(f"{where}: the name {info.name!r} is that of a metric or column of ragauge's own")
        for name in (info.name + end for end in ENDS):
            if name in names:
                raise ConfigError(f"{where} and {names[name]} would both write {name!r}")
        names |= {info.name + end: where for end in ENDS}
    return [info for _, info in shown]


def as_record(infos: Iterable[AnswerMeasureInfo]) -> list[dict[str, Any]]:
    """The infos in plain values for a job's record, without defaults."""
    usual = {field.name: field.default for field in fields(AnswerMeasureInfo)}
    return [{key: value for key, value in asdict(info).items() if value != usual[key]} for info in infos]


def as_tag(infos: Sequence[AnswerMeasureInfo]) -> dict[str, str]:
    """The tag of a job's MLflow run; {} where nothing is measured."""
    return {ANSWER_MEASURES_TAG: json.dumps(as_record(infos), ensure_ascii=False)} if infos else {}


def from_tags(tags: Mapping[str, str]) -> list[dict[str, Any]]:
    """The record in the tags of a run; [] without one, DataError for an unreadable one."""
    try:
        found: list[dict[str, Any]] = json.loads(tags.get(ANSWER_MEASURES_TAG, "[]"))
        in_order([found])
    except (ValueError, TypeError) as error:
        raise DataError(f"the tag {ANSWER_MEASURES_TAG} of a run cannot be read: {error}") from None
    return found


def in_order(records: Iterable[Sequence[Mapping[str, Any]]]) -> list[AnswerMeasureInfo]:
    """The distinct measures of several jobs, each as in the first job with it."""
    found: dict[str, AnswerMeasureInfo] = {}
    for record in records:
        for values in record:
            info = AnswerMeasureInfo(**values)
            found.setdefault(info.name, info)
    return list(found.values())


def is_ranking(info: AnswerMeasureInfo) -> bool:
    """Whether it is one of the ranking measures of every job (`measures`)."""
    return info.section == RANKINGS_SECTION


def besides_rankings(infos: Iterable[AnswerMeasureInfo]) -> list[AnswerMeasureInfo]:
    """The compared measures of answers and contexts; measures of rankings have their own tables."""
    return [info for info in infos if info.compared and not is_ranking(info)]


def column_label(info: AnswerMeasureInfo) -> str:
    """The label with an arrow for the better direction."""
    return f"{info.label} {'↑' if info.direction == 'higher' else '↓'}"
